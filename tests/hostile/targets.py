"""Readers to try, each with files to begin from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators.elementwise import Elementwise
from cntk.plugins.formats.onnx.messages import (
    Attribute,
    Dimension,
    Graph,
    LocalFunction,
    Model,
    Node,
    OperatorSet,
    Shape,
    TensorType,
    Type,
    ValueInfo,
    write_message,
)
from cntk.plugins.formats.onnx.tensors import write_tensor
from cntk.plugins.formats.wire import read_dictionary, write_file
from cntk.plugins.protobuf import DamagedFile
from cntk.train.checkpoint import read_checkpoint, write_checkpoint

TESTS = Path(__file__).resolve().parents[1]
MODELS = TESTS / "data" / "models"
LARGEST = 12_000
"""Bytes of the models to begin from, at most."""


@dataclass
class Target:
    """A reader.

    Attributes:
        name: what it is called on the command line.
        seeds: files that it reads.
        read: reads the file of a path.
        structured: whether files are dictionaries of CNTK 2.
        suffix: what is added to the path for the file that is made wrong.
        documented: what it may raise.
        room: bytes that it may take whatever the size of the file.
    """

    name: str
    seeds: list[bytes]
    read: Callable[[str], Any]
    structured: bool = True
    suffix: str = ""
    documented: tuple[type[Exception], ...] = (DamagedFile, ValueError)
    room: int = 0


class OfPlugin(Elementwise):
    """An operator that CNTK does not have, with arguments and a state."""

    op_name = "OfPlugin"
    drawn = 0

    def __init__(self, first: Any, *others: Any, **attributes: Any) -> None:
        super().__init__(first=first, others=others, **attributes)

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(out, inputs[0])

    def create_checkpoint(self) -> dict[str, Any]:
        return {"drawn": self.drawn}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.drawn = int(checkpoint["drawn"])


def models(folder: Path) -> Target:
    """``load_model`` on models that CNTK 2.7 has saved."""
    sys.path.insert(0, str(TESTS / "crossing"))
    import zoo  # noqa: F401  (its user functions are recreated)

    whole = [path.read_bytes() for path in sorted(MODELS.glob("*.model"))]
    seeds = [seed for seed in whole if len(seed) <= LARGEST]
    large = [b"".join(write_file(read_dictionary(seed), largest=0)) for seed in seeds[:5]]
    return Target("models", seeds + large, C.load_model)


def operators(folder: Path) -> Target:
    """``load_model`` on a model with operators that CNTK does not have."""
    x = C.input_variable(3, name="x")
    arguments = {"table": np.arange(3), "kind": np.float32, "axis": C.Axis(-1), "nested": [{"@": (2**70, None)}, 0.5]}
    function = OfPlugin("text", 1, 2.5, **arguments)(OfPlugin(True)(x) * C.parameter(3))
    for name in plugins.ops:  # which is what a file may have imported
        plugins.ops.get(name)
    return Target("operators", [b"".join(map(bytes, plugins.model_formats.get("CNTKv2").write(function)))], C.load_model)


def checkpoints(folder: Path) -> Target:
    """The state of a checkpoint, beside a model that is whole."""
    model = C.layers.Dense(2)(C.input_variable(3))
    state = {
        "learners": [{"total_number_of_samples_seen": 7, "state": [np.ones((3, 2), np.float32), np.zeros(2, np.float64)]}],
        "random": {"words": np.arange(312, dtype=np.uint64), "seed": 2**63 + 5, "ratio": 0.5, "none": None, "flag": True},
        "reader": {"position": [1, 2, -3], "name": "x"},
    }
    write_checkpoint(str(folder / "checkpoint"), model, state)
    return Target(
        "checkpoints", [(folder / "checkpoint.ckp").read_bytes()], read_checkpoint, suffix=".ckp", documented=(RuntimeError, ValueError)
    )


def tensors(folder: Path) -> Target:
    """``restore`` from safetensors files."""
    function = C.layers.Sequential([C.layers.Dense(3, name="first"), C.layers.BatchNormalization(), C.layers.Dense(2)])(C.input_variable(4))
    function.save(folder / "tensors", format="safetensors")
    return Target("tensors", [(folder / "tensors").read_bytes()], function.restore, structured=False)


def onnx(folder: Path) -> Target:
    """``load_model`` on ONNX files: an image network, a recurrence, attention by shapes, loops, a function of the file's own."""
    seeds = [b"".join(map(bytes, write_message(model))) for model in (_image_network(), _recurrence(), _loop())]
    return Target("onnx", seeds, C.load_model, structured=False, room=2**30)


def _onnx_node(op_type: str, inputs: str, outputs: str, *attributes: Attribute, domain: str = "") -> Node:
    return Node(inputs.split(), outputs.split(), op_type=op_type, attribute=list(attributes), domain=domain)


def _onnx_model(nodes: list[Node], shape: list[Any], *functions: LocalFunction, **numbers: Any) -> Model:
    dims = Shape([Dimension(dim_param=dim) if isinstance(dim, str) else Dimension(dim_value=dim) for dim in shape])
    graph = Graph(
        node=nodes,
        name="graph",
        initializer=[write_tensor(np.asarray(array), name) for name, array in numbers.items()],
        input=[ValueInfo("x", Type(TensorType(1, dims)))],
        output=[ValueInfo("y")],
    )
    return Model(ir_version=8, graph=graph, opset_import=[OperatorSet("", 18), OperatorSet("own", 1)], functions=list(functions))


def _integers(name: str, *numbers: int) -> Attribute:
    return Attribute(name, ints=np.array(numbers), type=7)


def _image_network() -> Model:
    nodes = [
        _onnx_node("Conv", "x w", "c", _integers("pads", 1, 1, 1, 1)),
        _onnx_node("Relu", "c", "r"),
        _onnx_node("MaxPool", "r", "m", _integers("kernel_shape", 2, 2), _integers("strides", 2, 2)),
        _onnx_node("Pad", "m pads", "p"),
        _onnx_node("Flatten", "p", "f"),
        _onnx_node("Gemm", "f v b", "g"),
        _onnx_node("Softmax", "g", "y"),
    ]
    floats = {"w": np.ones((2, 1, 3, 3), np.float32), "v": np.ones((18, 2), np.float32), "b": np.ones(2, np.float32)}
    return _onnx_model(nodes, ["N", 1, 4, 4], pads=np.array([0, 0, 0, 0, 0, 0, 1, 1]), **floats)


def _recurrence() -> Model:
    nodes = [
        _onnx_node("Shape", "x", "s"),
        _onnx_node("Slice", "s one two", "n"),
        _onnx_node("Concat", "one n size", "hs", Attribute("axis", i=0, type=2)),
        _onnx_node("ConstantOfShape", "hs", "h0"),
        _onnx_node("LSTM", "x w r h0 h0", "states h c", Attribute("hidden_size", i=2, type=2)),
        _onnx_node("Squeeze", "states one", "z"),
        _onnx_node("Own", "z", "y", domain="own"),
    ]
    nodes[4].input[3:3] = ["", ""]  # neither bias nor lengths
    own = LocalFunction("Own", ["a"], ["b"], node=[_onnx_node("Tanh", "a", "b")], opset_import=[OperatorSet("", 18)], domain="own")
    floats = {"w": np.ones((1, 8, 3), np.float32), "r": np.ones((1, 8, 2), np.float32)}
    return _onnx_model(nodes, ["time", "batch", 3], own, one=np.array([1]), two=np.array([2]), size=np.array([2]), **floats)


def _loop() -> Model:
    infos = [ValueInfo("i"), ValueInfo("go"), ValueInfo("s")]
    body = Graph(
        node=[_onnx_node("Identity", "go", "on"), _onnx_node("Expand", "s form", "e"), _onnx_node("Add", "e s", "t")],
        input=infos,
        output=[ValueInfo("on"), ValueInfo("t")],
    )
    nodes = [
        _onnx_node("Loop", "three true x", "z", Attribute("body", g=body, type=5)),
        _onnx_node("Range", "zero three one", "k"),
        _onnx_node("Cast", "k", "f", Attribute("to", i=1, type=2)),
        _onnx_node("Tile", "f twice", "d"),
        _onnx_node("ReduceSum", "d", "total"),
        _onnx_node("Mul", "z total", "y"),
    ]
    numbers = {"three": np.int64(3), "zero": np.int64(0), "one": np.int64(1), "twice": np.array([2]), "form": np.array([1, 2])}
    return _onnx_model(nodes, ["N", 2], true=np.bool_(True), **numbers)


TARGETS = {"models": models, "operators": operators, "checkpoints": checkpoints, "tensors": tensors, "onnx": onnx}
