"""Minibatch sources: what is in which minibatch, in which order, and where they end.  Without shuffling the counts are CNTK 2.7's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.io import FULL_DATA_SWEEP, CTFDeserializer, MinibatchData, MinibatchSource, StreamDef, StreamDefs, StreamInformation
from cntk.readers.data_identity import identity_of

Make = Callable[..., MinibatchSource]


def text(lengths: list[int]) -> str:
    """Sequences of these lengths: x counts steps through all of them, y has the number of the sequence, once, in the first line."""
    starts = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    return "".join(f"{i} |x {starts[i] + j}{f' |y {i}:1' if not j else ''}\n" for i, n in enumerate(lengths) for j in range(n))


def streams(count: int, defining: str = "") -> Any:
    return StreamDefs(
        x=StreamDef(field="x", shape=1, defines_mb_size=defining == "x"),
        y=StreamDef(field="y", shape=count, is_sparse=True, defines_mb_size=defining == "y"),
    )


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes a source over sequences of given lengths."""

    def source(lengths: list[int], defining: str = "", chunk: int = 1 << 20, randomize: bool = False, **arguments: Any) -> MinibatchSource:
        file = tmp_path / "data.ctf"
        file.write_text(text(lengths))
        deserializer = CTFDeserializer(str(file), streams(len(lengths), defining))
        deserializer["chunkSizeInBytes"] = chunk
        return MinibatchSource(deserializer, randomize=randomize, **arguments)

    return source


def steps(minibatch: dict[Any, MinibatchData], source: MinibatchSource) -> list[float]:
    return [float(step) for part in minibatch[source.streams.x].as_sequences() for step in part[:, 0]]


def served(source: MinibatchSource, size: int, count: int = 100, **arguments: Any) -> list[tuple[list[float], bool]]:
    """The steps of each minibatch and whether a sweep ends in it."""
    found = []
    for _ in range(count):
        minibatch = source.next_minibatch(size, **arguments)
        if not minibatch:
            break
        assert len({data.end_of_sweep for data in minibatch.values()}) == 1
        found.append((steps(minibatch, source), minibatch[source["x"]].end_of_sweep))
    return found


def numbers(*minibatches: tuple[range | list[int], bool]) -> list[tuple[list[float], bool]]:
    return [(list(map(float, found)), ended) for found, ended in minibatches]


TEN = [1] * 10
RAGGED = [3, 1, 2, 4, 1]


def test_what_a_minibatch_tells(make: Make) -> None:
    source = make(RAGGED)
    found = source.next_minibatch(6)
    x, y = found[source["x"]], found[source["y"]]
    assert (x.shape, y.shape) == ((3, 3, 1), (3, 1, 5))
    assert (x.num_sequences, x.num_samples, x.number_of_sequences, x.number_of_samples, len(x)) == (3, 6, 3, 6, 3)
    assert (y.num_sequences, y.num_samples) == (3, 3)
    assert (x.is_sparse, y.is_sparse, x.end_of_sweep, x.sweep_end) == (False, True, False, False)
    np.testing.assert_array_equal(x.mask, [[2, 1, 1], [2, 0, 0], [2, 1, 0]])
    np.testing.assert_array_equal(x.data.data.asarray()[:, :, 0], [[0, 1, 2], [3, 0, 0], [4, 5, 0]])
    with pytest.raises(AttributeError, match="mask"):
        _ = y.mask
    np.testing.assert_array_equal(y.asarray()[:, 0], np.eye(5)[:3])
    assert repr(x) == "MinibatchData(data=Value([3 x 3 x 1], CPU), samples=6, seqs=3)"
    assert x.data.dtype is np.float32


def test_a_source_tells_its_streams(make: Make) -> None:
    source = make(RAGGED)
    assert [(info.name, info.m_id, info.storage_format, info.sample_shape) for info in source.stream_infos()] == [
        ("x", 0, "dense", (1,)),
        ("y", 1, "sparse", (5,)),
    ]
    assert source.streams.x == source["x"] == source.stream_info("x")
    with pytest.raises(RuntimeError, match="no stream is called 'z'"):
        source["z"]


def test_minibatches_cross_the_end_of_a_sweep(make: Make) -> None:
    expected = numbers((range(4), False), (range(4, 8), False), ([8, 9, 0, 1], True), ([2, 3, 4, 5], False), ([6, 7, 8, 9], True))
    assert served(make(TEN), 4, 5) == expected
    sweep, half = list(range(10)), [0, 1, 2, 3, 4]
    assert served(make(TEN), 25, 2) == numbers((sweep + sweep + half, True), ([5, 6, 7, 8, 9, *sweep, *sweep], True))


@pytest.mark.parametrize("chunk", [1, 20, 1000])
def test_whole_sequences_as_many_as_fit(make: Make, chunk: int) -> None:
    expected = numbers(([0, 1, 2, 3], False), ([4, 5], False), (range(6, 10), False), ([10, 0, 1, 2], True), ([3, 4, 5], False))
    assert served(make(RAGGED, chunk=chunk), 4, 5) == expected
    assert served(make(RAGGED, chunk=chunk), 1, 3) == numbers(([0, 1, 2], False), ([3], False), ([4, 5], False))


@pytest.mark.parametrize(
    ("limits", "size", "expected"),
    [
        ({"max_sweeps": 2}, 7, [(range(7), False), ([7, 8, 9, 0, 1, 2, 3], True), (range(4, 10), True)]),
        ({"max_sweeps": 1}, 5, [(range(5), False), (range(5, 10), True)]),
        ({"max_samples": FULL_DATA_SWEEP}, 100, [(range(10), True)]),
        ({"max_samples": 13}, 6, [(range(6), False), ([6, 7, 8, 9, 0, 1], True), ([2], False)]),
        ({"max_samples": 10}, 5, [(range(5), False), (range(5, 10), True)]),
    ],
)
def test_a_source_ends_at_its_limits(make: Make, limits: dict[str, int], size: int, expected: Any) -> None:
    source = make(TEN, **limits)
    assert served(source, size) == numbers(*expected)
    assert source.next_minibatch(size) == {}
    assert not source.is_infinite()


@pytest.mark.parametrize(("limit", "size", "expected"), [(4, 2, [3, 3]), (5, 20, [6]), (10, 5, [3, 4, 3])])
def test_the_last_sequence_is_whole(make: Make, limit: int, size: int, expected: list[int]) -> None:
    assert [len(found) for found, _ in served(make([3, 3, 1], max_samples=limit), size)] == expected


@pytest.mark.parametrize(
    ("defining", "size", "expected"),
    [
        ("", 6, [(3, 2, 6), (3, 1, 6), (3, 2, 6)]),
        ("x", 4, [(3, 2, 6), (4, 2, 8), (2, 1, 4)]),
        ("y", 2, [(3, 2, 6), (4, 2, 8), (5, 2, 10)]),
    ],
)
def test_the_stream_that_defines_the_size(tmp_path: Path, defining: str, size: int, expected: Any) -> None:
    """Sequences have 1, 2 and 3 samples of x, one of y, and twice as many of z as of x."""
    file = tmp_path / "data.ctf"
    steps = [(i, j, n) for i, n in enumerate((1, 2, 3)) for j in range(2 * n)]
    file.write_text("".join(f"{i} |z {j}{' |x 1' if j < n else ''}{' |y 1' if not j else ''}\n" for i, j, n in steps))
    defs = StreamDefs(**{name: StreamDef(field=name, shape=1, defines_mb_size=name == defining) for name in "xyz"})
    source = MinibatchSource(CTFDeserializer(str(file), defs), randomize=False)
    found = [source.next_minibatch(size) for _ in range(3)]
    assert [tuple(minibatch[source[name]].num_samples for name in "xyz") for minibatch in found] == expected


# ---- shuffling ----


def sweeps(source: MinibatchSource, length: int, count: int) -> list[list[float]]:
    found = [step for _ in range(count * length) for step in steps(source.next_minibatch(1), source)][: count * length]
    return [found[i * length : (i + 1) * length] for i in range(count)]


@pytest.mark.parametrize(
    "window",
    [{}, {"randomization_window_in_chunks": 2}, {"randomization_window_in_chunks": 0, "randomization_window_in_samples": 25}],
)
@pytest.mark.parametrize("chunk", [1, 60, 10000])
def test_every_sweep_has_every_sequence_once_and_an_order_of_its_own(make: Make, window: dict[str, int], chunk: int) -> None:
    found = sweeps(make([1] * 60, chunk=chunk, randomize=True, **window), 60, 3)
    assert all(sorted(sweep) == list(range(60)) for sweep in found)
    assert len({tuple(sweep) for sweep in [*found, sorted(found[0])]}) == 4


def test_streams_stay_together(make: Make) -> None:
    source = make(TEN, randomize=True)
    found = source.next_minibatch(30)
    np.testing.assert_array_equal(found[source["y"]].asarray()[:, 0].argmax(1), found[source["x"]].asarray()[:, 0, 0])


def test_the_seed_chooses_the_order(make: Make) -> None:
    first, again, other = (sweeps(make(TEN, randomize=True, randomization_seed=seed), 10, 3) for seed in (0, 0, 123))
    assert first == again
    assert first != other
    assert sweeps(make(TEN, randomize=True, randomization_seed=1), 10, 2) == first[1:]


@pytest.mark.parametrize(("threads", "randomize"), [(False, True), (True, True), (True, False)])
def test_a_limit_bounds_what_is_in_memory(make: Make, threads: bool, randomize: bool) -> None:
    source = make([1] * 100, chunk=60, randomize=randomize, multithreaded_deserializer=threads)
    chunks = source._reader._chunks
    source.memory_limit = limit = 4 * int(chunks._nbytes.max())
    for _ in range(60):
        source.next_minibatch(2)
        assert 0 < chunks._nbytes[list(chunks._held)].sum() <= limit
    with pytest.raises(RuntimeError, match="set it before the first minibatch"):
        source.memory_limit = 1000


@pytest.mark.parametrize("randomize", [False, True])
@pytest.mark.parametrize("chunk", [1, 30, 1000])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 20])
def test_a_restored_source_goes_on_as_if_never_stopped(make: Make, randomize: bool, chunk: int, count: int) -> None:
    source = make(RAGGED, chunk=chunk, randomize=randomize, max_sweeps=9)
    total = sum(len(found) for found, _ in served(source, 4, count))
    state = source.get_checkpoint_state()
    assert state == source.current_position
    assert {key: held for key, held in state.items() if key != "data"} == {"minibatchSourcePosition": total}
    expected = served(source, 3)
    other = make(RAGGED, chunk=chunk, randomize=randomize, max_sweeps=9)
    other.next_minibatch(5)
    other.restore_from_checkpoint(state)
    assert served(other, 3) == expected
    other.current_position = state
    assert served(other, 3) == expected


@pytest.mark.parametrize(
    "state",
    [
        *({}, None, 5, "state", [1], {"minibatchSourcePosition": -1}, {"minibatchSourcePosition": "3"}, {"minibatchSourcePosition": 1}),
        *({"minibatchSourcePosition": value} for value in (2**70, True, 1.0, None)),
        *({"minibatchSourcePosition": 0, "partition": value} for value in ([2], [2, 2], [0, 0], 1, ["a", 0])),
        *({"minibatchSourcePosition": 0, "sweepChunkSequence": value} for value in ([0, 99, 0, 0], [0, -1, 0, 0], "none", 4, [0, 0, 0])),
        *({"minibatchSourcePosition": 0, "truncatedSlots": value} for value in (1, [[0, 1]], [[0, 0, 99, 0, 1]], [["a"]])),
        *({"minibatchSourcePosition": 0, "workers": value} for value in (None, [], [1], [{}])),
        {"minibatchSourcePosition": 0, "earlierWorkers": [[1]]},
        {"minibatchSourcePosition": 0, "data": [1]},
    ],
)
def test_states_that_are_none(make: Make, state: Any) -> None:
    source = make(RAGGED)
    source.next_minibatch(4)
    before = source.get_checkpoint_state()
    with pytest.raises(ValueError, match=r"restore_from_checkpoint|the checkpoint is of other data"):
        source.restore_from_checkpoint(state)
    assert source.get_checkpoint_state() == before


def test_a_state_as_cntk_has_it(make: Make) -> None:
    source = make(RAGGED, max_sweeps=2)
    source.next_minibatch(4)
    position, expected = source.get_checkpoint_state()["minibatchSourcePosition"], served(source, 3)
    other = make(RAGGED, max_sweeps=2)
    other.restore_from_checkpoint({"minibatchSourcePosition": position})
    assert served(other, 3) == expected


def reader_of(file: Path) -> MinibatchSource:
    return MinibatchSource(CTFDeserializer(str(file), StreamDefs(x=StreamDef("x", 1))))


def numbered(first: int, count: int) -> str:
    return "".join(f"|x {first + i:05}\n" for i in range(count))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (numbered(0, 500), "1000 sequences, now 500"),
        (numbered(0, 2000), "1000 samples, now 2000"),
        (numbered(1, 1000), "another content of 'data.ctf'"),
    ],
    ids=["fewer", "more", "others"],
)
def test_other_data_than_the_checkpoint_had(tmp_path: Path, lines: str, message: str) -> None:
    file = tmp_path / "data.ctf"
    file.write_text(numbered(0, 1000))
    source = reader_of(file)
    for _ in range(5):
        source.next_minibatch(70)
    state = source.get_checkpoint_state()
    file.write_text(lines)
    with pytest.warns(UserWarning, match=f"the data are not those of the checkpoint.*{message}"):
        reader_of(file).restore_from_checkpoint(state)


def test_data_that_have_moved_are_the_same(tmp_path: Path) -> None:
    file, moved = tmp_path / "data.ctf", tmp_path / "folder" / "other name.ctf"
    file.write_text(numbered(0, 1000))
    source = reader_of(file)
    source.next_minibatch(70)
    moved.parent.mkdir()
    moved.write_text(file.read_text())
    again = reader_of(moved)
    again.restore_from_checkpoint(source.get_checkpoint_state())
    minibatches = [one.next_minibatch(70)[one.streams.x].asarray() for one in (source, again)]
    assert np.array_equal(*minibatches)


def test_a_large_file_is_told_by_parts_of_it(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(range(256)) * 20_000)
    before = identity_of({}, [str(file)])
    with open(file, "r+b") as opened:
        opened.seek(-1, os.SEEK_END)
        opened.write(b"!")
    assert identity_of({}, [str(file)]) != before


# ---- parts ----


def test_partitions_share_every_minibatch(make: Make) -> None:
    parts = [served(make(TEN, max_sweeps=1), 4, num_data_partitions=2, partition_index=i) for i in (0, 1)]
    assert parts == [numbers(([0, 2], False), ([4, 6], False), ([8], True)), numbers(([1, 3], False), ([5, 7], False), ([9], True))]


def test_every_partition_gets_a_sequence(make: Make) -> None:
    assert served(make(TEN, max_sweeps=1), 2, num_data_partitions=3, partition_index=2) == numbers(([2], False), ([5], False), ([8], True))


def test_data_by_variable(make: Make) -> None:
    source = make(RAGGED)
    x, y = C.sequence.input_variable(1), C.input_variable(5, is_sparse=True)
    found = source.next_minibatch(6, {x: source.streams.x, y: source.streams.y})
    assert list(found) == [x, y]
    total = C.sequence.reduce_sum(x) + C.reduce_sum(y)
    np.testing.assert_array_equal(total.eval(found), [[4], [4], [10]])
    np.testing.assert_array_equal((C.sequence.last(x) * 2).eval(found[x]), [[4], [6], [10]])
    with pytest.raises(KeyError, match="is mapped to z"):
        source.next_minibatch(6, {x: StreamInformation("z", 0, "dense", np.float32, (1,))})


def test_a_minibatch_lasts(make: Make) -> None:
    source = make(TEN)
    first = source.next_minibatch(4)
    source.next_minibatch(4)
    assert steps(first, source) == [0, 1, 2, 3]


# ---- several deserializers ----


def pair(tmp_path: Path, first: str, second: str, **arguments: Any) -> MinibatchSource:
    found = []
    for name, lines in (("x", first), ("y", second)):
        (tmp_path / name).write_text(lines)
        found.append(CTFDeserializer(str(tmp_path / name), StreamDefs(**{name: StreamDef(field=name, shape=1)})))
    found[1]["chunkSizeInBytes"] = 8
    return MinibatchSource(found, randomize=False, max_sweeps=1, **arguments)


def both(source: MinibatchSource, size: int = 100) -> list[list[list[float]]]:
    found = source.next_minibatch(size)
    return [[part[:, 0].tolist() for part in found[source[name]].as_sequences()] for name in "xy"]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("0 |x 1\n1 |x 2\n", "1 |y 20\n0 |y 10\n", [[[1], [2]], [[10], [20]]]),
        ("0 |x 1\n1 |x 2\n", "1 |y 20\n0 |y 10\n2 |y 30\n", [[[1], [2]], [[10], [20]]]),
        ("|x 1\n|x 2\n", "|y 20\n|y 10\n", [[[1], [2]], [[20], [10]]]),
        ("|x 1\n|x 2\n", "1 |y 20\n0 |y 10\n", [[[1], [2]], [[10], [20]]]),
        ("0 |x 1\n1 |x 2\n0 |x 3\n", "0 |y 10\n1 |y 20\n0 |y 30\n", [[[1], [2], [3]], [[10], [20], [10]]]),
        ("0 |x 1\n0 |x 2\n1 |x 5\n", "0 |y 20\n1 |y 10\n1 |y 11\n1 |y 12\n", [[[1, 2], [5]], [[20], [10, 11, 12]]]),
    ],
)
def test_sequences_of_one_id_come_together(tmp_path: Path, first: str, second: str, expected: Any) -> None:
    assert both(pair(tmp_path, first, second)) == expected


def test_the_longest_of_all_deserializers_counts(tmp_path: Path) -> None:
    source = pair(tmp_path, "0 |x 1\n1 |x 2\n", "0 |y 20\n0 |y 10\n1 |y 3\n")
    assert both(source, 2) == [[[1]], [[20, 10]]]
    assert both(source, 2) == [[[2]], [[3]]]


def test_sequences_that_one_lacks_are_left_out(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 sequences of the leading deserializer are left out"):
        assert both(pair(tmp_path, "0 |x 1\n1 |x 2\n2 |x 3\n", "2 |y 20\n0 |y 10\n")) == [[[1], [3]], [[10], [20]]]


def test_the_primary_deserializer_leads(tmp_path: Path) -> None:
    lines = {"x": "0 |x 1\n1 |x 2\n", "y": "1 |y 20\n0 |y 10\n"}
    for name, text in lines.items():
        (tmp_path / name).write_text(text)
    found = [CTFDeserializer(str(tmp_path / name), StreamDefs(**{name: StreamDef(field=name, shape=1)})) for name in lines]
    found[1].is_primary = True
    assert both(MinibatchSource(found, randomize=False, max_sweeps=1)) == [[[2], [1]], [[20], [10]]]
    found[0].is_primary = True
    with pytest.raises(RuntimeError, match="one deserializer at most may be primary"):
        MinibatchSource(found)


def test_a_single_sample_stands_for_a_whole_sequence(tmp_path: Path) -> None:
    for name, text in {"x": "0 |x 1\n0 |x 2\n1 |x 3\n", "y": "1 |y 20\n0 |y 10\n", "z": "0 |y 1\n0 |y 2\n1 |y 3\n"}.items():
        (tmp_path / name).write_text(text)

    def source(other: str) -> MinibatchSource:
        parts = {"x": "x", "y": other}
        x, y = (CTFDeserializer(str(tmp_path / file), StreamDefs(**{s: StreamDef(field=s, shape=1)})) for s, file in parts.items())
        y.broadcast = frozenset({"y"})
        return MinibatchSource([x, y], randomize=False, max_sweeps=1)

    assert both(source("y")) == [[[1, 2], [3]], [[10, 10], [20]]]
    with pytest.raises(RuntimeError, match="stream 'y' is broadcast: expected one sample in each sequence, got 2"):
        both(source("z"))


def test_nothing_in_common(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no sequence in common"):
        pair(tmp_path, "0 |x 1\n", "7 |y 20\n")


# ---- errors ----


def test_bad_sequences_are_left_out_up_to_a_number(tmp_path: Path) -> None:
    file = tmp_path / "data.ctf"
    file.write_text("|x 0\n|x a\n|x 2\n|x 3 4\n|x 4\n")

    def source(limit: int) -> MinibatchSource:
        deserializer = CTFDeserializer(str(file), StreamDefs(x=StreamDef(field="x", shape=1)))
        return MinibatchSource(deserializer, randomize=False, max_errors=limit, max_sweeps=3)

    assert served(source(2), 1) == numbers(*[([0], False), ([2], False), ([4], True)] * 3)  # met again, an error counts once
    with pytest.raises(RuntimeError, match=r"line 4.*expected 1 numbers, got 2; .*\(max_errors=1 sequences were left out before\)"):
        source(1).next_minibatch(1)


def test_the_end_of_a_sweep_is_told_even_if_its_last_sequence_is_bad(tmp_path: Path) -> None:
    file = tmp_path / "data.ctf"
    file.write_text("|x 0\n|x a\n")
    deserializer = CTFDeserializer(str(file), StreamDefs(x=StreamDef(field="x", shape=1)))
    assert served(MinibatchSource(deserializer, randomize=False, max_errors=1), 1, 3) == numbers(([0], False), ([0], True), ([0], True))


def test_bad_sequences_only(tmp_path: Path) -> None:
    file = tmp_path / "data.ctf"
    file.write_text("|x a\n|x b\n")
    source = MinibatchSource(CTFDeserializer(str(file), StreamDefs(x=StreamDef(field="x", shape=1))), max_errors=9)
    with pytest.raises(RuntimeError, match="none of the sequences can be read"):
        source.next_minibatch(1)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"max_samples": 1, "max_sweeps": 1}, RuntimeError, "max_samples or max_sweeps, not both"),
        ({"randomization_window_in_samples": 5, "randomize": True}, RuntimeError, "in chunks or in samples, not both"),
        ({"frame_mode": True, "truncation_length": 2}, RuntimeError, "frame_mode and truncation_length exclude each other"),
        ({"truncation_length": -2}, ValueError, "must be a number of steps, got -2"),
    ],
)
def test_arguments_that_do_not_go(make: Make, arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(TEN, **arguments)


def test_frame_mode_takes_single_samples(make: Make) -> None:
    assert served(make(TEN, frame_mode=True, max_sweeps=1), 7) == numbers((range(7), False), (range(7, 10), True))
    with pytest.raises(RuntimeError, match="frame_mode takes sequences of one sample, stream 'x' has one of 3"):
        make(RAGGED, frame_mode=True).next_minibatch(4)


def test_configurations_are_dictionaries(make: Make, tmp_path: Path) -> None:
    make(TEN)
    config = C.cntk_py.MinibatchSourceConfig([CTFDeserializer(str(tmp_path / "data.ctf"), streams(10))], randomize=False)
    found = C.cntk_py.to_dictionary(config)
    assert (len(found), found["randomize"], found["frameMode"], found["multiThreadedDeserialization"]) == (5, False, False, False)
    config.randomization_window_in_samples, config.truncation_length = 30, 4
    config.is_multithreaded.set(True)
    found = C.cntk_py.to_dictionary(config)
    assert [found[key] for key in ("randomizationWindow", "sampleBasedRandomizationWindow", "truncationLength")] == [30, True, 4]
    assert found["multiThreadedDeserialization"]
    for changes in ({"is_frame_mode_enabled": True}, {"randomization_window_in_chunks": 3}, {"max_samples": 3, "max_sweeps": 2}):
        other = C.cntk_py.MinibatchSourceConfig().add_deserializer(config.deserializers[0])
        other.truncation_length = other.randomization_window_in_samples = 3
        other.randomization_window_in_chunks = 0
        for name, value in changes.items():
            setattr(other, name, value)
        with pytest.raises(RuntimeError, match=r"exclude each other|not both"):
            C.cntk_py.to_dictionary(other)


@pytest.mark.parametrize(
    ("size", "arguments", "error"),
    [(0, {}, ValueError), (-1, {}, ValueError), (2.5, {}, TypeError), (1, {"num_data_partitions": 2, "partition_index": 2}, ValueError)],
)
def test_minibatches_that_cannot_be(make: Make, size: Any, arguments: dict[str, int], error: type[Exception]) -> None:
    with pytest.raises(error):
        make(TEN).next_minibatch(size, **arguments)


def test_deserializers_that_do_not_go(make: Make, tmp_path: Path) -> None:
    make(TEN)
    one = CTFDeserializer(str(tmp_path / "data.ctf"), streams(10))
    with pytest.raises(ValueError, match="no deserializer"):
        MinibatchSource([])
    with pytest.raises(TypeError, match="expected deserializers such as"):
        MinibatchSource(["data.ctf"])
    with pytest.raises(RuntimeError, match="x, y is there more than once"):
        MinibatchSource([one, one])
    both = StreamDefs(**{name: stream.updated_with(defines_mb_size=True) for name, stream in streams(10).items()})
    with pytest.raises(RuntimeError, match="one stream at most may define the minibatch size, got x, y"):
        MinibatchSource(CTFDeserializer(str(tmp_path / "data.ctf"), both))
