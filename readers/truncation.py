"""Minibatches of pieces of sequences, for back-propagation through so many steps at most."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from .gather import Gatherer, Streams
from .packer import Batch, Request
from .partitions import Position, Share
from .randomizer import Window
from .rows import StreamData, join_rows
from .sequencer import Sequencer

Place = tuple[int, int, int, bool]
"""Where a sequence is: its sweep, the first chunk of its window, and its place in this; and whether it is the last of the sweep."""


class TruncatedState(NamedTuple):
    """The position of a source of pieces: the next sequence, and for each slot its sequences and the steps served of the first."""

    position: Position
    slots: tuple[tuple[int, tuple[Place, ...]], ...] = ()


class _Sequence(NamedTuple):
    """A sequence in a slot."""

    streams: Streams
    steps: int
    place: Place


class _Slot:
    """Sequences one after another, served piece by piece.

    Attributes:
        served: steps served of the first sequence.
        number: number of this slot's last piece in the last minibatch, if its sequence goes on; else -1.
    """

    def __init__(self) -> None:
        self.sequences: deque[_Sequence] = deque()
        self.served = 0
        self.number = -1

    @property
    def steps(self) -> int:
        """Steps that are left."""
        return sum(sequence.steps for sequence in self.sequences) - self.served


class TruncatedPacker:
    """Serves so many steps of each of several sequences side by side.

    A minibatch of *n* samples has ``n // steps`` slots.  Each is filled with one sequence after another, and gives so many steps to every
    minibatch: a piece of a sequence, or the end of one and the beginning of others.  Workers share the slots.  Where there are
    more than a minibatch takes, some wait, and no new sequences begin.

    Args:
        sequencer: which sequences come next.
        gatherer: gets them.
        steps: of each slot in a minibatch.
    """

    def __init__(self, sequencer: Sequencer, gatherer: Gatherer, steps: int) -> None:
        self._sequencer, self._gatherer, self._steps = sequencer, gatherer, steps
        self._slots: list[_Slot] = []
        self._sweep_end = False
        self._state = TruncatedState(sequencer.position)

    @property
    def state(self) -> TruncatedState:
        """Where it stands; a source that continues from here starts recurrences afresh."""
        return self._state

    @state.setter
    def state(self, state: TruncatedState) -> None:
        slots = []
        for served, places in state.slots:
            slot = _Slot()
            slot.served = served
            slot.sequences.extend(self._sequence_at(place) for place in places)
            slots.append(slot)
        self._slots, self._state, self._sweep_end = slots, state, False
        self._sequencer.position = state.position

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end.

        Raises:
            RuntimeError: the streams of a sequence have different lengths, or too many cannot be read.
        """
        count = request.share.of(request.size // self._steps)
        if len(self._slots) > count:
            self._slots = [slot for slot in self._slots if slot.sequences]
        self._slots += [_Slot() for _ in range(count - len(self._slots))]
        if len(self._slots) == count:
            for slot in self._slots:
                self._fill(slot, request.share)
        self._slots = [slot for slot in self._slots if slot.sequences]
        pieces: list[Streams] = []
        continues: list[int] = []
        sweep_end, self._sweep_end = self._sweep_end, False
        for i, slot in enumerate(self._slots):
            if i < count:
                sweep_end = self._cut(slot, pieces, continues) or sweep_end
            else:
                slot.number = -1  # it waits, and the network loses its state
        held = [slot for slot in self._slots if slot.sequences]
        slots = tuple((slot.served, tuple(one.place for one in slot.sequences)) for slot in held)
        self._state = TruncatedState(self._sequencer.position, slots)
        if not pieces:
            self._sequencer.chunks.keep((), ())
            return None
        streams = {name: _of_pieces([piece[name] for piece in pieces]) for name in pieces[0]}
        return Batch(streams, sweep_end, np.array(continues))

    # ---- filling slots ----

    def _fill(self, slot: _Slot, share: Share) -> None:
        """Put sequences into a slot until it has more than a minibatch takes."""
        begun = self._sequencer.position.sweep
        while slot.steps <= self._steps and not self._sequencer.has_ended:
            before, found, ends_sweep = self._sequencer.position, None, False
            for window, places, ends in self._sequencer.spans(1, share):
                ends_sweep = ends_sweep or ends
                for place in _numbers(places):
                    found = self._sequence(window, place, False)
            if found is not None:
                slot.sequences.append(found._replace(place=(*found.place[:3], ends_sweep)))
                begun = self._sequencer.position.sweep
            elif self._sequencer.position == before:
                break
            else:
                self._sweep_end = self._sweep_end or ends_sweep
            if self._sequencer.position.sweep > begun + share.partitions:
                raise RuntimeError("a whole sweep has no sequence that can be read; see what max_errors leaves out, and the partitions")

    def _sequence(self, window: Window, place: int, ends_sweep: bool) -> _Sequence | None:
        streams = self._gatherer.gather(window, slice(place, place + 1))
        if streams is None:
            return None
        steps = {name: int(data.lengths[0]) for name, data in streams.items()}
        longest = max(steps.values())
        if min(steps.values()) < longest:
            raise RuntimeError(f"truncation_length takes streams with equally many samples in a sequence, got one of {steps}")
        return _Sequence(streams, longest, (window.extent.sweep, window.extent.first, place, ends_sweep))

    def _sequence_at(self, place: Place) -> _Sequence:
        sweep, first, start, ends_sweep = place
        sequence = self._sequence(self._sequencer.window_at(sweep, first), start, ends_sweep)
        if sequence is None:
            raise ValueError(f"a sequence of the checkpoint, {place}, cannot be read; the checkpoint is of other data")
        return sequence

    # ---- emptying them ----

    def _cut(self, slot: _Slot, pieces: list[Streams], continues: list[int]) -> bool:
        """Take the next steps of a slot as pieces; whether a sweep ends with them."""
        room, sweep_end = self._steps, False
        while room and slot.sequences:
            sequence, start = slot.sequences[0], slot.served
            stop = min(start + room, sequence.steps)
            continues.append(slot.number if start else -1)
            pieces.append({name: StreamData(data.rows[start:stop], [0, stop - start]) for name, data in sequence.streams.items()})
            room -= stop - start
            slot.served, slot.number = stop, len(pieces) - 1
            if stop == sequence.steps:
                slot.sequences.popleft()
                slot.served, slot.number = 0, -1
                sweep_end = sweep_end or sequence.place[3]
        return sweep_end


def _of_pieces(pieces: list[Any]) -> StreamData:
    return StreamData.of_lengths(join_rows([piece.rows for piece in pieces]), [int(piece.starts[1]) for piece in pieces])


def _numbers(places: Any) -> list[int]:
    return list(range(places.start, places.stop)) if isinstance(places, slice) else places.tolist()
