"""Arrays of ONNX files: the same that ONNX's package reads and writes, in the file or beside it, and nothing that is damaged."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from cntk.plugins.formats.onnx.messages import Entry, Tensor, read_message, write_message
from cntk.plugins.formats.onnx.tensors import (
    EXTERNAL,
    TYPES,
    UnsupportedTensor,
    code_of,
    move_apart,
    read_tensor,
    write_tensor,
)
from cntk.plugins.protobuf import DamagedFile, Piece

EVERY = sorted(TYPES)


def some(code: int) -> Any:
    return (np.arange(6).reshape(2, 3) * 37 % 2 if TYPES[code] is np.bool_ else np.arange(6).reshape(2, 3) * 37).astype(TYPES[code])


def apart(array: Any, location: str, offset: int = 0) -> Tensor:
    tensor = write_tensor(array, "x")
    move_apart(tensor, location, offset)
    return tensor


def through_bytes(tensor: Tensor) -> Tensor:
    view = memoryview(b"".join(map(bytes, write_message(tensor))))
    return read_message(Tensor, Piece(view, 0, len(view)))


@settings(max_examples=60, deadline=None)
@given(
    arrays.arrays(
        st.sampled_from([np.dtype(TYPES[code]) for code in EVERY]), arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)
def test_arrays_come_back(array: Any) -> None:
    found = read_tensor(through_bytes(write_tensor(array, "x")), None)
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("code", EVERY)
def test_onnx_reads_what_is_written(code: int) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    theirs = onnx.TensorProto()
    theirs.ParseFromString(b"".join(map(bytes, write_message(write_tensor(some(code), "x")))))
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(theirs), some(code))


@pytest.mark.parametrize("raw", [True, False])
@pytest.mark.parametrize("code", EVERY)
def test_what_onnx_writes_is_read(code: int, raw: bool) -> None:
    onnx = pytest.importorskip("onnx", reason="onnx is not installed")
    values = some(code)
    if code == 10 and not raw:
        theirs = onnx.helper.make_tensor("x", code, values.shape, values.reshape(-1).tolist())
    else:
        theirs = onnx.helper.make_tensor("x", code, values.shape, values.tobytes() if raw else values.reshape(-1).tolist(), raw=raw)
    view = memoryview(theirs.SerializeToString())
    found = read_tensor(read_message(Tensor, Piece(view, 0, len(view))), None)
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)


def test_values_are_not_copied() -> None:
    raw = memoryview(np.arange(4, dtype=np.float32)).cast("B")
    found = read_tensor(Tensor(dims=(4,), data_type=1, raw_data=raw), None)
    assert np.shares_memory(found, np.frombuffer(raw, np.uint8))


def test_values_in_another_file(tmp_path: Path) -> None:
    first, second = np.arange(6, dtype=np.float32).reshape(2, 3), np.arange(4, dtype=np.int64)
    (tmp_path / "values").write_bytes(first.tobytes() + second.tobytes())
    for array, offset in ((first, 0), (second, first.nbytes)):
        tensor = through_bytes(apart(array, "values", offset))
        np.testing.assert_array_equal(read_tensor(tensor, str(tmp_path)), array)
    with pytest.raises(DamagedFile, match="load the model by its path"):
        read_tensor(apart(first, "values"), None)


@pytest.mark.parametrize("location", ["../values", "/etc/passwd", "", "a\0b", "inner/../../values"])
def test_files_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "values").write_bytes(bytes(100))
    (tmp_path / "folder").mkdir()
    with pytest.raises(DamagedFile, match="not in the model's folder"):
        read_tensor(apart(np.zeros(2, np.float32), location), str(tmp_path / "folder"))


def test_links_out_of_the_folder_are_refused(tmp_path: Path) -> None:
    (tmp_path / "values").write_bytes(bytes(100))
    (tmp_path / "folder").mkdir()
    os.symlink(tmp_path / "values", tmp_path / "folder" / "link")
    with pytest.raises(DamagedFile, match="not in the model's folder"):
        read_tensor(apart(np.zeros(2, np.float32), "link"), str(tmp_path / "folder"))


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor(dims=(2,), data_type=1, raw_data=bytes(7)), "expected 8 bytes"),
        (Tensor(dims=(2**40, 2**40), data_type=1, raw_data=bytes(7)), "expected"),
        (Tensor(dims=(-1,), data_type=1, raw_data=b""), "sizes from 0 on"),
        (Tensor(dims=(1,) * 65, data_type=1, raw_data=bytes(4)), "at most 64"),
        (Tensor(dims=(3,), data_type=1, float_data=np.zeros(2, np.float32)), "expected 3 values"),
        (Tensor(dims=(2,), data_type=1, data_location=EXTERNAL, external_data=[Entry("location", "none")]), "no such file"),
        (Tensor(dims=(2,), data_type=1, data_location=EXTERNAL, external_data=[Entry("location", "v"), Entry("offset", "-1")]), "a number"),
        (Tensor(dims=(2,), data_type=1, data_location=EXTERNAL, external_data=[Entry("location", "v"), Entry("offset", "9")]), "which has"),
        (Tensor(dims=(2,), data_type=1, data_location=EXTERNAL, external_data=[Entry("location", "v"), Entry("length", "9")]), "found 9"),
    ],
)
def test_damaged_tensors_are_refused(tmp_path: Path, tensor: Tensor, text: str) -> None:
    (tmp_path / "v").write_bytes(bytes(10))
    with pytest.raises(DamagedFile, match=text):
        read_tensor(tensor, str(tmp_path))


@pytest.mark.parametrize("code", [0, 8, 14, 17, 22, 99])
def test_other_types_are_refused_by_name(code: int) -> None:
    with pytest.raises(UnsupportedTensor, match="tensor 'x' has values of type"):
        read_tensor(Tensor(dims=(1,), data_type=code, raw_data=b"", name="x"), None)


def test_types_that_onnx_does_not_have_are_refused() -> None:
    with pytest.raises(TypeError, match="ONNX files hold arrays of"):
        code_of(np.longdouble if np.dtype(np.longdouble) != np.float64 else np.datetime64)
