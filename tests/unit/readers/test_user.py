"""Deserializers that users write as three methods, and their mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs, StreamInformation, UserDeserializer
from cntk.readers.user import UserChunks
from cntk.testing import check_deserializer

DENSE = StreamInformation("x", 0, "dense", np.float32, (2,))
SPARSE = StreamInformation("s", 1, "sparse", np.float32, (4,))


class Given(UserDeserializer):
    """Serves what it is given."""

    def __init__(self, chunks: list[dict[str, Any]], *infos: StreamInformation) -> None:
        self.chunks, self.infos = chunks, list(infos or (DENSE, SPARSE))

    def stream_infos(self) -> list[StreamInformation]:
        return self.infos

    def num_chunks(self) -> int:
        return len(self.chunks)

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        return self.chunks[chunk_id]


def eye(*rows: int) -> Any:
    return csr_matrix(np.eye(4, dtype=np.float32)[list(rows)])


SAMPLES = {"x": np.arange(6, dtype=np.float32).reshape(3, 2), "s": eye(0, 1, 2)}
SEQUENCES = {"x": [np.ones((n, 2), np.float32) * n for n in (2, 3, 1)], "s": [eye(1), eye(2, 3), eye(0)]}


def test_samples_and_sequences_dense_and_sparse() -> None:
    source = MinibatchSource(Given([SAMPLES, SEQUENCES]), randomize=False, max_sweeps=1)
    x, s = C.sequence.input_variable(2), C.sequence.input_variable(4, is_sparse=True)
    first, second = (source.next_minibatch(size, {x: source["x"], s: source["s"]}) for size in (3, 100))
    assert (first[x].shape, first[s].shape, second[x].shape, second[s].shape) == ((3, 1, 2), (3, 1, 4), (3, 3, 2), (3, 2, 4))
    np.testing.assert_array_equal(first[x].asarray()[:, 0], SAMPLES["x"])
    assert [part.tolist() for part in second[x].as_sequences()] == [part.tolist() for part in SEQUENCES["x"]]
    assert [part.toarray().tolist() for part in second[s].as_sequences(s)] == [part.toarray().tolist() for part in SEQUENCES["s"]]
    assert second[x].end_of_sweep
    assert source.next_minibatch(1) == {}


@pytest.mark.parametrize("chunks", [[SAMPLES], [SAMPLES, SEQUENCES], [SEQUENCES] * 5])
def test_they_conform(chunks: list[dict[str, Any]]) -> None:
    check_deserializer(lambda: UserChunks(Given(chunks)))


@pytest.mark.parametrize(
    ("given", "shape", "dtype", "expected"),
    [
        (np.arange(4), (), np.float64, (4, 1)),
        (np.arange(4)[:, None], (), np.float32, (4, 1)),
        (np.zeros((3, 6)), (2, 3), np.float32, (3, 1, 2, 3)),
        ([np.zeros((2, 3))] * 4, (2, 3), np.float32, (4, 1, 2, 3)),
        ([np.zeros((5, 2, 3))] * 4, (2, 3), np.float32, (4, 5, 2, 3)),
        ([[1, 2], [3, 4]], (2,), np.float32, (2, 1, 2)),
        (csr_matrix(np.eye(3)), (3,), np.float32, (3, 1, 3)),
    ],
)
def test_what_becomes_dense_data_of_the_streams_type(given: Any, shape: tuple[int, ...], dtype: Any, expected: tuple[int, ...]) -> None:
    source = MinibatchSource(Given([{"x": given}], StreamInformation("x", 0, "dense", dtype, shape)), max_sweeps=1)
    found = source.next_minibatch(100)[source["x"]]
    assert found.shape == expected
    assert found.data.dtype is dtype


def test_sparse_samples_of_several_axes() -> None:
    info = StreamInformation("s", 0, "sparse", np.float32, (2, 3))
    rows = csr_matrix(np.arange(12, dtype=np.float32).reshape(2, 6))
    source = MinibatchSource(Given([{"s": rows}], info), randomize=False, max_sweeps=1)
    x = C.sequence.input_variable((2, 3), is_sparse=True)
    found = source.next_minibatch(10, {x: source["s"]})
    sums = C.sequence.reduce_sum(C.times(x, np.eye(3, dtype=np.float32), output_rank=1)).eval(found)
    np.testing.assert_array_equal(sums, rows.toarray().reshape(2, 2, 3))


@pytest.mark.parametrize(
    ("chunk", "message"),
    [
        ({"x": SAMPLES["x"]}, r"Given.get_chunk\(chunk_id=0\): expected data of the streams \[x\(\[2\]\), s\(\[4\]\)\], got \['x'\]"),
        (SAMPLES | {"s": eye(0, 1)}, r"equally many sequences, got {'x': 3, 's': 2}"),
        (SAMPLES | {"x": np.zeros((3, 5))}, r"stream 'x': expected numbers of shape \('samples', 2\), got ndarray of .* shape \(3, 5\)"),
        (SAMPLES | {"x": np.array([["a", "b"]] * 3)}, r"stream 'x': expected numbers .* got ndarray of <U1"),
        (SAMPLES | {"s": np.eye(4)}, r"stream 's': expected CSR rows 4 wide, got ndarray"),
        (SAMPLES | {"s": csr_matrix((3, 5))}, r"stream 's': expected CSR rows 4 wide, got csr_matrix of float64 and shape \(3, 5\)"),
        (SEQUENCES | {"x": [np.zeros((2, 2)), np.zeros((2, 3)), np.zeros((1, 2))]}, r"stream 'x', sequence 1: expected numbers of shape"),
        (SAMPLES | {"x": []}, r"stream 'x': expected sequences, got an empty list"),
    ],
)
def test_mistakes_are_named(chunk: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        MinibatchSource(Given([chunk])).next_minibatch(1)


def test_what_must_be_there() -> None:
    with pytest.raises(NotImplementedError, match="UserDeserializer must implement stream_infos"):
        MinibatchSource(UserDeserializer())
    with pytest.raises(ValueError, match="a stream and a chunk at least"):
        MinibatchSource(Given([]))
    ctf = CTFDeserializer("none.ctf", StreamDefs(y=StreamDef("y", 1)))
    with pytest.raises(ValueError, match="Given is a UserDeserializer, which cannot be read together with others"):
        MinibatchSource([ctf, Given([SAMPLES])])


def test_the_state_says_where_since_sizes_are_unknown() -> None:
    source = MinibatchSource(Given([SAMPLES, SEQUENCES]), randomize=False)
    source.next_minibatch(5)
    assert source.get_checkpoint_state() == {"minibatchSourcePosition": 5, "sweepChunkSequence": [0, 1, 1, 4]}
    with pytest.raises(ValueError, match="the state must say 'sweepChunkSequence'"):
        source.restore_from_checkpoint({"minibatchSourcePosition": 5})
