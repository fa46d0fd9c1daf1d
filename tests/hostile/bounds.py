"""How far results may be from those in double precision: as far as rounding takes them, by a bound for each number of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

UNIT = {np.float16: 2.0**-11, np.float32: 2.0**-24, np.float64: 2.0**-53}
"""Half a unit in the last place of 1, by element type."""

SMALLEST = 16
"""So many times the least normal number count as nothing: smaller ones may be taken for 0 on the way."""


DISTURBANCE, DISTURBED = 8, 8
"""Units by which numbers are disturbed, and how often, to learn how much results depend on roundings."""


def disturbed(random: np.random.Generator, numbers: Any, unit: float) -> Any:
    """*numbers* in double precision, each off by some *unit* of itself."""
    return numbers * (1 + random.uniform(-DISTURBANCE * unit, DISTURBANCE * unit, np.shape(numbers)))


def sum_unit(dtype: Any) -> float:
    """The unit of sums and products, which are in float32 where elements are float16."""
    return UNIT[np.float32 if dtype is np.float16 else dtype]


def check(what: str, found: Any, expected: Any, bound: Any) -> float:
    """Require that *found* is *expected*, but for *bound* and one rounding to the element type of *found*.

    Returns:
        the largest error over its bound.

    Raises:
        AssertionError: it is not; the number is told that is furthest beyond its bound.
    """
    found, expected, bound = np.asarray(found), np.asarray(expected, np.float64), np.asarray(bound, np.float64)
    assert found.shape == expected.shape, f"{what}: got the shape {found.shape}, expected {expected.shape}"
    if not found.size:
        return 0.0
    dtype = found.dtype.type
    smallest = SMALLEST * float(np.finfo(dtype).smallest_subnormal if dtype is np.float16 else np.finfo(dtype).tiny)
    with np.errstate(all="ignore"):
        rounded = expected.astype(dtype).astype(np.float64)
        allowed = bound + UNIT[dtype] * (np.abs(expected) + bound) + smallest
        errors = np.where(found == rounded, 0, np.abs(found - expected)) / allowed
    errors = np.where(np.isnan(found) & np.isnan(expected), 0, np.where(np.isnan(errors), np.inf, errors))
    worst = np.unravel_index(int(errors.argmax()), errors.shape)
    assert errors[worst] <= 1, (
        f"{what}: at {tuple(int(place) for place in worst)} of {found.shape} got {found[worst]!r}, expected {expected[worst]!r} "
        f"within {np.broadcast_to(allowed, errors.shape)[worst]:.3g}; {int((errors > 1).sum())} numbers are that far off"
    )
    return float(errors[worst])
