"""The order in which sequences are served: that of the data, or shuffled, differently in every sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from .shuffle import shuffle

FIRST_WINDOW = 32 << 20
"""Bytes of the first window of a sweep.  Each next one may be as large as all before, so that minibatches need not wait for a full one."""


class Extent(NamedTuple):
    """Chunks that are in memory together.

    Attributes:
        sweep: which sweep over the data.
        first: place of the first chunk in the order of the sweep's chunks.
        chunks: the chunks, in the order in which they lie in the window.
    """

    sweep: int
    first: int
    chunks: tuple[int, ...]

    @property
    def next(self) -> int:
        """Place of the chunk that comes after them."""
        return self.first + len(self.chunks)


class Line:
    """Sequences one after another.

    Args:
        count: how many.
        ends: samples up to each one's end; None where every sequence has one sample.
    """

    def __init__(self, count: int, ends: Any) -> None:
        self._count, self._ends = count, ends

    def __len__(self) -> int:
        return self._count

    def samples_before(self, place: int) -> int:
        """Samples before the sequence at *place*."""
        return place if self._ends is None else int(self._ends[place - 1]) if place else 0

    def place_within(self, samples: int) -> int:
        """How many sequences have at most so many samples together, counted from the start."""
        if self._ends is None:
            return min(samples, self._count)
        return int(self._ends.searchsorted(samples, side="right"))

    def place_reaching(self, samples: int) -> int:
        """How many sequences have at least so many samples together, or all."""
        if self._ends is None:
            return min(samples, self._count)
        return min(int(self._ends.searchsorted(samples, side="left")) + 1, self._count)


class Window(Line):
    """The sequences of chunks that are in memory together, in the order in which they are served.

    Args:
        extent: which chunks.
        lengths: of each chunk the samples of its sequences.
        seed: chooses the order, None for that of the data.
    """

    def __init__(self, extent: Extent, lengths: Sequence[Any], seed: int | None) -> None:
        self.extent = extent
        self._chunks = np.array(extent.chunks)
        self._bounds = np.cumsum([0, *map(len, lengths)])
        count = int(self._bounds[-1])
        self._order = None
        if seed is not None:
            self._order = np.arange(count, dtype=np.int32 if count < 2**31 else np.int64)
            shuffle(self._order, seed)
        joined = lengths[0] if len(lengths) == 1 else np.concatenate(lengths)
        is_single = (joined == 1).all()
        super().__init__(count, None if is_single else np.cumsum(joined if self._order is None else joined[self._order]))

    @property
    def is_one_chunk(self) -> bool:
        """Whether it is a chunk as it lies."""
        return self._order is None and len(self._chunks) == 1

    def only(self, places: Any) -> Line:
        """The sequences at *places* alone."""
        ends = None if self._ends is None else np.cumsum(np.diff(self._ends, prepend=0)[places])
        return Line(len(places), ends)

    def sequences(self, places: Any) -> tuple[Any, Any]:
        """Where the sequences at *places*, a slice or numbers, are: for each the place of its chunk in the window, and its number there."""
        index = np.arange(places.start, places.stop) if isinstance(places, slice) else places
        index = index if self._order is None else self._order[places]
        if len(self._chunks) == 1:
            return np.zeros(len(index), np.intp), index
        parts = self._bounds.searchsorted(index, side="right") - 1
        return parts, index - self._bounds[parts]


class Sizes(Protocol):
    """Bytes and samples of chunks."""

    count: int

    def before(self, order: Any) -> tuple[Any, Any, Any] | None:
        """Bytes, samples and sequences of all chunks before each of *order*, and of all; None if they are not known."""

    def of(self, chunk: int) -> tuple[int, int]:
        """Bytes and samples of a chunk, which is read if it must be."""


class Randomizer:
    """Chunks are shuffled, and the sequences of so many chunks that follow each other then; every sweep has another order.

    Each sequence comes exactly once in a sweep.  The order depends on the seed and the number of the sweep alone, so that a sweep can be
    entered anywhere: the first sweep with seed 1 is the second sweep with seed 0.  Where all chunks are in one window, it
    is that of CNTK.

    Args:
        sizes: bytes and samples of the chunks.
        chunks: chunks in a window; with 0 and no *samples*, nothing is shuffled.
        samples: in place of *chunks*, the samples that a window has at least, where that many are left.
        seed: chooses the orders.
        limit: bytes that a window has at most, unless one chunk has more.
    """

    def __init__(self, sizes: Sizes, chunks: int = 0, samples: int = 0, seed: int = 0, limit: int = 1 << 62) -> None:
        self._sizes = sizes
        self._chunks, self._samples, self.seed, self.limit = chunks, samples, seed, limit
        self._sweep, self._order = -1, np.arange(0)
        self._before: tuple[Any, Any, Any] | None = None  # bytes and samples before each chunk of the order

    @property
    def is_shuffling(self) -> bool:
        """Whether the order differs from that of the data."""
        return bool(self._chunks or self._samples)

    def order(self, sweep: int) -> Any:
        """The chunks of a sweep, in order."""
        if sweep != self._sweep:
            order = np.arange(self._sizes.count)
            if self.is_shuffling:
                shuffle(order, self._seed(sweep, 0))
            self._sweep, self._order = sweep, order
            self._before = self._sizes.before(order)
        return self._order

    def chunks_after(self, extent: Extent, count: int) -> Extent:
        """The next chunks after a window, at most so many: of this sweep, or if it has none left the first of the next."""
        sweep, first = (extent.sweep, extent.next) if extent.next < self._sizes.count else (extent.sweep + 1, 0)
        return Extent(sweep, first, tuple(self.order(sweep)[first : first + count].tolist()))

    def extent(self, sweep: int, first: int) -> Extent:
        """The window that begins with the chunk at place *first* of a sweep."""
        order = self.order(sweep)
        stop = first + 1
        if self.is_shuffling:
            stop = max(stop, self._stop(first) if self._before is not None else self._stop_found_by_reading(first))
        return Extent(sweep, first, tuple(order[first:stop].tolist()))

    def _stop(self, first: int) -> int:
        """Where the window ends that begins at *first*."""
        assert self._before is not None
        nbytes, samples, _ = self._before
        limit = min(self.limit, max(FIRST_WINDOW, int(nbytes[first])))
        stop = int(nbytes.searchsorted(nbytes[first] + limit, side="right")) - 1
        by_samples = int(samples.searchsorted(samples[first] + self._samples))
        return min(stop, first + self._chunks if self._chunks else by_samples, self._sizes.count)

    def _stop_found_by_reading(self, first: int) -> int:
        """The same where sizes are unknown until a chunk is read; it may be as large as the limit from the beginning."""
        order = self._order
        stop, held, samples = first, 0, 0
        while stop < len(order) and (stop - first < self._chunks if self._chunks else samples < self._samples):
            nbytes, more = self._sizes.of(int(order[stop]))
            if held + nbytes > self.limit:
                break
            stop, held, samples = stop + 1, held + nbytes, samples + more
        return stop

    def window(self, extent: Extent, lengths: Sequence[Any]) -> Window:
        """The sequences of a window in the order in which they are served, given the *lengths* of those of each chunk."""
        return Window(extent, lengths, self._seed(extent.sweep, extent.first) if self.is_shuffling else None)

    def _seed(self, sweep: int, first: int) -> int:
        return (self.seed + sweep) % 2**32 + (first << 32)
