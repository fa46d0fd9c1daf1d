"""Files that were written here come back as the functions that they were written from; others as what their graphs say."""

from __future__ import annotations

import base64
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import recurrent_models
from came_back import check_same
from crossing.zoo import MODELS
from exported import OPEN, REFUSED
from ragged_models import LENGTHS, sequences

import cntk as C
from cntk.layers import GRU, LSTM, Dense, Fold, Recurrence, Sequential
from cntk.plugins.formats.onnx.record import KEY

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")


def classifier() -> tuple[Any, dict[str, Any]]:
    x = C.sequence.input_variable(4, name="x")
    z = Sequential([Recurrence(LSTM(5)), Recurrence(GRU(5), go_backwards=True), Fold(GRU(3)), Dense(2, name="z")])(x)
    return z, {"x": sequences(4)}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in OPEN | REFUSED])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_models(name: str, tmp_path: Path) -> None:
    function, data = MODELS[name]()
    path = tmp_path / "model.onnx"
    function.save(path, format="onnx", outputs=list(function.outputs))
    found = C.load_model(path)
    if name == "random_numbers":
        assert [one.shape for one in found.outputs] == [one.shape for one in function.outputs]
    else:
        check_same(function, found, data)


@pytest.mark.parametrize("name", recurrent_models.MODELS)
def test_recurrent_models_are_trained_cloned_and_saved(name: str, tmp_path: Path) -> None:
    x = C.sequence.input_variable(3, name="x")
    function, data = C.combine([recurrent_models.MODELS[name](x)]), {"x": recurrent_models.sequences(3, lengths=LENGTHS)}
    function.save(tmp_path / "model.onnx", format="onnx")
    found = C.load_model(tmp_path / "model.onnx")
    check_same(function, found, data)
    check_same(function, found.clone("clone"), data)
    found.save(tmp_path / "model.dnn")
    check_same(function, C.load_model(tmp_path / "model.dnn"), data)
    for one in (function, found):
        loss = C.sequence.reduce_sum(C.reduce_sum(one * one))
        if one.parameters:
            C.Trainer(one, loss, [C.sgd(one.parameters, 0.01)]).train_minibatch({loss.arguments[0]: data["x"]})
    check_same(function, found, data)


@pytest.mark.parametrize(
    "options", [{"lengths": False}, {"match": False}, {"opset": 21}, {"use_external_files_to_store_parameters": True}], ids=str
)
def test_however_they_are_written(options: dict[str, Any], tmp_path: Path) -> None:
    function, data = classifier()
    function.save(tmp_path / "model.onnx", format="onnx", **options)
    check_same(function, C.load_model(tmp_path / "model.onnx"), data)


def test_words_come_back_sparse(tmp_path: Path) -> None:
    words = C.sequence.input_variable(7, is_sparse=True, name="words")
    function = Sequential([C.layers.Embedding(4), Recurrence(LSTM(5)), Dense(3)])(words)
    function.save(tmp_path / "model.onnx", format="onnx", sparse="indices")
    check_same(function, C.load_model(tmp_path / "model.onnx"), {words: C.Value.one_hot([[3, 0, 6, 3], [5], [1, 2, 1]], 7)})


def test_of_a_trained_criterion_the_network_comes_back(tmp_path: Path) -> None:
    z, data = classifier()
    whole = C.combine([z, C.cross_entropy_with_softmax(z, C.input_variable(2, name="label"), name="loss")])
    with pytest.warns(UserWarning, match="losses and metrics are left out"):
        whole.save(tmp_path / "model.onnx", format="onnx")
    check_same(z, C.load_model(tmp_path / "model.onnx"), data)


def test_names_blocks_and_dropout_are_there(tmp_path: Path) -> None:
    x = C.input_variable(6, name="x")
    function = Sequential([Dense(5, name="hidden"), C.layers.BatchNormalization(name="norm"), C.layers.Dropout(0.4), Dense(2)])(x)
    function.save(tmp_path / "model.onnx", format="onnx")
    found = C.load_model(tmp_path / "model.onnx")
    assert found.hidden.W.value.shape == (6, 5)
    assert found.norm is not None
    assert found.find_by_name("hidden").root_function.is_block
    assert [one.name for one in found.parameters] == [one.name for one in function.parameters]
    found.save(tmp_path / "again.onnx", format="onnx")
    check_same(function, C.load_model(tmp_path / "again.onnx"), {"x": np.ones((2, 6), np.float32)})


# ---- files that others have changed --------------------------------------------------------------


def test_files_that_onnx_has_written_again_come_back(tmp_path: Path) -> None:
    function, data = classifier()
    function.save(tmp_path / "model.onnx", format="onnx")
    model = onnx.load(tmp_path / "model.onnx")
    for node in model.graph.node:
        node.doc_string = ""
    onnx.save(model, tmp_path / "again.onnx")
    onnx.save(model, tmp_path / "apart.onnx", save_as_external_data=True, size_threshold=0, location="values")
    for name in ("again.onnx", "apart.onnx"):
        check_same(function, C.load_model(tmp_path / name), data)


def test_values_that_others_have_changed_are_those_of_the_file(tmp_path: Path) -> None:
    function, data = classifier()
    function.save(tmp_path / "model.onnx", format="onnx")
    model = onnx.load(tmp_path / "model.onnx")
    for tensor in model.graph.initializer:
        array = onnx.numpy_helper.to_array(tensor)
        if array.dtype == np.float32:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array / 2, tensor.name))
    found = C.load_model(model.SerializeToString())
    for one, other in zip(function.parameters, found.parameters, strict=True):
        np.testing.assert_array_equal(other.value, one.value / 2)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(["z"], {"x": np.stack([data["x"][0]] * 2), "sequence_lengths": np.array([4, 4])})
    np.testing.assert_allclose(found.eval([data["x"][0]] * 2), expected, rtol=1e-4, atol=1e-5)


def changed(path: Path, how: str) -> bytes:
    """A model that another program has changed."""
    model = onnx.load(path)
    graph = model.graph
    if how == "another input":
        graph.input[0].name = graph.node[0].input[0] = "given"
    elif how == "another operator":
        next(node for node in graph.node if node.op_type == "Tanh").op_type = "Sigmoid"
    elif how == "another output":
        made = onnx.helper.make_node("Neg", ["z"], ["w"])
        graph.node.append(made)
        graph.output[0].name = "w"
    elif how == "a fixed batch":
        graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
    elif how == "no record":
        del model.metadata_props[:]
    return bytes(model.SerializeToString())


@pytest.mark.parametrize("how", ["another input", "another operator", "another output", "a fixed batch", "no record"])
def test_graphs_that_others_have_changed_are_what_they_say(how: str, tmp_path: Path) -> None:
    x = C.input_variable(3, name="x")
    Dense(2, name="z")(C.tanh(x)).save(tmp_path / "model.onnx", format="onnx")
    content = changed(tmp_path / "model.onnx", how)
    data = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
    session = onnxruntime.InferenceSession(content)
    (expected,) = session.run(None, {session.get_inputs()[0].name: data})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = C.load_model(content)
    assert found.arguments[0].name == session.get_inputs()[0].name
    np.testing.assert_allclose(found.eval(data), expected, rtol=1e-5)


def test_without_a_record_sequences_are_padded(tmp_path: Path) -> None:
    x = C.sequence.input_variable(4, name="x")
    function = Sequential([Recurrence(LSTM(5)), Dense(2, name="z")])(x)
    function.save(tmp_path / "model.onnx", format="onnx", record=False)
    assert not onnx.load(tmp_path / "model.onnx").metadata_props
    found = C.load_model(tmp_path / "model.onnx")
    assert [one.name for one in found.arguments] == ["x", "sequence_lengths"]
    assert found.arguments[0].shape == (-3, 4)
    given = np.zeros((3, 4, 4), np.float32)
    for row, one in zip(given, data := sequences(4), strict=True):
        row[: len(one)] = one
    results = found.eval({"x": given, "sequence_lengths": np.float64(LENGTHS)})
    for result, expected in zip(results, function.eval({x: data}), strict=True):
        np.testing.assert_allclose(result[: len(expected)], expected, rtol=1e-4, atol=1e-5)


# ---- records that are not what they should be ----------------------------------------------------


@pytest.mark.parametrize("how", ["text", "cut off", "no dictionary", "unknown operator"])
def test_a_record_that_cannot_be_read_leaves_the_graph(how: str, tmp_path: Path) -> None:
    x = C.input_variable(3, name="x")
    z = Dense(2, name="z")(C.tanh(x))
    z.save(tmp_path / "model.onnx", format="onnx")
    model = onnx.load(tmp_path / "model.onnx")
    (entry,) = (one for one in model.metadata_props if one.key == KEY)
    data = zlib.decompress(base64.b85decode(entry.value))
    entry.value = {
        "text": lambda: "no record at all",
        "cut off": lambda: base64.b85encode(zlib.compress(data)[:-9]).decode(),
        "no dictionary": lambda: base64.b85encode(zlib.compress(b"x" * 99)).decode(),
        "unknown operator": lambda: base64.b85encode(zlib.compress(data.replace(b"PrimitiveFunction", b"primitivefunction"))).decode(),
    }[how]()
    with pytest.warns(UserWarning, match=r"is read as one of any other program, and not as it was written: "):
        found = C.load_model(model.SerializeToString())
    given = np.random.default_rng(5).normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(found.eval(given), z.eval(given), rtol=1e-5)


def test_a_record_may_not_unpack_to_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.plugins.formats.onnx import record

    x = C.input_variable(3, name="x")
    Dense(2, name="z")(x).save(tmp_path / "model.onnx", format="onnx")
    monkeypatch.setattr(record, "LARGEST", 100)
    with pytest.warns(UserWarning, match="has more than 100 bytes"):
        C.load_model(tmp_path / "model.onnx")
