"""Where elements lie: the axes that a number counts through, and the expression in C of the place that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Along(NamedTuple):
    """An axis that is counted through.

    Attributes:
        length: its length; that of the first axis is not looked at, and may be anything.
        stride: how many elements it is from one index to the next, 0 where all have the same element.
    """

    length: int
    stride: int


def merged(axes: Sequence[Along]) -> list[Along]:
    """The same places with fewer axes: without those of length 1, and with one in the place of two that lie together.

    The first axis is kept, whatever its length.

    >>> from cntk.backends.cupy.places import Along, merged
    >>> merged([Along(7, 12), Along(3, 4), Along(1, 9), Along(4, 1)])
    [Along(length=84, stride=1)]
    """
    found: list[Along] = []
    for number, axis in enumerate(axes):
        if number and axis.length == 1:
            continue
        if found and found[-1].stride == axis.length * axis.stride:
            axis = Along(found.pop().length * axis.length, axis.stride)
        found.append(axis)
    return found


def place_of(number: str, axes: Sequence[Along]) -> str:
    """An expression for the place that a number stands for, which counts through axes, the last one first.

    >>> from cntk.backends.cupy.places import Along, place_of
    >>> place_of("i", [Along(7, 12), Along(3, 4), Along(4, 1)])
    'i'
    >>> place_of("i", [Along(7, 5), Along(3, 0), Along(4, 1)])
    'i / 12 * 5 + i % 4'
    """
    terms, below = [], 1
    axes = merged(axes)
    for place, (length, stride) in reversed(list(enumerate(axes))):
        if stride:
            index = number if below == 1 else f"{number} / {below}"
            if place:
                index = f"{index} % {length}"
            terms.append(index if stride == 1 else f"{index} * {stride}")
        below *= length
    return " + ".join(reversed(terms)) or "0"
