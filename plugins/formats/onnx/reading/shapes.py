"""Readers of operators that give arrays other shapes, join, divide and make them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .....core.common.dtypes import limits_of
from ....ops import spatial
from .arrays import (
    Array,
    Unsupported,
    cast,
    check_room,
    concat,
    counting,
    expand,
    known,
    made,
    normal,
    numbers_to,
    of_sizes,
    reshape,
    slice_,
    squeeze,
    static,
    take,
    transpose,
    unsqueeze,
)
from .importer import Operator
from .sizes import Size, product

MODES = {"constant": spatial.CONSTANT_PAD, "reflect": spatial.REFLECT_PAD}


def integers(node: Operator, name: str, operand: Array | None, operand_since: int) -> list[Any] | None:
    """A list of whole numbers that is an attribute in older versions and an operand from one on; None where it is left out."""
    if node.version < operand_since or (operand is None and node.has(name)):
        found = node.attribute(name)
        return None if found is None else list(found)
    return None if operand is None else operand.sizes


# ---- constants -----------------------------------------------------------------------------------


def read_constant(node: Operator) -> Array:
    for name, dtype in (("value_float", np.float32), ("value_floats", np.float32), ("value_int", np.int64), ("value_ints", np.int64)):
        if node.has(name):
            return known(np.asarray(node.attribute(name), dtype))
    if node.has("value_string") or node.has("value_strings"):
        raise Unsupported("a constant of type string, which is not read")
    if node.has("sparse_value"):
        return known(node.attribute("sparse_value"))
    value = node.required("value")
    return Array(value.shape, value.dtype, value, name=node.name)


def read_constant_of_shape(node: Operator, shape: Array) -> Array:
    value = np.asarray(node.attribute("value", np.zeros(1, np.float32))).reshape(-1)
    if value.size != 1:
        raise Unsupported(f"expected one number to fill an array with, got {value.size}")
    dims = shape.sizes
    return expand(known(value.reshape([1] * len(dims))), dims) if dims else known(value.reshape(()))


def read_eye_like(node: Operator, x: Array) -> Array:
    from ..tensors import type_of

    if x.rank != 2 or not x.is_concrete:
        raise Unsupported(f"a unit matrix of the shape {list(x.dims)}")
    dtype = type_of(node.attribute("dtype")) if node.has("dtype") else x.dtype
    check_room(x.dims)
    return known(np.eye(int(x.dims[0]), int(x.dims[1]), k=node.attribute("k", 0), dtype=dtype))


def read_range(node: Operator, start: Array, limit: Array, delta: Array) -> Array:
    begin, end, step = ((one.known if one.is_known else one.numbers).reshape(-1).tolist()[0] for one in (start, limit, delta))
    if not any(isinstance(one, Size) for one in (begin, end, step)):
        if step == 0:
            raise Unsupported("a range with steps of 0")
        count = max(math.ceil((end - begin) / step), 0)
        check_room([count])
        return known((begin + np.arange(count) * step).astype(start.dtype))
    if isinstance(begin, Size) or isinstance(step, Size) or step != 1:
        raise Unsupported(f"a range from {begin} to {end} in steps of {step}")
    return cast(numbers_to(end - begin) + known(np.asarray(begin, np.int64)), start.dtype)


# ---- shapes --------------------------------------------------------------------------------------


def read_shape(node: Operator, x: Array) -> Array:
    begin, end = node.attribute("start", 0), node.attribute("end", x.rank)
    return of_sizes(x.dims[slice(begin, end)])


def read_size(node: Operator, x: Array) -> Array:
    return reshape(of_sizes([product(x.dims)]), [])


def read_reshape(node: Operator, x: Array, shape: Array) -> Array:
    dims = shape.sizes
    if not node.attribute("allowzero", 0):
        for axis, dim in enumerate(dims):
            if not isinstance(dim, Size) and dim == 0:
                if axis >= x.rank:
                    raise Unsupported(f"the size 0 of axis {axis}, which the operand does not have")
                dims[axis] = x.dims[axis]
    return reshape(x, dims)


def read_flatten(node: Operator, x: Array) -> Array:
    axis = node.attribute("axis", 1)
    axis = axis + x.rank if axis < 0 else axis
    if not 0 <= axis <= x.rank:
        raise Unsupported(f"the axis {axis} is none of {x.rank}")
    return reshape(x, [product(x.dims[:axis]), product(x.dims[axis:])])


def read_squeeze(node: Operator, x: Array, axes: Array | None = None) -> Array:
    return squeeze(x, integers(node, "axes", axes, 13))


def read_unsqueeze(node: Operator, x: Array, axes: Array | None = None) -> Array:
    found = integers(node, "axes", axes, 13)
    if found is None:
        raise Unsupported("the axes are missing")
    return unsqueeze(x, found)


def read_transpose(node: Operator, x: Array) -> Array:
    return transpose(x, node.attribute("perm", list(range(x.rank))[::-1]))


def read_expand(node: Operator, x: Array, shape: Array) -> Array:
    return expand(x, shape.sizes)


def read_tile(node: Operator, x: Array, repeats: Array) -> Array:
    for axis, count in enumerate(repeats.sizes):
        if isinstance(count, Size):
            size = x.dims[axis]
            x = unsqueeze(x, [axis])
            x = expand(x, [count if other == axis else dim for other, dim in enumerate(x.dims)])
            x = reshape(x, [*x.dims[:axis], count * size, *x.dims[axis + 2 :]])
        elif x.is_known and x.known.shape == x.dims:
            check_room([*x.dims, count], x.dtype.itemsize)
            x = known(np.tile(x.known, [count if other == axis else 1 for other in range(x.rank)]))
        elif count != 1:
            if count < 1 or count > 10_000:
                raise Unsupported(f"an axis repeated {count} times")
            x = concat([x] * count, axis)
    return x


# ---- parts ---------------------------------------------------------------------------------------


def read_concat(node: Operator, *parts: Array) -> Array:
    return concat(parts, node.required("axis"))


def read_slice(
    node: Operator, x: Array, starts: Array | None = None, ends: Array | None = None, axes: Array | None = None, steps: Array | None = None
) -> Array:
    begins, stops = integers(node, "starts", starts, 10), integers(node, "ends", ends, 10)
    if begins is None or stops is None:
        raise Unsupported("where to begin or to end is missing")
    places = integers(node, "axes", axes, 10)
    places = list(range(len(begins))) if places is None else places
    strides = [1] * len(begins) if steps is None else steps.sizes
    return cut(x, begins, stops, places, strides)


def cut(x: Array, begins: Sequence[Any], stops: Sequence[Any], places: Sequence[Any], strides: Sequence[Any]) -> Array:
    """A range of elements along each of some axes."""
    for axis, begin, end, step in zip(places, begins, stops, strides, strict=True):
        axis = normal(axis, x.rank)
        if isinstance(step, Size) or step == 0:
            raise Unsupported(f"a slice in steps of {step}")
        begin, end = _within(begin, x.dims[axis], step), _within(end, x.dims[axis], step)
        x = slice_(x, axis, begin, end, step)
    return x


def _within(bound: Any, dim: Any, step: int) -> Any:
    """A bound in NumPy's form: None where it is before the first element for a step back."""
    if isinstance(bound, Size) or isinstance(dim, Size):
        if not isinstance(bound, Size) and step < 0 and bound <= -(2**31):
            return None
        if not isinstance(bound, Size) and step < 0 and bound >= -1:
            return None
        return bound
    if step < 0 and bound < -dim:
        return None
    return bound


def read_split(node: Operator, x: Array, sizes: Array | None = None) -> list[Array]:
    axis = normal(node.attribute("axis", 0), x.rank)
    parts = integers(node, "split", sizes, 13)
    dim = x.dims[axis]
    if parts is None:
        count = node.attribute("num_outputs", node.outputs)
        if isinstance(dim, Size):
            raise Unsupported(f"an axis of {dim} elements divided into {count} parts")
        if not 0 < count <= node.outputs:
            raise Unsupported(f"{count} parts for {node.outputs} results")
        each = -(-dim // count)
        parts = [min(each, max(dim - each * place, 0)) for place in range(count)]
    results, at = [], 0
    for size in parts:
        results.append(slice_(x, axis, at, at + size))
        at += size
    return results


def read_pad(node: Operator, x: Array, pads: Array | None = None, value: Array | None = None, axes: Array | None = None) -> Array:
    amounts = integers(node, "pads", pads, 11)
    fill = node.attribute("value", 0.0) if node.version < 11 else 0.0 if value is None else value.numbers.reshape(-1)[0]
    if amounts is None:
        raise Unsupported("the amounts of padding are missing")
    chosen = list(range(x.rank)) if axes is None else [normal(axis, x.rank) for axis in axes.sizes]
    head, foot = [0] * x.rank, [0] * x.rank
    for place, axis in enumerate(chosen):
        head[axis], foot[axis] = int(amounts[place]), int(amounts[place + len(chosen)])
    for axis in range(x.rank):  # negative amounts cut off
        if head[axis] < 0 or foot[axis] < 0:
            x = slice_(x, axis, max(-head[axis], 0), foot[axis] if foot[axis] < 0 else None)
    return padded(x, [max(one, 0) for one in head], [max(one, 0) for one in foot], fill, node.attribute("mode", "constant"))


def padded(x: Array, head: list[int], foot: list[int], fill: Any = 0.0, mode: str = "constant") -> Array:
    """The array with elements added in front of and behind each axis."""
    if not any(head) and not any(foot):
        return x
    if x.is_known and x.known.shape == x.dims:
        check_room([h + int(d) + f for h, d, f in zip(head, x.dims, foot, strict=True)])
        given = {"constant_values": fill} if mode == "constant" else {}
        try:
            return known(np.pad(x.known, list(zip(head, foot, strict=True)), mode, **given), x.dtype)  # type: ignore[call-overload]
        except ValueError as error:
            raise Unsupported(str(error)) from None
    if mode in ("edge", "wrap"):
        return _repeated(x, head, foot, mode)
    if mode not in MODES:
        raise Unsupported(f"the padding {mode!r}")
    if x.batch is not None and (head[x.batch] or foot[x.batch]):
        x = static(x)
    pattern = [(h, f) for axis, (h, f) in enumerate(zip(head, foot, strict=True)) if axis != x.batch]
    dims = [dim + h + f for dim, h, f in zip(x.dims, head, foot, strict=True)]
    if np.isinf(fill):
        fill = np.copysign(limits_of(x.storage).max, fill)
    return made(spatial.pad(x.held(), pattern, MODES[mode], float(fill)), dims, x.dtype, x.batch)


def _repeated(x: Array, head: list[int], foot: list[int], mode: str) -> Array:
    """Padding by elements of the array itself."""
    for axis in range(x.rank):
        h, f, dim = head[axis], foot[axis], x.dims[axis]
        if not h and not f:
            continue
        if isinstance(dim, Size) and mode == "edge":
            x = concat([*[slice_(x, axis, 0, 1)] * h, x, *[slice_(x, axis, -1, None)] * f], axis)
            continue
        if isinstance(dim, Size):
            x = concat([*([slice_(x, axis, -h, None)] if h else []), x, *([slice_(x, axis, 0, f)] if f else [])], axis)
            continue
        check_room([h + dim + f])
        numbers = np.pad(np.arange(dim), (h, f), mode)  # type: ignore[call-overload]
        x = take(x, known(numbers), axis)
    return x


# ---- element types -------------------------------------------------------------------------------


def read_cast(node: Operator, x: Array) -> Array:
    from ..tensors import type_of

    return cast(x, type_of(node.required("to")))


def read_cast_like(node: Operator, x: Array, like: Array) -> Array:
    return cast(x, like.dtype)


# ---- blocks, triangles ---------------------------------------------------------------------------


def read_depth_to_space(node: Operator, x: Array) -> Array:
    size = node.required("blocksize")
    n, depth, height, width = x.dims
    if node.attribute("mode", "DCR") == "DCR":
        blocks = transpose(reshape(x, [n, size, size, depth // size**2, height, width]), [0, 3, 4, 1, 5, 2])
    else:
        blocks = transpose(reshape(x, [n, depth // size**2, size, size, height, width]), [0, 1, 4, 2, 5, 3])
    return reshape(blocks, [n, depth // size**2, height * size, width * size])


def read_space_to_depth(node: Operator, x: Array) -> Array:
    size = node.required("blocksize")
    n, depth, height, width = x.dims
    blocks = transpose(reshape(x, [n, depth, height // size, size, width // size, size]), [0, 3, 5, 1, 2, 4])
    return reshape(blocks, [n, depth * size**2, height // size, width // size])


def read_trilu(node: Operator, x: Array, diagonal: Array | None = None) -> Array:
    k = 0 if diagonal is None else int(diagonal.numbers.reshape(-1)[0])
    upper = bool(node.attribute("upper", 1))
    from .elementary import read_greater_or_equal, read_less_or_equal, select

    rows, columns = x.dims[-2:]
    if x.is_known and x.known.shape == x.dims:
        return known((np.triu if upper else np.tril)(x.known, k))
    if isinstance(rows, Size) or isinstance(columns, Size):
        row = unsqueeze(numbers_to(rows) if isinstance(rows, Size) else counting(rows), [1])
        column = numbers_to(columns) if isinstance(columns, Size) else counting(columns)
        kept = (read_greater_or_equal if upper else read_less_or_equal)(node, column - row, known(np.array(k)))
        return select(kept, x, known(np.zeros((), x.dtype)))
    check_room([rows, columns])
    return select(known((np.triu if upper else np.tril)(np.ones((rows, columns), np.bool_), k)), x, known(np.zeros((), x.dtype)))
