"""Memory planning: places in one arena for arrays that do not all live at once."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import accumulate, chain
from operator import itemgetter

ALIGNMENT = 64


def padded_rows(rows: int) -> int:
    """Rows to plan memory for where there are so many, at most an eighth more: minibatches of sequences seldom have as many twice."""
    step = 1 << max(0, rows.bit_length() - 4)
    return -(-rows // step) * step


def plan(sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int], alignment: int = ALIGNMENT) -> tuple[list[int], int]:
    """Give every array an offset such that arrays alive at the same time do not overlap.

    Arrays are placed in the order of their birth; where that takes more than is alive at one time, also from the last death back, and
    the smaller arena counts: a training pass often packs better from its end.

    Args:
        sizes: bytes of each array.
        births, deaths: first and last moment at which each is needed, both inclusive.
        alignment: bytes to a multiple of which each begins.

    Returns:
        The offsets, and the size of the arena.
    """
    taken = [-(-size // alignment) * alignment for size in sizes]
    forwards = _placed(sizes, taken, births, deaths)
    if forwards[1] == _peak(taken, births, deaths):
        return forwards
    backwards = _placed(sizes, taken, [-death for death in deaths], [-birth for birth in births])
    return min(forwards, backwards, key=itemgetter(1))


def _peak(sizes: Sequence[int], births: Sequence[int], deaths: Sequence[int]) -> int:
    """The most memory that is alive at one time: a lower bound for every plan."""
    begins = ((birth, 0, size) for birth, size in zip(births, sizes, strict=True))
    ends = ((death, 1, -size) for death, size in zip(deaths, sizes, strict=True))
    return max(accumulate(map(itemgetter(2), sorted(chain(begins, ends)))), default=0)


def _placed(sizes: Sequence[int], taken: Sequence[int], births: Sequence[int], deaths: Sequence[int]) -> tuple[list[int], int]:
    """Offsets of arrays placed in the order of their birth, the largest first, each in the smallest gap that fits; and the arena's size."""
    offsets = [0] * len(sizes)
    gaps = _Gaps()
    living: list[tuple[int, int, int]] = []  # a heap of (death, start, end)
    top = 0
    for index in sorted(range(len(sizes)), key=lambda i: (births[i], -sizes[i])):
        while living and living[0][0] < births[index]:
            _, start, end = heappop(living)
            gaps.add(start, end)
        size = taken[index]
        offset = gaps.take(size)
        if offset is None:
            offset = gaps.take_last(top)
            top = offset + size
        offsets[index] = offset
        heappush(living, (deaths[index], offset, offset + size))
    return offsets, top


class _Gaps:
    """Unused parts of the arena; no two of them touch."""

    def __init__(self) -> None:
        self._by_size: list[tuple[int, int]] = []  # (size, start), smallest first
        self._end_of: dict[int, int] = {}
        self._start_of: dict[int, int] = {}

    def add(self, start: int, end: int) -> None:
        """Put in the part from *start* to *end*, joined with its neighbours."""
        if end in self._end_of:
            end = self._remove(end)[1]
        if start in self._start_of:
            start = self._remove(self._start_of[start])[0]
        if start < end:
            self._end_of[start], self._start_of[end] = end, start
            insort(self._by_size, (end - start, start))

    def take(self, size: int) -> int | None:
        """Start of the smallest gap that takes *size* bytes, whose rest stays; None if there is none."""
        at = bisect_left(self._by_size, (size, 0))
        if at == len(self._by_size):
            return None
        start, end = self._remove(self._by_size[at][1])
        self.add(start + size, end)
        return start

    def take_last(self, top: int) -> int:
        """Start of the gap that ends at *top*, which is taken whole; *top* if there is none."""
        return self._remove(self._start_of[top])[0] if top in self._start_of else top

    def _remove(self, start: int) -> tuple[int, int]:
        end = self._end_of.pop(start)
        del self._start_of[end], self._by_size[bisect_left(self._by_size, (end - start, start))]
        return start, end
