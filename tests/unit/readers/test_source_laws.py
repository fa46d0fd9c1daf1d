"""Laws of minibatch sources: of any data, whatever its chunks, windows, threads, partitions and minibatch sizes."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from cntk.io import MinibatchSource, StreamInformation, UserDeserializer
from cntk.readers.deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from cntk.readers.partitions import Share
from cntk.readers.reader import handed_over

laws = settings(max_examples=40, deadline=None)


class Data(Deserializer):
    """Chunks of sequences of these lengths; steps are numbered through, and every sequence has a class, sparse, in its first step."""

    def __init__(self, chunks: list[list[int]], unreadable: frozenset[int] = frozenset()) -> None:
        self.chunks, self.unreadable = chunks, unreadable
        self.firsts = np.cumsum([0, *map(len, chunks)])
        self.steps = np.cumsum([0, *map(sum, chunks)])
        self.read = Counter[int]()

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation("x", 0, "dense", np.float32, (1,)), StreamInformation("y", 1, "sparse", np.float32, (50,))]

    def chunk_infos(self) -> list[ChunkInfo]:
        return [ChunkInfo(len(chunk), sum(chunk)) for chunk in self.chunks]

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        lengths = self.chunks[chunk]
        return SequenceInfos(np.array(lengths), np.arange(len(lengths)) + self.firsts[chunk])

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        self.read[chunk] += 1
        lengths = np.array(self.chunks[chunk])
        numbers = np.arange(len(lengths)) + self.firsts[chunk]
        rows = (np.arange(lengths.sum(), dtype=np.float32) + self.steps[chunk])[:, None]
        kept = np.array([int(number) not in self.unreadable for number in numbers])
        for number in numbers[~kept]:
            errors.leave_out(ValueError(f"sequence {number} cannot be read"))
        y = csr_matrix(np.eye(50, dtype=np.float32)[numbers[kept] % 50])
        return {
            "x": StreamData.of_lengths(rows[np.repeat(kept, lengths)], lengths * kept),
            "y": StreamData.of_lengths(y, kept.astype(int)),
        }


class Written(UserDeserializer):
    """The same, by a user: sizes are not known before a chunk is read."""

    def __init__(self, data: Data) -> None:
        self.data = data

    def stream_infos(self) -> list[StreamInformation]:
        return self.data.stream_infos()

    def num_chunks(self) -> int:
        return len(self.data.chunks)

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        found = self.data.get_chunk(chunk_id, Errors())
        names = [info.name for info in self.stream_infos()]
        return {name: [found[name].sequence(i) for i in range(len(found[name]))] for name in names}


class Steps(Data):
    """The same without classes."""

    def stream_infos(self) -> list[StreamInformation]:
        return super().stream_infos()[:1]


class Setting(NamedTuple):
    """How data is read."""

    chunks: list[list[int]]
    sizes: list[int]
    window: dict[str, int]
    seed: int
    limit: int
    is_written_by_user: bool

    def source(self, threads: bool = False, **arguments: Any) -> MinibatchSource:
        data: Any = (Steps if arguments.get("truncation_length") else Data)(self.chunks)
        given = {"randomization_seed": self.seed, "multithreaded_deserializer": threads or False} | self.window | arguments
        source = MinibatchSource(Written(data) if self.is_written_by_user else data, **given)
        source.memory_limit = self.limit
        return source


lengths = st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=6), min_size=1, max_size=9)
lengths |= st.lists(st.lists(st.just(1), min_size=1, max_size=12), min_size=1, max_size=9)
windows: Any = st.one_of(
    st.just({"randomize": False}),
    st.fixed_dictionaries({"randomization_window_in_chunks": st.integers(1, 10)}),
    st.fixed_dictionaries({"randomization_window_in_chunks": st.just(0), "randomization_window_in_samples": st.integers(1, 40)}),
)
readings = st.builds(
    Setting,
    chunks=lengths,
    sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4),
    window=windows,
    seed=st.integers(0, 3),
    limit=st.sampled_from([1, 2000, 1 << 30]),
    is_written_by_user=st.booleans(),
)


def steps(minibatch: Any, source: MinibatchSource) -> list[int]:
    return [] if not minibatch else [int(step) for part in minibatch[source["x"]].as_sequences() for step in part[:, 0]]


def minibatches(source: MinibatchSource, sizes: list[int], count: int, **arguments: Any) -> list[Any]:
    """What each holds; sizes take turns, but each is asked for a few times so that threads may begin."""
    found = []
    for i in range(count):
        minibatch = source.next_minibatch(sizes[i // 5 % len(sizes)], **arguments)
        ended = minibatch[source["x"]].end_of_sweep if minibatch else None
        classes = minibatch[source["y"]].asarray()[:, 0].argmax(1).tolist() if minibatch else []
        found.append((steps(minibatch, source), classes, ended))
    return found


def total(setting: Setting) -> int:
    return sum(map(sum, setting.chunks))


@laws
@given(readings)
def test_every_sweep_holds_every_step_once_and_in_its_sequence(setting: Setting) -> None:
    source = setting.source(max_sweeps=3)
    found = minibatches(source, setting.sizes, 4 * total(setting))
    everything = [step for part, _, _ in found for step in part]
    for sweep in range(3):
        assert sorted(everything[sweep * total(setting) : (sweep + 1) * total(setting)]) == list(range(total(setting)))
    assert len(everything) == 3 * total(setting)
    data = Data(setting.chunks)
    own = np.repeat(np.arange(data.firsts[-1]), [n for chunk in setting.chunks for n in chunk])
    assert all(classes == list(dict.fromkeys((own[part] % 50).tolist())) or len(part) > 1 for part, classes, _ in found)


@laws
@given(readings)
def test_minibatches_hold_as_much_as_fits(setting: Setting) -> None:
    source = setting.source()
    for size in setting.sizes * 3:
        minibatch = source.next_minibatch(size)
        data = minibatch[source["x"]]
        assert data.num_samples <= size or data.num_sequences == 1


@laws
@given(readings, st.integers(0, 30))
def test_a_source_stopped_anywhere_goes_on_exactly(setting: Setting, count: int) -> None:
    first = setting.source(max_sweeps=3)
    minibatches(first, setting.sizes, count)
    state = first.get_checkpoint_state()
    expected = minibatches(first, setting.sizes, 12)
    again = setting.source(max_sweeps=3)
    again.next_minibatch(3)
    again.restore_from_checkpoint(state)
    assert minibatches(again, setting.sizes, 12) == expected
    assert again.get_checkpoint_state() == first.get_checkpoint_state()


class Workers:
    """So many workers that share the data of a setting, each with a source of its own."""

    def __init__(self, setting: Setting, count: int, states: list[dict[str, Any]] | None = None, **arguments: Any) -> None:
        self.sources = [setting.source(**arguments) for _ in range(count)]
        for rank, source in enumerate(self.sources):
            if states is not None:
                left = handed_over(states[0], states, Share(count, rank)) if len(states) != count else states[rank]
                source.restore_from_checkpoint(left)

    @property
    def states(self) -> list[dict[str, Any]]:
        return [source.get_checkpoint_state() for source in self.sources]

    def read(self, rank: int, size: int) -> Any:
        return self.sources[rank].next_minibatch(size, num_data_partitions=len(self.sources), partition_index=rank)

    def steps(self, rank: int, size: int, least: int = 1) -> list[int]:
        """What one of them reads, until there is nothing, in so many minibatches at the most."""
        found = []
        while least and (minibatch := self.read(rank, size)):
            found += steps(minibatch, self.sources[rank])
            least -= 1
        return found


@laws
@given(readings, st.sampled_from([2, 3, 4]))
def test_workers_read_every_sweep_once_together(setting: Setting, count: int) -> None:
    workers = Workers(setting, count, max_sweeps=3)
    seen = Counter(step for rank in range(count) for step in workers.steps(rank, setting.sizes[0], 10**6))
    assert seen == dict.fromkeys(range(total(setting)), 3)


@laws
@given(readings, st.sampled_from([2, 3, 4]))
def test_workers_take_what_is_their_share_of_a_minibatch(setting: Setting, count: int) -> None:
    workers = Workers(setting, count, max_sweeps=2)
    for rank, size in itertools.product(range(count), setting.sizes):
        share = max(size // count + (rank < size % count), 1)
        if minibatch := workers.read(rank, size):
            found = minibatch[workers.sources[rank]["x"]]
            assert found.num_samples <= share or found.num_sequences == 1


@laws
@given(readings, st.sampled_from([1, 2, 3]), st.integers(1, 6))
def test_workers_read_together_what_one_reads_where_sequences_are_equally_long(setting: Setting, count: int, size: int) -> None:
    even = setting._replace(chunks=[[2] * len(chunk) for chunk in setting.chunks], window={"randomize": False})
    one, workers = Workers(even, 1, max_sweeps=2), Workers(even, count, max_sweeps=2)
    for _ in range(total(even)):
        together = sorted(step for rank in range(count) for step in workers.steps(rank, 2 * size * count))
        assert together == sorted(one.steps(0, 2 * size * count))


@laws
@given(st.integers(1, 30), st.sampled_from([2, 3, 4]), st.integers(0, 3))
def test_workers_read_together_what_one_reads_where_chunks_are_few(length: int, count: int, seed: int) -> None:
    setting = Setting([[3] * length], [6 * count], {}, seed, 1 << 30, False)
    one, workers = Workers(setting, 1, max_sweeps=2), Workers(setting, count, max_sweeps=2)
    for _ in range(length):
        together = sorted(step for rank in range(count) for step in workers.steps(rank, 6 * count))
        assert together == sorted(one.steps(0, 6 * count))


@pytest.mark.parametrize(("sequences", "idle"), [(127, True), (128, False)])
def test_a_few_sequences_stay_together_and_many_are_divided(sequences: int, idle: bool) -> None:
    lengths = [2, *[1] * (sequences - 1)]
    workers = Workers(Setting([lengths], [8], {}, 0, 1 << 30, False), 2, max_sweeps=1)
    assert (not workers.steps(1, 8)) == idle


@laws
@given(readings, st.sampled_from([2, 3, 4]))
def test_each_worker_ends_a_sweep_once(setting: Setting, count: int) -> None:
    if len(setting.chunks) < count:
        return
    workers = Workers(setting, count, max_sweeps=3)
    for rank, source in enumerate(workers.sources):
        found = [minibatch[source["x"]].end_of_sweep for minibatch in iter(lambda rank=rank: workers.read(rank, 1), {})]
        assert sum(found) == 3
        assert found[-1]


@laws
@given(readings, st.lists(st.tuples(st.sampled_from([1, 2, 3, 4]), st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=4))
def test_another_number_of_workers_goes_on_where_nothing_is_lost_or_read_twice(
    setting: Setting, changes: list[tuple[int, int, int]]
) -> None:
    """Each worker stops at another place, and again before it has caught up."""
    states, seen = None, Counter[int]()
    for count, least, size in changes:
        workers = Workers(setting, count, states, max_sweeps=2)
        seen.update(step for rank in range(count) for step in workers.steps(rank, size, least + 2 * rank))
        states = workers.states
    last = Workers(setting, 3, states, max_sweeps=2)
    states = last.states  # before anything is read
    last = Workers(setting, 2, states, max_sweeps=2)
    seen.update(step for rank in range(2) for step in last.steps(rank, 5, 10**6))
    assert seen == dict.fromkeys(range(total(setting)), 2)


@laws
@given(readings, st.sampled_from([2, 3]), st.integers(0, 5), st.integers(0, 5))
def test_as_many_workers_go_on_exactly(setting: Setting, count: int, least: int, more: int) -> None:
    workers = Workers(setting, count, max_sweeps=3)
    for rank in range(count):
        workers.steps(rank, setting.sizes[0], least + rank)
    again = Workers(setting, count, workers.states, max_sweeps=3)
    assert again.states == workers.states
    for rank in range(count):
        assert again.steps(rank, setting.sizes[-1], more) == workers.steps(rank, setting.sizes[-1], more)


@laws
@given(readings, st.integers(1, 7), st.sampled_from([1, 2, 3]), st.sampled_from([1, 2, 4]), st.integers(1, 4))
def test_nothing_is_lost_of_pieces_when_the_number_of_workers_changes(
    setting: Setting, length: int, count: int, then: int, least: int
) -> None:
    arguments = {"max_sweeps": 1, "truncation_length": length}
    setting = setting._replace(chunks=[[1 + n for n in chunk] for chunk in setting.chunks])
    sources = [setting.source(**arguments) for _ in range(count)]
    seen = Counter[int]()

    def read(sources: list[MinibatchSource], least: int) -> None:
        for rank, source in enumerate(sources):
            for _ in range(least + rank):
                minibatch = source.next_minibatch(9, num_data_partitions=len(sources), partition_index=rank)
                seen.update([] if not minibatch else steps(minibatch, source))

    read(sources, least)
    states = [source.get_checkpoint_state() for source in sources]
    sources = [setting.source(**arguments) for _ in range(then)]
    for rank, source in enumerate(sources):
        source.restore_from_checkpoint(handed_over(states[0], states, Share(then, rank)) if count != then else states[rank])
    read(sources, 2 * total(setting))
    assert seen == dict.fromkeys(range(total(setting)), 1)


@laws
@given(readings, st.integers(0, 10), st.sampled_from([1, 2, 4]))
def test_another_number_of_workers_goes_on_exactly(setting: Setting, count: int, workers: int) -> None:
    first = setting.source(max_sweeps=1)
    before = Counter(step for part, _, _ in minibatches(first, setting.sizes, count) for step in part)
    for i in range(workers):
        source = setting.source(max_sweeps=1)
        source.restore_from_checkpoint(first.get_checkpoint_state())
        rest = minibatches(source, setting.sizes, total(setting), num_data_partitions=workers, partition_index=i)
        before.update(step for part, _, _ in rest for step in part)
    assert before == dict.fromkeys(range(total(setting)), 1)


@settings(max_examples=25, deadline=None)
@given(readings)
def test_threads_change_nothing(setting: Setting) -> None:
    from cntk.readers import prefetch

    kept, prefetch.SLOW = prefetch.SLOW, -1.0  # whatever it takes, a thread prepares minibatches
    try:
        threaded = setting.source(threads=True, max_sweeps=2)
        found = minibatches(threaded, setting.sizes, 25)
        assert threaded._reader._prefetcher._thread is not None
    finally:
        prefetch.SLOW = kept
    assert found == minibatches(setting.source(max_sweeps=2), setting.sizes, 25)


@laws
@given(readings, st.sets(st.integers(0, 20), max_size=4))
def test_what_cannot_be_read_is_left_out(setting: Setting, unreadable: set[int]) -> None:
    data = Data(setting.chunks, frozenset(unreadable))
    count = int(data.firsts[-1])
    if not set(range(count)) - unreadable:
        return
    arguments: dict[str, Any] = {"randomization_seed": setting.seed, "multithreaded_deserializer": False} | setting.window
    source = MinibatchSource(data, max_errors=20, max_sweeps=1, **arguments)
    found = [step for part, _, _ in minibatches(source, setting.sizes, 2 * count + 1) for step in part]
    bounds = np.cumsum([0, *(n for chunk in setting.chunks for n in chunk)])
    assert sorted(found) == [step for i in range(count) if i not in unreadable for step in range(bounds[i], bounds[i + 1])]


@laws
@given(readings)
def test_without_threads_a_chunk_is_read_once_a_window(setting: Setting) -> None:
    data = Data(setting.chunks)
    source = MinibatchSource(data, max_sweeps=2, multithreaded_deserializer=False, **setting.window)
    minibatches(source, setting.sizes, 3 * total(setting))
    assert max(data.read.values()) <= 2
    assert set(data.read) == set(range(len(setting.chunks)))


@laws
@given(st.lists(st.integers(1, 4), min_size=4, max_size=30), st.integers(0, 3))
def test_where_chunks_are_enough_each_worker_reads_its_own(lengths: list[int], seed: int) -> None:
    chunks = [[n, n, n] for n in lengths]
    read = []
    for worker in (0, 1):
        data = Data(chunks)
        source = MinibatchSource(data, max_sweeps=1, randomization_seed=seed, multithreaded_deserializer=False)
        minibatches(source, [7], 40 * len(chunks), num_data_partitions=2, partition_index=worker)
        read.append(set(data.read))
    assert not read[0] & read[1]
    assert read[0] | read[1] == set(range(len(chunks)))
