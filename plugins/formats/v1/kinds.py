"""Kinds of attributes, each read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from . import stream
from .stream import Source


class Kind(NamedTuple):
    """The functions that read a value, given its name in errors, and write it."""

    read: Callable[[Source, str], Any]
    write: Callable[[Any], bytes]


def numbers(code: str) -> Kind:
    """Numbers of one kind, by the letter that ``struct`` has for it."""
    return Kind(lambda source, what: source.number(code, what), lambda value: stream.number(code, value))


def counted(code: str, kind: Kind, size: int) -> Kind:
    """Their number, and then values of *size* bytes."""

    def read(source: Source, what: str) -> list[Any]:
        return [kind.read(source, what) for _ in range(source.count(code, f"the number of {what}", size))]

    return Kind(read, lambda values: stream.number(code, len(values)) + b"".join(map(kind.write, values)))


def axes_from(least: int) -> Kind:
    """Numbers of axes; *least* and what follows up to 0 have meanings of their own."""
    return Kind(lambda source, what: source.axis(what, least), lambda value: stream.number("i", value))


SIZE, INT, FLOAT, DOUBLE = map(numbers, "Qifd")
LENGTH = numbers("q")
AXIS, END, REDUCED = map(axes_from, (1, 0, -3))
FLAG = Kind(Source.flag, lambda value: stream.number("B", bool(value)))
TEXT = Kind(Source.text, stream.text)
SHAPE = Kind(Source.shape, stream.shape)
FLAGS = counted("Q", FLAG, 1)
SIZES = counted("Q", SIZE, 8)
AXES = counted("i", REDUCED, 4)
