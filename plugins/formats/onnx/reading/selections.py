"""Readers of operators that pick elements, and of those that put elements into places."""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np

from ....ops import comparison, maximum
from .arrays import (
    Array,
    Unsupported,
    cast,
    concat,
    elementwise,
    known,
    matmul,
    normal,
    numbers_to,
    of_sizes,
    reshape,
    slice_,
    static,
    take,
    transpose,
    unsqueeze,
)
from .elementary import read_equal, read_less, select
from .importer import Operator
from .sizes import Size, product


def read_gather(node: Operator, x: Array, indices: Array) -> Array:
    return take(x, indices, node.attribute("axis", 0))


def read_compress(node: Operator, x: Array, condition: Array) -> Array:
    chosen = np.flatnonzero(condition.numbers)
    if not node.has("axis"):
        return take(reshape(x, [-1]), known(chosen), 0)
    return take(x, known(chosen), node.attribute("axis"))


def read_one_hot(node: Operator, indices: Array, depth: Array, values: Array) -> Array:
    size = int(depth.numbers.reshape(-1)[0])
    axis = normal(node.attribute("axis", -1), indices.rank + 1)
    off, on = values.numbers.reshape(-1)
    if indices.is_known:
        numbers = indices.numbers
        numbers = np.where(numbers < 0, numbers + size, numbers).astype(np.int64)
        hot = np.expand_dims(numbers, axis) == np.arange(size).reshape([-1 if at == axis else 1 for at in range(indices.rank + 1)])
        return known(np.where(hot, on, off).astype(values.dtype))
    below = elementwise(np.less, comparison.less, indices, known(np.zeros((), indices.dtype)), dtype=np.bool_)
    hot_array = one_hot(indices + cast(below, indices.dtype) * size, size, axis, values.dtype)
    if (off, on) == (0, 1):
        return hot_array
    return hot_array * (on - off) + off


def one_hot(indices: Array, size: Any, axis: int, dtype: Any) -> Array:
    """1 at the places that numbers say, along a new axis; where *indices* has the axis already, of size 1, in its place."""
    dims = list(indices.dims)
    if axis < len(dims) and dims[axis] == 1 and isinstance(size, int):
        numbers = known(np.arange(size).reshape([-1 if at == axis else 1 for at in range(len(dims))]))
        return cast(elementwise(np.equal, comparison.equal, indices, numbers, dtype=np.bool_), dtype)
    wide = unsqueeze(indices, [axis])
    numbers = known(np.arange(size).reshape([-1 if at == axis else 1 for at in range(wide.rank)]))
    return cast(elementwise(np.equal, comparison.equal, wide, numbers, dtype=np.bool_), dtype)


# ---- elements by numbers -------------------------------------------------------------------------


def _flat_numbers(dims: list[int], places: list[Any]) -> Any:
    """Numbers of elements in a flat array, from the numbers along each of the first axes."""
    for place, dim in zip(places, dims, strict=False):
        if place.size and (place.min() < -dim or place.max() >= dim):
            raise Unsupported(f"the number {int(np.abs(place).max())} of an element, of an axis of {dim}")
    return reduce(lambda total, one: total * one[1] + np.where(one[0] < 0, one[0] + one[1], one[0]), zip(places, dims, strict=False), 0)


def _concrete(x: Array) -> list[int]:
    if not x.is_concrete:
        raise Unsupported(f"elements of an array of the shape {list(x.dims)}, whose sizes depend on the data")
    return [int(dim) for dim in x.dims]


def read_gather_elements(node: Operator, x: Array, indices: Array) -> Array:
    axis = normal(node.attribute("axis", 0), x.rank)
    if indices.is_known:
        dims = _concrete(x)
        places = list(np.indices(indices.numbers.shape))
        places[axis] = indices.numbers
        return take(reshape(x, [-1]), known(_flat_numbers(dims, places)), 0)
    size = x.dims[axis]
    if isinstance(size, Size):
        raise Unsupported(f"elements along an axis of {size}, at places that are computed")
    order = [at for at in range(x.rank) if at != axis] + [axis]
    wide = unsqueeze(transpose(x, order), [x.rank - 1])  # ..., 1, size
    hot = one_hot(transpose(indices, order), size, x.rank, x.dtype)  # ..., chosen, size
    from .reductions import sum_over

    found = sum_over(hot * wide, [x.rank])
    chosen = reshape(found, [hot.dims[at] for at in range(x.rank)])
    return transpose(chosen, [order.index(at) for at in range(x.rank)])


def read_gather_nd(node: Operator, x: Array, indices: Array) -> Array:
    shared = node.attribute("batch_dims", 0)
    if not indices.is_known:
        return _at_computed_places(node, x, indices, shared)
    numbers = indices.numbers
    depth = numbers.shape[-1]
    dims = list(x.dims)
    if shared == 0 and all(isinstance(dim, int) for dim in dims[:depth]):
        flat = reshape(x, [product(dims[:depth]), *dims[depth:]])
        return take(flat, known(_flat_numbers([int(dim) for dim in dims[:depth]], [numbers[..., at] for at in range(depth)])), 0)
    whole = _concrete(x)
    lead = np.indices(numbers.shape[:-1])[:shared]
    places = [*lead, *(numbers[..., at] for at in range(depth))]
    flat = reshape(x, [math.prod(whole[: shared + depth]), *whole[shared + depth :]])
    return take(flat, known(_flat_numbers(whole[: shared + depth], places)), 0)


def _at_computed_places(node: Operator, x: Array, indices: Array, shared: int) -> Array:
    """Elements by numbers that are computed, such as the last step of each sample."""
    from .reductions import sum_over

    depth = indices.dims[-1]
    if shared > 1 or isinstance(depth, Size):
        raise Unsupported(f"elements at computed places of the shape {list(indices.dims)}, with {shared} axes in common")
    dims, rest = x.dims[shared : shared + depth], x.dims[shared + depth :]
    place = known(np.array(0))
    for at, dim in enumerate(dims):
        number, size = reshape(slice_(indices, indices.rank - 1, at, at + 1), indices.dims[:-1]), reshape(of_sizes([dim]), [])
        number = select(read_less(node, number, known(np.array(0))), number + size, number)
        place = place * size + number
    count = product(dims)
    flat = reshape(x, [*x.dims[:shared], count, *rest])
    if not shared:
        return take(flat, place, 0)
    numbers = numbers_to(count) if isinstance(count, Size) else known(np.arange(count))
    chosen = read_equal(node, unsqueeze(place, [place.rank]), numbers)
    flat = reshape(flat, [x.dims[0], *[1] * (place.rank - 1), count, *rest])
    found = select(unsqueeze(chosen, list(range(chosen.rank, chosen.rank + len(rest)))), flat, known(np.zeros((), x.dtype)))
    return reshape(sum_over(found, [place.rank]), [*place.dims, *rest])


# ---- elements put into places --------------------------------------------------------------------

REDUCTIONS = {"none", "add", "mul", "max", "min"}


def scattered(x: Array, indices: Array, updates: Array, axis: int, how: str = "none") -> Array:
    """A list of elements, or of rows, with updates put in.

    Args:
        x: the elements, numbered along the first axis.
        indices: for each update its place.
        updates: the updates, one behind the other along the first axis.
        axis: the first one.
        how: what is done with what is there: ``none`` replaces it.
    """
    assert axis == 0
    if not indices.is_known:
        return _spread(x, indices, updates, how)
    places = indices.numbers.reshape(-1)
    size = int(x.dims[0])
    places = np.where(places < 0, places + size, places)
    if places.size and (places.min() < 0 or places.max() >= size):
        raise Unsupported(f"an update at the place {int(places.max())} of {size}")
    if how == "none":
        source = np.arange(size)
        source[places] = size + np.arange(places.size)
        return take(concat([x, updates], 0), known(source), 0)
    neutral = {"add": 0.0, "mul": 1.0}.get(how)
    waves = _waves(places)
    result = x
    for wave in waves:
        source = np.full(size, wave.size)
        source[places[wave]] = np.arange(wave.size)
        chosen = take(updates, known(wave), 0)
        if neutral is not None:
            blank = known(np.full((1, *(int(dim) for dim in updates.dims[1:])), neutral, x.dtype))
            spread = take(concat([chosen, blank], 0), known(source), 0)
            result = result + spread if how == "add" else result * spread
            continue
        there = known((source < wave.size).reshape([-1, *[1] * (x.rank - 1)]))
        spread = take(chosen, known(np.minimum(source, wave.size - 1)), 0)
        best = elementwise(*((np.maximum, maximum.element_max) if how == "max" else (np.minimum, maximum.element_min)), result, spread)
        result = select(there, best, result)
    return result


def _waves(places: Any) -> list[Any]:
    """The updates in groups in which no place comes twice."""
    seen: dict[int, int] = {}
    groups: list[list[int]] = []
    for at, place in enumerate(places.tolist()):
        turn = seen.get(place, 0)
        seen[place] = turn + 1
        if turn == len(groups):
            groups.append([])
        groups[turn].append(at)
    if len(groups) > 256:
        raise Unsupported(f"{len(groups)} updates of the same place")
    return [np.array(group, np.int64) for group in groups]


def _spread(x: Array, indices: Array, updates: Array, how: str) -> Array:
    """Updates at places that are computed, which do not meet: the product with a matrix that is 1 there."""
    size = int(x.dims[0])
    if how not in ("none", "add") or size * int(product(updates.dims[:1])) > 2**26:
        raise Unsupported("updates at places that are computed")
    hot = one_hot(reshape(static(indices), [-1]), size, 1, x.dtype)
    flat = reshape(updates, [updates.dims[0], product(updates.dims[1:])])
    spread = reshape(matmul(transpose(hot, [1, 0]), flat), x.dims)
    if how == "add":
        return x + spread
    from .reductions import max_over

    there = reshape(max_over(hot, [0]), [size, *[1] * (x.rank - 1)])
    return select(cast(there, np.bool_), spread, x)


def read_scatter_elements(node: Operator, x: Array, indices: Array, updates: Array) -> Array:
    axis, how = normal(node.attribute("axis", 0), x.rank), node.attribute("reduction", "none")
    if how not in REDUCTIONS:
        raise Unsupported(f"the reduction {how!r}")
    dims, numbers = _concrete(x), indices.numbers
    places = list(np.indices(numbers.shape))
    places[axis] = numbers
    flat = known(np.asarray(_flat_numbers(dims, places)).reshape(-1))
    return reshape(scattered(reshape(static(x), [-1]), flat, reshape(static(updates), [-1]), 0, how), x.dims)


read_scatter = read_scatter_elements


def read_scatter_nd(node: Operator, x: Array, indices: Array, updates: Array) -> Array:
    how, numbers = node.attribute("reduction", "none"), indices.numbers
    if how not in REDUCTIONS:
        raise Unsupported(f"the reduction {how!r}")
    depth = numbers.shape[-1]
    dims = [int(dim) for dim in x.dims[:depth] if isinstance(dim, int)]
    if len(dims) != depth:
        raise Unsupported(f"updates of an array of the shape {list(x.dims)}, whose sizes depend on the data")
    places = np.asarray(_flat_numbers(dims, [numbers[..., at] for at in range(depth)])).reshape(-1)
    rows = reshape(static(x), [math.prod(dims), *x.dims[depth:]])
    given = reshape(static(updates), [places.size, *x.dims[depth:]])
    return reshape(scattered(rows, known(places), given, 0, how), x.dims)


# ---- sequences -----------------------------------------------------------------------------------


def read_reverse_sequence(node: Operator, x: Array, lengths: Array) -> Array:
    """The first elements of each sample, as many as its length says, in the other order."""
    time, samples = node.attribute("time_axis", 0), node.attribute("batch_axis", 1)
    counts = lengths.numbers.astype(np.int64)
    steps = int(x.dims[time])
    numbers = np.tile(np.arange(steps), (counts.size, 1))
    for row, count in enumerate(counts):
        numbers[row, :count] = np.arange(count)[::-1]
    order = [samples, time, *(axis for axis in range(x.rank) if axis not in (samples, time))]
    front = transpose(static(x), order)
    flat = reshape(front, [counts.size * steps, *front.dims[2:]])
    found = take(flat, known((numbers + np.arange(counts.size)[:, None] * steps).reshape(-1)), 0)
    return transpose(reshape(found, front.dims), [order.index(axis) for axis in range(x.rank)])
