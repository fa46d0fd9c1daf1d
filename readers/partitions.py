"""The partition of sequences among several workers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.common.cached_property import cached_property
from .chunks import Chunks
from .randomizer import Line, Randomizer, Window

DIVIDED_FROM = 64
"""The fewest sequences for each worker for which chunks are divided, if there are fewer chunks than workers."""


class Share(NamedTuple):
    """The number of workers that share the sequences, and the number of this one."""

    partitions: int = 1
    partition: int = 0

    def of(self, size: int) -> int:
        """How many of a minibatch's *size* samples are its own; one at least."""
        return max(size // self.partitions + (self.partition < size % self.partitions), 1)


class Position(NamedTuple):
    """The position of a source in the order that all workers share.

    Attributes:
        samples: how many lie before.
        sweep: how many sweeps have ended.
        first: place of the window's first chunk in the order of the sweep's chunks.
        place: place of the next sequence in the window.
        number: how many sequences lie before, in all sweeps.
        earlier: where other workers stood when their number changed, as long as there is something behind the one furthest ahead.
    """

    samples: int = 0
    sweep: int = 0
    first: int = 0
    place: int = 0
    number: int = 0
    earlier: tuple[tuple[Position, ...], ...] = ()

    @property
    def where(self) -> tuple[int, int, int]:
        """Which of two positions is ahead: that where this is greater."""
        return self.sweep, self.first, self.place


class Part(NamedTuple):
    """The sequences of a window that a worker reads: their places in it, None for all, and their samples."""

    places: Any
    line: Line

    def number_before(self, place: int) -> int:
        """How many of them lie before a place of the window."""
        return place if self.places is None else int(self.places.searchsorted(place))

    def place(self, index: int) -> int:
        """Where one of them lies in the window."""
        return index if self.places is None else int(self.places[index])

    def between(self, first: int, stop: int) -> Any:
        """Where those numbered *first* to *stop* - 1 lie, a slice or numbers."""
        return slice(first, stop) if self.places is None else self.places[first:stop]


class Partitioner:
    """Deals out sequences as CNTK does: one by one or, where they are shuffled, chunk by chunk.

    The chunks of a sweep are dealt out in the sweep's order.  With fewer chunks than workers, sequences are dealt out one by one all the
    same, if they are equally long, so that the workers together read the same as one would, or if there are many.

    Args:
        randomizer: the order.
        chunks: where the sequences are.
    """

    def __init__(self, randomizer: Randomizer, chunks: Chunks) -> None:
        self._randomizer, self._chunks = randomizer, chunks

    def is_idle(self, share: Share) -> bool:
        """Whether there is nothing for this worker, in whatever sweep."""
        return share.partition >= self._chunks.count and not self._is_one_by_one(share.partitions)

    def part(self, window: Window, share: Share, position: Position) -> Part:
        """What a worker reads of the window at a position."""
        if share.partitions == 1 and not position.earlier:
            return Part(None, window)
        kept = self._owners(window, share.partitions, position) == share.partition
        for workers in position.earlier:
            kept &= self._is_left(window, workers, position)
        places = np.flatnonzero(kept)
        return Part(places, window.only(places))

    def chunks(self, first: int, chunks: tuple[int, ...], share: Share) -> tuple[int, ...]:
        """Those of *chunks*, which follow each other in a sweep from place *first* on, that a worker needs."""
        if self._is_one_by_one(share.partitions):
            return chunks
        return chunks[(share.partition - first) % share.partitions :: share.partitions]

    def goes_on(self, window: Window, share: Share) -> bool:
        """Whether it is certain that a worker has something to read after the window in the same sweep, or no worker has."""
        if share.partitions == 1:
            return True
        after = window.extent.next
        return not self._is_one_by_one(share.partitions) and after + (share.partition - after) % share.partitions < self._chunks.count

    def _is_one_by_one(self, partitions: int) -> bool:
        if not self._randomizer.is_shuffling:
            return True
        return self._chunks.count < partitions and (self._is_even or self._count >= DIVIDED_FROM * partitions)

    @cached_property
    def _lengths(self) -> list[Any]:
        return [self._chunks.lengths(chunk) for chunk in range(self._chunks.count)]

    @cached_property
    def _is_even(self) -> bool:
        """Whether all sequences are equally long."""
        return all((lengths == self._lengths[0][0]).all() for lengths in self._lengths)

    @property
    def _count(self) -> int:
        return sum(map(len, self._lengths))

    def _owners(self, window: Window, partitions: int, position: Position) -> Any:
        if self._is_one_by_one(partitions):
            return (np.arange(len(window)) + position.number - position.place) % partitions
        parts, _ = window.sequences(slice(0, len(window)))
        return (parts + window.extent.first) % partitions

    def _is_left(self, window: Window, workers: tuple[Position, ...], position: Position) -> Any:
        """The sequences that these workers had not read at their positions."""
        here = position.sweep, position.first
        begun = np.array([0 if one.where[:2] < here else one.place if one.where[:2] == here else len(window) for one in workers])
        return np.arange(len(window)) >= begun[self._owners(window, len(workers), position)]


def merge_positions(workers: tuple[Position, ...]) -> Position:
    """Where another number of workers goes on with what these have left: where the one furthest behind stands."""
    behind, ahead = (choose(workers, key=lambda one: one.where) for choose in (min, max))
    if behind.where == ahead.where:
        return behind
    return behind._replace(earlier=(*behind.earlier, tuple(one._replace(earlier=()) for one in workers)))
