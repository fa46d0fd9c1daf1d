"""Minibatches of whole sequences."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .gather import Gatherer, Streams
from .rows import joined, require_one_shape
from .sequencer import Position, Sequencer, Span


class Request(NamedTuple):
    """What minibatch is wanted: how many samples, into how many parts it is dealt out, and which part is to be returned."""

    size: int
    partitions: int = 1
    partition: int = 0


class Batch(NamedTuple):
    """One minibatch.

    Attributes:
        streams: the sequences by stream.
        sweep_end: whether a sweep ends in it.
        continues: of pieces of sequences, the number of the one in the previous minibatch that each goes on with, -1 where one is new.
    """

    streams: Streams
    sweep_end: bool
    continues: Any = None


class SequencePacker:
    """Fills minibatches with sequences as long as all their samples are at most its size, but with one for each partition at least.

    All partitions walk through the same minibatches and take a part each, so that they have one position.  Where a window has chunks
    enough, a partition's part is what lies in its own chunks, and it reads no others; else it is every so manieth sequence.

    Args:
        sequencer: which sequences come next.
        gatherer: gets them.
        is_by_frame: whether sequences must have one sample each.
    """

    def __init__(self, sequencer: Sequencer, gatherer: Gatherer, is_by_frame: bool = False) -> None:
        self._sequencer, self._gatherer, self._is_by_frame = sequencer, gatherer, is_by_frame

    @property
    def state(self) -> Position:
        """Where it stands."""
        return self._sequencer.position

    @state.setter
    def state(self, state: Position) -> None:
        self._sequencer.position = state

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end, or if there is nothing for this partition.

        Raises:
            RuntimeError: sequences cannot be read: more than may be left out, or all of a sweep.
        """
        first, sweep_end = self._sequencer.position, False
        while not self._sequencer.has_ended:
            parts: list[Streams] = []
            dealt = 0
            for span in self._sequencer.spans(*request):
                places, dealt = self._share(span, request, dealt)
                part = self._gatherer.gather(span.window, places)
                if part is not None:
                    parts.append(part)
                sweep_end = sweep_end or span.ends_sweep
            if parts:
                return Batch(self._checked(_joined(parts)), sweep_end)
            if request.partitions > 1:  # it has gone to the other partitions
                return None
            if self._sequencer.position.sweep > first.sweep + 1:
                raise RuntimeError("none of the sequences can be read; see what max_errors leaves out")
        self._sequencer.chunks.keep((), ())
        return None

    def _share(self, span: Span, request: Request, dealt: int) -> tuple[Any, int]:
        """The places of a span that belong to a partition, and how many sequences have been dealt out one by one."""
        _, partitions, partition = request
        window, start, stop, _ = span
        if partitions == 1:
            return slice(start, stop), 0
        if self._sequencer.randomizer.deals_chunks(len(window.extent.chunks), partitions):
            parts, _ = window.sequences(slice(start, stop))
            return np.flatnonzero(parts % partitions == partition) + start, dealt
        return np.arange(start + (partition - dealt) % partitions, stop, partitions), dealt + stop - start

    def _checked(self, streams: Streams) -> Streams:
        if self._is_by_frame:
            for name, data in streams.items():
                if not data.is_single:
                    raise RuntimeError(
                        f"frame_mode takes sequences of one sample, stream '{name}' has one of {data.lengths.max()}; "
                        "leave frame_mode out to read whole sequences"
                    )
        return streams


def _joined(parts: list[Streams]) -> Streams:
    if len(parts) == 1:
        return parts[0]
    for name in parts[0]:
        require_one_shape(name, [part[name].rows for part in parts])
    return {name: joined([part[name] for part in parts]) for name in parts[0]}
