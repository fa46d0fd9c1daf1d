"""Readers of operators that reduce axes, and of those that look along one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ops import arithmetic, elementary, extremum, norm, reduction, sorting
from .arrays import (
    Array,
    Unsupported,
    check_room,
    elementwise,
    fold,
    known,
    made,
    matmul,
    normal,
    slice_,
    squeeze,
    static,
    transpose,
    unsqueeze,
    whole,
)
from .importer import Operator
from .shapes import integers
from .sizes import Size

Over = Callable[[Array, Sequence[int]], Array]


def over(compute: Callable[..., Any], operator: Callable[..., Any]) -> Over:
    """A function that reduces axes, which stay as axes of size 1."""

    def reduce(x: Array, axes: Sequence[int]) -> Array:
        axes = sorted({normal(axis, x.rank) for axis in axes})
        dims = [1 if axis in axes else dim for axis, dim in enumerate(x.dims)]
        if not axes:
            return x
        x = whole(x)
        if x.is_known:
            return fold(lambda one: compute(one, axis=tuple(axes), keepdims=True), x, dtype=x.dtype)
        if x.batch in axes:
            x = static(x)
        places = [axis - (x.batch is not None and axis > x.batch) for axis in axes]
        variable = x.held()
        if any(dim == 0 for dim in x.dims):
            raise Unsupported("a reduction of no elements")
        return made(operator(variable, places), dims, x.dtype, x.batch)

    return reduce


sum_over = over(np.sum, reduction.reduce_sum)
mean_over = over(np.mean, reduction.reduce_mean)
max_over = over(np.max, extremum.reduce_max)
min_over = over(np.min, extremum.reduce_min)
prod_over = over(np.prod, reduction.reduce_prod)
l1_over = over(lambda x, **axes: np.abs(x).sum(**axes), norm.reduce_l1)
l2_over = over(lambda x, **axes: np.sqrt(np.square(x).sum(**axes)), norm.reduce_l2)
square_over = over(lambda x, **axes: np.square(x).sum(**axes), norm.reduce_sum_square)
log_sum_exp_over = over(lambda x, **axes: np.log(np.exp(x).sum(**axes)), reduction.reduce_log_sum_exp)


def reducing(reduce: Over, since: int = 18, empty: float | None = None) -> Callable[..., Array]:
    """The reader of a reduction, whose axes are an operand from version *since* on."""

    def read(node: Operator, x: Array, axes: Array | None = None) -> Array:
        found = integers(node, "axes", axes, since)
        if not found and node.attribute("noop_with_empty_axes", 0):
            return reduce(x, []) if reduce not in _ELEMENTWISE else _ELEMENTWISE[reduce](x)
        chosen = [normal(axis, x.rank) for axis in found] if found else list(range(x.rank))
        kept = node.attribute("keepdims", 1)
        result = _of_nothing(x, chosen, empty) if any(x.dims[axis] == 0 for axis in chosen) else reduce(x, chosen)
        return result if kept or not chosen else squeeze(result, chosen)

    return read


def _of_nothing(x: Array, axes: Sequence[int], value: float | None) -> Array:
    """What a reduction gives of no elements."""
    if value is None or not x.is_concrete:
        raise Unsupported("a reduction of no elements")
    return known(np.full([1 if axis in axes else int(dim) for axis, dim in enumerate(x.dims)], value, x.dtype))


def _log(x: Array) -> Array:
    return elementwise(np.log, elementary.log, x)


def _log_sum(x: Array, axes: Sequence[int]) -> Array:
    return _log(sum_over(x, axes))


def _absolute(x: Array) -> Array:
    return elementwise(np.abs, arithmetic.abs, x)


_ELEMENTWISE: dict[Over, Callable[[Array], Array]] = {
    l1_over: _absolute,
    l2_over: _absolute,
    square_over: lambda x: elementwise(np.square, arithmetic.square, x),
    _log_sum: _log,
}
"""What reductions do to elements where no axes are reduced."""

read_reduce_l1 = reducing(l1_over, empty=0)
read_reduce_l2 = reducing(l2_over, empty=0)
read_reduce_log_sum = reducing(_log_sum, empty=-np.inf)
read_reduce_log_sum_exp = reducing(log_sum_exp_over, empty=-np.inf)
read_reduce_max = reducing(max_over, empty=-np.inf)
read_reduce_mean = reducing(mean_over)
read_reduce_min = reducing(min_over, empty=np.inf)
read_reduce_prod = reducing(prod_over, empty=1)
read_reduce_sum = reducing(sum_over, since=13, empty=0)
read_reduce_sum_square = reducing(square_over, empty=0)


# ---- where the largest are -----------------------------------------------------------------------


def arg_extremum(x: Array, axis: int, *, largest: bool, last: bool = False) -> Array:
    """The number of the largest, or least, element along an axis, which stays; the first of equal ones, or the last."""
    x, axis = whole(x), normal(axis, x.rank)
    dims = [1 if other == axis else dim for other, dim in enumerate(x.dims)]
    if x.is_known:
        numbers = np.flip(x.numbers, axis) if last else x.numbers
        places = np.expand_dims((np.argmax if largest else np.argmin)(numbers, axis), axis)
        return known((x.known.shape[axis] - 1 - places if last else places).astype(np.int64))
    if x.batch == axis:
        x = static(x)
    dim = x.dims[axis]
    if last:
        x = slice_(x, axis, None, None, -1)
    place = axis - (x.batch is not None and axis > x.batch)
    found = made((extremum.argmax if largest else extremum.argmin)(x.held(), place), dims, np.int64, x.batch)
    if not last:
        return found
    if isinstance(dim, Size):
        raise Unsupported(f"the last of the largest elements along an axis of {dim}")
    return known(np.array(dim - 1, np.int64)) - found


def _reader_of_extremum(largest: bool) -> Callable[..., Array]:
    def read(node: Operator, x: Array) -> Array:
        axis = normal(node.attribute("axis", 0), x.rank)
        found = arg_extremum(x, axis, largest=largest, last=bool(node.attribute("select_last_index", 0)))
        return found if node.attribute("keepdims", 1) else squeeze(found, [axis])

    return read


read_arg_max = _reader_of_extremum(True)
read_arg_min = _reader_of_extremum(False)


def read_top_k(node: Operator, x: Array, k: Array | None = None) -> tuple[Array, Array]:
    x, axis = whole(x), normal(node.attribute("axis", -1), x.rank)
    count = node.required("k") if k is None else int(k.numbers.reshape(-1)[0])
    largest = bool(node.attribute("largest", 1))
    dims = [count if other == axis else dim for other, dim in enumerate(x.dims)]
    if x.is_known:
        values = x.numbers.astype(np.float64 if x.is_float else np.int64)
        order = np.argsort(-values if largest else values, axis=axis, kind="stable")
        order = np.take(order, np.arange(min(count, order.shape[axis])), axis)
        return known(np.take_along_axis(x.numbers, order, axis)), known(order.astype(np.int64))
    if x.batch == axis:
        x = static(x)
    place = axis - (x.batch is not None and axis > x.batch)
    given = x if largest else -x
    top = sorting.top_k(given.held(), count, place)
    values, numbers = top.outputs
    found = made(values, dims, x.dtype, x.batch)
    return found if largest else -found, made(numbers, dims, np.int64, x.batch)


# ---- running sums --------------------------------------------------------------------------------


def running_sum(x: Array, axis: int, *, exclusive: bool, reverse: bool) -> Array:
    """The sum of the elements up to each, or from each on: the product with a triangle of ones."""
    x, axis = whole(x), normal(axis, x.rank)
    dim = x.dims[axis]
    if x.is_known:
        numbers = np.flip(x.numbers, axis) if reverse else x.numbers
        totals = np.cumsum(numbers, axis, dtype=x.dtype)
        totals = totals - numbers if exclusive else totals
        return known(np.flip(totals, axis) if reverse else totals)
    if isinstance(dim, Size):
        return _scan(x, axis, exclusive=exclusive, reverse=reverse)
    check_room([dim, dim], 4)
    triangle = np.triu(np.ones((dim, dim), x.storage), 1 if exclusive else 0)
    order = [other for other in range(x.rank) if other != axis] + [axis]
    sums = matmul(transpose(x, order), Array((dim, dim), x.dtype, triangle.T.copy() if reverse else triangle))
    return transpose(sums, [order.index(other) for other in range(x.rank)])


def _scan(x: Array, axis: int, *, exclusive: bool, reverse: bool) -> Array:
    """A running sum along an axis whose size depends on the data: a recurrence."""
    from .sequences import from_steps, steps_of

    steps = steps_of(unsqueeze(x, [x.rank]), axis)  # CNTK makes no sequences of numbers, but of vectors
    sums = steps.running_sum(reverse=reverse)
    found = squeeze(from_steps(sums, [*x.dims, 1], axis, x.dtype, steps), [x.rank])
    return found - x if exclusive else found


def read_cum_sum(node: Operator, x: Array, axis: Array) -> Array:
    return running_sum(
        x, int(axis.numbers.reshape(-1)[0]), exclusive=bool(node.attribute("exclusive", 0)), reverse=bool(node.attribute("reverse", 0))
    )
