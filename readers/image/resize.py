"""Interpolation, as OpenCV defines it: pixels are squares, nothing is blurred when an image shrinks, edges are repeated."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..compiled import loops

INTERPOLATIONS = ("nearest", "linear", "cubic", "lanczos")

BITS = 11
"""Bits of a weight behind the point, where pixels are bytes."""

_CUBIC = -0.75
"""Slope of the cubic kernel at distance 1."""


def resize(image: Any, width: int, height: int, interpolation: str) -> Any:
    """Resize an image.

    Args:
        image: array ``(height, width, channels)`` of uint8 or float32.
        width: the new width.
        height: the new height.
        interpolation: one of INTERPOLATIONS.

    Returns:
        Array of the new size and the same type; uint8 is rounded.
    """
    rows, columns, channels = image.shape
    if (rows, columns) == (height, width):
        return image
    if interpolation == "nearest":
        down, across = (np.arange(new) * old // new for new, old in ((height, rows), (width, columns)))
        return image[down[:, None], across]
    is_fixed = image.dtype == np.uint8
    taps = (*_taps(rows, height, interpolation, is_fixed), *_taps(columns, width, interpolation, is_fixed))
    planes = np.empty((channels, height, width), image.dtype)
    ways = loops("image.kernel") or _PLAIN
    interpolate = ways.real if not is_fixed else ways.fixed_linear if interpolation == "linear" else ways.fixed
    interpolate(np.ascontiguousarray(image), *taps, planes)
    return planes.transpose(1, 2, 0)


def _fixed_linear(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    """OpenCV's fixed-point numbers: of a sum across 4 bits are cut off, of its product with a weight 16, and the rest is rounded."""
    lines = _mix(image.transpose(2, 1, 0).astype(np.int32), across, across_weights).transpose(0, 2, 1) >> 4
    parts = [lines.take(place, axis=1) * weight[:, None] >> 16 for place, weight in zip(down, down_weights, strict=True)]
    np.copyto(out, (parts[0] + parts[1] + 2) >> 2, casting="unsafe")


def _fixed(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    lines = _mix(image.transpose(2, 1, 0).astype(np.int32), across, across_weights)
    mixed = _mix(lines.transpose(0, 2, 1), down, down_weights)
    np.copyto(out, np.clip((mixed + (1 << 2 * BITS - 1)) >> 2 * BITS, 0, 255), casting="unsafe")


def _real(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    planes = _mix(image.transpose(2, 0, 1), down, down_weights)
    out[:] = _mix(planes.transpose(0, 2, 1), across, across_weights).transpose(0, 2, 1)


_PLAIN = SimpleNamespace(fixed_linear=_fixed_linear, fixed=_fixed, real=_real)
"""The functions of the compiled module, in NumPy."""


def _mix(planes: Any, places: Any, weights: Any) -> Any:
    """Make new rows of those of each plane."""
    return sum(planes.take(place, axis=1) * weight[:, None] for place, weight in zip(places, weights, strict=True))


@lru_cache(maxsize=1024)
def _taps(old: int, new: int, interpolation: str, is_fixed: bool) -> tuple[Any, Any]:
    """For each of the taps of the kernel: the old pixel under each new one, and its weight, whole numbers if it is to be fixed-point."""
    centres = ((np.arange(new) + 0.5) / (new / old) - 0.5).astype(np.float32).astype(np.float64)
    first = np.floor(centres).astype(np.int64)
    distance = centres - first
    reach, kernel = _KERNELS[interpolation]
    steps = np.arange(1 - reach, reach + 1)
    weights = kernel(np.abs(distance - steps[:, None]))
    weights /= weights.sum(0)
    weights = np.rint(weights * (1 << BITS)).astype(np.int32) if is_fixed else weights.astype(np.float32)
    return np.clip(first + steps[:, None], 0, old - 1), weights


def _linear(x: Any) -> Any:
    return 1 - x


def _cubic(x: Any) -> Any:
    near = ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1
    far = ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC
    return np.where(x <= 1, near, far)


def _lanczos(x: Any) -> Any:
    return np.sinc(x) * np.sinc(x / 4)


_KERNELS: dict[str, Any] = {"linear": (1, _linear), "cubic": (2, _cubic), "lanczos": (4, _lanczos)}
