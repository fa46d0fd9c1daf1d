"""Readers of operators that pick elements, and of those that put elements into places."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from ....ops import comparison, maximum
from .arrays import (
    Array,
    Unsupported,
    batched,
    cast,
    check_room,
    concat,
    counting,
    elementwise,
    known,
    matmul,
    normal,
    rebatched,
    reshape,
    slice_,
    static,
    take,
    transpose,
    unsqueeze,
    whole,
)
from .dividing import flat_numbers, numbers_along
from .elementary import select
from .importer import Operator
from .sizes import Size, product


def read_gather(node: Operator, x: Array, indices: Array) -> Array:
    return take(x, indices, node.attribute("axis", 0))


def read_compress(node: Operator, x: Array, condition: Array) -> Array:
    chosen = np.flatnonzero(condition.numbers)
    if not node.has("axis"):
        return take(reshape(x, [-1]), known(chosen), 0)
    return take(x, known(chosen), node.attribute("axis"))


def read_non_zero(node: Operator, x: Array) -> Array:
    """The places of elements that the file gives, or that shapes do."""
    return known(np.argwhere(x.numbers).T.astype(np.int64))


def read_one_hot(node: Operator, indices: Array, depth: Array, values: Array) -> Array:
    indices, size = whole(indices), int(depth.numbers.reshape(-1)[0])
    axis = normal(node.attribute("axis", -1), indices.rank + 1)
    off, on = values.numbers.reshape(-1)
    if indices.is_known:
        numbers = indices.numbers
        numbers = np.where(numbers < 0, numbers + size, numbers).astype(np.int64)
        check_room([*indices.dims, size])
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
        numbers = reshape(counting(size), [-1 if at == axis else 1 for at in range(len(dims))])
        return cast(elementwise(np.equal, comparison.equal, indices, numbers, dtype=np.bool_), dtype)
    wide = unsqueeze(indices, [axis])
    numbers = reshape(counting(size), [-1 if at == axis else 1 for at in range(wide.rank)])
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
    axis, x, indices = normal(node.attribute("axis", 0), x.rank), whole(x), whole(indices)
    if indices.is_known:
        dims = _concrete(x)
        places = list(np.indices(indices.numbers.shape))
        places[axis] = indices.numbers
        return take(reshape(x, [-1]), known(_flat_numbers(dims, places)), 0)
    size = x.dims[axis]
    if isinstance(size, Size):
        return rebatched(_by_places(x, indices, axis, indices.dims), x)
    order = [at for at in range(x.rank) if at != axis] + [axis]
    wide = unsqueeze(transpose(x, order), [x.rank - 1])  # ..., 1, size
    hot = one_hot(transpose(indices, order), size, x.rank, x.dtype)  # ..., chosen, size
    from .reductions import sum_over

    found = sum_over(hot * wide, [x.rank])
    chosen = reshape(found, [hot.dims[at] for at in range(x.rank)])
    return transpose(chosen, [order.index(at) for at in range(x.rank)])


def _by_rows(x: Array, indices: Array, shared: int) -> Array:
    """Parts of an array by rows of computed numbers, one for each axis behind those that are shared."""
    depth = indices.dims[-1]
    if isinstance(depth, Size):
        raise Unsupported(f"rows of {depth} numbers of elements")
    *lead, _ = indices.dims
    columns = [reshape(slice_(static(indices), indices.rank - 1, at, at + 1), lead) for at in range(depth)]
    places = [numbers_along(dim, len(lead) - at - 1) for at, dim in enumerate(lead[:shared])]
    places += [_from_the_front(one, x.dims[shared + at]) for at, one in enumerate(columns)]
    taken = shared + depth
    rows = reshape(static(x), [product(x.dims[:taken]), *x.dims[taken:]])
    return take(rows, flat_numbers(places, x.dims[:taken]), 0)


def _from_the_front(numbers: Array, size: Any) -> Array:
    """The numbers of elements, of which negative ones count from the end of an axis."""
    below = elementwise(np.less, comparison.less, numbers, known(np.zeros((), numbers.dtype)), dtype=np.bool_)
    return numbers + flat_numbers([cast(below, np.int64), known(0)], [2, size])


def _by_places(x: Array, indices: Array, axis: int, dims: Sequence[Any]) -> Array:
    """Elements of all of the array by their numbers, of which those along an axis are computed."""
    size = x.dims[axis]
    places = [numbers_along(dim, len(dims) - at - 1) for at, dim in enumerate(dims)]
    places[axis] = _from_the_front(indices, size)
    return take(reshape(static(x), [-1]), static(flat_numbers(places, x.dims)), 0)


def read_gather_nd(node: Operator, x: Array, indices: Array) -> Array:
    shared, x, indices = node.attribute("batch_dims", 0), whole(x), whole(indices)
    if not indices.is_known:
        return rebatched(_by_rows(x, indices, shared), indices)
    numbers = indices.numbers
    depth = numbers.shape[-1]
    dims = list(x.dims)
    if shared == 0 and all(isinstance(dim, int) for dim in dims[:depth]):
        flat = reshape(x, [product(dims[:depth]), *dims[depth:]])
        return take(flat, known(_flat_numbers([int(dim) for dim in dims[:depth]], [numbers[..., at] for at in range(depth)])), 0)
    sizes = _concrete(x)
    lead = np.indices(numbers.shape[:-1])[:shared]
    places = [*lead, *(numbers[..., at] for at in range(depth))]
    flat = reshape(x, [math.prod(sizes[: shared + depth]), *sizes[shared + depth :]])
    return take(flat, known(_flat_numbers(sizes[: shared + depth], places)), 0)


# ---- elements put into places --------------------------------------------------------------------

REDUCTIONS = {"none", "add", "mul", "max", "min"}
MOST_UPDATES = 256
"""Along an axis, at places that are computed."""


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
    check_room([size])
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
    x, indices, updates = whole(x), whole(indices), whole(updates)
    if not (indices.is_known and x.is_concrete):
        return _put(x, indices, updates, axis, how)
    dims, numbers = _concrete(x), indices.numbers
    places = list(np.indices(numbers.shape))
    places[axis] = numbers
    flat = known(np.asarray(_flat_numbers(dims, places)).reshape(-1))
    return reshape(scattered(reshape(static(x), [-1]), flat, reshape(static(updates), [-1]), 0, how), x.dims)


def _put(x: Array, indices: Array, updates: Array, axis: int, how: str) -> Array:
    """Updates put in one after the other, at places along an axis that are computed."""
    size, count = x.dims[axis], indices.dims[axis]
    others = [dim for at, dim in enumerate(x.dims) if at != axis]
    if isinstance(size, Size) or isinstance(count, Size) or others != [dim for at, dim in enumerate(indices.dims) if at != axis]:
        raise Unsupported(
            f"updates of the shape {list(indices.dims)}, at places that are computed, of an array of the shape {list(x.dims)}"
        )
    if how not in ("none", "add") or count > MOST_UPDATES:
        raise Unsupported(
            f"{count} updates at places that are computed, with the reduction {how!r}; {MOST_UPDATES} of 'none' or 'add' are read"
        )
    for at in range(count):
        there = one_hot(slice_(indices, axis, at, at + 1), size, axis, x.dtype)
        update = slice_(updates, axis, at, at + 1)
        x = x + there * update if how == "add" else select(cast(there, np.bool_), update, x)
    return x


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
    time, samples = normal(node.attribute("time_axis", 0), x.rank), normal(node.attribute("batch_axis", 1), x.rank)
    counts = unsqueeze(static(whole(lengths)), [axis for axis in range(x.rank) if axis != samples])
    steps = numbers_along(x.dims[time], x.rank - time - 1)
    ahead = elementwise(np.less, comparison.less, steps, counts, dtype=np.bool_)
    found = _by_places(x, select(ahead, counts - 1 - steps, steps), time, x.dims)
    return found if x.batch is None else batched(found, x.batch)
