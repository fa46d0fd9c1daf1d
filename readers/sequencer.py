"""Cuts the endless order of sequences into minibatches."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .deserializer import Chunk, Deserializer, Errors
from .randomizer import Randomizer


class Limits(NamedTuple):
    """Where a source ends: after so many samples or sweeps, None for never."""

    samples: int | None = None
    sweeps: int | None = None


class Batch(NamedTuple):
    """One minibatch: by stream the sequences, arrays or CSR matrices, and whether a sweep ends in it."""

    sequences: dict[str, list[Any]]
    sweep_end: bool


class Sequencer:
    """Serves sequences in the order of a randomizer.

    The position is the number of samples served: minibatches hold whole sequences, so it tells where to go on.

    Args:
        deserializer: where sequences come from.
        randomizer: their order.
        limits: where it ends.
        errors: told of sequences that cannot be read, which are left out.

    Raises:
        RuntimeError: there are no sequences.
    """

    def __init__(self, deserializer: Deserializer, randomizer: Randomizer, limits: Limits, errors: Errors) -> None:
        self._deserializer, self._randomizer, self._errors = deserializer, randomizer, errors
        self._samples = sum(info.samples for info in deserializer.chunk_infos())
        if not self._samples:
            raise RuntimeError("there are no sequences to read")
        self._end = limits.samples if limits.sweeps is None else limits.sweeps * self._samples
        self._loaded: dict[int, Chunk] = {}
        self.position = 0

    @property
    def position(self) -> int:
        """Samples served so far."""
        return self._position

    @position.setter
    def position(self, position: int) -> None:
        self._sweep, rest = divmod(position, self._samples)
        self._windows = self._randomizer.windows(self._sweep)
        number = 0
        while rest >= (held := self._randomizer.samples_in(self._windows[number])):
            rest -= held
            number += 1
        self._enter(number)
        self._place = int(np.searchsorted(self._window.ends, rest, side="right"))
        if self._window.start_of(self._place) != rest:
            raise ValueError(f"no sequence of the data starts at position {position}; the checkpoint is of other data")
        self._position = position

    def next(self, size: int, partitions: int = 1, partition: int = 0) -> Batch | None:
        """The next minibatch, None at the end.

        It gets sequences as long as all their samples are at most *size*, but at least one, and one for each partition.

        Args:
            size: samples of the minibatch.
            partitions: into how many parts minibatches are dealt out, sequence by sequence.
            partition: the part to return.

        Raises:
            RuntimeError: sequences cannot be read: more than may be left out, or all of a sweep.
        """
        sweep_end, start = False, self._position
        while not self._has_ended:
            if self._position - start >= self._samples:
                raise RuntimeError("none of the sequences can be read; see what max_errors leaves out")
            chunks, numbers, ended = self._take(max(size, partitions))
            sweep_end = sweep_end or ended
            batch = self._read(chunks[partition::partitions], numbers[partition::partitions])
            self._forget()
            if any(batch.values()):
                return Batch(batch, sweep_end)
            if len(chunks) <= partition:  # it has gone to the other partitions
                return None
        return None

    @property
    def _has_ended(self) -> bool:
        return self._end is not None and self._position >= self._end

    def _take(self, size: int) -> tuple[Any, Any, bool]:
        """Chunks and numbers of the next sequences, and whether they end a sweep."""
        taken, sweep_end = 0, False
        chunks: list[Any] = []
        numbers: list[Any] = []
        while not self._has_ended:
            window, place = self._window, self._place
            start = window.start_of(place)
            stop = int(np.searchsorted(window.ends, start + size - taken, side="right"))
            if not taken:
                stop = max(stop, place + 1)
            if self._end is not None:  # the last sequence is the one that reaches the end
                stop = min(stop, int(np.searchsorted(window.ends, start + self._end - self._position, side="left")) + 1)
            if stop == place:
                break
            chunks.append(window.chunks[place:stop])
            numbers.append(window.numbers[place:stop])
            samples = window.start_of(stop) - start
            taken += samples
            self._position += samples
            self._place = stop
            if stop < len(window):
                break
            sweep_end = self._leave_window() or sweep_end
        return np.concatenate(chunks), np.concatenate(numbers), sweep_end

    def _leave_window(self) -> bool:
        """Go on to the next window; whether it belongs to the next sweep."""
        self._place = 0
        if self._number + 1 < len(self._windows):
            self._enter(self._number + 1)
            return False
        self._sweep += 1
        self._windows = self._randomizer.windows(self._sweep)
        self._enter(0)
        return True

    def _enter(self, number: int) -> None:
        self._number = number
        self._window = self._randomizer.window(self._sweep, number, self._windows[number])

    # ---- data ----

    def _read(self, chunks: Any, numbers: Any) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {info.name: [] for info in self._deserializer.stream_infos()}
        for chunk, number in zip(chunks.tolist(), numbers.tolist(), strict=True):
            if chunk not in self._loaded:
                self._loaded[chunk] = self._deserializer.get_chunk(chunk, self._errors)
            data = self._loaded[chunk]
            sequences = {name: data[name].sequence(number) for name in found}
            if all(sequence.shape[0] for sequence in sequences.values()):  # else it could not be read
                for name, sequence in sequences.items():
                    found[name].append(sequence)
        return found

    def _forget(self) -> None:
        """Give up chunks that the current window does not have."""
        needed = self._windows[self._number]
        for chunk in [chunk for chunk in self._loaded if chunk not in needed]:
            del self._loaded[chunk]
