"""Interpolation along axes whose sizes depend on the data: the elements are taken by computed numbers, and weighted."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from ....ops import comparison, elementary, maximum
from .arrays import Array, Unsupported, cast, counted, counting, elementwise, known, numbers_to, reshape, take
from .elementary import select
from .sizes import Size

ROUNDINGS: dict[str, Callable[[Array], Array]] = {
    "round_prefer_floor": lambda where: _ceil(where - 0.5),
    "round_prefer_ceil": lambda where: _floor(where + 0.5),
    "floor": lambda where: _floor(where),
    "ceil": lambda where: _ceil(where),
}


def scaled(size: Any, factor: float) -> Any:
    """A size times a number, without the fraction."""
    ratio = Fraction(factor).limit_denominator(2**16)
    if float(ratio) != factor:
        raise Unsupported(f"an axis of {size} elements resized by {factor}")
    return size * ratio.numerator // ratio.denominator


def interpolated(x: Array, axis: int, out: Any, factor: float | None, mode: str, place: str, rounding: str, cubic: float) -> Array:
    """The array resized along an axis.

    Args:
        x: the array.
        axis: the axis.
        out: its new size.
        factor: the new size in relation to the old one, where the file says it.
        mode: nearest, linear or cubic.
        place: ``coordinate_transformation_mode`` of Resize.
        rounding: its ``nearest_mode``.
        cubic: its ``cubic_coeff_a``.
    """
    dim = x.dims[axis]
    where = _coordinates(place, _number(dim), _number(out), _floats_to(out), factor)
    if mode == "nearest":
        return _taken(x, axis, ROUNDINGS[rounding](where))
    if mode not in ("linear", "cubic"):
        raise Unsupported(f"interpolation of mode {mode!r}")
    first = _floor(where)
    total: Any = None
    for tap in (0, 1) if mode == "linear" else (-1, 0, 1, 2):
        weight = _weight(mode, tap, where - first, cubic)
        part = _taken(x, axis, first + float(tap)) * reshape(weight, [out, *[1] * (x.rank - axis - 1)])
        total = part if total is None else total + part
    return total


def _weight(mode: str, tap: int, rest: Array, a: float) -> Array:
    """The weight of the element that is *tap* behind the one before a place, which is *rest* behind that one."""
    distance = rest - tap if tap <= 0 else tap - rest
    if mode == "linear":
        return 1.0 - distance
    if tap in (0, 1):
        return ((distance * (a + 2)) - (a + 3)) * distance * distance + 1.0
    return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a


def _coordinates(place: str, dim: Array, out: Array, at: Array, factor: float | None) -> Array:
    """Where in the operand each element of the result is."""

    def before(offset: float) -> Array:
        return (at + offset) / factor if factor is not None else (at + offset) * dim / out

    if place == "half_pixel":
        return before(0.5) - 0.5
    if place == "pytorch_half_pixel":
        alone = elementwise(np.equal, comparison.equal, out, known(np.float32(1)), dtype=np.bool_)
        return select(alone, known(np.float32(-0.5)), before(0.5) - 0.5)
    if place == "asymmetric":
        return before(0.0)
    if place == "tf_half_pixel_for_nn":
        return before(0.5)
    if place == "align_corners":
        return at * (dim - 1.0) / _most(out - 1.0, known(np.float32(1)))
    raise Unsupported(f"coordinate_transformation_mode {place!r}, of an axis whose size depends on the data")


def _taken(x: Array, axis: int, numbers: Array) -> Array:
    """Elements along an axis; the first or last one where a number is beyond."""
    last = _number(x.dims[axis]) - 1.0
    within = elementwise(np.minimum, maximum.element_min, _most(numbers, known(np.float32(0))), last, dtype=np.float32)
    return take(x, Array(within.dims, np.int64, within.known, within.variable, within.batch), axis)


def _number(size: Any) -> Array:
    return counted(Array((), np.float32, np.array(size, object))) if isinstance(size, Size) else known(np.float32(size))


def _floats_to(size: Any) -> Array:
    if not isinstance(size, Size):
        return cast(counting(size), np.float32)
    numbers = numbers_to(size)
    return Array(numbers.dims, np.float32, variable=numbers.held(np.float32), batch=numbers.batch)


def _floor(x: Array) -> Array:
    return elementwise(np.floor, elementary.floor, x)


def _ceil(x: Array) -> Array:
    return elementwise(np.ceil, elementary.ceil, x)


def _most(a: Array, b: Array) -> Array:
    return elementwise(np.maximum, maximum.element_max, a, b)
