"""``ModelFormat.ONNX``: files as CNTK 2.7 wrote and read them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators.samples import Sample
from cntk.plugins.formats.onnx.legacy import LegacyOnnx
from cntk.plugins.formats.onnx.writing.model import UnsupportedOperators
from cntk.plugins.protobuf import DamagedFile
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial, as_sequences, by_sample, describe, pick

onnx = pytest.importorskip("onnx", reason="ONNX's checker is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed")

FILES = Path(__file__).resolve().parents[4] / "data" / "onnx27"
VALUES = np.load(FILES / "values.npz")
ONNX = C.ModelFormat.ONNX
SHAPES = {
    "bilstm": [(-3, 1, 6)],
    "conv": [(1, 4)],
    "convt": [(-3, 4, 9, 9)],
    "d2s": [(-3, 2, 6, 6)],
    "dense": [(1, 3)],
    "elem": [(1, 6)],
    "embed": [(-3, 1, 4)],
    "fold": [(1, 2)],
    "gather": [(1, 3, 2)],
    "gru": [(-3, 1, 3)],
    "layernorm": [(-3, 6)],
    "lrn": [(-3, 6, 4, 4)],
    "lstm": [(-3, 1, 3)],
    "mvn": [(-3, 3, 4, 4)],
    "reduces": [(1, 2, 3, 4)],
    "rnn": [(-3, 1, 3)],
    "seqred": [(1, 4)],
    "seqsoft": [(-3, 1, 4)],
    "softmax": [(1, 2, 5)],
    "topk": [(1, 3), (1, 3)],
}
"""The shapes of the results in CNTK 2.7, of the files that it reads itself."""


def bytes_of(function: Any, **options: Any) -> bytes:
    return b"".join(bytes(piece) for piece in LegacyOnnx.write(function, **options))


def run(function: Any, feed: dict[str, Any]) -> list[Any]:
    """The results for arrays by the names of arguments."""
    found = function.eval({argument: feed[argument.name] for argument in function.arguments})
    values = [found[output] for output in function.outputs] if isinstance(found, dict) else [found]
    return [np.asarray(value) for value in values]


def run_elsewhere(data: bytes, feed: dict[str, Any]) -> list[Any]:
    """The results in ONNX Runtime, of a file that the checker passes."""
    onnx.checker.check_model(data, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = {one.name for one in session.get_inputs()}
    return list(session.run(None, {name: value for name, value in feed.items() if name in names}))


def check_again(data: bytes, feed: dict[str, Any], expected: list[Any]) -> Any:
    """Require the results of a file, and of what is read from it when that is written again; the function is returned."""
    function = LegacyOnnx.read(data, None, "the file")
    again = LegacyOnnx.read(bytes_of(function, outputs=list(function.outputs)), None, "the other file")
    for read in (function, again):
        for found, wanted in zip(run(read, feed), expected, strict=True):
            np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)
    return function


# ---- files that CNTK 2.7 has written -------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(path.stem for path in FILES.glob("*.onnx")))
def test_files_of_cntk(name: str, tmp_path: Path) -> None:
    function = C.Function.load(FILES / f"{name}.onnx", format=ONNX)
    assert not any(variable.dynamic_axes for variable in (*function.arguments, *function.outputs))
    assert [output.shape for output in function.outputs] == SHAPES.get(name, [output.shape for output in function.outputs])
    (x,) = function.arguments
    data, right = VALUES[f"{name}/in0"].astype(x.dtype), VALUES[f"{name}/out"]
    data = np.swapaxes(data, 0, 1) if x.shape[0] == C.FreeDimension else data
    function.save(tmp_path / "again.onnx", format=ONNX)
    for read in (function, C.Function.load(tmp_path / "again.onnx", format=ONNX)):
        found = run(read, {x.name: data})
        same = [value for value in (*found, *(np.swapaxes(one, 0, 1) for one in found if one.ndim > 1)) if value.shape == right.shape]
        assert any(np.allclose(value, right, rtol=1e-3, atol=2e-5) for value in same), (found, right)


def test_what_was_learned_is_a_parameter() -> None:
    for name, learned in (("dense", {"W", "W_0", "b", "b_0"}), ("rnn", {"W", "H", "b"}), ("past", set()), ("embed", {"E"})):
        function = C.Function.load(FILES / f"{name}.onnx", format=ONNX)
        assert {parameter.name for parameter in function.parameters} == learned
    lstm = C.Function.load(FILES / "lstm.onnx", format=ONNX)
    assert sorted(parameter.shape for parameter in lstm.parameters) == [(3, 12), (4, 12), (12,)]
    conv = C.Function.load(FILES / "conv.onnx", format=ONNX)
    assert {"aggregate_mean", "aggregate_variance"} <= {constant.name for constant in conv.constants}


# ---- the files that we write ---------------------------------------------------------------------


def pairs_of(data: bytes) -> dict[str, str]:
    text = onnx.load_from_string(data).graph.doc_string
    head, *pairs = re.findall(r"<<<(.*?), (.*?)>>>", text)
    assert head == ("Uid", "ONNXNodeName")
    return dict(pairs)


def sizes(infos: Any) -> dict[str, list[int | str]]:
    return {one.name: [dim.dim_param or dim.dim_value for dim in one.type.tensor_type.shape.dim] for one in infos}


def test_layout_and_names() -> None:
    x, s = C.input_variable((3, 8, 8), name="x"), C.sequence.input_variable(4, name="s")
    inner = C.layers.Convolution((3, 3), 5, activation=C.relu, pad=True, name="conv")(x)
    z = C.layers.Dense(2, name="z")(inner)
    y = C.layers.Recurrence(C.layers.LSTM(3), name="y")(s)
    data = bytes_of(C.combine(z, y))
    graph, pairs = onnx.load_from_string(data).graph, pairs_of(data)
    assert sizes(graph.input) == {"x": [1, 3, 8, 8], "s": ["Sequence", 1, 4]}
    assert sizes(graph.output) == {"z_Output": [1, 2], "y_Output": ["Sequence", 1, 3]}
    assert pairs[z.output.uid] == "z_Output"
    assert {"conv", "z", "y"} <= {node.name for node in graph.node}
    stored = {tensor.name for tensor in graph.initializer}
    assert {pairs[parameter.uid] for parameter in (*z.parameters, *y.parameters)} <= stored
    read = LegacyOnnx.read(data, None, "the file")
    assert [(one.name, one.shape) for one in read.arguments] == [("x", (1, 3, 8, 8)), ("s", (-3, 1, 4))]
    assert [one.shape for one in read.outputs] == [(1, 2), (-3, 1, 3)]
    assert read.conv.op_name == "ReLU"
    assert sorted(one.shape for one in read.parameters) == sorted(one.shape for one in (*z.parameters, *y.parameters))


def test_only_when_asked_for(tmp_path: Path) -> None:
    x = C.input_variable(4, name="x")
    z = C.layers.Dense(2)(x)
    z.save(tmp_path / "old.onnx", format=ONNX)
    z.save(tmp_path / "new.onnx", format="onnx")
    assert C.load_model(tmp_path / "old.onnx").arguments[0].shape == (1, 4)
    assert C.load_model(tmp_path / "new.onnx").arguments[0].shape == (4,)
    assert C.load_model(tmp_path / "new.onnx", format=ONNX).arguments[0].shape == (C.FreeDimension, 4)
    with pytest.raises(DamagedFile, match="is not an ONNX model"):
        C.load_model(b"garbage", format=ONNX)
    with pytest.raises(TypeError, match=r"'lengths'.*'ONNX' has the options opset, outputs"):
        z.save(tmp_path / "old.onnx", format=ONNX, lengths=False)


def test_arguments_keep_the_order_of_the_file() -> None:
    a, b = C.input_variable(3, name="a"), C.input_variable(3, name="b")
    read = LegacyOnnx.read(bytes_of(a / b), None, "the file")
    assert [argument.name for argument in read.arguments] == ["a", "b"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_parameters_in_a_file_of_their_own(dtype: Any, tmp_path: Path) -> None:
    with C.default_options(dtype=dtype):
        s = C.sequence.input_variable(20, name="s")
        y = C.layers.Recurrence(C.layers.LSTM(30), initial_state=0.25)(s)
    y.save(tmp_path / "y.onnx", format=ONNX, use_external_files_to_store_parameters=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["y.onnx", "y.onnx.data"]
    read = C.load_model(tmp_path / "y.onnx", format=ONNX)
    data = np.random.default_rng(1).normal(size=(1, 5, 20)).astype(dtype)
    np.testing.assert_array_equal(np.swapaxes(read.eval({read.arguments[0]: np.swapaxes(data, 0, 1)}), 0, 1), np.asarray(y.eval({s: data})))


# ---- layers and operators ------------------------------------------------------------------------


LAYERS = {
    "lstm": lambda s: C.layers.Recurrence(C.layers.LSTM(3))(s),
    "lstm with peepholes": lambda s: C.layers.Recurrence(C.layers.LSTM(3, use_peepholes=True), go_backwards=True)(s),
    "stabilised lstm": lambda s: C.layers.Recurrence(C.layers.LSTM(3, enable_self_stabilization=True))(s),
    "gru": lambda s: C.layers.Recurrence(C.layers.GRU(3))(s),
    "rnn": lambda s: C.layers.Recurrence(C.layers.RNNStep(3, activation=C.relu), go_backwards=True)(s),
    "both ways": lambda s: C.splice(C.layers.Recurrence(C.layers.LSTM(3))(s), C.layers.Recurrence(C.layers.LSTM(3), go_backwards=True)(s)),
    "last state": lambda s: C.layers.Dense(2)(C.layers.Fold(C.layers.GRU(3))(s)),
    "any recurrence": lambda s: C.layers.Recurrence(lambda h, x: C.tanh(h * 0.5 + x))(s),
    "delays": lambda s: C.sequence.past_value(s, time_step=2) + C.sequence.future_value(s, 3) - C.sequence.future_value(s, time_step=9),
    "slices": lambda s: C.sequence.reduce_sum(C.sequence.slice(s, 1, -1)) + C.sequence.last(C.sequence.slice(s, -3, 0)),
    "softmax": lambda s: C.sequence.softmax(s) + C.sequence.broadcast_as(C.sequence.reduce_max(s), s),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_sequences(layer: str) -> None:
    s = C.sequence.input_variable(4, name="s")
    function = LAYERS[layer](s)
    data = np.random.default_rng(3).normal(size=(1, 6, 4)).astype(np.float32)
    expected = np.asarray(function.eval({s: data}))
    expected = np.swapaxes(expected, 0, 1) if len(function.output.dynamic_axes) == 2 else expected
    feed = {"s": np.swapaxes(data, 0, 1)}
    made = bytes_of(function)
    (found,) = run_elsewhere(made, feed)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    read = check_again(made, feed, [expected])
    weights = [parameter for parameter in function.parameters if parameter.name != "alpha"]
    assert len(read.parameters) == len([one for one in weights if one.name not in ("H1", "Co", "Cf")])
    if layer == "lstm":
        np.testing.assert_array_equal(run(read, feed)[0], expected)
        for mine, other in zip(sorted(weights, key=str), sorted(read.parameters, key=str), strict=True):
            np.testing.assert_array_equal(mine.value, other.value)
        assert "LSTM" in [node.op_type for node in onnx.load_from_string(bytes_of(read)).graph.node]


def test_what_is_read_can_be_trained() -> None:
    s = C.sequence.input_variable(4, name="s")
    read = LegacyOnnx.read(bytes_of(C.layers.Fold(C.layers.LSTM(3))(s)), None, "the file")
    target = C.input_variable((1, 3), dynamic_axes=[])
    data = np.random.default_rng(3).normal(size=(6, 1, 4)).astype(np.float32)
    loss = C.reduce_sum(C.square(read - target))
    feed = {read.arguments[0]: data, target: np.full((1, 3), 0.3, np.float32)}
    gradients = loss.grad(feed, wrt=list(read.parameters))
    assert len(gradients) == 3
    assert all(np.any(gradient) for gradient in gradients.values())


UNREAD = {
    "bernoulli",
    "cosine_distance_with_negative_samples",
    "gumbel",
    "normal",
    "roipooling",
    "sequence.gather",
    "sequence.scatter",
    "sequence.where",
    "uniform",
    "unpooling",
}
"""Operators of which some files are not read: they draw numbers, or how many elements there are depends on the data."""

SAMPLES = [(name, next(iter(samples_of(plugins.ops.get(name))), None)) for name in plugins.ops]
FIRST = [(name, sample) for name, sample in SAMPLES if sample is not None]


@pytest.mark.parametrize(("name", "sample"), FIRST, ids=[describe(plugins.ops.get(name), sample) for name, sample in FIRST])
def test_operators(name: str, sample: Sample) -> None:
    for each in (sample, *(sequences for sequences, _ in as_sequences(sample))):
        try:
            trial = Trial(plugins.ops.get(name), each, np.float32)
            expected = trial.evaluate([0] if trial.has_samples else None)
        except (ValueError, TypeError, RuntimeError):
            continue  # such operands may not be sequences
        try:
            made = bytes_of(trial.result, outputs=list(trial.result.outputs))
        except UnsupportedOperators:
            continue  # ONNX has no such operator
        feed = {}
        for operand, variable, value in zip(each.operands, trial.variables, trial.values, strict=True):
            if operand.kind != "parameter":
                one = value if operand.kind == "static" else pick(by_sample(operand, value), [0])
                feed[variable.name or variable.uid] = one[0][:, None] if isinstance(one, list) else one
        wanted = [value[0][:, None] if isinstance(value, list) else np.asarray(value) for value in expected]
        for found, right in zip(run_elsewhere(made, feed), wanted, strict=True):
            np.testing.assert_allclose(found.reshape(right.shape), right, rtol=1e-4, atol=1e-5)
        try:
            check_again(made, feed, wanted)
        except DamagedFile:
            assert name.removeprefix("random.").removesuffix("_like") in UNREAD
