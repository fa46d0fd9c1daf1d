"""LLVM code of maxima."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from typing import Any

from numba.core import cgutils

from .maxima import FREQUENT
from .tile_code import Code, written

Tap = Callable[[Any], Any]


@written
def greatest(code: Code, to: Any, source: Any, taps: Any, step: Any, size: Any) -> None:
    for result in _ways(code, taps):
        _write(code, to, source, step, size, result)


@written
def greatest_alternate(
    code: Code, to: Any, source: Any, lines: Any, line: Any, deep: Any, step: Any, count: Any, taps: Any, rectify: Any
) -> None:  # fmt: skip
    builder = code.builder
    for result in _ways(code, deep):
        for width in code.cases(taps, FREQUENT):
            with cgutils.for_range(builder, lines) as row:
                target, start = code.place(to, row.index, code.times(count, code.itemsize)), code.place(source, row.index, line)
                with cgutils.for_range_slice(builder, code.number(0), count, code.number(code.lanes + 2 - width)) as (at, _):
                    column = partial(_column, code, result, code.place(start, at, 2 * code.itemsize), step)
                    best = _greatest_of(builder, _alternate(code, width, column))
                    best = builder.select(rectify, code.at_least(code.zeros, best), best)
                    code.store(best, code.place(target, at, code.itemsize))


def _column(code: Code, result: Callable[[Tap], Any], begin: Any, step: Any, place: int) -> Any:
    """The maxima of columns of windows, a vector of them from a place in the line on."""
    first = code.place(begin, place, code.itemsize)
    return result(lambda number: code.load(code.place(first, number, step)))


def _alternate(code: Code, width: int, column: Callable[[int], Any]) -> list[Any]:
    """Vectors of the first, second and third of as many columns, from every second one on; of three, the last lane is not to be used."""
    pair = column(0), column(code.lanes)
    first, second = (code.picked(*pair, list(range(lane, 2 * code.lanes, 2))) for lane in range(2))
    return [first, second, code.picked(first, first, list(range(1, code.lanes + 1)))][:width]


def _ways(code: Code, taps: Any) -> Iterator[Callable[[Tap], Any]]:
    """Code for some numbers of elements: what is written after a way was given to find the greatest of them is for that number."""
    builder = code.builder
    is_frequent = builder.or_(*(builder.icmp_signed("==", taps, code.number(count)) for count in FREQUENT))
    with builder.if_else(is_frequent) as (frequent, other):
        with frequent:
            for count in code.cases(taps, FREQUENT):
                yield partial(_greatest_of_few, code, count)
        with other:
            yield partial(_greatest_of_many, code, taps)


def _write(code: Code, to: Any, source: Any, step: Any, size: Any, result: Callable[[Tap], Any]) -> None:
    """Write a line, given what makes a number or a vector of it of functions that load what it is the greatest of."""
    builder, lanes = code.builder, code.number(code.lanes)

    def write(at: Any, of: Any) -> None:
        begin = code.place(source, at, code.itemsize)
        code.store(result(lambda number: code.load_of(of, code.place(begin, number, step))), code.place(to, at, code.itemsize))

    last = builder.sub(size, lanes)
    with builder.if_else(builder.icmp_signed("<", last, code.number(0))) as (short, long):
        with short, cgutils.for_range(builder, size) as loop:
            write(loop.index, code.scalar)
        with long:
            with cgutils.for_range_slice(builder, code.number(0), last, lanes) as (at, _):
                write(at, code.vector)
            write(last, code.vector)  # it ends with the line, and may begin before the one ahead ends


def _greatest_of_few(code: Code, taps: int, tap: Tap) -> Any:
    return _greatest_of(code.builder, [tap(number) for number in range(taps)])


def _greatest_of_many(code: Code, taps: Any, tap: Tap) -> Any:
    best = cgutils.alloca_once_value(code.builder, tap(0))
    with cgutils.for_range(code.builder, taps, start=code.number(1)) as loop:
        code.builder.store(_greatest_of(code.builder, [code.builder.load(best), tap(loop.index)]), best)
    return code.builder.load(best)


def _greatest_of(builder: Any, values: Iterable[Any]) -> Any:
    """The greatest of some values; NaN is greater than anything."""
    return reduce(lambda one, other: _greater(builder, one, other), values)


def _greater(builder: Any, one: Any, other: Any) -> Any:
    greater = builder.select(builder.fcmp_ordered(">", other, one), other, one)
    return builder.select(builder.fcmp_unordered("uno", other, other), other, greater)
