"""Walks through the endless order of sequences, sweep after sweep, and says which come next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .chunks import Chunks
from .partitions import Part, Partitioner, Position, Share
from .randomizer import Extent, Randomizer, Window


class Limits(NamedTuple):
    """Where a source ends: after so many samples or sweeps, None for never."""

    samples: int | None = None
    sweeps: int | None = None


class Span(NamedTuple):
    """Sequences of a window, which are at these places, a slice or numbers; *ends_sweep* if no others of a sweep follow."""

    window: Window
    places: Any
    ends_sweep: bool


class Sequencer:
    """Serves sequences in the order of a randomizer.

    Args:
        chunks: where sequences are.
        randomizer: their order.
        limits: where it ends.

    Attributes:
        share: which sequences were served last.
        partitioner: deals them out.
    """

    def __init__(self, chunks: Chunks, randomizer: Randomizer, limits: Limits) -> None:
        self.chunks, self.randomizer, self._limits = chunks, randomizer, limits
        self.partitioner = Partitioner(randomizer, chunks)
        self._position = Position()
        self.share = Share()
        self._window: Window | None = None  # which is made when a sequence of it is wanted
        self._part: Part | None = None

    # ---- where it stands ----

    @property
    def position(self) -> Position:
        """Where it stands."""
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        if position.where[:2] != self._position.where[:2]:
            self._window = None
        self._position, self._part = position, None

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
        number = sweep * self.chunks.sequences + int(before[2][extent.first]) + place
        return Position(samples, sweep, extent.first, place, number)

    @property
    def has_ended(self) -> bool:
        """Whether there is nothing more to serve."""
        samples, sweeps = self._limits
        return (samples is not None and self._position.samples >= samples) or (sweeps is not None and self._position.sweep >= sweeps)

    # ---- what comes next ----

    def spans(self, size: int, share: Share) -> Iterator[Span]:
        """The next sequences, window by window: as many as have at most *size* samples together, but one at least.

        Those of others that follow are skipped, to the end of the sweep.  What chunks hold of a span is there until the next one is
        asked for.

        Args:
            size: samples.
            share: which sequences are wanted; only the chunks that are needed for them are read ahead.
        """
        if share != self.share:
            self.share, self._window = share, None
        taken = count = 0
        while not self.has_ended and not self.partitioner.is_idle(share):
            window, position = self._entered(), self._position
            part = self._part = self._part or self.partitioner.part(window, share, position)
            before, stop = window.samples_before(position.place), len(window)
            if self._limits.samples is not None:  # the last sequence is the one that reaches the limit
                stop = window.place_reaching(before + self._limits.samples - position.samples)
            first, last = part.number_before(position.place), part.number_before(stop)
            chosen = part.line.place_within(part.line.samples_before(first) + size - taken)
            chosen = min(max(chosen, first + (not count)), last)
            taken += part.line.samples_before(chosen) - part.line.samples_before(first)
            count += chosen - first
            if chosen < last:
                stop = part.place(chosen)
            ends_sweep = self._advance(window, stop)
            if chosen > first or ends_sweep:
                yield Span(window, part.between(first, chosen), ends_sweep)
            if chosen < last or (taken >= size and (ends_sweep or self.partitioner.goes_on(window, share))):
                break

    def _advance(self, window: Window, place: int) -> bool:
        """Go on to a place of the window; whether a sweep ends there."""
        samples, sweep, first, start, number, earlier = self._position
        samples += window.samples_before(place) - window.samples_before(start)
        number += place - start
        is_through = place == len(window)
        ends_sweep = is_through and window.extent.next == self.chunks.count
        if is_through:
            sweep, first, place = (sweep + 1, 0, 0) if ends_sweep else (sweep, window.extent.next, 0)
        here = sweep, first, place
        left = tuple(workers for workers in earlier if any(one.where > here for one in workers))
        self._position = Position(samples, sweep, first, place, number, left)
        if is_through:
            self._window = None
        if is_through or left != earlier:
            self._part = None
        return ends_sweep

    def window_at(self, sweep: int, first: int) -> Window:
        """The window that begins with the chunk at place *first* of a sweep, whose chunks may be given up at any time."""
        return self._made(self.randomizer.extent(sweep, first))

    def _entered(self) -> Window:
        if self._window is None:
            _, sweep, first = self._position[:3]
            if not self.chunks.are_known:
                self._read_ahead(Extent(sweep, first, ()))
            extent = self.randomizer.extent(sweep, first)
            window, place = self._made(extent), self._position.place
            if place > 0 and place >= len(window):
                raise ValueError(f"there is no sequence at place {place} of {len(window)} in a window; the checkpoint is of other data")
            self._window, self._part = window, None
            self._read_ahead(extent)
        return self._window

    def _made(self, extent: Extent) -> Window:
        return self.randomizer.window(extent, [self.chunks.lengths(chunk) for chunk in extent.chunks])

    def _read_ahead(self, extent: Extent) -> None:
        next = self.randomizer.chunks_after(extent, max(len(extent.chunks), 8))
        is_last = self._limits.sweeps is not None and next.sweep >= self._limits.sweeps
        self.chunks.keep(self._own(extent), () if is_last else self._own(next))

    def _own(self, extent: Extent) -> tuple[int, ...]:
        return self.partitioner.chunks(extent.first, extent.chunks, self.share)
