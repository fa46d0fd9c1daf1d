"""Parameters in safetensors files: by name, as others read and write them, and nothing that is not one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cntk as C
from cntk.plugins.formats import safetensors
from cntk.plugins.protobuf import DamagedFile

TYPES = (C.bfloat16, np.float16, np.float32, np.float64)


def network() -> Any:
    x = C.input_variable(3, name="x")
    return C.layers.Sequential([C.layers.Dense(4), C.layers.BatchNormalization(), C.layers.Dense(2)])(x)


def file_of(header: Any, values: bytes = b"", size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if size is None else size).to_bytes(8, "little") + text + values


def tensor(begin: int, end: int, shape: Any = None, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": [(end - begin) // 4] if shape is None else shape, "data_offsets": [begin, end]}


def test_parameters_and_statistics_come_back(tmp_path: Path) -> None:
    function = network()
    function.save(tmp_path / "values", format="safetensors")
    other = network()
    assert not np.array_equal(other.parameters[0].value, function.parameters[0].value)
    for value in other.constants:
        value.value = value.value + 7
    other.restore(tmp_path / "values")
    data = np.ones((2, 3), np.float32)
    np.testing.assert_array_equal(other.eval(data), function.eval(data))


def test_keys_are_names_numbered_where_several_have_one() -> None:
    keys = list(safetensors.holders_of(network()))
    assert sorted(keys) == sorted(["W.0", "b.0", "W.1", "b.1", "scale", "bias", "aggregate_mean", "aggregate_variance", "aggregate_count"])
    assert keys == list(safetensors.holders_of(network()))
    a, b, c = (C.parameter(1, name=name) for name in ("W", "W", "W.0"))
    held = safetensors.holders_of(a + b + c + C.parameter(1))
    assert len(held) == 4
    assert held["W.0"] is c
    assert set(held) == {"W.0", "W.1", "W.2", "parameter.0"}


def test_shared_parameters_are_there_once(tmp_path: Path) -> None:
    W = C.parameter((2, 2), init=3, name="W")
    C.times(C.times(C.input_variable(2), W), W).save(tmp_path / "values", format="safetensors")
    assert list(safetensors.read_tensors((tmp_path / "values").read_bytes())) == ["W"]


@pytest.mark.parametrize("dtype", TYPES)
def test_the_safetensors_package_reads_and_writes_the_same(dtype: Any, tmp_path: Path) -> None:
    package = pytest.importorskip("safetensors.numpy", reason="the package safetensors is not installed")
    tensors = {"W": np.arange(6).reshape(2, 3).astype(dtype), "grün": np.ones((), dtype), "none": np.zeros((0, 4), dtype)}
    (tmp_path / "ours").write_bytes(b"".join(safetensors.write_tensors(tensors)))
    package.save_file(tensors, tmp_path / "theirs")
    for found in (package.load_file(tmp_path / "ours"), safetensors.read_tensors((tmp_path / "theirs").read_bytes())):
        assert set(found) == set(tensors)
        for name, value in tensors.items():
            assert found[name].dtype == dtype
            assert np.array_equal(found[name], value)
            assert found[name].shape == value.shape


def numbers_of(dtype: Any) -> Any:
    """Arrays of a type; Hypothesis does not know bfloat16."""
    known = np.float32 if dtype is C.bfloat16 else dtype
    return arrays.arrays(known, arrays.array_shapes(max_side=4)).map(lambda array: array.astype(dtype))


@settings(max_examples=50, deadline=None)
@given(st.dictionaries(st.text(max_size=8), st.sampled_from(TYPES).flatmap(numbers_of)))
def test_whatever_is_written_is_read(tensors: dict[str, Any]) -> None:
    tensors.pop("__metadata__", None)
    found = safetensors.read_tensors(b"".join(safetensors.write_tensors(tensors)))
    assert set(found) == set(tensors)
    for name, value in tensors.items():
        assert found[name].dtype == value.dtype
        assert found[name].tobytes() == value.tobytes()


def test_values_of_another_function_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    x = C.input_variable(2)
    W, b = C.parameter((2, 3), init=1, name="W"), C.parameter(3, init=1, name="b")
    function = C.times(x, W) + b
    (C.times(x, C.parameter((2, 4), init=2, name="W")) + C.parameter(4, name="c")).save(tmp_path / "other", format="safetensors")
    with pytest.raises(ValueError, match=r"other.*no 'b'.*'W' is float32 of shape \[2 x 3\], in the file .*\[2 x 4\].*has 'c'") as caught:
        function.restore(tmp_path / "other")
    assert str(tmp_path / "other") in str(caught.value)
    assert W.value.tolist() == [[1, 1, 1]] * 2
    half = C.times(C.cast(x, np.float16), C.parameter((2, 3), dtype=np.float16, name="W"))
    half.save(tmp_path / "half", format="safetensors")
    with pytest.raises(ValueError, match=r"'W' is float32 .* float16"):
        C.times(x, W).restore(tmp_path / "half")


def test_there_is_no_function_in_such_a_file(tmp_path: Path) -> None:
    network().save(tmp_path / "values", format="safetensors")
    for options in ({}, {"format": "safetensors"}):
        with pytest.raises(ValueError, match=r"values and no graph.*restore"):
            C.load_model(tmp_path / "values", **options)


HOSTILE: list[tuple[bytes, str]] = [
    (b"\1\2", "byte 0: expected 8 bytes"),
    (file_of({"a": tensor(0, 4)}, b"1234", size=2**63), "byte 0: expected the length of a header of at most"),
    (file_of({"a": tensor(0, 4)}, b"1234", size=10_000), "byte 0: expected the length"),
    (file_of(b"{" + b'"a":[' * 9000), "byte 8: expected a header in JSON"),
    (file_of(b"{" + b'"a":' + b"[" * 100_000), "byte 8: expected a header in JSON"),
    (file_of(b"[1]"), "an object, found list"),
    (file_of(b'{"a": 1, "a": 2}'), "the key 'a' occurs twice"),
    (file_of(b'{"\xff": 1}'), "byte 8"),
    (file_of({"a": 1}), "tensor 'a': expected dtype, shape and data_offsets"),
    (file_of({"a": {**tensor(0, 0), "more": 1}}), "tensor 'a': expected dtype"),
    (file_of({"a": tensor(0, 4, dtype="F8_E4M3")}, b"1234"), "F16, F32, F64, found 'F8_E4M3'"),
    (file_of({"a": tensor(0, 4, dtype=["F32"])}, b"1234"), "element types"),
    (file_of({"a": tensor(0, 4, [-1, -1])}, b"1234"), "expected a shape"),
    (file_of({"a": tensor(0, 4, [True])}, b"1234"), "expected a shape"),
    (file_of({"a": tensor(0, 4, [1.0])}, b"1234"), "expected a shape"),
    (file_of({"a": tensor(0, 4, [1] * 65)}, b"1234"), "expected a shape"),
    (file_of({"a": tensor(0, 4, [2**62, 2**62, 2**62])}, b"1234"), "bytes for the shape"),
    (file_of({"a": tensor(4, 0, [0])}, b"1234"), "data_offsets in order"),
    (file_of({"a": tensor(0, 8)}, b"1234"), "data_offsets in order, of at most 4"),
    (file_of({"a": tensor(0, 8), "b": tensor(4, 12)}, b"123456789012"), "values of 'b' overlap"),
    (file_of({"a": tensor(0, 4), "b": tensor(8, 12)}, b"123456789012"), "values of 'b' leave a gap"),
    (file_of({"a": tensor(0, 4)}, b"12345678"), "expected the end of the file, found 4 bytes more"),
]


@pytest.mark.parametrize(("data", "message"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_files_are_refused_with_the_place(data: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(DamagedFile, match=re.escape(message)):
        safetensors.read_tensors(data)
    (tmp_path / "hostile").write_bytes(data)
    with pytest.raises((DamagedFile, ValueError), match="hostile"):
        network().restore(tmp_path / "hostile")
