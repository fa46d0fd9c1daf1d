"""``cntk show``: what is in a model file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cntk.core.extension import plugins
from cntk.core.graph.function import Function
from cntk.core.storage.model_format import ModelFormat
from cntk.logging.model_summary import layers_of, shown, summary
from cntk.plugins.models.files import content_of, format_in, format_of

from .arguments import Parser


def run(arguments: Sequence[str]) -> int:
    """Print the layers of a model, with shapes, parameters and operations.

    Args:
        arguments: the file, of any format that is known.

    Returns:
        0.

    Raises:
        RuntimeError: the file is damaged, or has operators that are not read; what the file says of itself is printed before.
        ValueError: there is no such file, or it has no graph.

    >>> import pathlib, tempfile
    >>> from cntk.commands.show import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     C.layers.Dense(2, name="z")(C.input_variable(3, name="x")).save(path := str(pathlib.Path(folder, "model.dnn")))
    ...     run([path])
    model.dnn: CNTKv2, ... bytes
    <BLANKLINE>
    layer  kind   result      parameters  FLOP a sample  paths
    z      Dense  [batch, 2]           8             14  z/W [3, 2], z/b [2]
    <BLANKLINE>
    inputs: x [batch, 3]
    outputs: z [batch, 2]
    8 parameters (32 bytes), 0 constants
    0
    """
    parser = Parser(prog="cntk show", description="Print the layers of a model, with shapes, parameters and operations.")
    parser.add_argument("model", help="the file: a model of CNTK 2, CNTK 1, or ONNX")
    parser.add_argument("--json", action="store_true", help="print it for programs")
    options = parser.parse_args(arguments)
    if options.json:
        told = {**asdict(_file(options.model)), "described": _described(options.model), **_graph(Function.load(options.model))}
        print(json.dumps(told, indent=2))
        return 0
    _print_heading(options.model)
    print(summary(Function.load(options.model)))
    return 0


@dataclass(frozen=True)
class _File:
    """A file's name, its format, and its size; without a format where none is known."""

    file: str
    format: str | None
    bytes: int


def _file(path: str) -> _File:
    data, source = content_of(path, "load")
    known = format_in(data, format_of(ModelFormat.CNTKv2))
    return _File(source, _name_of(known) if known.recognises(data) else None, len(data))


def _described(path: str) -> list[str]:
    """What a file says of itself."""
    data, source = content_of(path, "load")
    known = format_in(data, format_of(ModelFormat.CNTKv2))
    return list(known.described(data, source)) if known.recognises(data) and hasattr(known, "described") else []


def _print_heading(path: str) -> None:
    file = _file(path)
    if file.format is not None:
        print(f"{os.path.basename(file.file)}: {file.format}, {file.bytes:,} bytes", flush=True)  # in front of an error
        print("".join(f"{line}\n" for line in _described(path)), flush=True)


def _graph(function: Function) -> dict[str, Any]:
    """Layers, inputs and outputs, and how many parameters and constants there are."""
    layers = layers_of(function)
    return {
        "layers": [{**layer._asdict(), "parameters": {path: list(p.shape) for path, p in layer.parameters.items()}} for layer in layers],
        "inputs": {v.name or v.uid: shown(v.spec) for v in function.arguments},
        "outputs": {v.name or v.uid: shown(v.spec) for v in function.outputs},
        "parameters": sum(layer.size for layer in layers),
        "constants": len(function.constants),
    }


def _name_of(known: object) -> str:
    """The name that a format is registered under."""
    return next(name for name in plugins.model_formats if plugins.model_formats.get(name) is known)
