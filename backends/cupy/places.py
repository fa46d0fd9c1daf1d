"""Index arithmetic: strided axes, and C expressions that convert a linear index to an offset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Along(NamedTuple):
    """An axis of an iteration space.

    Attributes:
        length: its length; that of the first axis is ignored.
        stride: its stride in elements; 0 for a broadcast axis.
    """

    length: int
    stride: int


def merged(axes: Sequence[Along]) -> list[Along]:
    """Return axes without those of length 1, and with adjacent ones merged if they are contiguous.
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
    """Return a C expression for the offset of the linear index *number*, in row-major order.
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
