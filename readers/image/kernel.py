"""Interpolation in one pass, compiled, without holding Python's lock: the same as :mod:`resize` with NumPy alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def interpolate(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any, is_rounded: bool) -> None:
    """Make each pixel of *out*, ``(channels, height, width)``, of the pixels of *image*, ``(rows, columns, channels)``, under it.

    The other arrays have for each tap of the kernel the old row, or column, of every new one, and its weight.
    """
    columns, channels = image.shape[1:]
    line = np.empty((channels, columns), np.float32)
    for y in range(out.shape[1]):
        line[:] = 0
        for tap in range(len(down)):
            row, weight = image[down[tap, y]], down_weights[tap, y]
            for c in range(channels):
                for x in range(columns):
                    line[c, x] += row[x, c] * weight
        for c in range(channels):
            for x in range(out.shape[2]):
                value = np.float32(0.5) if is_rounded else np.float32(0)
                for tap in range(len(across)):
                    value += line[c, across[tap, x]] * across_weights[tap, x]
                out[c, y, x] = min(max(value, np.float32(0)), np.float32(255)) if is_rounded else value


def try_out() -> None:
    """Resize an image of one pixel."""
    places, weights = np.zeros((1, 1), np.int64), np.ones((1, 1), np.float32)
    interpolate(np.zeros((1, 1, 1), np.uint8), places, weights, places, weights, np.empty((1, 1, 1), np.uint8), True)
