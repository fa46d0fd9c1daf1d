"""Interpolation in one pass, compiled, without holding Python's lock: the same as :mod:`resize` with NumPy alone.

``image`` is ``(rows, columns, channels)`` and ``out`` ``(channels, height, width)``; the other arrays have for each tap of the kernel the
old row, or column, of every new one, and its weight.  Of bytes, a row that is made for one new row is kept for the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import jittable
from ...core.machine.loops import loop
from .resize import BITS


def fixed_linear(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    """Between two rows and two columns."""
    _fixed_linear.run(False, image, down, down_weights, across, across_weights, *_no_lines(out, 2), out)


def fixed(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    """Between more of them, with weights below 0 among theirs."""
    total = np.empty(out.shape[2], np.int32)
    _fixed.run(False, image, down, down_weights, across, across_weights, *_no_lines(out, len(down)), total, out)


def real(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, out: Any) -> None:
    """Of an image of float32."""
    line = np.empty((image.shape[2], image.shape[1]), np.float32)
    _real.run(False, image, down, down_weights, across, across_weights, line, out)


def _no_lines(out: Any, taps: int) -> tuple[Any, Any]:
    """Room for rows of the new width, and which old row is in each."""
    return np.empty((taps, out.shape[0], out.shape[2]), np.int32), np.full(taps, -1)


@loop("B3 I2 N2 I2 N2 N3 I1 B3")
def _fixed_linear(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, lines: Any, held: Any, out: Any) -> None:
    for y in range(out.shape[1]):
        for tap in range(2):
            row = down[tap, y]
            if held[row % 2] != row:
                held[row % 2] = row
                _between(image[row], across, across_weights, lines[row % 2])
        upper, lower = lines[down[0, y] % 2], lines[down[1, y] % 2]
        first, second = down_weights[0, y], down_weights[1, y]
        for c in range(out.shape[0]):
            for x in range(out.shape[2]):
                parts = np.int32(np.int32(upper[c, x] >> 4) * first) >> 16, np.int32(np.int32(lower[c, x] >> 4) * second) >> 16
                out[c, y, x] = (parts[0] + parts[1] + 2) >> 2


@loop("B3 I2 N2 I2 N2 N3 I1 N1 B3")
def _fixed(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, lines: Any, held: Any, total: Any, out: Any) -> None:
    taps = len(down)
    for y in range(out.shape[1]):
        for tap in range(taps):
            row = down[tap, y]
            if held[row % taps] != row:
                held[row % taps] = row
                _among(image[row], across, across_weights, lines[row % taps])
        for c in range(out.shape[0]):
            total[:] = 1 << 2 * BITS - 1
            for tap in range(taps):
                line, weight = lines[down[tap, y] % taps, c], down_weights[tap, y]
                for x in range(out.shape[2]):
                    total[x] += np.int32(line[x] * weight)
            for x in range(out.shape[2]):
                out[c, y, x] = min(max(total[x] >> 2 * BITS, 0), 255)


@jittable
def _between(row: Any, across: Any, weights: Any, line: Any) -> None:
    """Make an old row of the new width, of two columns each."""
    for c in range(line.shape[0]):
        for x in range(line.shape[1]):
            line[c, x] = np.int32(row[across[0, x], c] * weights[0, x] + row[across[1, x], c] * weights[1, x])


@jittable
def _among(row: Any, across: Any, weights: Any, line: Any) -> None:
    """Make an old row of the new width, of more columns."""
    line[:] = 0
    for tap in range(len(across)):
        for c in range(line.shape[0]):
            for x in range(line.shape[1]):
                line[c, x] += np.int32(row[across[tap, x], c] * weights[tap, x])


@loop("R3 I2 R2 I2 R2 R2 R3")
def _real(image: Any, down: Any, down_weights: Any, across: Any, across_weights: Any, line: Any, out: Any) -> None:
    channels, columns = line.shape
    for y in range(out.shape[1]):
        line[:] = 0
        for tap in range(len(down)):
            row, weight = image[down[tap, y]], down_weights[tap, y]
            for c in range(channels):
                for x in range(columns):
                    line[c, x] += row[x, c] * weight
        for c in range(channels):
            out[c, y] = 0
            for tap in range(len(across)):
                for x in range(out.shape[2]):
                    out[c, y, x] += line[c, across[tap, x]] * across_weights[tap, x]


def try_out() -> None:
    """Resize images of one pixel."""
    for interpolate, taps, dtype in ((fixed_linear, 2, np.uint8), (fixed, 4, np.uint8), (real, 2, np.float32)):
        weights: Any = np.zeros((taps, 1), np.float32 if dtype is np.float32 else np.int32)
        places = np.zeros((taps, 1), np.int64)
        interpolate(np.zeros((1, 1, 1), dtype), places, weights, places, weights, np.empty((1, 1, 1), dtype))
