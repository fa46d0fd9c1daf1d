"""Models of bfloat16 as ONNX files, and those of others read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import file_of, graph, node, value

import cntk as C
from cntk.plugins.formats.onnx.format import Onnx
from cntk.plugins.formats.onnx.messages import Tensor, read_message, write_message
from cntk.plugins.formats.onnx.tensors import read_tensor, write_tensor
from cntk.plugins.protobuf import DamagedFile, Piece

pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
onnx = pytest.importorskip("onnx", reason="onnx is not installed")
NUMBERS = [0.0, -1.5, 3.140625, 1e30, -1e-30, np.inf, -0.0]


def test_tensors_are_those_of_onnx() -> None:
    ours = np.array(NUMBERS, C.bfloat16)
    theirs = onnx.TensorProto()
    theirs.ParseFromString(b"".join(map(bytes, write_message(write_tensor(ours, "x")))))
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(theirs).astype(np.float32), ours.astype(np.float32))
    for raw in (False, True):
        made = onnx.helper.make_tensor("x", 16, [len(ours)], ours.tobytes() if raw else ours.astype(np.float32).tolist(), raw=raw)
        view = memoryview(made.SerializeToString())
        found = read_tensor(read_message(Tensor, Piece(view, 0, len(view))), None)
        assert found.dtype == ours.dtype
        np.testing.assert_array_equal(found.view(np.uint16), ours.view(np.uint16))


def dense(x: Any) -> Any:
    return C.layers.Sequential([C.layers.Dense(6, activation=C.relu), C.layers.Dense(3, activation=C.softmax, name="z")])(x)


def image(x: Any) -> Any:
    layers = [C.layers.Convolution((3, 3), 2, activation=C.relu), C.layers.MaxPooling((2, 2)), C.layers.BatchNormalization()]
    return C.layers.Sequential([*layers, C.layers.Dense(3)])(C.reshape(x, (1, 4, 4)))


def chosen(x: Any) -> Any:
    return C.top_k(C.layers.LayerNormalization()(x), 2).outputs[0]


@pytest.mark.parametrize("made", [dense, image, chosen, lambda x: C.reduce_log_sum_exp(C.elu(x) / 3)])
def test_models_go_and_come_back(made: Any, tmp_path: Path) -> None:
    x = C.input_variable(16, dtype=C.bfloat16, name="x")
    with C.default_options(dtype=C.bfloat16):
        function = C.combine([made(x)])
    path = tmp_path / "model.onnx"
    function.save(path, format="onnx")
    onnx.checker.check_model(str(path), full_check=True)
    model = onnx.load(str(path))
    assert model.opset_import[0].version == 22
    assert model.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.BFLOAT16
    read = C.load_model(path)
    assert read.arguments[0].dtype == C.bfloat16
    assert {parameter.dtype for parameter in read.parameters} == {parameter.dtype for parameter in function.parameters}
    data = np.random.default_rng(2).normal(size=(3, 16)).astype(C.bfloat16)
    found, expected = read.eval({read.arguments[0]: data}), function.eval({x: data})
    np.testing.assert_allclose(found.astype(np.float32), expected.astype(np.float32), rtol=2e-2, atol=1e-2)


def test_onnx_itself_computes_the_same() -> None:
    from onnx.reference import ReferenceEvaluator

    x = C.input_variable(16, dtype=C.bfloat16, name="x")
    with C.default_options(dtype=C.bfloat16):
        function = dense(x)
    data = np.random.default_rng(2).normal(size=(3, 16)).astype(C.bfloat16)
    model = onnx.load_from_string(b"".join(map(bytes, Onnx.write(function))))
    (found,) = ReferenceEvaluator(model).run(None, {"x": data})
    np.testing.assert_allclose(found.astype(np.float32), function.eval(data).astype(np.float32), rtol=2e-2, atol=1e-2)


def test_earlier_versions_are_refused(tmp_path: Path) -> None:
    function = C.exp(C.input_variable(2, dtype=C.bfloat16, name="x"))
    with pytest.raises(ValueError, match=r"Input\('x'.*is of type bfloat16, which .* take from version 22 on, got opset=18"):
        function.save(tmp_path / "model.onnx", format="onnx", opset=18)


def test_whole_numbers_beside_bfloat16_stay_exact() -> None:
    nodes = [node("Cast", "n", "f", to=16), node("Mul", "x f", "y")]
    x = value("x", "N", 2, dtype=C.bfloat16)
    f = C.load_model(file_of(graph(nodes, [x], "y", n=np.array([3, 257])), 22))
    assert f.eval(np.ones((1, 2), C.bfloat16)).astype(np.float32).tolist() == [[3, 256]]


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    content = file_of(graph([node("Relu", "x", "y")], [value("x", "N", 2, dtype=C.bfloat16)], "y"), 22)
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(DamagedFile, match=r"the input 'x' has data type bfloat16 .* pip install 'opencntk\[bfloat16\]'"):
        C.load_model(content)
