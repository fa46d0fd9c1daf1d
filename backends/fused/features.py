"""Loops of batch normalisation over features, each of which stays in the cache while it is gone through again.

Sums of a row are taken in lanes, in the type of the values; those of all rows in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .language import helper, prange
from .loops import Loop

LANES = {"reassoc", "contract"}
"""What lets the compiler sum in lanes."""


@helper(fastmath=LANES)
def _sum(row: Any) -> Any:
    total = row.dtype.type(0)
    for i in range(row.size):
        total += row[i]
    return total


@helper(fastmath=LANES)
def _squares(row: Any, mean: Any) -> Any:
    total = row.dtype.type(0)
    for i in range(row.size):
        total += (row[i] - mean) * (row[i] - mean)
    return total


@helper(fastmath=LANES)
def _products(row: Any, gradient: Any, mean: Any) -> Any:
    total = row.dtype.type(0)
    for i in range(row.size):
        total += gradient[i] * (row[i] - mean)
    return total


@Loop
def normalise(x: Any, y: Any, scale: Any, bias: Any, mean: Any, variance: Any, inverse: Any, epsilon: Any) -> None:
    """Write the statistics of each feature of x ``(rows, features, places)``, and its normalised values to y."""
    rows, features, places = x.shape
    for f in prange(features):
        total = 0.0
        for row in range(rows):
            total += _sum(x[row, f])
        mean[f] = total / (rows * places)
        total = 0.0
        for row in range(rows):
            total += _squares(x[row, f], mean[f])
        variance[f] = total / (rows * places)
        inverse[f] = 1 / np.sqrt(variance[f] + epsilon)
        factor = inverse[f] * scale[f]
        for row in range(rows):
            for i in range(places):
                y[row, f, i] = (x[row, f, i] - mean[f]) * factor + bias[f]


@Loop
def sums(x: Any, dy: Any, mean: Any, inverse: Any, slope: Any, offset: Any) -> None:
    """Write the gradients of scale and bias."""
    rows, features, _ = x.shape
    for f in prange(features):
        products = total = 0.0
        for row in range(rows):
            products += _products(x[row, f], dy[row, f], mean[f])
            total += _sum(dy[row, f])
        slope[f] = products * inverse[f]
        offset[f] = total


@Loop
def gradient(x: Any, dy: Any, scale: Any, mean: Any, inverse: Any, slope: Any, offset: Any, dx: Any) -> None:
    """Write the gradient of x, through the statistics too."""
    rows, features, places = x.shape
    for f in prange(features):
        factor = inverse[f] * scale[f]
        tilt = slope[f] * inverse[f] / (rows * places)
        level = offset[f] / (rows * places)
        for row in range(rows):
            for i in range(places):
                dx[row, f, i] = (dy[row, f, i] - (x[row, f, i] - mean[f]) * tilt - level) * factor
