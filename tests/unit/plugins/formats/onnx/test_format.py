"""ONNX files: their options, their parts, and what they refuse."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.plugins.formats.onnx import format as onnx_format
from cntk.plugins.formats.onnx.format import Onnx

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


def loaded(function: C.Function, path: Path, **options: Any) -> Any:
    """The model of a function, as ONNX's own package reads and checks it."""
    function.save(path, format="onnx", **options)
    onnx.checker.check_model(str(path), full_check=True)
    return onnx.load(str(path))


def dense() -> C.Function:
    return C.layers.Sequential([C.layers.Dense(70, activation=C.relu), C.layers.Dense(3, name="z")])(C.input_variable(50, name="x"))


def sizes(value: Any) -> list[Any]:
    return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]


@pytest.mark.parametrize("opset", [17, 18, 21, 24])
def test_versions(opset: int, tmp_path: Path) -> None:
    model = loaded(dense(), tmp_path / "model.onnx", opset=opset)
    assert [(one.domain, one.version) for one in model.opset_import] == [("", opset)]
    assert model.producer_name == "opencntk"
    assert sizes(model.graph.input[0]) == ["batch", 50]


@pytest.mark.parametrize("opset", [16, 25])
def test_other_versions_are_refused(opset: int, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"opset must be from 17 to 24, got {opset}"):
        dense().save(tmp_path / "model.onnx", format="onnx", opset=opset)
    assert not os.listdir(tmp_path)


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="unknown option 'length': the format 'onnx' has the options opset, lengths, sparse"):
        dense().save(tmp_path / "model.onnx", format="onnx", length=False)
    with pytest.raises(TypeError, match="unknown option 'opset': the format 'CNTKv2' has no options"):
        dense().save(tmp_path / "model.dnn", opset=18)
    with pytest.raises(ValueError, match="sparse must be 'dense' or 'indices', got 'rows'"):
        dense().save(tmp_path / "model.onnx", format="onnx", sparse="rows")


def test_large_arrays_are_in_a_file_of_their_own(tmp_path: Path) -> None:
    function, path = dense(), tmp_path / "model.onnx"
    function.save(path, format="onnx", use_external_files_to_store_parameters=True)
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    assert path.stat().st_size < 4000 < 50 * 70 * 4 <= (tmp_path / "model.onnx.data").stat().st_size
    onnx.checker.check_model(str(path), full_check=True)
    x = np.random.default_rng(0).normal(size=(4, 50)).astype(np.float32)
    (z,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x})
    assert np.allclose(z, function.eval(x), atol=1e-6)


def test_arrays_go_into_another_file_where_one_would_be_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_format, "LARGEST_MESSAGE", 2**26 + 10_000)
    dense().save(tmp_path / "model.onnx", format="onnx")
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    monkeypatch.setattr(onnx_format, "LARGEST_MESSAGE", 10_000)
    with pytest.raises(ValueError, match=r"the model has \d+ bytes, and an ONNX file may have 10000"):
        Onnx.write(dense())


def test_losses_and_labels_are_left_out(tmp_path: Path) -> None:
    z, y = dense(), C.input_variable(3, name="y")
    whole = C.combine([z, C.cross_entropy_with_softmax(z, y, name="loss"), C.classification_error(z, y, name="error")])
    with pytest.warns(UserWarning, match="losses and metrics are left out of the ONNX file: 'loss', 'error'"):
        model = loaded(whole, tmp_path / "model.onnx")
    assert [one.name for one in model.graph.input] == ["x"]
    assert [one.name for one in model.graph.output] == ["z"]


def test_outputs_are_chosen_by_name_function_and_variable(tmp_path: Path) -> None:
    x = C.input_variable(4, name="x")
    hidden = C.tanh(x, name="hidden")
    z = C.layers.Dense(2, name="z")(hidden)
    for wanted in (["hidden", "z"], [hidden, z], [hidden.output, z.output]):
        model = loaded(z, tmp_path / "model.onnx", outputs=wanted)
        assert [one.name for one in model.graph.output] == ["hidden", "z"]
    with pytest.raises(ValueError, match="no result or node is called 'hiden'"):
        z.save(tmp_path / "model.onnx", format="onnx", outputs=["hiden"])
    with pytest.raises(TypeError, match="outputs must be names, functions or variables, got int 3"):
        z.save(tmp_path / "model.onnx", format="onnx", outputs=[3])


def test_names_are_unique_and_documented(tmp_path: Path) -> None:
    x = C.input_variable(2, name="v")
    model = loaded(C.combine([C.tanh(x, name="v"), C.exp(x, name="v"), x]), tmp_path / "model.onnx")
    names = [one.name for one in (*model.graph.input, *model.graph.output)]
    assert len(set(names)) == 4
    assert names[0] == "v"
    assert model.graph.input[0].doc_string == x.uid
    assert any(node.doc_string.startswith("v (Tanh") for node in model.graph.node)


def test_an_operator_without_counterpart_is_named_with_its_line(tmp_path: Path) -> None:
    x, y = C.sequence.input_variable(3), C.sequence.input_variable(3)
    z = C.edit_distance_error(x, y, name="distance")
    expected = r"(?s)name with outputs= results that do not need them:.*EditDistanceError 'distance'.*\[built at .*test_format\.py:\d+\]"
    with pytest.raises(ValueError, match=expected):
        z.save(tmp_path / "model.onnx", format="onnx")


def test_a_sequence_axis_that_nothing_looks_along_is_left_out(tmp_path: Path) -> None:
    z = C.layers.Dense(3, name="z")(C.sequence.input_variable(2, name="x"))
    model = loaded(z, tmp_path / "model.onnx")
    assert [sizes(one) for one in model.graph.input] == [["batch", 2]]


@pytest.mark.parametrize("lengths", [True, False])
def test_lengths(lengths: bool, tmp_path: Path) -> None:
    axis = C.Axis("words")
    x = C.sequence.input_variable(2, name="x", sequence_axis=axis)
    z = C.layers.Recurrence(C.layers.GRU(3), go_backwards=True, name="z")(x)
    model = loaded(z, tmp_path / "model.onnx", lengths=lengths)
    wanted = {"x": ["batch", "words", 2]} | ({"words_lengths": ["batch"]} if lengths else {})
    assert {one.name: sizes(one) for one in model.graph.input} == wanted
    short = np.random.default_rng(1).normal(size=(2, 4, 2)).astype(np.float32)
    steps = [4, 2] if lengths else [4, 4]
    expected = z.eval([one[:count] for one, count in zip(short, steps, strict=True)])
    if lengths:
        short[1, 2:] = np.nan
    feeds = {"x": short} | ({"words_lengths": np.array(steps)} if lengths else {})
    (found,) = onnxruntime.InferenceSession(str(tmp_path / "model.onnx")).run(None, feeds)
    for own, result, count in zip(found, expected, steps, strict=True):
        assert np.allclose(own[:count], result, atol=1e-6)
        assert (own[count:] == 0).all()


def test_an_unbound_placeholder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="placeholder"):
        C.layers.Dense(2)(C.placeholder(shape=3)).save(tmp_path / "model.onnx", format="onnx")


def test_a_model_that_is_read_lives_on_its_device(tmp_path: Path) -> None:
    z = dense()
    z.save(tmp_path / "model.onnx", format="onnx")
    other = C.device.device("checking", 0)
    read = C.Function.load(tmp_path / "model.onnx", device=other)
    assert {holder.device for holder in (*read.parameters, *read.constants)} == {other}
    x = np.random.default_rng(3).normal(size=(2, 50)).astype(np.float32)
    assert np.allclose(read.eval(x, device=other), z.eval(x), atol=1e-6)
