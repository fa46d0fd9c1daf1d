"""Interpolation, as OpenCV defines it: pixels are squares, nothing is blurred when an image shrinks, edges are repeated."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..compiled import loops

INTERPOLATIONS = ("nearest", "linear", "cubic", "lanczos")

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
    taps = (*_taps(rows, height, interpolation), *_taps(columns, width, interpolation))
    compiled = loops("image.kernel")
    interpolate = _interpolate if compiled is None else compiled.interpolate
    planes = np.empty((channels, height, width), image.dtype)
    interpolate(image, *taps, planes, image.dtype == np.uint8)
    return planes.transpose(1, 2, 0)


def _interpolate(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any, is_rounded: bool) -> None:
    planes = _mix(image.transpose(2, 0, 1).astype(np.float32, order="C"), down, down_weights)
    mixed = _mix(np.ascontiguousarray(planes.transpose(0, 2, 1)), across, across_weights).transpose(0, 2, 1)
    np.copyto(out, np.clip(mixed + 0.5, 0, 255) if is_rounded else mixed, casting="unsafe")


def _mix(planes: Any, places: Any, weights: Any) -> Any:
    """Make new rows of those of each plane."""
    return sum(planes.take(place, axis=1) * weight[:, None] for place, weight in zip(places, weights, strict=True))


@lru_cache(maxsize=1024)
def _taps(old: int, new: int, interpolation: str) -> tuple[Any, Any]:
    """For each of the taps of the kernel: the old pixel under each new one, and its weight."""
    centres = (np.arange(new) + 0.5) * (old / new) - 0.5
    first = np.floor(centres).astype(np.int64)
    distance = centres - first
    reach, kernel = _KERNELS[interpolation]
    steps = np.arange(1 - reach, reach + 1)
    weights = kernel(np.abs(distance - steps[:, None]))
    weights /= weights.sum(0)
    return np.clip(first + steps[:, None], 0, old - 1), weights.astype(np.float32)


def _linear(x: Any) -> Any:
    return 1 - x


def _cubic(x: Any) -> Any:
    near = ((_CUBIC + 2) * x - (_CUBIC + 3)) * x * x + 1
    far = ((_CUBIC * x - 5 * _CUBIC) * x + 8 * _CUBIC) * x - 4 * _CUBIC
    return np.where(x <= 1, near, far)


def _lanczos(x: Any) -> Any:
    return np.sinc(x) * np.sinc(x / 4)


_KERNELS: dict[str, Any] = {"linear": (1, _linear), "cubic": (2, _cubic), "lanczos": (4, _lanczos)}
