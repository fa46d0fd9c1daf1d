"""LLVM's code of patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba import types
from numba.extending import intrinsic

from .patches import TAPS, A, B, G, Matrix
from .tile_code import Code


def _entering(matrix: Matrix) -> Callable[..., Any]:
    """What multiplies a square of vectors from both sides."""

    def entering(typing: Any, source: Any, row: Any, pixel: Any, target: Any, step: Any, like: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            source, row, pixel, target, step, _ = arguments
            code = Code(context, builder, like)
            _write(code, _both(code, matrix, _read(code, source, row, pixel, len(matrix[0]))), target, code.times(step, 4), step)
            return context.get_dummy_value()

        return types.void(*[types.intp] * 5, like), generate

    return entering


def _leave(typing: Any, source: Any, step: Any, bias: Any, least: Any, target: Any, row: Any, pixel: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, step, bias, least, target, row, pixel, _ = arguments
        code = Code(context, builder, like)
        added, low = code.load(bias), code.load(least)
        values = _both(code, _turned(A), _read(code, source, code.times(step, 4), step, 4))
        _write(code, [[code.at_least(low, builder.fadd(value, added)) for value in line] for line in values], target, row, pixel)
        return context.get_dummy_value()

    return types.void(*[types.intp] * 7, like), generate


def _enter_filters(typing: Any, source: Any, stride: Any, is_turned: Any, target: Any, step: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, stride, is_turned, target, step, _ = arguments
        code = Code(context, builder, like)
        taps: list[Any] = []
        for first in range(0, TAPS, code.lanes):
            begin, known = code.place(source, first, code.itemsize), min(TAPS - first, code.lanes)
            taps += code.turned([code.load(code.place(begin, row, stride), code.first(known)) for row in range(code.lanes)])[:known]
        with builder.if_else(is_turned) as (turned, straight):
            for block, of in ((turned, taps[::-1]), (straight, taps)):
                with block:
                    _write(code, _both(code, G, [of[:3], of[3:6], of[6:]]), target, code.times(step, 4), step)
        return context.get_dummy_value()

    return types.void(types.intp, types.intp, types.boolean, types.intp, types.intp, like), generate


def _leave_filters(typing: Any, source: Any, step: Any, target: Any, stride: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, step, target, stride, _ = arguments
        code = Code(context, builder, like)
        taps = [tap for line in _both(code, _turned(G), _read(code, source, code.times(step, 4), step, 4)) for tap in line]
        for first in range(0, TAPS, code.lanes):
            begin, known = code.place(target, first, code.itemsize), min(TAPS - first, code.lanes)
            columns = taps[first : first + known] + [code.zeros] * (code.lanes - known)
            for row, value in enumerate(code.turned(columns)):
                code.store(value, code.place(begin, row, stride), code.first(known))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4, like), generate


def _spread(typing: Any, source: Any, stride: Any, target: Any, places: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, stride, target, places, _ = arguments
        code = Code(context, builder, like)
        for column, value in enumerate(code.turned([code.load(code.place(source, row, stride)) for row in range(code.lanes)])):
            code.store(value, builder.add(target, code.entry(places, column)))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4, like), generate


def _collect(typing: Any, source: Any, places: Any, target: Any, stride: Any, like: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, places, target, stride, _ = arguments
        code = Code(context, builder, like)
        columns = [code.load(builder.add(source, code.entry(places, column))) for column in range(code.lanes)]
        for row, value in enumerate(code.turned(columns)):
            code.store(value, code.place(target, row, stride))
        return context.get_dummy_value()

    return types.void(*[types.intp] * 4, like), generate


Vectors = list[list[Any]]


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


enter: Any = intrinsic(_entering(_turned(B)))
enter_filters: Any = intrinsic(_enter_filters)
leave_filters: Any = intrinsic(_leave_filters)
leave: Any = intrinsic(_leave)
enter_gradient: Any = intrinsic(_entering(A))
spread: Any = intrinsic(_spread)
collect: Any = intrinsic(_collect)
