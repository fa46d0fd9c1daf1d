"""Graphs of ONNX files as functions: axes, names, training, saving, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_graphs import file_of, graph, node, normal, value

import cntk as C
from cntk.plugins.formats.onnx.messages import Attribute, LocalFunction, Node, OperatorSet, ValueInfo
from cntk.plugins.protobuf import DamagedFile


def load(nodes: Sequence[Node], inputs: Sequence[ValueInfo], outputs: str, version: int = 18, **numbers: Any) -> Any:
    return C.load_model(file_of(graph(nodes, inputs, outputs, **numbers), version))


# ---- axes ----------------------------------------------------------------------------------------


def test_a_free_first_axis_is_the_batch_axis() -> None:
    f = load([node("Relu", "x", "y")], [value("x", "N", 3)], "y")
    assert (f.arguments[0].shape, len(f.arguments[0].dynamic_axes), f.shape) == ((3,), 1, (3,))
    data = normal(4, 3)
    np.testing.assert_array_equal(f.eval(data), np.maximum(data, 0))


def test_numbers_alone_are_static_axes() -> None:
    f = load([node("Conv", "x w", "y")], [value("x", 1, 2, 4, 4)], "y", w=normal(3, 2, 3, 3))
    assert (f.arguments[0].shape, f.arguments[0].dynamic_axes, f.shape) == ((1, 2, 4, 4), (), (1, 3, 2, 2))
    assert f.eval(normal(1, 2, 4, 4)).shape == (1, 3, 2, 2)


def test_a_free_axis_that_is_not_first_is_a_free_dimension() -> None:
    f = load([node("Softmax", "x", "y")], [value("x", "batch", "time", 3)], "y")
    assert f.arguments[0].shape == (C.FreeDimension, 3)
    for length in (2, 5):
        np.testing.assert_allclose(f.eval(normal(2, length, 3)).sum(-1), 1, rtol=1e-5)


def test_the_batch_axis_is_followed_where_the_graph_moves_it() -> None:
    nodes = [node("Transpose", "x", "t", perm=[1, 0, 2]), node("MatMul", "t w", "p"), node("Transpose", "p", "y", perm=[1, 0, 2])]
    w = normal(3, 2)
    f = load(nodes, [value("x", "batch", "time", 3)], "y", w=w)
    data = normal(2, 4, 3)
    np.testing.assert_allclose(f.eval(data), data @ w, rtol=1e-5)
    assert not any(
        one.op_name == "UnpackBatchAxis" for one in C.logging.graph.depth_first_search(f.root_function, lambda x: hasattr(x, "op_name"))
    )


def test_shapes_that_are_computed_are_folded() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n", axis=0),
        node("Gather", "s one", "t", axis=0),
        node("Unsqueeze", "n axes", "n1"),
        node("Unsqueeze", "t axes", "t1"),
        node("Concat", "n1 t1 parts", "shape", axis=0),
        node("Reshape", "x shape", "y"),
    ]
    numbers = {"zero": np.int64(0), "one": np.int64(1), "axes": np.array([0]), "parts": np.array([2, 3])}
    f = load(nodes, [value("x", "batch", "time", 6)], "y", **numbers)
    data = normal(2, 5, 6)
    np.testing.assert_array_equal(f.eval(data), data.reshape(2, 5, 2, 3))


def test_axes_that_are_merged_come_apart_again() -> None:
    nodes = [
        node("Reshape", "x flat", "r"),
        node("Gemm", "r w b", "g"),
        node("Shape", "x", "s"),
        node("Slice", "s zero two", "front"),
        node("Concat", "front four", "shape", axis=0),
        node("Reshape", "g shape", "y"),
    ]
    numbers = {"flat": np.array([-1, 3]), "zero": np.array([0]), "two": np.array([2]), "four": np.array([4])}
    w, b = normal(3, 4), normal(4)
    f = load(nodes, [value("x", "batch", "time", 3)], "y", w=w, b=b, **numbers)
    data = normal(2, 5, 3)
    np.testing.assert_allclose(f.eval(data), data @ w + b, rtol=1e-4, atol=1e-5)


def test_lengths_hold_for_recurrences() -> None:
    nodes = [node("LSTM", "x w r - lengths", "y h c", hidden_size=2)]
    w, r = normal(1, 8, 3), normal(1, 8, 2)
    f = load(nodes, [value("x", "time", "batch", 3), value("lengths", "batch", dtype=np.int32)], "y h", w=w, r=r)
    data, lengths = normal(2, 5, 3), np.float64([5, 2])
    x, n = f.arguments
    whole = f.eval({x: data, n: lengths})
    alone = f.eval({x: data[1:, :2], n: lengths[1:]})
    (y, h), (y1, h1) = (list(found.values()) for found in (whole, alone))
    np.testing.assert_allclose(h[1], h1[0], rtol=1e-5)
    np.testing.assert_allclose(y[1, :2], y1[0], rtol=1e-5)
    assert not y[1, 2:].any()


def test_recurrences_with_projections_are_refused() -> None:
    w, r = normal(1, 24, 5), normal(1, 24, 3)
    with pytest.raises(DamagedFile, match=r"'y' \(LSTM\): weights of the shapes \[1, 24, 5\] and \[1, 24, 3\]; expected 4 \* 3"):
        load([node("LSTM", "x w r", "y", hidden_size=6)], [value("x", "time", "batch", 5)], "y", w=w, r=r)


def test_a_scan_of_free_length_is_a_recurrence() -> None:
    body = graph(
        [node("Add", "before now", "after"), node("Identity", "after", "seen")], [value("before", 2), value("now", 2)], "after seen"
    )
    nodes = [node("Scan", "zero x", "last all", body=body, num_scan_inputs=1)]
    f = load(nodes, [value("x", "time", 2)], "last all", zero=np.zeros(2, np.float32))
    assert f.arguments[0].shape == (C.FreeDimension, 2)
    data = normal(5, 2)
    last, everything = f.eval(data).values()
    np.testing.assert_allclose(everything, data.cumsum(0), rtol=1e-5)
    np.testing.assert_allclose(last, data.sum(0), rtol=1e-5)


# ---- what becomes of a network -------------------------------------------------------------------


def network() -> bytes:
    nodes = [
        node("Conv", "x W0 b0", "c", pads=[1, 1, 1, 1], name="first"),
        node("BatchNormalization", "c scale bias mean variance", "n"),
        node("Relu", "n", "r"),
        node("MaxPool", "r", "m", kernel_shape=[2, 2], strides=[2, 2]),
        node("Flatten", "m", "flat"),
        node("Gemm", "flat W1 b1", "scores", transB=1),
    ]
    numbers = {"W0": normal(4, 3, 3, 3), "b0": normal(4), "W1": normal(5, 4 * 16), "b1": normal(5)}
    statistics = {"scale": np.ones(4), "bias": np.zeros(4), "mean": np.full(4, 0.1), "variance": np.full(4, 2.0)}
    numbers |= {name: one.astype(np.float32) for name, one in statistics.items()}
    return file_of(graph(nodes, [value("x", "N", 3, 8, 8)], "scores", **numbers))


def test_names_are_kept_and_weights_are_parameters() -> None:
    f = C.load_model(network())
    assert {one.name for one in f.parameters} == {"W0", "b0", "scale", "bias", "W1", "b1"}
    assert {"mean", "variance"} <= {one.name for one in f.constants}
    assert (f.arguments[0].name, f.outputs[0].name or f.name) == ("x", "scores")
    assert f.find_by_name("first") is not None


def test_networks_are_trained_cloned_and_saved(tmp_path: Path) -> None:
    f = C.load_model(network())
    data, labels = normal(6, 3, 8, 8), np.eye(5, dtype=np.float32)[[0, 1, 2, 3, 4, 0]]
    before = f.eval(data)
    label = C.input_variable(5)
    loss = C.cross_entropy_with_softmax(f, label)
    trainer = C.Trainer(f, (loss,), [C.sgd(f.parameters, C.learning_parameter_schedule(0.05))])
    losses = []
    for _ in range(5):
        trainer.train_minibatch({f.arguments[0]: data, label: labels})
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[-1] < losses[0]
    after = f.eval(data)
    assert not np.allclose(before, after)
    np.testing.assert_array_equal(f.clone("clone").eval(data), after)
    f.save(tmp_path / "model")
    np.testing.assert_allclose(C.load_model(tmp_path / "model").eval(data), after, rtol=1e-6)


TIED: dict[str, Any] = {
    "plain and transposed": ([node("MatMul", "x W", "h"), node("Transpose", "W", "V", perm=[1, 0]), node("MatMul", "h V", "y")], []),
    "transposed twice": ([node("Gemm", "x W", "h", transB=1), node("Gemm", "h W", "g", transB=1), node("MatMul", "g W", "y")], []),
    "by a name of its own": ([node("Identity", "W", "V"), node("MatMul", "x W", "h"), node("Gemm", "h V", "y", transB=1)], []),
    "transposed, and back": (
        [node("Transpose", "W", "V", perm=[1, 0]), node("MatMul", "x V", "h"), node("Gemm", "h V", "y", transB=1)],
        [],
    ),
    "whole and in part": (
        [node("MatMul", "x W", "h"), node("Slice", "W zero two", "V"), node("MatMul", "h U", "g"), node("MatMul", "g V", "y")],
        ["U"],
    ),
    "in another shape": ([node("MatMul", "x W", "h"), node("Reshape", "W flat", "V"), node("Add", "h V", "y")], []),
    "as another type": (
        [node("MatMul", "x W", "h"), node("Cast", "W", "V", to=11), node("Cast", "V", "U", to=1), node("MatMul", "h U", "y")],
        [],
    ),
    "the same way": ([node("Add", "x b", "h"), node("Tanh", "h", "g"), node("Add", "g b", "y")], []),
}


@pytest.mark.parametrize("name", TIED)
def test_weights_that_are_used_in_several_ways_stay_tied(name: str) -> None:
    nodes, others = TIED[name]
    numbers = {"W": normal(3, 1 if name == "in another shape" else 3), "b": normal(3), "U": normal(3, 2)}
    numbers |= {"zero": np.array([0]), "two": np.array([2]), "flat": np.array([-1])}
    used = {one for step in nodes for one in step.input}
    numbers = {key: one for key, one in numbers.items() if key in used}
    f = load(nodes, [value("x", "N", 3)], "y", **numbers)
    names = [key for key in ("W", "b", *others) if key in numbers]
    assert sorted(one.name for one in f.parameters) == sorted(names)
    x, step = normal(4, 3), 1e-3
    (tied,) = (one for one in f.parameters if one.name == names[0])
    direction = normal(*tied.shape)
    slope = (f.grad({f.arguments[0]: x}, wrt=[tied]) * direction).sum()
    before = tied.value
    ends = []
    for sign in (1, -1):
        tied.value = before + sign * step * direction
        ends.append(f.eval(x).astype(np.float64).sum())
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-2, abs=1e-2)


def test_loops_that_are_written_out_have_their_weights_once() -> None:
    infos = [value("i", dtype=np.int64), value("go", dtype=np.bool_), value("state", "N", 3)]
    body = graph([node("Gemm", "state W", "next", transB=1), node("Identity", "go", "on")], infos, "on next")
    W, x = normal(3, 3), normal(2, 3)
    f = load([node("Loop", "three true x", "y", body=body)], [value("x", "N", 3)], "y", three=np.int64(3), true=np.bool_(True), W=W)
    assert [one.name for one in f.parameters] == ["W"]
    np.testing.assert_allclose(f.eval(x), x @ W.T @ W.T @ W.T, rtol=1e-4)


def test_whole_numbers_are_exact_or_refused() -> None:
    x = value("x", "N", 2)
    f = load([node("Cast", "big", "b", to=1), node("Add", "x b", "y")], [x], "y", big=np.array([2**24 + 1, 3]))
    assert f.eval(np.zeros((1, 2), np.float32)).tolist() == [[np.float32(2**24 + 1), 3]]
    whole = value("x", "N", 2, dtype=np.int64)
    f = load([node("Add", "x big", "y")], [whole], "y", big=np.array([2**24 + 1, 3]))
    assert f.eval(np.float64([[2**30 + 1, 1]])).tolist() == [[2**30 + 1 + 2**24 + 1, 4]]
    with pytest.raises(DamagedFile, match="larger than what floats hold"):
        load([node("Add", "x big", "y")], [whole], "y", big=np.array([2**60 + 1, 3]))


def test_whole_quotients_are_cut_off_towards_zero() -> None:
    f = load([node("Div", "x d", "y")], [value("x", "N", dtype=np.int32)], "y", d=np.array(2, np.int32))
    assert f.eval(np.float64([7, -7, 4])).tolist() == [3, -3, 2]


def test_local_functions_are_read_in_place() -> None:
    inner = LocalFunction(
        name="Scaled",
        domain="own",
        input=["a", "b"],
        output=["c"],
        attribute=["alpha"],
        opset_import=[OperatorSet(version=18)],
        node=[
            Node(
                input=["a"],
                output=["t"],
                op_type="LeakyRelu",
                attribute=[Attribute(name="alpha", ref_attr_name="alpha", type=1)],
            ),
            node("Mul", "t b", "c"),
        ],
    )
    content = graph([node("Scaled", "x two", "y", domain="own", alpha=0.5)], [value("x", "N", 2)], "y", two=np.float32(2))
    f = C.load_model(file_of(content, functions=[inner], own=1))
    assert f.eval(np.float32([[-4, 3]])).tolist() == [[-4, 6]]


@pytest.mark.parametrize(("version", "summed"), [(9, (1, 2)), (13, 1)])
def test_meanings_go_by_the_version(version: int, summed: Any) -> None:
    f = load([node("Softmax", "x", "y", axis=1)], [value("x", "N", 2, 3)], "y", version)
    np.testing.assert_allclose(f.eval(normal(1, 2, 3)).sum(summed), 1, rtol=1e-5)


def test_control_flow_with_known_turns_is_written_out() -> None:
    body = graph(
        [node("Mul", "state two", "next"), node("Identity", "go", "on")],
        [value("i", dtype=np.int64), value("go", dtype=np.bool_), value("state", "N", 2)],
        "on next",
    )
    yes, no = graph([node("Relu", "z", "a")], [], "a"), graph([node("Neg", "z", "b")], [], "b")
    nodes = [node("Loop", "three true x", "z", body=body), node("If", "true", "y", then_branch=yes, else_branch=no)]
    f = load(nodes, [value("x", "N", 2)], "y", three=np.int64(3), true=np.bool_(True), two=np.float32(2))
    assert f.eval(np.float32([[1, -1]])).tolist() == [[8, 0]]


# ---- what is refused -----------------------------------------------------------------------------


def test_all_operators_that_are_not_read_are_named() -> None:
    nodes = [node("Unheard", "x", "a"), node("Relu", "a", "b"), node("Other", "b", "y", domain="com.example", name="second")]
    with pytest.raises(DamagedFile) as error:
        C.load_model(file_of(graph(nodes, [value("x", "N", 2)], "y"), **{"com.example": 7}))
    for part in ("Unheard of the domain ai.onnx, version 18", "Other of the domain com.example, version 7", "node 'second'"):
        assert part in str(error.value)


@pytest.mark.parametrize("version", [5, 99])
def test_other_versions_are_refused(version: int) -> None:
    with pytest.raises(DamagedFile, match=f"version {version} of ONNX's operators; versions 6 to"):
        load([node("Relu", "x", "y")], [value("x", "N", 2)], "y", version)


@pytest.mark.parametrize(
    ("nodes", "numbers", "text"),
    [
        ([node("Relu", "none", "y")], {}, "used before anything gives it"),
        ([node("Reshape", "v s", "y")], {"v": np.zeros(4), "s": np.array([5, 7])}, "another number of elements"),
        ([node("ConstantOfShape", "s", "y")], {"s": np.array([2**20, 2**20])}, "may take 805306368 bytes"),
        ([node("Expand", "one s", "y")], {"one": np.float32(1), "s": np.array([2**40])}, "may take 805306368 bytes"),
        ([node("Tile", "v s", "y")], {"v": np.zeros(4), "s": np.array([2**40])}, "may take 805306368 bytes"),
        (
            [node("Range", "zero many one", "y")],
            {"zero": np.int64(0), "many": np.int64(2**50), "one": np.int64(1)},
            "may take 805306368 bytes",
        ),
        ([node("Pad", "v s", "y")], {"v": np.zeros(4), "s": np.array([2**40, 0])}, "may take 805306368 bytes"),
        ([node("Concat", "x x", "y", axis=9)], {}, "the axis 9 is none of"),
        ([node("Transpose", "x", "y", perm=[0, 0])], {}, "does not name each"),
        ([node("Conv", "x w", "y")], {"w": np.zeros((1, 1, 1), np.float32)}, "node 'y' .Conv."),
        ([node("Gather", "v i", "y")], {"v": np.zeros(4), "i": np.array([9])}, "out of bounds"),
        ([node("NonZero", "x", "y")], {}, "must be known"),
        (
            [node("MaxUnpool", "v i s", "y", kernel_shape=[2, 2])],
            {"v": np.zeros((1, 1, 1, 1)), "i": np.zeros((1, 1, 1, 1), np.int64), "s": np.array([1, 1, 2, 1])},
            "output_shape .1, 1, 2, 1. where .1, 1, 2, 2. is natural",
        ),
    ],
)
def test_graphs_that_cannot_be_are_refused(nodes: list[Node], numbers: dict[str, Any], text: str) -> None:
    with pytest.raises(DamagedFile, match=text):
        load(nodes, [value("x", "N", 2)], "y", **numbers)


@pytest.mark.parametrize(("operands", "text"), [("n x x", "with lengths of sequences"), ("- x x", "a number of samples that is not known")])
def test_scan_of_version_8_wants_known_samples(operands: str, text: str) -> None:
    body = graph([node("Add", "s e", "t")], [value("s"), value("e")], "t t")
    with pytest.raises(DamagedFile, match=text):
        load([node("Scan", operands, "y z", body=body, num_scan_inputs=1)], [value("x", "N", 2, 2)], "y z", 8, n=np.array([1, 2]))


def test_arrays_that_are_computed_have_a_limit_together() -> None:
    nodes = [*(node("ConstantOfShape", "s", f"v{place}") for place in range(30)), node("Identity", "x", "y")]
    with pytest.raises(DamagedFile, match=r"node 'v24' .*may take 805306368 bytes"):
        load(nodes, [value("x", "N", 2)], "y", s=np.array([2**23]))


def test_loops_have_a_limit() -> None:
    body = graph([node("Identity", "go", "on"), node("Identity", "s", "t")], [value("i"), value("go"), value("s")], "on t")
    with pytest.raises(DamagedFile, match="a loop of more than 2048 turns"):
        load([node("Loop", "many true x", "y", body=body)], [value("x", "N", 2)], "y", many=np.int64(2**40), true=np.bool_(True))


def test_loops_in_loops_have_a_limit() -> None:
    infos = [value("i"), value("go"), value("s")]
    inner = graph([node("Identity", "go", "on"), node("Relu", "s", "t")], infos, "on t")
    outer = graph([node("Identity", "go", "on"), node("Loop", "many true s", "t", body=inner)], infos, "on t")
    with pytest.raises(DamagedFile, match="repeat more than 20000 nodes"):
        load([node("Loop", "many true x", "y", body=outer)], [value("x", "N", 2)], "y", many=np.int64(2000), true=np.bool_(True))


def test_functions_that_call_themselves_are_refused() -> None:
    endless = LocalFunction(name="Own", domain="own", input=["a"], output=["b"], node=[node("Own", "a", "b", domain="own")])
    content = graph([node("Own", "x", "y", domain="own")], [value("x", "N", 2)], "y")
    with pytest.raises(DamagedFile, match="nested more than 24 deep"):
        C.load_model(file_of(content, functions=[endless], own=1))


def test_other_files_are_not_taken_for_models(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("Once upon a time")
    with pytest.raises(RuntimeError, match=r"is not an ONNX model, or damaged: .* it seems to be text"):
        C.Function.load(path, format="onnx")
