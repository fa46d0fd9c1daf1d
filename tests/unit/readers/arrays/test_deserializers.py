"""Deserializers of NumPy's and Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntk.io import MinibatchSource, NumpyDeserializer, ParquetDeserializer, StreamDef, StreamDefs
from cntk.readers.arrays import deserializer as arrays
from cntk.testing import check_deserializer

X = np.arange(60, dtype=np.float32).reshape(10, 2, 3)
Y = np.arange(10) % 4
LENGTHS = np.array([1, 2, 3, 4])


def all_of(deserializer: Any) -> dict[str, Any]:
    source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    found = source.next_minibatch(10**6)
    return {info.name: found[info] for info in source.stream_infos()}


@pytest.mark.parametrize("size", [1, 60, 1 << 20])
def test_files_of_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK_SIZE", size)
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "y.npy", Y)
    np.savez(tmp_path / "both.npz", x=X, y=Y)
    for files in ({"x": tmp_path / "x.npy", "y": str(tmp_path / "y.npy")}, tmp_path / "both.npz", {"x": X, "y": Y}):
        deserializer = NumpyDeserializer(files, classes={"y": 4})
        check_deserializer(lambda made=deserializer: made)
        found = all_of(deserializer)
        np.testing.assert_array_equal(found["x"].asarray()[:, 0], X)
        np.testing.assert_array_equal(found["y"].asarray()[:, 0], np.eye(4)[Y])
        assert (found["y"].is_sparse, found["y"].num_samples) == (True, 10)


@pytest.mark.parametrize("size", [1, 60, 1 << 20])
def test_files_of_sequences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(arrays, "CHUNK_SIZE", size)
    np.savez(tmp_path / "all.npz", x=X.astype(np.float64), y=Y[:4], steps=LENGTHS)
    deserializer = NumpyDeserializer(tmp_path / "all.npz", lengths="steps")
    check_deserializer(lambda: deserializer)
    found = all_of(deserializer)
    assert [len(part) for part in found["x"].as_sequences()] == LENGTHS.tolist()
    assert found["x"].data.dtype is np.float64
    np.testing.assert_array_equal(np.concatenate(found["x"].as_sequences()), X)
    np.testing.assert_array_equal(found["y"].asarray()[:, 0, 0], Y[:4])


def test_a_mapped_file_is_not_loaded(tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "large.npy", "w+", np.uint8, (1 << 32, 1)).flush()  # 4 GiB, of holes
    source = MinibatchSource(NumpyDeserializer({"x": tmp_path / "large.npy"}), randomize=False, multithreaded_deserializer=False)
    assert source.next_minibatch(3)[source["x"]].asarray().tolist() == [[[0.0]]] * 3


@pytest.mark.parametrize(
    ("files", "arguments", "error", "message"),
    [
        ({}, {}, ValueError, "expected arrays"),
        ({"x": X}, {"classes": {"y": 3}}, ValueError, r"got arrays \['x'\], classes {'y': 3}"),
        ({"x": X, "y": Y[:3]}, {}, RuntimeError, "rows for 10 samples, as the first has; got {'y': 3}"),
        ({"x": X}, {"lengths": np.array([1, 2])}, RuntimeError, "rows for 3 steps, or 2 sequences; got {'x': 10}"),
        ({"x": X}, {"lengths": np.array([10, 0])}, RuntimeError, "lengths must be whole numbers from 1"),
        ({"x": "none.npy"}, {}, RuntimeError, "cannot read arrays from 'none.npy': .*No such file"),
    ],
)
def test_arrays_that_do_not_go(files: Any, arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        NumpyDeserializer(files, **arguments)


@pytest.mark.parametrize("data", [b"", b"\x93NUMPY\x01\x00v\x00", b"abc" * 99])
def test_files_that_are_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(RuntimeError, match="cannot read arrays from"):
        NumpyDeserializer({"x": tmp_path / "x.npy"})


def test_objects_are_not_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}, 1], object), allow_pickle=True)
    with pytest.raises(RuntimeError, match="objects in dtype"):
        NumpyDeserializer({"x": tmp_path / "x.npy"})


def test_numbers_that_are_no_class() -> None:
    source = MinibatchSource(NumpyDeserializer({"y": Y}, classes={"y": 3}), randomize=False)
    with pytest.raises(ValueError, match="stream 'y', row 0: expected class numbers from 0 to 2, got 3, 3 further"):
        source.next_minibatch(1)


# ---- Parquet ----


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two files of 10 rows, in row groups of 3."""
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    from pyarrow import parquet

    for part in (0, 1):
        rows = np.arange(10) + 10 * part
        columns = {
            "n": rows,
            "v": pyarrow.FixedSizeListArray.from_arrays(pyarrow.array(np.arange(20.0)), 2),
            "steps": [[float(i)] * (2 * (i % 3 + 1)) for i in rows],
            "nested": [[[i, i]] * (i % 3 + 1) for i in rows],
            "words": [list(range(i % 4 + 1)) for i in rows],
            "text": ["a"] * 10,
            "holes": [None, *range(9)],
        }
        parquet.write_table(pyarrow.table(columns), tmp_path / f"part-{part}.parquet", row_group_size=3)
    return tmp_path


STREAMS: dict[str, Any] = {
    "n": StreamDef(field="n", shape=1),
    "c": StreamDef(field="n", shape=20, is_sparse=True),
    "v": StreamDef(field="v", shape=2),
}
SEQUENCES = {
    "steps": StreamDef(field="steps", shape=2),
    "nested": StreamDef(field="nested", shape=(2, 1)),
    "words": StreamDef(field="words", shape=4, is_sparse=True),
}


def test_columns_of_samples(table: Path) -> None:
    deserializer = ParquetDeserializer(table / "part-*.parquet", StreamDefs(**STREAMS))
    check_deserializer(lambda: deserializer)
    assert [info.samples for info in deserializer.chunk_infos()] == [3, 3, 3, 1] * 2
    found = all_of(deserializer)
    np.testing.assert_array_equal(found["n"].asarray()[:, 0, 0], np.arange(20))
    np.testing.assert_array_equal(found["c"].asarray()[:, 0], np.eye(20))
    np.testing.assert_array_equal(found["v"].asarray()[:10, 0], np.arange(20).reshape(10, 2))


def test_columns_of_sequences(table: Path) -> None:
    deserializer = ParquetDeserializer([table / "part-0.parquet"], StreamDefs(**STREAMS, **SEQUENCES))
    check_deserializer(lambda: deserializer)
    found = all_of(deserializer)
    assert [part[:, 0].tolist() for part in found["steps"].as_sequences()] == [[i] * (i % 3 + 1) for i in range(10)]
    assert [part[:, 0, 0].tolist() for part in found["nested"].as_sequences()] == [[i] * (i % 3 + 1) for i in range(10)]
    assert found["words"].num_samples == sum(i % 4 + 1 for i in range(10))
    assert found["n"].num_samples == 10


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (StreamDef(field="none", shape=1), r"part-0.parquet' has no column 'none'; it has \['n', 'v'"),
        (StreamDef(field="text", shape=1), r"part-0.parquet', row group 0, column of stream 'x': expected numbers, or lists of them"),
        (StreamDef(field="holes", shape=1), r"row group 0, column of stream 'x': row 0 has no value"),
        (StreamDef(field="steps", shape=4), r"column of stream 'x': row 0 has 2 numbers; samples of shape \(4,\) take 4 each"),
        (StreamDef(field="n", shape=2, is_sparse=True), r"class numbers: expected class numbers from 0 to 1, got 2"),
    ],
)
def test_columns_that_do_not_go(table: Path, stream: Any, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        MinibatchSource(ParquetDeserializer(table / "part-0.parquet", StreamDefs(x=stream)), randomize=False).next_minibatch(1)


def test_files_that_are_no_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "x.parquet").write_bytes(b"PAR1 and nothing else")
    for path in (tmp_path / "x.parquet", tmp_path / "none.parquet"):
        with pytest.raises(RuntimeError, match=f"cannot read '{path}'"):
            ParquetDeserializer(path, StreamDefs(**STREAMS))
    with pytest.raises(ValueError, match="stream 'x' needs the column and the shape"):
        ParquetDeserializer("a.parquet", StreamDefs(x=StreamDef(field="x")))
