"""The bytes of CNTK's dictionaries, and who reads and writes model files."""

from __future__ import annotations

import contextlib
import os
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

import cntk as C
from cntk.core.extension import plugins
from cntk.plugins.formats import wire
from cntk.plugins.protobuf import DamagedFile

BYTES: list[tuple[Any, str]] = [
    (None, "0802"),
    (True, "080210011801"),
    (3, "080210022003"),
    (-5, "0802100220fbffffffffffffffff01"),
    (2**40, "0802100328808080808020"),
    (2.5, "08021005390000000000000440"),
    ("x", "08021006420178"),
    ([1, 2], "080210095a100a060802100220010a06080210022002"),
    ({"a": 1}, "0802100a620f0802120b0a01611206080210022001"),
    (np.arange(-2, 6, dtype=np.int8).reshape(2, 4), "0802100b6a1408051a040a020402320a0a08feff000102030405"),
    (np.arange(4, dtype=np.int16), "0802100b6a0f08061a030a01043a060a0400020406"),
    (np.float16([[1, 2]]), "0802100b6a1408041a040a020201220a0a080000803f00000040"),
    (np.float64([1, 2]), "0802100b6a1b08021a030a01022a120a10000000000000f03f0000000000000040"),
]
"""Values with the bytes that CNTK 2.7 saves them as."""


def written(value: Any) -> bytes:
    return b"".join(wire.write_value(value))


@pytest.mark.parametrize(("value", "expected"), BYTES, ids=lambda x: x if isinstance(x, str) else "")
def test_bytes_are_those_of_cntk(value: Any, expected: str) -> None:
    assert written(value).hex() == expected
    read = wire.plain(wire.read_value(bytes.fromhex(expected)))
    if isinstance(value, np.ndarray):
        assert read.dtype == value.dtype
        assert np.array_equal(read, value)
    else:
        assert read == value
        assert type(read) is type(value)


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64, np.int8, np.int16])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 3), (1, 2, 3, 4)])
def test_arrays_of_every_shape_and_type(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.asarray(np.random.default_rng(1).normal(size=shape) * 100).astype(dtype)
    for one in (array, array.T.copy().T):
        read = wire.read_value(written(one))
        assert read.dtype == dtype
        assert read.shape == shape
        assert np.array_equal(read, array)


def test_shapes_and_axes() -> None:
    for shape in ((), (2, 3), (-1, -3), (-2,)):
        read = wire.read_value(written(wire.NDShape(shape)))
        assert isinstance(read, wire.NDShape)
        assert read == shape
    axis = wire.FileAxis(-1, "staticAxisIdx=-1", True)
    assert wire.read_value(written(axis)) == axis


@pytest.mark.parametrize("value", [object(), {1: 2}, 2**70, np.zeros(2, complex), [{"a": {1, 2}}]])
def test_what_files_do_not_have(value: Any) -> None:
    with pytest.raises(TypeError):
        written(value)


def test_damage_is_reported_with_its_place() -> None:
    with pytest.raises(DamagedFile, match=r"byte 0: expected .*version"):
        wire.read_dictionary(b"")
    with pytest.raises(DamagedFile, match=r"byte 6: expected 100 bytes"):
        wire.read_value(bytes.fromhex("080210064264"))
    with pytest.raises(DamagedFile, match="7 values for an array of shape"):
        wire.read_value(written(np.zeros(6, np.float32)).replace(b"\x0a\x01\x06", b"\x0a\x01\x07"))


def test_values_nested_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    value: Any = 1
    for _ in range(wire.DEEPEST + 10):
        value = [value]
    with pytest.raises(TypeError, match="in one another"):
        written(value)
    with monkeypatch.context() as patched:
        patched.setattr(wire, "DEEPEST", 1000)
        data = written(value)
    with pytest.raises(DamagedFile, match="in one another"):
        wire.read_value(data)


def test_changed_bytes_never_do_anything_else_than_raise() -> None:
    chance = random.Random(2)
    value = {"a": [1, 2.5, "text", None, True], "b": {"array": np.arange(6, dtype=np.float32), "shape": wire.NDShape((2, 3))}}
    whole = b"".join(wire.write_dictionary(value))
    for _ in range(3000):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 3])):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        with contextlib.suppress(DamagedFile):
            wire.read_dictionary(damaged[: chance.choice([len(damaged), chance.randrange(len(damaged))])])


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64, np.int8, np.int16])
def test_files_too_large_for_a_message_have_the_values_behind_it(dtype: Any) -> None:
    value = {"a": np.arange(6).astype(dtype).reshape(2, 3), "b": [{"c": np.zeros((), dtype)}, np.zeros((0, 2), dtype)], "d": "text"}
    whole = b"".join(wire.write_file(value, largest=0))
    size = int.from_bytes(whole[4:8], "little")
    assert whole[:4] == b"ktnc"
    assert len(whole) == 8 + size + 7 * (4 if dtype in (C.bfloat16, np.float16) else np.dtype(dtype).itemsize)
    for read in (wire.read_dictionary, wire.view_dictionary):
        found = read(whole)
        assert found["d"] == "text"
        for mine, right in ((found["a"], value["a"]), (found["b"][0]["c"], value["b"][0]["c"]), (found["b"][1], value["b"][1])):
            assert mine.dtype == dtype
            assert np.array_equal(mine, right)
    for damaged in (whole[:-1], whole + b"x", whole[:6], whole[: size // 2]):
        with pytest.raises(DamagedFile, match=r"byte \d+"):
            wire.read_dictionary(damaged)


def test_arrays_are_read_without_copies_where_a_model_takes_them_over() -> None:
    whole = b"".join(wire.write_dictionary({"array": np.arange(4, dtype=np.float32)}))
    assert not wire.view_dictionary(whole)["array"].flags.owndata
    own = wire.read_dictionary(whole)["array"]
    own[0] = 7
    assert wire.read_dictionary(whole)["array"][0] == 0


@given(arrays.arrays(np.int16, arrays.array_shapes(max_dims=2, max_side=50)))
def test_integers_of_16_bits(array: Any) -> None:
    assert np.array_equal(wire.read_value(written(array)), array)


def test_dictionaries_of_cntk_py(tmp_path: Any) -> None:
    made = C.cntk_py.Dictionary()
    made["array"], made["list"] = np.float32([[1, 2]]), [1, "a", None, {"b": 2.5}]
    made.save(tmp_path / "file")
    read = C.cntk_py.Dictionary.load(tmp_path / "file")
    assert read["list"] == [1, "a", None, {"b": 2.5}]
    assert read["array"].tolist() == [[1, 2]]
    value = C.cntk_py.DictionaryValue([1, 2])
    value.save(tmp_path / "value")
    assert C.cntk_py.DictionaryValue.load(tmp_path / "value") == value


def test_the_format_is_a_plugin() -> None:
    assert "CNTKv2" in plugins.model_formats
    assert [(one.name, one.value) for one in C.ModelFormat] == [("CNTKv2", 0), ("ONNX", 1)]
    assert C.load_model is C.Function.load is C.ops.functions.load_model


def test_first_bytes_of_a_model(tmp_path: Any) -> None:
    C.tanh(C.input_variable(2)).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes().startswith(bytes.fromhex("080212110a07") + b"version")


def test_parameters_in_files_of_their_own_are_cntks_onnx_alone(tmp_path: Any) -> None:
    model = C.times(C.input_variable(2), C.parameter((2, 1), init=2))
    with pytest.warns(UserWarning, match="use_external_files_to_store_parameters has no effect"):
        model.save(tmp_path / "model", use_external_files_to_store_parameters=True)
    assert os.listdir(tmp_path) == ["model"]
    assert C.load_model(tmp_path / "model").eval([[1, 2]]).tolist() == [[6]]
