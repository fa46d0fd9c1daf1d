"""Minibatch sources over data in memory, and those that users write."""

from __future__ import annotations

from dataclasses import astuple
from typing import Any

import numpy as np
import pytest
from counting import bytes_of, calls_of
from scipy.sparse import csr_matrix

import cntk as C
from cntk.io import MinibatchData, MinibatchSourceFromData, StreamInformation, UserMinibatchSource
from cntk.layers.typing import Sequence, SparseTensor, Tensor, tensor

X = np.arange(10, dtype=np.float32).reshape(5, 2)


def served(source: UserMinibatchSource, name: str, *sizes: int, **arguments: Any) -> list[tuple[list[Any], bool]]:
    found = [source.next_minibatch(size, **arguments).get(source[name]) for size in sizes]
    return [([], False) if data is None else (data.data.data.asarray()[:, 0].tolist(), data.end_of_sweep) for data in found]


def test_minibatches_end_where_the_data_ends() -> None:
    assert served(MinibatchSourceFromData({"x": X}), "x", 3, 3, 3) == [([0, 2, 4], False), ([6, 8], True), ([0, 2, 4], False)]


def test_it_ends_after_so_many_samples() -> None:
    source = MinibatchSourceFromData({"x": X}, max_samples=6)
    assert served(source, "x", 4, 4, 4, 4) == [([0, 2, 4, 6], False), ([8], True), ([0], True), ([], False)]
    assert not source.is_infinite()


def test_sparse_data_and_values() -> None:
    rows = csr_matrix(np.eye(5, dtype=np.float32))
    source = MinibatchSourceFromData({"s": rows, "v": C.Value(X)})
    kinds = [(info.name, info.storage_format, info.sample_shape) for info in source.stream_infos()]
    assert kinds == [("s", "sparse", (5,)), ("v", "dense", (2,))]
    found = source.next_minibatch(2)
    np.testing.assert_array_equal(found[source.streams.s].asarray().toarray(), np.eye(5)[:2])
    np.testing.assert_array_equal(found[source.streams.v].asarray(), X[:2])


def test_sequences_are_served_whole() -> None:
    dense = [np.ones((n, 2), np.float32) * n for n in (3, 1, 2, 5)]
    sparse = [csr_matrix(np.ones((n, 4), np.float32)) for n in (1, 2, 1, 1)]
    source = MinibatchSourceFromData({"d": (dense, Sequence[tensor]), "s": (sparse, Sequence[SparseTensor[4]])})
    found = source.next_minibatch(5)
    d, s = found[source["d"]], found[source["s"]]
    assert (d.num_sequences, d.num_samples, d.shape) == (2, 4, (2, 3, 2))
    assert (s.num_sequences, s.num_samples, s.shape, s.is_sparse) == (2, 3, (2, 2, 4), True)
    assert [part.shape for part in d.as_sequences()] == [(3, 2), (1, 2)]
    assert source.next_minibatch(4)[source["d"]].num_samples == 2
    last = source.next_minibatch(4)[source["d"]]  # longer than the minibatch, it is served alone
    assert (last.num_samples, last.end_of_sweep) == (5, True)


def test_values_of_sequences() -> None:
    x, s = C.sequence.input_variable(2), C.sequence.input_variable(4, is_sparse=True)
    dense = [np.full((n, 2), n, np.float32) for n in (3, 1, 2)]
    sparse = [csr_matrix(np.ones((n, 4), np.float32)) for n in (3, 1, 2)]
    source = MinibatchSourceFromData({"d": C.Value.create(x, dense), "s": (C.Value.create(s, sparse), Sequence[SparseTensor[4]])})
    found = source.next_minibatch(4)
    d, s = found[source["d"]], found[source["s"]]
    assert [part.tolist() for part in d.as_sequences()] == [part.tolist() for part in dense[:2]]
    assert (d.num_samples, s.num_samples, s.is_sparse, s.shape) == (4, 4, True, (2, 3, 4))


@pytest.mark.parametrize("work_of", [calls_of, bytes_of])
def test_a_minibatch_takes_as_much_work_from_many_sequences_as_from_few(work_of: Any) -> None:
    """What is left of the data is neither gone through nor copied."""

    def work(count: int) -> int:
        source = MinibatchSourceFromData({"x": ([np.ones((2, 1), np.float32)] * count, Sequence[tensor])})
        source.next_minibatch(20)
        done: int = work_of(lambda: source.next_minibatch(20))
        return done

    assert work(200_000) < 1.2 * work(200)


def test_minibatch_data_takes_part_in_arithmetic() -> None:
    source = MinibatchSourceFromData({"x": X})
    data = source.next_minibatch(2)[source["x"]]
    np.testing.assert_array_equal(1 + data * 2, 1 + X[:2] * 2)
    np.testing.assert_array_equal((data + 1) / 2 - np.exp(data), (X[:2] + 1) / 2 - np.exp(X[:2]))
    np.testing.assert_array_equal(np.asarray(data), X[:2])
    assert data != source.next_minibatch(2)[source["x"]]
    assert len({data}) == 1


def test_workers_share_a_minibatch() -> None:
    sources = [MinibatchSourceFromData({"x": X}) for _ in range(2)]
    parts = [served(s, "x", 4, 1, 2, number_of_workers=2, worker_rank=i) for i, s in enumerate(sources)]
    assert parts == [[([0, 4], False), ([8], True), ([0], False)], [([2, 6], False), ([], False), ([2], False)]]


def test_it_goes_on_from_a_state() -> None:
    source = MinibatchSourceFromData({"x": X}, max_samples=8)
    source.next_minibatch(3)
    state = source.get_checkpoint_state()
    assert state == {"cursor": 3, "total_num_samples": 3}
    expected = served(source, "x", 2, 2, 2)
    source.restore_from_checkpoint(state)
    assert served(source, "x", 2, 2, 2) == expected


@pytest.mark.parametrize(
    ("streams", "error", "message"),
    [
        ({}, ValueError, "no streams are given"),
        ({"x": X[:0]}, ValueError, "stream 'x' is empty"),
        ({"x": []}, ValueError, "stream 'x' is empty"),
        ({"x": X, "y": X[:3]}, TypeError, "the same number of samples or sequences, got {'x': 5, 'y': 3}"),
        ({"x": "text"}, TypeError, "stream 'x': expected a NumPy array"),
        ({"x": ([1, 2], Sequence[tensor])}, TypeError, "expected a list of arrays or CSR matrices, got int in it"),
        ({"x": [X]}, TypeError, "a list goes with a type such as"),
        ({"x": (X, Sequence[tensor])}, TypeError, "a list goes with a type such as"),
        ({"x": (X, "float")}, ValueError, "expected a type such as"),
        ({"x": ([X, X[:0]], Sequence[tensor])}, ValueError, r"expected sequences of shape \('steps', 2\), got \(0, 2\) at position 1"),
        ({"x": (X, Tensor[3])}, ValueError, r"the type says shape \(3,\), the data has \(2,\)"),
    ],
)
def test_data_that_does_not_go(streams: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        MinibatchSourceFromData(streams)


class Counter(UserMinibatchSource):
    """Counts on."""

    def __init__(self) -> None:
        self.info = StreamInformation("n", 0, "dense", np.float32, (1,))
        self.next = 0
        super().__init__()

    def stream_infos(self) -> list[StreamInformation]:
        return [self.info]

    def next_minibatch(self, num_samples: int, number_of_workers: int, worker_rank: int, device: Any = None) -> dict[Any, MinibatchData]:
        data = np.arange(self.next, self.next + num_samples, dtype=np.float32)[:, None]
        self.next += num_samples
        return {self.info: MinibatchData(C.Value(data), num_samples, num_samples, False)}


def test_a_source_of_ones_own() -> None:
    source = Counter()
    assert served(source, "n", 2, 3, number_of_workers=1, worker_rank=0) == [([0, 1], False), ([2, 3, 4], False)]
    assert source.streams.n is source["n"] is source.stream_info("n") is source.info
    assert not source.is_infinite()
    with pytest.raises(RuntimeError, match="no stream is called 'm'"):
        source.stream_info("m")


def test_states_of_a_source_of_ones_own() -> None:
    source = Counter()
    assert source.get_checkpoint_state() == {}
    source.restore_from_checkpoint({})
    with pytest.raises(NotImplementedError, match="Counter must implement restore_from_checkpoint"):
        source.restore_from_checkpoint({"next": 3})


def test_what_must_be_implemented() -> None:
    with pytest.raises(NotImplementedError, match="UserMinibatchSource must implement stream_infos"):
        UserMinibatchSource()

    class Lazy(Counter):
        next_minibatch = UserMinibatchSource.next_minibatch

    with pytest.raises(NotImplementedError, match="Lazy must implement next_minibatch"):
        Lazy().next_minibatch(1, 1, 0)


def test_descriptions_of_streams() -> None:
    info, same, other = (StreamInformation(name, 3, "sparse", np.float64, (2, 5), name == "a") for name in "aab")
    assert (info.name, info.m_name, info.m_id, info.sample_shape, info.dtype) == ("a", "a", 3, (2, 5), np.float64)
    assert (info.m_storage_format, info.m_element_type, info.m_defines_mb_size) == (1, C.cntk_py.DataType_Double, True)
    assert info == same != other
    assert info != StreamInformation("a", 3, "dense", np.float64, (2, 5))
    assert len({info, same, other}) == 2
    with pytest.raises(ValueError, match="the storage format must be 'dense' or 'sparse', got 'csr'"):
        StreamInformation("a", 0, "csr", np.float32, (1,))
    assert astuple(C.io.StreamConfiguration("a", 3, True, "A")) == ("a", 3, True, "A", False)
