"""The order in which sequences are served: as they lie, or shuffled, a new way in every sweep."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .deserializer import ChunkInfo, Deserializer


class Window(NamedTuple):
    """Chunks that are in memory together: the sequences of all of them, in the order in which they are served.

    Attributes:
        chunks: the chunk of each sequence.
        numbers: its number in that chunk.
        ends: samples up to and with it, counted from the start of the window.
    """

    chunks: Any
    numbers: Any
    ends: Any

    def __len__(self) -> int:
        return len(self.ends)

    def start_of(self, place: int) -> int:
        """Samples before the sequence at *place*."""
        return int(self.ends[place - 1]) if place else 0


class Randomizer:
    """Chunks are shuffled, and the sequences of so many chunks that follow each other then; every sweep has another order.

    Each sequence comes exactly once in a sweep.  The order depends on the seed and the number of the sweep alone, so that a sweep can be
    entered anywhere: a source with seed 1 begins as one with seed 0 goes on after its first sweep.

    Args:
        deserializer: whose sequences.
        chunks: chunks in a window; with 0 and no *samples*, nothing is shuffled.
        samples: in place of *chunks*, the samples that a window has at least, where that many are left.
        seed: chooses the orders.
    """

    def __init__(self, deserializer: Deserializer, chunks: int = 0, samples: int = 0, seed: int = 0) -> None:
        self._deserializer = deserializer
        self._infos: Sequence[ChunkInfo] = deserializer.chunk_infos()
        self._chunks, self._samples, self._seed = chunks, samples, seed

    @property
    def is_shuffling(self) -> bool:
        """Whether the order differs from that of the data."""
        return bool(self._chunks or self._samples)

    def windows(self, sweep: int) -> list[list[int]]:
        """The chunks of each window of a sweep, in order."""
        if not self.is_shuffling:
            return [[chunk] for chunk in range(len(self._infos))]
        order = self._random(sweep, 0).permutation(len(self._infos)).tolist()
        if self._chunks:
            return [order[i : i + self._chunks] for i in range(0, len(order), self._chunks)]
        windows: list[list[int]] = [[]]
        held = 0
        for chunk in order:
            if held >= self._samples:
                windows.append([])
                held = 0
            windows[-1].append(chunk)
            held += self._infos[chunk].samples
        return windows

    def samples_in(self, chunks: Sequence[int]) -> int:
        """Samples of all sequences of these chunks."""
        return sum(self._infos[chunk].samples for chunk in chunks)

    def window(self, sweep: int, number: int, chunks: Sequence[int]) -> Window:
        """The window of this *number* in a sweep, which has these *chunks*."""
        lengths = [self._deserializer.sequence_infos(chunk).lengths for chunk in chunks]
        counts = [len(part) for part in lengths]
        of_chunk = np.repeat(np.asarray(chunks), counts)
        numbers = np.concatenate([np.arange(count) for count in counts])
        joined = np.concatenate(lengths)
        if self.is_shuffling:
            order = self._random(sweep, number + 1).permutation(len(joined))
            of_chunk, numbers, joined = of_chunk[order], numbers[order], joined[order]
        return Window(of_chunk, numbers, np.cumsum(joined))

    def _random(self, sweep: int, part: int) -> np.random.Generator:
        return np.random.default_rng([self._seed + sweep, part])
