"""Walks through the endless order of sequences, sweep after sweep, and says which come next."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .chunks import Chunks
from .randomizer import Extent, Randomizer, Window


class Limits(NamedTuple):
    """Where a source ends: after so many samples or sweeps, None for never."""

    samples: int | None = None
    sweeps: int | None = None


class Position(NamedTuple):
    """Where a source stands.

    Attributes:
        samples: how many have been served.
        sweep: how many sweeps have ended.
        first: place of the window's first chunk in the order of the sweep's chunks.
        place: place of the next sequence in the window.
    """

    samples: int = 0
    sweep: int = 0
    first: int = 0
    place: int = 0


class Span(NamedTuple):
    """Sequences of a window that follow each other; *ends_sweep* if they are the last of a sweep."""

    window: Window
    start: int
    stop: int
    ends_sweep: bool

    def __len__(self) -> int:
        return self.stop - self.start


class Sequencer:
    """Serves sequences in the order of a randomizer.

    Args:
        chunks: where sequences are.
        randomizer: their order.
        limits: where it ends.
    """

    def __init__(self, chunks: Chunks, randomizer: Randomizer, limits: Limits) -> None:
        self.chunks, self.randomizer, self._limits = chunks, randomizer, limits
        self._position = Position()
        self._share = (1, 0)
        self._window: Window | None = None  # which is made when a sequence of it is wanted

    # ---- where it stands ----

    @property
    def position(self) -> Position:
        """Where it stands."""
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        if position[1:3] != self._position[1:3]:
            self._window = None
        self._position = position

    def position_at(self, samples: int) -> Position:
        """Where it stands after so many samples, which are served in whole sequences; the sizes of all chunks must be known.

        Raises:
            ValueError: no sequence starts there, so the number belongs to other data.
        """
        sweep, rest = divmod(samples, self.chunks.samples)
        before = self.chunks.before(self.randomizer.order(sweep))
        assert before is not None
        extent = self.randomizer.extent(sweep, 0)
        while before[1][extent.next] <= rest:
            extent = self.randomizer.extent(sweep, extent.next)
        window = self._made(extent)
        inside = rest - int(before[1][extent.first])
        place = window.place_within(inside)
        if window.samples_before(place) != inside:
            raise ValueError(f"no sequence of the data starts at position {samples}; the checkpoint is of other data")
        return Position(samples, sweep, extent.first, place)

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to serve."""
        samples, sweeps = self._limits
        return (samples is not None and self._position.samples >= samples) or (sweeps is not None and self._position.sweep >= sweeps)

    # ---- what comes next ----

    def spans(self, size: int, partitions: int = 1, partition: int = 0) -> Iterator[Span]:
        """The next sequences, window by window: as many as have at most *size* samples together, but one for each
        partition at least.

        What chunks hold of a span is there until the next one is asked for.

        Args:
            size: samples.
            partitions: how many share the sequences.
            partition: which of them reads here; where each has its own chunks, only these are read ahead.
        """
        if self._share != (partitions, partition):
            self._share, self._window = (partitions, partition), None
        taken = count = 0
        while not self.has_ended:
            window, (samples, sweep, first, place) = self._entered(), self._position
            start = window.samples_before(place)
            stop = max(window.place_within(start + size - taken), min(place + partitions - count, len(window)))
            if self._limits.samples is not None:  # the last sequence is the one that reaches the limit
                stop = min(stop, window.place_reaching(start + self._limits.samples - samples))
            if stop == place < len(window):
                break
            more = window.samples_before(stop) - start
            taken, count = taken + more, count + stop - place
            self._position = Position(samples + more, sweep, first, stop)
            ends = stop == len(window)
            ends_sweep = ends and window.extent.next == self.chunks.count
            if ends_sweep:
                self._position = Position(samples + more, sweep + 1)
            elif ends:
                self._position = Position(samples + more, sweep, window.extent.next)
            self._window = None if ends else window
            yield Span(window, place, stop, ends_sweep)
            if not ends or (taken >= size and count >= partitions):
                break

    def window_at(self, sweep: int, first: int) -> Window:
        """The window that begins with the chunk at place *first* of a sweep, whose chunks may be given up at any time."""
        return self._made(self.randomizer.extent(sweep, first))

    def _entered(self) -> Window:
        if self._window is None:
            _, sweep, first, _ = self._position
            if not self.chunks.are_known:
                self._read_ahead(Extent(sweep, first, ()))
            extent = self.randomizer.extent(sweep, first)
            self._window = self._made(extent)
            self._read_ahead(extent)
        return self._window

    def _made(self, extent: Extent) -> Window:
        return self.randomizer.window(extent, [self.chunks.lengths(chunk) for chunk in extent.chunks])

    def _read_ahead(self, extent: Extent) -> None:
        last_sweep = self._limits.sweeps is not None and extent.sweep + 1 >= self._limits.sweeps
        next = [] if last_sweep and extent.next >= self.chunks.count else self.randomizer.chunks_after(extent, max(len(extent.chunks), 8))
        self.chunks.keep(self._own(extent.chunks), self._own(next))

    def _own(self, chunks: Sequence[int]) -> Sequence[int]:
        """Those chunks of a window that this partition needs."""
        partitions, partition = self._share
        return chunks[partition::partitions] if self.randomizer.deals_chunks(len(chunks), partitions) else chunks
