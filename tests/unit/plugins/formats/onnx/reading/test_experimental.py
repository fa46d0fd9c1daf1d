"""Operators that were experimental until ONNX 1.4 are read as ONNX Runtime computes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.plugins.protobuf import DamagedFile

onnx = pytest.importorskip("onnx", reason="onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")
onnxruntime.set_default_logger_severity(4)

X = np.random.default_rng(1).normal(size=(2, 3, 5, 6)).astype(np.float32)


def file_of(op_type: str, *more: Any, version: int = 7, **attributes: Any) -> bytes:
    """A model of one operator; further operands are constants."""
    from onnx import helper, numpy_helper

    tensors = [numpy_helper.from_array(np.asarray(one), f"more{place}") for place, one in enumerate(more)]
    node = helper.make_node(op_type, ["x", *(tensor.name for tensor in tensors)], ["y"], **attributes)
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["N", *X.shape[1:]])
    graph = helper.make_graph([node], "one", [x], [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=4)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("op_type", "more", "attributes"),
    [
        ("Affine", (), {"alpha": 2.0, "beta": 0.5}),
        ("Crop", (), {"border": [1, 2, 1, 0]}),
        ("Crop", (), {"border": [1, 2, 0, 0], "scale": [2, 3]}),
        ("DynamicSlice", ([0, -4], [9, -1], [2, 3]), {}),
        ("DynamicSlice", ([0, 1], [1, 3]), {}),
        ("ImageScaler", (), {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}),
        ("MeanVarianceNormalization", (), {"across_channels": 0, "normalize_variance": 1}),
        ("MeanVarianceNormalization", (), {"across_channels": 1, "normalize_variance": 1}),
        ("MeanVarianceNormalization", (), {"across_channels": 1, "normalize_variance": 0}),
        ("ParametricSoftplus", (), {"alpha": 2.0, "beta": 0.5}),
        ("Scale", (), {"scale": 3.0}),
        ("ScaledTanh", (), {"alpha": 2.0, "beta": 0.5}),
    ],
)
def test_results_agree(op_type: str, more: tuple[Any, ...], attributes: dict[str, Any]) -> None:
    data = file_of(op_type, *more, **attributes)
    (right,) = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"]).run(None, {"x": X})
    found = np.asarray(C.load_model(data).eval(X))
    assert found.shape == right.shape
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-5)


def test_bounds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DamagedFile, match="2 bounds for 1 axes"):
        C.load_model(file_of("DynamicSlice", [0, 0], [1, 1], [2]))
