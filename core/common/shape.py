"""Static shapes: tuples of ints in Python (row-major) order, with two kinds of dimension still to be filled in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

Shape = tuple[int, ...]

MOST_AXES = 64
"""The limit of NumPy's arrays."""

InferredDimension = -1
"""A dimension that the graph fills in when it learns it (``Parameter((-1, 10))``)."""

UnknownDimension = -2
"""The dimension that a placeholder shows, whose shape is unknown."""

FreeDimension = -3
"""A dimension of an input that varies between minibatches; prints as ``*``."""


def _has_none(shape: object) -> bool:
    return isinstance(shape, (tuple, list)) and any(dim is None for dim in shape)


def as_shape(shape: float | Iterable[float]) -> Shape:
    """Return *shape* as a tuple of ints; a number is a shape of one axis, and floats without fraction are accepted.

    Raises:
        TypeError: it is something else.
        ValueError: a dimension is negative and neither inferred nor free, or no memory has so many elements.
    """
    try:
        if isinstance(shape, _NO_SHAPES):
            raise TypeError
        given = (shape,) if isinstance(shape, (int, float, np.integer, np.floating)) else tuple(islice(shape, MOST_AXES + 1))
        dims = tuple(int(dim) for dim in given)
    except (TypeError, ValueError, OverflowError):
        free = "; an axis whose size only data tells is C.FreeDimension, and the batch axis is left out" if _has_none(shape) else ""
        raise TypeError(f"a shape is an int or a tuple of ints, got {shape!r:.80}{free}") from None
    if len(dims) > MOST_AXES:
        raise ValueError(f"a shape has at most {MOST_AXES} axes, got {shape!r:.80}")
    if size_of([dim for dim in dims if dim > 0]) >= _ELEMENTS:
        raise ValueError(f"a shape of 2**56 elements or more is larger than any memory, got one of {len(dims)} axes")
    for dim, number in zip(dims, given, strict=True):
        if dim != number:
            raise TypeError(f"dimensions are whole numbers, got {number!r} in {shape!r}; use // where sizes are divided")
        if dim < 0 and dim not in (InferredDimension, FreeDimension):
            raise ValueError(f"shape {dims}: {dim} is not a dimension; use a size, InferredDimension (-1) or FreeDimension (-3)")
    return dims


_NO_SHAPES = (str, bytes, bytearray, dict, set, frozenset)
_ELEMENTS = 2**56


def is_concrete(shape: Shape | None) -> bool:
    """Tell whether every dimension is a number."""
    return shape is not None and all(dim >= 0 for dim in shape)


def size_of(shape: Sequence[int]) -> int:
    """Number of elements of a concrete shape (1 for a scalar)."""
    size = 1
    for dim in shape:
        size *= dim
    return size


def reshaped(old: Shape, new: Shape) -> Shape:
    """Fill in the open dimension of *new* so that it has as many elements as *old*; it stays open while *old* is not known.

    Raises:
        ValueError: they cannot have the same number of elements, or several dimensions of *new* are open.
    """
    unknown = [dim for dim in old if dim < 0]
    open_axes = [dim for dim in new if dim < 0]
    if len(open_axes) > 1 and (not unknown or open_axes.count(InferredDimension) > 1):
        raise ValueError(f"the new shape {new} leaves more than one dimension open")
    if unknown:
        return tuple(max(unknown) if dim < 0 else dim for dim in new)
    total, known = size_of(old), size_of([dim for dim in new if dim >= 0])
    if not open_axes:
        if total != known:
            batch = "; the batch axis is not among them" if total and known > total and known % total == 0 else ""
            raise ValueError(f"the axes {format_shape(old)} have {total} elements, {format_shape(new)} has {known}{batch}")
        return new
    if known == 0 or total % known:
        raise ValueError(f"the axes {format_shape(old)} have {total} elements, which {format_shape(new)} does not divide")
    return tuple(total // known if dim < 0 else dim for dim in new)


def broadcast_dims(left: int, right: int) -> int | None:
    """The dimension that two aligned dimensions broadcast to; None if they are incompatible."""
    if left == right or right == 1:
        return left
    if left == 1:
        return right
    if left < 0 and right < 0:
        return max(left, right)
    if left < 0 or right < 0:
        return max(left, right)
    return None


def broadcast(*shapes: Shape) -> Shape | None:
    """Broadcast shapes as NumPy does, aligned on trailing axes; None if they are incompatible."""
    result: Shape = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        left = (1,) * (rank - len(result)) + result
        right = (1,) * (rank - len(shape)) + shape
        dims = [broadcast_dims(a, b) for a, b in zip(left, right, strict=True)]
        if any(dim is None for dim in dims):
            return None
        result = tuple(dim for dim in dims if dim is not None)
    return result


def format_shape(shape: Shape | None) -> str:
    """Print a shape the way CNTK does: ``[2 x 3]``, ``[* x ?]``, ``[???]``."""
    if shape is None:
        return "[???]"
    marks = {InferredDimension: "?", FreeDimension: "*"}
    return "[" + " x ".join(marks.get(dim, str(dim)) for dim in shape) + "]"
