"""Memory planning: places in one arena for arrays that do not all live at once."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

ALIGNMENT = 64


def plan(sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]) -> tuple[list[int], int]:
    """Give every array an offset such that arrays alive at the same time do not overlap.

    Arrays are placed in the order of their birth, each in the smallest gap that takes it.

    Args:
        sizes: bytes of each array.
        births, deaths: first and last moment at which each is needed, both inclusive.

    Returns:
        The offsets, and the size of the arena.
    """
    offsets = [0] * len(sizes)
    gaps: list[tuple[int, int]] = []  # (offset, size), by offset
    living: list[tuple[int, int, int]] = []  # (death, offset, size), by death
    top = 0
    for index in sorted(range(len(sizes)), key=lambda i: (births[i], -sizes[i])):
        while living and living[0][0] < births[index]:
            _, offset, size = living.pop(0)
            _release(gaps, offset, size)
        size = -(-sizes[index] // ALIGNMENT) * ALIGNMENT
        fitting = [gap for gap in gaps if gap[1] >= size]
        if fitting:
            gap = min(fitting, key=lambda g: g[1])
            gaps.remove(gap)
            offset = gap[0]
            if gap[1] > size:
                insort(gaps, (offset + size, gap[1] - size))
        else:
            offset, top = _extend(gaps, top, size)
        offsets[index] = offset
        insort(living, (deaths[index], offset, size))
    return offsets, top


def _release(gaps: list[tuple[int, int]], offset: int, size: int) -> None:
    """Return a block to the gaps, joined with its neighbours."""
    insort(gaps, (offset, size))
    at = gaps.index((offset, size))
    for left in (at, at - 1):
        if 0 <= left < len(gaps) - 1 and gaps[left][0] + gaps[left][1] == gaps[left + 1][0]:
            gaps[left : left + 2] = [(gaps[left][0], gaps[left][1] + gaps[left + 1][1])]


def _extend(gaps: list[tuple[int, int]], top: int, size: int) -> tuple[int, int]:
    """Place a block at the end of the arena, into the gap there if there is one."""
    if gaps and sum(gaps[-1]) == top:
        offset, _ = gaps.pop()
        return offset, offset + size
    return top, top + size
