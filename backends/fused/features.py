"""Loops of batch normalisation over features, which go through memory in its order, image by image.

Sums over blocks of a plane, a feature of one row, are taken in lanes, in the type of the values, those over blocks and planes in float64.
Rows are cut into parts whose number does not depend on that of the threads, and what is found in each is put together in order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.machine.language import jittable, prange
from ...core.machine.loops import loop

PARTS = 8

LANES = {"reassoc", "contract"}
"""What lets the compiler sum in lanes."""

BLOCK = 4096
"""Places that are summed in the type of the values."""


def _over_planes(part: Callable[..., Any]) -> Callable[..., Any]:
    """A pair of sums over a plane, in float64, of what *part* sums up for places from one to another in the type of the values."""
    summed = jittable(fastmath=LANES)(part)

    @jittable
    def sums(x: Any, dy: Any, y: Any, row: int, f: int, centre: Any) -> tuple[float, float]:
        first = second = 0.0
        for begin in range(0, x.shape[2], BLOCK):
            one, other = summed(x, dy, y, row, f, centre, begin, min(begin + BLOCK, x.shape[2]))
            first += one
            second += other
        return first, second

    return sums


def _sum_moments(x: Any, dy: Any, y: Any, row: int, f: int, centre: Any, begin: int, end: int) -> Any:
    """Sums of distances from a *centre*, and of their squares."""
    total = squares = x.dtype.type(0)
    for i in range(begin, end):
        away = x[row, f, i] - centre
        total += away
        squares += away * away
    return total, squares


def _sum_products(x: Any, dy: Any, y: Any, row: int, f: int, mean: Any, begin: int, end: int) -> Any:
    """Sums of the gradient, and of its products with the distances from the *mean*."""
    total = products = x.dtype.type(0)
    for i in range(begin, end):
        d = dy[row, f, i]
        total += d
        products += d * (x[row, f, i] - mean)
    return total, products


def _sum_products_of_positive(x: Any, dy: Any, y: Any, row: int, f: int, mean: Any, begin: int, end: int) -> Any:
    """The same, of a gradient that is 0 where the result is."""
    total = products = zero = x.dtype.type(0)
    for i in range(begin, end):
        d = dy[row, f, i] * x.dtype.type(y[row, f, i] > zero)
        total += d
        products += d * (x[row, f, i] - mean)
    return total, products


_moments, _products, _products_of_positive = map(_over_planes, (_sum_moments, _sum_products, _sum_products_of_positive))


@jittable
def _write(y: Any, x: Any, row: int, f: int, mean: Any, factor: Any, bias: Any, least: Any) -> None:
    for i in range(x.shape[2]):
        value = (x[row, f, i] - mean) * factor + bias
        y[row, f, i] = least if value < least else value


@jittable
def _write_sum(y: Any, x: Any, addend: Any, row: int, f: int, mean: Any, factor: Any, bias: Any, least: Any) -> None:
    for i in range(x.shape[2]):
        value = (x[row, f, i] - mean) * factor + bias + addend[row, f, i]
        y[row, f, i] = least if value < least else value


@jittable
def _send(dx: Any, dy: Any, x: Any, row: int, f: int, mean: Any, tilt: Any, level: Any, factor: Any) -> None:
    for i in range(x.shape[2]):
        dx[row, f, i] = (dy[row, f, i] - (x[row, f, i] - mean) * tilt - level) * factor


@jittable
def _send_positive(dx: Any, dy: Any, y: Any, x: Any, row: int, f: int, mean: Any, tilt: Any, level: Any, factor: Any) -> None:
    zero = x.dtype.type(0)
    for i in range(x.shape[2]):
        d = dy[row, f, i] * x.dtype.type(y[row, f, i] > zero)
        dx[row, f, i] = (d - (x[row, f, i] - mean) * tilt - level) * factor


@jittable
def _send_to_addend(da: Any, dy: Any, y: Any, row: int, f: int) -> None:
    zero = da.dtype.type(0)
    for i in range(da.shape[2]):
        da[row, f, i] = dy[row, f, i] * da.dtype.type(y[row, f, i] > zero)


@jittable
def _measure(x: Any, begin: int, end: int, middle: Any, spread: Any) -> None:
    """Mean and sum of squared distances from it of each feature, over some rows.

    Distances are taken from the mean so far, so that nothing large cancels.  (T. F. Chan, G. H. Golub, R. J. LeVeque, "Updating formulae
    and a pairwise algorithm for computing sample variances", 1979.)
    """
    _, features, places = x.shape
    for f in range(features):
        middle[f] = _moments(x, x, x, begin, f, x.dtype.type(0))[0] / places
        spread[f] = 0
    for row in range(begin, end):
        before = row - begin
        for f in range(features):
            centre = x.dtype.type(middle[f])
            total, squares = _moments(x, x, x, row, f, centre)
            inner = total / places
            away = (centre - middle[f]) + inner
            middle[f] += away / (before + 1)
            spread[f] += squares - total * inner + away * away * (places * before / (before + 1))


@loop("R3 D3")
def measure(x: Any, part: Any) -> None:
    """Write mean and sum of squared distances of each feature of x ``(rows, features, places)``, of each part of the rows.

    Args:
        part: space for them, (2, parts, features).
    """
    rows, parts = len(x), part.shape[1]
    for p in prange(parts):
        _measure(x, rows * p // parts, rows * (p + 1) // parts, part[0, p], part[1, p])


@loop("R3 R3 R3 ? r R1 R1 R1 R1 R1 d D3")
def normalise(
    x: Any, y: Any, addend: Any, adds: bool, least: Any, scale: Any, bias: Any,
    mean: Any, variance: Any, inverse: Any, epsilon: float, part: Any,
) -> None:  # fmt: skip
    """Write the statistics of each feature of x ``(rows, features, places)``, and to y its normalised values.

    Args:
        addend: what is added to these where *adds* says so.
        least: what results do not fall below.
        part: what :func:`measure` has found.
    """
    rows, features, places = x.shape
    parts = part.shape[1]
    for f in range(features):
        middle, spread, known = part[0, 0, f], part[1, 0, f], rows // parts
        for p in range(1, parts):
            more = rows * (p + 1) // parts - rows * p // parts
            away = part[0, p, f] - middle
            middle += away * more / (known + more)
            spread += part[1, p, f] + away * away * (places * known * more / (known + more))
            known += more
        mean[f], variance[f] = middle, spread / (rows * places)
        inverse[f] = 1 / np.sqrt(variance[f] + epsilon)
    for p in prange(parts):
        for row in range(rows * p // parts, rows * (p + 1) // parts):
            for f in range(features):
                if adds:
                    _write_sum(y, x, addend, row, f, mean[f], inverse[f] * scale[f], bias[f], least)
                else:
                    _write(y, x, row, f, mean[f], inverse[f] * scale[f], bias[f], least)


@loop("R3 R3 R3 ? R1 D3")
def add_up(x: Any, dy: Any, y: Any, rectify: bool, mean: Any, part: Any) -> None:
    """Write sums of the gradient's products with distances from the mean, and of the gradient, of each part of the rows.

    Args:
        rectify: whether the gradient is 0 where the result y is not positive.
        part: space for them, (2, parts, features).
    """
    rows, features, _ = x.shape
    parts = part.shape[1]
    for p in prange(parts):
        for f in range(features):
            part[0, p, f] = part[1, p, f] = 0
        for row in range(rows * p // parts, rows * (p + 1) // parts):
            for f in range(features):
                if rectify:
                    total, products = _products_of_positive(x, dy, y, row, f, mean[f])
                else:
                    total, products = _products(x, dy, dy, row, f, mean[f])
                part[0, p, f] += products
                part[1, p, f] += total


@loop("R3 R3 R3 ? R1 R1 R1 R1 R1 R3 ? R3 ? D3")
def differentiate(
    x: Any, dy: Any, y: Any, rectify: bool, scale: Any, mean: Any, inverse: Any, slope: Any, offset: Any,
    dx: Any, sends: bool, da: Any, adds: bool, part: Any,
) -> None:  # fmt: skip
    """Write the gradients of scale, bias, operand, through the statistics too, and addend.

    Args:
        rectify: whether the gradient is 0 where the result y is not positive.
        sends, adds: whether the gradients of operand and addend, dx and da, are wanted.
        part: what :func:`add_up` has found.
    """
    rows, features, places = x.shape
    parts = part.shape[1]
    for f in range(features):
        products, total = part[0, 0, f], part[1, 0, f]
        for p in range(1, parts):
            products += part[0, p, f]
            total += part[1, p, f]
        slope[f], offset[f] = products * inverse[f], total
    count = rows * places
    for p in prange(parts):
        for row in range(rows * p // parts, rows * (p + 1) // parts):
            for f in range(features):
                tilt, level, factor = slope[f] * inverse[f] / count, offset[f] / count, inverse[f] * scale[f]
                if sends and rectify:
                    _send_positive(dx, dy, y, x, row, f, mean[f], tilt, level, factor)
                elif sends:
                    _send(dx, dy, x, row, f, mean[f], tilt, level, factor)
                if adds:
                    _send_to_addend(da, dy, y, row, f)
