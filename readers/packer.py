"""Minibatches of whole sequences."""

from __future__ import annotations

from typing import Any, NamedTuple

from .gather import Gatherer, Streams
from .partitions import Position, Share
from .rows import joined, require_one_shape
from .sequencer import Sequencer


class Request(NamedTuple):
    """A requested minibatch: the number of samples of all workers together, and the share to return."""

    size: int
    share: Share = Share()


class Batch(NamedTuple):
    """One minibatch.

    Attributes:
        streams: the sequences by stream.
        sweep_end: whether a sweep ends in it.
        continues: of pieces of sequences, the number of the one in the previous minibatch that each continues, -1 if it is new.
    """

    streams: Streams
    sweep_end: bool
    continues: Any = None


class SequencePacker:
    """Fills minibatches with sequences as long as all their samples are at most its size, but with one at least.

    Each worker takes as many samples as are its share of its own sequences, so that it may be behind others, or ahead.

    Args:
        sequencer: which sequences come next.
        gatherer: gets them.
        is_by_frame: whether sequences must have one sample each.
    """

    def __init__(self, sequencer: Sequencer, gatherer: Gatherer, is_by_frame: bool = False) -> None:
        self._sequencer, self._gatherer, self._is_by_frame = sequencer, gatherer, is_by_frame

    @property
    def state(self) -> Position:
        """Its position in the data."""
        return self._sequencer.position

    @state.setter
    def state(self, state: Position) -> None:
        self._sequencer.position = state

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end, or if no sequences are dealt to this worker.

        Raises:
            RuntimeError: sequences cannot be read: more than may be left out, or all of a sweep.
        """
        begun, sweep_end = self._sequencer.position.sweep, False
        size, share = request.share.of(request.size), request.share
        while not self._sequencer.has_ended:
            parts: list[Streams] = []
            place = self._sequencer.position
            for span in self._sequencer.spans(size, share):
                part = self._gatherer.gather(span.window, span.places)
                if part is not None:
                    parts.append(part)
                sweep_end = sweep_end or span.ends_sweep
            if parts:
                return Batch(self._checked(_joined(parts)), sweep_end)
            if self._sequencer.position == place:
                break
            if self._sequencer.position.sweep > begun + share.partitions:
                raise RuntimeError("none of the sequences can be read; see what max_errors leaves out")
        self._sequencer.chunks.keep((), ())
        return None

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
