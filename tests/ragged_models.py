"""ONNX models run on padded sequences, whose padding is NaN, and compared with the functions that they were written from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from came_back import check_same

import cntk as C
from cntk.plugins.formats.onnx.format import Onnx

onnx = pytest.importorskip("onnx", reason="ONNX's checker is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

LENGTHS = (4, 1, 3)
TOLERANCE = {np.dtype(np.float16): 1e-2, np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-10}


def sequences(shape: Any = (), lengths: Any = LENGTHS, seed: int = 0, dtype: Any = np.float32) -> list[Any]:
    """Random sequences."""
    shape = (shape,) if isinstance(shape, int) else shape
    return [np.random.default_rng(seed + 10 * i).normal(size=(steps, *shape)).astype(dtype) for i, steps in enumerate(lengths)]


def samples(shape: Any = (), count: int = len(LENGTHS), seed: int = 0, dtype: Any = np.float32) -> Any:
    """Random values on the batch axis."""
    shape = (shape,) if isinstance(shape, int) else shape
    return np.random.default_rng(seed).normal(size=(count, *shape)).astype(dtype)


def padded(values: list[Any], behind: int = 0) -> Any:
    """Sequences as one array with NaN behind the shorter ones, or a number that is none of an element behind whole numbers."""
    longest = max(map(len, values)) + behind
    found = np.full((len(values), longest, *values[0].shape[1:]), np.nan if values[0].dtype.kind == "f" else 2**40, values[0].dtype)
    for row, value in zip(found, values, strict=True):
        row[: len(value)] = value
    return found


def written(function: Any, **options: Any) -> Any:
    """The model of a function, once ONNX's checker has seen it."""
    data = b"".join(bytes(piece) for piece in Onnx.write(function, **options))
    model = onnx.load_from_string(data)
    onnx.checker.check_model(model, full_check=True)
    return model


def operators(model: Any) -> list[str]:
    """The names of the operators of a model, those inside of others left out."""
    return [node.op_type for node in model.graph.node]


def run(model: Any, function: Any, feeds: dict[Any, Any], behind: int = 0) -> dict[str, Any]:
    """What ONNX Runtime gives for a model, by the names of its outputs."""
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    given = {}
    for variable, values in feeds.items():
        if not isinstance(values, list):
            given[variable.name or variable.uid] = values
            continue
        axis = variable.dynamic_axes[1]
        given[variable.name or variable.uid] = padded(values, behind)
        name = "sequence" if axis == C.Axis.default_dynamic_axis() else axis.name
        given[f"{name}_lengths"] = np.array([len(value) for value in values], np.int64)
    asked = {one.name for one in session.get_inputs()}
    missing = asked - set(given)
    assert not missing, f"the model asks for {missing}"
    found = session.run(None, {name: values for name, values in given.items() if name in asked})
    return {output.name: values for output, values in zip(session.get_outputs(), found, strict=True)}


def agree(
    function: Any, feeds: dict[Any, Any], data: dict[Any, Any] | None = None, behind: int = 0, tolerance: float = 0, **options: Any
) -> Any:
    """Check that the ONNX model of a function gives what the function does, and 0 in padding, and that the function comes back from it.

    Args:
        function: the function.
        feeds: by input an array, or a list of sequences, as the model takes them.
        data: what the function takes, where that is something else.
        behind: how many steps of padding there are behind the longest sequence.
        tolerance: how large errors may be; that of the element type unless given.
        options: those of the format.

    Returns:
        The model.
    """
    model = written(function, **options)
    found = run(model, function, feeds, behind)
    expected = [C.combine([output]) for output in function.outputs]
    for output, (name, values) in zip(expected, found.items(), strict=False):  # lengths of sequences come last
        wanted = output.eval({v: values for v, values in (data or feeds).items() if v in output.arguments})
        close = tolerance or TOLERANCE[values.dtype]
        if not isinstance(wanted, list):
            np.testing.assert_allclose(values, wanted, rtol=close, atol=close, err_msg=name)
            continue
        assert len(values) == len(wanted)
        for row, steps in zip(values, wanted, strict=True):
            np.testing.assert_allclose(row[: len(steps)], steps, rtol=close, atol=close, err_msg=name)
            assert not row[len(steps) :].any(), f"{name}: padding is not 0"
        if f"{name}_lengths" in found:
            assert found[f"{name}_lengths"].tolist() == [len(steps) for steps in wanted]
    if model.metadata_props:  # there are operators that files of CNTK have only as parts of others
        check_same(function, C.load_model(model.SerializeToString()), data or feeds)
    return model
