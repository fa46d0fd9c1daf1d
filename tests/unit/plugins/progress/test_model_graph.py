"""Graphs of models: what the graph plugin of TensorBoard sends to its page."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.graph.function import Function
from cntk.logging import TensorBoardProgressWriter
from cntk.plugins.progress.model_graph import ModelGraph

pytest.importorskip("tensorboard", reason="tensorboard is not installed")

from google.protobuf import text_format
from tensorboard import context
from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.plugins.base_plugin import TBContext

with warnings.catch_warnings():  # the html5lib inside tensorboard warns of itself
    warnings.filterwarnings("ignore", "html5lib's sanitizer is deprecated", DeprecationWarning)
    from tensorboard.plugins.graph.graphs_plugin import GraphsPlugin

DTYPES = {1: np.float32, 2: np.float64, 19: np.float16, 14: C.bfloat16}


def graph_of(folder: Path) -> Any:
    """The graph as TensorBoard's plugin sends it to the page."""
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    plugin = GraphsPlugin(TBContext(data_provider=MultiplexerDataProvider(multiplexer, str(folder))))
    text, kind = plugin.graph_impl(context.RequestContext(), ".", None, False, "", limit_attr_size=1024, large_attrs_key="_too_large_attrs")
    assert kind == "text/x-protobuf"
    return text_format.Parse(text, GraphDef())


def recurrent() -> Function:
    return C.layers.Recurrence(C.layers.LSTM(4, name="cell"), name="rec")(C.sequence.input_variable(3, name="s"))


def blocks() -> Function:
    @C.BlockFunction("Twice", "twice")
    def twice(a: Any) -> Any:
        return C.exp(a) * 2

    x = C.input_variable(3, name="x")
    return twice(twice(x)) + x


def several_outputs() -> Function:
    x = C.input_variable(4, name="x")
    z = C.layers.Dense(2, name="d")(x)
    return C.combine(C.reduce_sum(z), C.splice(z, C.top_k(z, 1).outputs[1], x, name="x"))


def image_model() -> Function:
    layers = [C.layers.Convolution((3, 3), 4, pad=True, activation=C.relu), C.layers.BatchNormalization(), C.layers.Dense(5)]
    return C.layers.Sequential(layers)(C.input_variable((3, 8, 8), name="/a picture:0/"))


def untyped() -> Function:
    return C.layers.Sequential([C.layers.Dense(3, name="d"), C.layers.Dense(2, name="d")])


MODELS: dict[str, Any] = {
    "plain": lambda: C.relu(C.times(C.input_variable(3, name="x"), C.parameter((3, 2), name="W")) + 1.0),
    "float64": lambda: C.input_variable((C.FreeDimension, 3), dtype=np.float64) + 1,
    "recurrent": recurrent,
    "blocks": blocks,
    "several": several_outputs,
    "image": image_model,
    "untyped": untyped,
}


def model(name: str) -> Function:
    made: Function = MODELS[name]()
    return made


def drawn(name: str, folder: Path) -> tuple[Function, dict[str, Any]]:
    """A model, and the nodes of its graph by name as TensorBoard sends them to the page."""
    made = model(name)
    writer = TensorBoardProgressWriter(log_dir=str(folder), model=made)
    writer.close()
    return made, {node.name: node for node in graph_of(folder).node}


def dims(shape: Any) -> tuple[int, ...]:
    return tuple(dim.size for dim in shape.dim)


@pytest.mark.parametrize("name", MODELS)
def test_every_node_is_in_the_graph_once(name: str, tmp_path: Path) -> None:
    made, nodes = drawn(name, tmp_path)
    names = ModelGraph(made).names
    assert len(set(names.values())) == len(names) == len(nodes)
    for node, found in names.items():
        variable = node.outputs[0] if isinstance(node, Function) else node
        attributes = nodes[found].attr
        if variable.spec.shape is None:
            assert attributes["shape"].shape.unknown_rank
        else:
            assert dims(attributes["shape"].shape) == tuple(max(size, -1) for size in variable.shape)
        assert DTYPES.get(attributes["dtype"].type) == variable.spec.dtype
        outputs = node.outputs if isinstance(node, Function) else [node]
        assert len(attributes["_output_shapes"].list.shape) == len(outputs)
        if isinstance(node, Function):
            assert nodes[found].op == node.op_name
            assert len(nodes[found].input) == len(node.inputs)


@pytest.mark.parametrize("name", MODELS)
def test_every_input_names_an_output(name: str, tmp_path: Path) -> None:
    _, nodes = drawn(name, tmp_path)
    for node in nodes.values():
        for reference in node.input:
            source, _, index = reference.partition(":")
            assert int(index or 0) < len(nodes[source].attr["_output_shapes"].list.shape)


def test_blocks_are_scopes(tmp_path: Path) -> None:
    _, nodes = drawn("blocks", tmp_path)
    by_op = {op: [n for n in nodes.values() if n.op == op] for op in ("Input", "Exp", "ElementTimes", "Plus")}
    assert [n.name for n in by_op["Input"]] == ["x"]
    assert [n.name.split("/")[0] for n in by_op["Exp"]] == ["twice", "twice_1"]
    assert [n.input[0] for n in by_op["Exp"]] == ["x", by_op["ElementTimes"][0].name]
    assert list(by_op["Plus"][0].input) == [by_op["ElementTimes"][1].name, "x"]


def test_recurrences_are_circles(tmp_path: Path) -> None:
    _, nodes = drawn("recurrent", tmp_path)
    delays = [node for node in nodes.values() if node.op == "PastValue"]
    assert sorted(nodes[node.input[0]].op for node in delays) == ["ElementTimes", "Plus"]
    assert {f"cell/{name}" for name in "WHb"} <= {name for name, node in nodes.items() if node.op == "Parameter"}
    read = {reference for node in nodes.values() if node.name.startswith("cell/") for reference in node.input}
    assert {node.name for node in delays} <= read


def test_outputs_beyond_the_first_are_numbered(tmp_path: Path) -> None:
    _, nodes = drawn("several", tmp_path)
    (splice,) = (node for node in nodes.values() if node.op == "Splice")
    assert (splice.name, splice.input[2]) == ("x_1", "x") or (splice.name, splice.input[2]) == ("x", "x_1")
    assert splice.input[1].endswith(":1")


def test_names_that_mean_something_else_are_changed(tmp_path: Path) -> None:
    _, nodes = drawn("image", tmp_path)
    assert [name for name, node in nodes.items() if node.op == "Input"] == ["_a_picture_0_"]
