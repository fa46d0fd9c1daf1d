"""LLVM's code of patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .patches import TAPS, A, B, G, Matrix
from .tile_code import Code, written

Vectors = list[list[Any]]


@written
def enter(code: Code, source: Any, row: Any, pixel: Any, target: Any, step: Any) -> None:
    _write(code, _both(code, _turned(B), _read(code, source, row, pixel, 4)), target, code.times(step, 4), step)


@written
def enter_gradient(code: Code, source: Any, row: Any, pixel: Any, target: Any, step: Any) -> None:
    _write(code, _both(code, A, _read(code, source, row, pixel, 2)), target, code.times(step, 4), step)


@written
def leave(code: Code, source: Any, step: Any, bias: Any, least: Any, target: Any, row: Any, pixel: Any) -> None:
    added, low = code.load(bias), code.load(least)
    values = _both(code, _turned(A), _read(code, source, code.times(step, 4), step, 4))
    _write(code, [[code.at_least(low, code.builder.fadd(value, added)) for value in line] for line in values], target, row, pixel)


@written
def enter_filters(code: Code, source: Any, stride: Any, is_turned: Any, target: Any, step: Any) -> None:
    taps: list[Any] = []
    for begin, known, flags in _columns(code, source):
        taps += code.turned([code.load(code.place(begin, row, stride), flags) for row in range(code.lanes)])[:known]
    with code.builder.if_else(is_turned) as (turned, straight):
        for block, of in ((turned, taps[::-1]), (straight, taps)):
            with block:
                _write(code, _both(code, G, [of[:3], of[3:6], of[6:]]), target, code.times(step, 4), step)


@written
def leave_filters(code: Code, source: Any, step: Any, target: Any, stride: Any) -> None:
    taps = [tap for line in _both(code, _turned(G), _read(code, source, code.times(step, 4), step, 4)) for tap in line]
    for begin, known, flags in _columns(code, target):
        columns, taps = taps[:known] + [code.zeros] * (code.lanes - known), taps[known:]
        for row, value in enumerate(code.turned(columns)):
            code.store(value, code.place(begin, row, stride), flags)


@written
def spread(code: Code, source: Any, stride: Any, target: Any, places: Any) -> None:
    for column, value in enumerate(code.turned([code.load(code.place(source, row, stride)) for row in range(code.lanes)])):
        code.store(value, code.builder.add(target, code.entry(places, column)))


@written
def collect(code: Code, source: Any, places: Any, target: Any, stride: Any) -> None:
    columns = [code.load(code.builder.add(source, code.entry(places, column))) for column in range(code.lanes)]
    for row, value in enumerate(code.turned(columns)):
        code.store(value, code.place(target, row, stride))


def _columns(code: Code, filters: Any) -> Iterator[tuple[Any, int, Any]]:
    """Columns of a filter's weights, as many as a vector has elements at a time: where they begin, how many there are, and their flags."""
    for first in range(0, TAPS, code.lanes):
        known = min(TAPS - first, code.lanes)
        yield code.place(filters, first, code.itemsize), known, code.first(known)


def _read(code: Code, source: Any, row: Any, pixel: Any, size: int) -> Vectors:
    return [[code.load(code.place(code.place(source, y, row), x, pixel)) for x in range(size)] for y in range(size)]


def _write(code: Code, values: Vectors, target: Any, row: Any, pixel: Any) -> None:
    for y, line in enumerate(values):
        for x, value in enumerate(line):
            code.store(value, code.place(code.place(target, y, row), x, pixel))


def _both(code: Code, matrix: Matrix, values: Vectors) -> Vectors:
    """The product with a matrix from the left and its transpose from the right."""
    columns = [[_sum(code, weights, column) for weights in matrix] for column in zip(*values, strict=True)]
    return [[_sum(code, weights, line) for weights in matrix] for line in zip(*columns, strict=True)]


def _sum(code: Code, weights: Sequence[float], values: Sequence[Any]) -> Any:
    """The weighted sum of vectors; the largest of the weights is positive."""
    total = None
    for weight, value in sorted(zip(weights, values, strict=True), key=lambda pair: -pair[0]):
        part = value if abs(weight) in (0, 1) else code.builder.fmul(value, code.many(abs(weight)))
        if total is None:
            total = part
        elif weight:
            total = (code.builder.fadd if weight > 0 else code.builder.fsub)(total, part)
    return total


def _turned(matrix: Matrix) -> Matrix:
    return tuple(zip(*matrix, strict=True))
