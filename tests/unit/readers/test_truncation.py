"""Pieces of sequences for back-propagation through time.  What is in which minibatch, and what recurrences go on with, is CNTK 2.7's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.io import MinibatchSource, StreamInformation, UserDeserializer

Piece = tuple[list[int], bool]


class Counting(UserDeserializer):
    """Sequences of given lengths, in chunks of two: steps count from 100 times the sequence's number; y is the same in every step."""

    def __init__(self, lengths: list[int], unequal: bool = False) -> None:
        self.lengths, self.unequal = lengths, unequal

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation(name, i, "dense", np.float32, (1,)) for i, name in enumerate("xy")]

    def num_chunks(self) -> int:
        return -(-len(self.lengths) // 2)

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        own = list(enumerate(self.lengths))[2 * chunk_id : 2 * chunk_id + 2]
        x = [100 * i + np.arange(n, dtype=np.float32)[:, None] for i, n in own]
        return {"x": x, "y": [part[:1] if self.unequal else part // 100 for part in x]}


def source(lengths: list[int], steps: int, **arguments: Any) -> MinibatchSource:
    return MinibatchSource(Counting(lengths), truncation_length=steps, **{"randomize": False} | arguments)


def pieces(source: MinibatchSource, size: int, count: int = 100, **arguments: Any) -> Iterator[tuple[list[Piece], bool]]:
    """For each minibatch the pieces, each its steps and whether it begins a sequence, and whether a sweep ends."""
    for _ in range(count):
        minibatch = source.next_minibatch(size, **arguments)
        if not minibatch:
            return
        data = minibatch[source["x"]]
        found = [part[:, 0].astype(int).tolist() for part in data.as_sequences()]
        assert data.num_sequences == len(found)
        assert data.num_samples == sum(map(len, found))
        assert [row.tolist().count(2) for row in data.mask] == list(map(int, data.data.seq_starts))
        yield list(zip(found, data.data.seq_starts, strict=True)), data.end_of_sweep


def test_slots_are_filled_one_after_another() -> None:
    new, old = True, False
    assert list(pieces(source([5, 3, 7, 2], 2), 4, 5)) == [
        ([([0, 1], new), ([100, 101], new)], False),
        ([([2, 3], old), ([102], old), ([200], new)], False),
        ([([4], old), ([300], new), ([201, 202], old)], False),
        ([([301], old), ([0], new), ([203, 204], old)], True),
        ([([1, 2], old), ([205, 206], old)], False),
    ]


@pytest.mark.parametrize(
    ("limit", "size", "expected"),
    [
        ({"max_sweeps": 1}, 8, [(8, False), (7, True), (2, False)]),
        ({"max_sweeps": 2}, 8, [(8, False), (8, True), (8, False), (8, False), (2, True)]),
        ({"max_samples": 9}, 8, [(8, False), (5, False), (2, False)]),
        ({"max_sweeps": 1}, 3, [(4, False), (4, False), (4, False), (4, False), (1, True)]),
        ({"max_sweeps": 1}, 11, [(8, False), (7, True), (2, False)]),
    ],
)
def test_a_truncated_source_ends_at_its_limits(limit: dict[str, int], size: int, expected: list[tuple[int, bool]]) -> None:
    found = [(sum(len(steps) for steps, _ in parts), ended) for parts, ended in pieces(source([5, 3, 7, 2], 4, **limit), size)]
    assert found == expected


@pytest.mark.parametrize("lengths", [[5, 3, 7, 2], [1, 1, 1, 1, 1, 2], [9, 1, 4, 1, 1, 6, 2]])
@pytest.mark.parametrize(("steps", "size"), [(2, 4), (4, 8), (3, 10), (4, 3)])
def test_every_step_has_the_one_before_it(lengths: list[int], steps: int, size: int) -> None:
    """The delay of a step is the step before it in its sequence, though that came in the minibatch before, beside others."""
    x = C.sequence.input_variable(1)
    before = C.sequence.past_value(x, initial_state=-1)
    data = source(lengths, steps, max_sweeps=2)
    seen: list[float] = []
    while minibatch := data.next_minibatch(size, {x: data["x"]}):
        for delayed, part in zip(before.eval(minibatch), minibatch[x].as_sequences(), strict=True):
            np.testing.assert_array_equal(delayed[:, 0], np.where(part[:, 0] % 100 == 0, -1, part[:, 0] - 1))
            seen += part[:, 0].tolist()
    assert sorted(seen) == sorted(2 * [100.0 * i + j for i, n in enumerate(lengths) for j in range(n)])


def test_training_in_pieces_is_training_in_whole_but_for_the_gradient_through_time() -> None:
    """A sum over time carries on from piece to piece, so that what is added up in the end is the sum of whole sequences."""
    x = C.sequence.input_variable(1)
    total = C.layers.Recurrence(lambda state, step: state + step)(x)
    data = source([5, 3, 7, 2], 2, max_sweeps=1)
    ends: dict[int, float] = {}
    while minibatch := data.next_minibatch(4, {x: data["x"]}):
        for sums, part in zip(total.eval(minibatch), minibatch[x].as_sequences(), strict=True):
            ends[int(part[-1, 0]) // 100] = float(sums[-1, 0])
    assert ends == {i: float(sum(range(100 * i, 100 * i + n))) for i, n in enumerate([5, 3, 7, 2])}


@pytest.mark.parametrize("count", range(6))
@pytest.mark.parametrize("randomize", [False, True])
def test_a_restored_source_goes_on_with_the_remaining_steps(count: int, randomize: bool) -> None:
    def steps(found: Any) -> list[list[int]]:
        return [[step for part, _ in parts for step in part] for parts, _ in found]

    first = source([5, 3, 7, 2, 4], 3, max_sweeps=2, randomize=randomize)
    list(pieces(first, 6, count))
    state = first.get_checkpoint_state()
    expected = steps(pieces(first, 6))
    other = source([5, 3, 7, 2, 4], 3, max_sweeps=2, randomize=randomize)
    other.next_minibatch(6)
    other.restore_from_checkpoint(state)
    found = list(pieces(other, 6))
    assert steps(found) == expected
    assert not found or all(begins for _, begins in found[0][0])  # the network's memory is gone


def test_a_smaller_minibatch_leaves_slots_waiting() -> None:
    data = source([5, 3, 7, 2], 2, max_sweeps=1)
    found = [step for size in (4, 4, 2, 2, 4, 4, 2, 2, 2, 2, 2) for parts, _ in pieces(data, size, 1) for part, _ in parts for step in part]
    assert sorted(found) == [100 * i + j for i, n in enumerate([5, 3, 7, 2]) for j in range(n)]


def test_partitions_have_sequences_of_their_own() -> None:
    parts = [list(pieces(source([5, 3, 7, 2], 2, max_sweeps=1), 4, num_data_partitions=2, partition_index=i)) for i in (0, 1)]
    found = [sorted(step for minibatch, _ in part for steps, _ in minibatch for step in steps) for part in parts]
    assert found == [[*range(5), *range(200, 207)], [100, 101, 102, 300, 301]]


def test_streams_of_unequal_lengths_are_refused() -> None:
    data = MinibatchSource(Counting([3, 2], unequal=True), truncation_length=2, randomize=False)
    with pytest.raises(RuntimeError, match=r"equally many samples in a sequence, got one of {'x': 3, 'y': 1}"):
        data.next_minibatch(4)
