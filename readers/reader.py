"""What is behind a minibatch source: everything between a deserializer and the minibatches."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..core.common.cached_property import cached_property
from .chunks import Chunks
from .data_identity import identity_of, warn_of_other_data
from .deserializer import Deserializer, Errors
from .gather import Gatherer
from .packer import Batch, Request, SequencePacker
from .partitions import Position, Share, merge_positions
from .prefetch import Prefetcher
from .randomizer import Randomizer
from .sequencer import Limits, Sequencer
from .truncation import TruncatedPacker, TruncatedState

SAMPLES = "minibatchSourcePosition"
WHERE = "sweepChunkSequence"
SLOTS = "truncatedSlots"
EARLIER = "earlierWorkers"
SHARE = "partition"
WORKERS = "workers"
DATA = "data"
FURTHEST = 2**63
"""No source has served so many samples."""

MEMORY_LIMIT = 256 << 20
"""Bytes that chunks may take unless a source is told otherwise: half for the window, half for what is read ahead."""

DEPTH = 2
"""Minibatches that wait ready."""


class Order(NamedTuple):
    """In which order sequences are served: so many chunks or samples shuffled together, none for as they lie."""

    window_in_chunks: int = 0
    window_in_samples: int = 0
    seed: int = 0


class Kind(NamedTuple):
    """What minibatches are made of: whole sequences, sequences of one sample (*frame_mode*), or pieces of *truncation_length* steps."""

    frame_mode: bool = False
    truncation_length: int = 0


class Reader:
    """Makes minibatches of what a deserializer reads.

    Args:
        deserializer: one, or several as a ``Bundle``.
        order: in which sequences are served.
        limits: where it ends.
        kind: what minibatches are made of.
        is_threaded: whether threads read chunks and prepare minibatches ahead.
        max_errors: how many sequences that cannot be read are left out before that is an error.

    Raises:
        RuntimeError: there are no sequences.
    """

    def __init__(self, deserializer: Deserializer, order: Order, limits: Limits, kind: Kind, is_threaded: bool, max_errors: int) -> None:
        errors = Errors(max_errors)
        self._deserializer = deserializer
        threads = min(os.cpu_count() or 1, 4) if is_threaded else 0
        self._chunks = Chunks(deserializer, errors, threads, MEMORY_LIMIT)
        self._randomizer = Randomizer(self._chunks, *order, MEMORY_LIMIT // 2)
        self._sequencer = Sequencer(self._chunks, self._randomizer, limits)
        self._gatherer = Gatherer(deserializer, self._chunks, errors, order.seed, threads)
        self._packer: SequencePacker | TruncatedPacker
        if kind.truncation_length:
            self._packer = TruncatedPacker(self._sequencer, self._gatherer, kind.truncation_length)
        else:
            self._packer = SequencePacker(self._sequencer, self._gatherer, kind.frame_mode)
        self._prefetcher = Prefetcher(self._packer, DEPTH if is_threaded else 0, self._renew)

    @property
    def memory_limit(self) -> int:
        """Bytes that chunks may take."""
        return self._chunks.limit

    @memory_limit.setter
    def memory_limit(self, limit: int) -> None:
        if self._prefetcher.state != self._packer_state(Position()):
            raise RuntimeError("memory_limit decides which chunks are shuffled together; set it before the first minibatch")
        self._prefetcher.pause()
        self._chunks.limit, self._randomizer.limit = limit, limit // 2

    def next(self, request: Request) -> Batch | None:
        """The next minibatch, None at the end."""
        return self._prefetcher.next(request)

    @property
    def place(self) -> Any:
        """Where it stands, for :meth:`go_back`."""
        return self._prefetcher.state

    def go_back(self, place: Any) -> None:
        """Serve again what has been served since it stood there."""
        self._prefetcher.restore(place)

    def stop(self) -> None:
        """Let the threads end."""
        self._prefetcher.stop()
        self._chunks.stop()
        self._gatherer.stop()

    def _renew(self) -> None:
        self._chunks.renew()
        self._gatherer.renew()

    # ---- where it stands ----

    @property
    def state(self) -> dict[str, Any]:
        """Where it stands: numbers, and lists of numbers."""
        held = self._prefetcher.state
        position, slots = held if isinstance(held, TruncatedState) else (held, ())
        state: dict[str, Any] = {SAMPLES: position.samples}
        if isinstance(held, TruncatedState) or position.earlier or not self._chunks.are_known:
            state[WHERE] = list(position[1:5])
        if self._sequencer.share.partitions > 1:
            state[SHARE] = list(self._sequencer.share)
        if position.earlier:
            state[EARLIER] = [[list(one[:5]) for one in workers] for workers in position.earlier]
        if slots:
            state[SLOTS] = [[served, *(int(number) for place in places for number in place)] for served, places in slots]
        if self._identity:
            state[DATA] = self._identity
        return state

    @state.setter
    def state(self, state: Mapping[str, Any]) -> None:
        if not isinstance(state, Mapping):
            raise ValueError(f"restore_from_checkpoint: expected {{'{SAMPLES}': samples}}, got {type(state).__name__} {state!r:.80}")
        try:
            share = Share(*_numbers(state.get(SHARE, [1, 0]), 2))
            if share.partition >= share.partitions:
                raise ValueError(f"restore_from_checkpoint: there is no partition {share.partition} of {share.partitions}")
            if WORKERS in state and not state[WORKERS]:
                raise ValueError(f"restore_from_checkpoint: '{WORKERS}' are the states of workers, one at least")
            if WORKERS in state:
                position, slots = self._left_by([self._place(one) for one in state[WORKERS]], share)
            else:
                position, slots = self._place(state)
        except (TypeError, AttributeError, IndexError, KeyError) as error:
            raise ValueError(f"restore_from_checkpoint: {dict(state)!r:.200} is no state of a source ({error})") from None
        worker = state[WORKERS][0] if WORKERS in state else state
        if DATA in worker:
            warn_of_other_data(worker[DATA], self._identity)
        self._prefetcher.restore(self._packer_state(position, slots))
        self._sequencer.share = share

    def _place(self, state: Mapping[str, Any]) -> tuple[Position, tuple[Any, ...]]:
        """What a state says."""
        samples: Any = state.get(SAMPLES)
        where = state.get(WHERE)
        if not _is_number(samples) or (where is not None and len(where) != 4):
            raise ValueError(f"restore_from_checkpoint: expected {{'{SAMPLES}': samples}}, got {dict(state)!r:.80}")
        if where is None and not self._chunks.are_known:
            raise ValueError(
                f"restore_from_checkpoint: the state must say '{WHERE}', for the sizes of chunks are unknown; got {dict(state)!r:.80}"
            )
        position = self._sequencer.position_at(int(samples)) if where is None else self._position([samples, *where])
        earlier = tuple(tuple(map(self._position, workers)) for workers in state.get(EARLIER, []))
        rows = [_numbers(row, len(row)) for row in state.get(SLOTS, [])]
        if any(len(row) % 4 != 1 or max(row[2::4], default=0) >= self._chunks.count for row in rows):
            raise ValueError(f"restore_from_checkpoint: '{SLOTS}' are not those of a source over this data; got {rows!r:.80}")
        places = tuple((row[0], tuple(tuple(row[i : i + 4]) for i in range(1, len(row), 4))) for row in rows)
        return position._replace(earlier=earlier), places

    def _position(self, numbers: Sequence[Any]) -> Position:
        samples, sweep, first, place, number = _numbers(numbers, 5)
        if first >= self._chunks.count:
            raise ValueError(f"restore_from_checkpoint: there are {self._chunks.count} chunks, and none at place {first}; of other data?")
        return Position(samples, sweep, first, place, number)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        known = self._chunks.are_known
        return identity_of(
            {"sequences": self._chunks.sequences, "samples": self._chunks.samples} if known else {}, self._deserializer.files()
        )

    def _left_by(self, workers: list[tuple[Position, tuple[Any, ...]]], share: Share) -> tuple[Position, tuple[Any, ...]]:
        """Where to go on with what so many workers have left; the sequences that they have begun go round."""
        count = len(workers)
        moved = [position for rank, (position, _) in enumerate(workers) if not self._sequencer.partitioner.is_idle(Share(count, rank))]
        positions = moved + moved[:1] * (count - len(moved))
        begun = tuple(slot for _, slots in workers for slot in slots)
        return merge_positions(tuple(positions)), begun[share.partition :: share.partitions]

    def _packer_state(self, position: Position, slots: Any = ()) -> Position | TruncatedState:
        return TruncatedState(position, slots) if isinstance(self._packer, TruncatedPacker) else position


def handed_over(own: Any, all_states: Sequence[Any], share: Share) -> Any:
    """What a worker goes on with where their number has changed: its *own*, but with what workers have left of a source that they shared.

    Args:
        own: dictionaries and lists, among which are states of sources.
        all_states: the same of all workers, as many as there were.
        share: how many there are now, and which one this is.
    """
    if isinstance(own, list):
        rows = [one for one in all_states if isinstance(one, list) and len(one) == len(own)]
        return [handed_over(value, [one[i] for one in rows], share) for i, value in enumerate(own)]
    if not isinstance(own, Mapping):
        return own
    others = [one for one in all_states if isinstance(one, Mapping)]
    if SAMPLES in own:
        are_shared = [one.get(SHARE, [1, 0]) for one in others] == [[len(all_states), rank] for rank in range(len(all_states))]
        return {SAMPLES: min(one[SAMPLES] for one in others), SHARE: list(share), WORKERS: others} if are_shared else own
    return {key: handed_over(value, [one[key] for one in others if key in one], share) for key, value in own.items()}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < FURTHEST


def _numbers(values: Any, count: int) -> list[int]:
    """So many whole numbers.

    Raises:
        ValueError: they are something else.
    """
    if len(values) != count or not all(map(_is_number, values)):
        raise ValueError(f"restore_from_checkpoint: expected {count} whole numbers from 0 on, got {values!r:.80}")
    return [int(value) for value in values]
