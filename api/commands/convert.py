"""``cntk convert``: model files in another format."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from cntk.core.graph.function import Function
from cntk.core.storage.model_format import ModelFormat

from .arguments import Parser

FORMATS = {".onnx": "onnx", ".safetensors": "safetensors"}
"""Formats by the suffix of the file; that of CNTK 2 for any other."""
OF_ONNX = ("outputs", "opset", "sparse", "no_lengths", "external", "check")
"""Options that no other format has."""
TOLERANCES = {"float16": 1e-2, "float32": 1e-4, "float64": 1e-4}
"""Differences, relative to the largest number of a result, that rounding explains."""


def run(arguments: Sequence[str]) -> int:
    """Convert a model to another format: to ONNX, or to that of CNTK 2.

    Args:
        arguments: the file to read, of any format that is known, and the file to write; ``--help`` lists the options.

    Returns:
        0, or 1 where the new model was compared and computes something else.

    >>> import pathlib, tempfile
    >>> from cntk.commands.convert import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, new = (str(pathlib.Path(folder, name)) for name in ("model.dnn", "model.onnx"))
    ...     C.layers.Dense(2, name="z")(C.input_variable(3, name="x")).save(old)
    ...     run([old, new])
    model.onnx: x [batch, 3] -> z [batch, 2]
    0
    """
    parser = Parser(prog="cntk convert", description="Convert a model to another format.")
    parser.add_argument("old", help="the file to read: a model of CNTK 2, CNTK 1, or ONNX")
    parser.add_argument("new", help="the file to write; its suffix says the format: .onnx, .safetensors, any other for that of CNTK 2")
    parser.add_argument("--outputs", nargs="+", metavar="NAME", help="results or nodes to write; all results but losses and metrics")
    parser.add_argument("--opset", type=int, metavar="N", help="version of ONNX's operators")
    parser.add_argument("--sparse", choices=("dense", "indices"), help="what sparse inputs are in ONNX: vectors, or the number of the one")
    parser.add_argument("--no-lengths", action="store_true", help="no input for lengths: all sequences of a batch are equally long")
    parser.add_argument("--external", action="store_true", help="parameters in a file of their own")
    parser.add_argument("--check", action="store_true", help="compare the two on random data, an ONNX model in ONNX Runtime")
    parser.add_argument("--json", action="store_true", help="print what was written, and the differences, for programs")
    options = parser.parse_args(arguments)
    wanted = FORMATS.get(os.path.splitext(options.new)[1].lower(), ModelFormat.CNTKv2)
    chosen = _options(options)
    given = [f"--{name.replace('_', '-')}" for name in OF_ONNX if getattr(options, name) not in (None, False)]
    if given and wanted != "onnx":
        parser.error(f"{', '.join(given)}: for ONNX only; the name of the new file is to end with .onnx, got {options.new!r}")
    if options.check:
        from cntk.plugins.formats.onnx.check import runtime

        runtime()  # before anything is written
    function = Function.load(options.old)
    function.save(options.new, wanted, options.external, **chosen)
    inputs, outputs = _signature(options.new) if wanted == "onnx" else ([], [])
    if wanted == "onnx" and not options.json:
        print(f"{os.path.basename(options.new)}: {', '.join(inputs)} -> {', '.join(outputs)}")
    verdicts = _checked(function, options.new, chosen) if options.check else []
    if options.json:
        found = [one._asdict() for one in verdicts]
        written = {"file": options.new, "format": str(wanted), "inputs": inputs, "outputs": outputs}
        print(json.dumps({**written, "differences": found}, indent=2))
    else:
        for one in verdicts:
            print(one)
    return int(not all(one.is_equal for one in verdicts))


def _options(options: Any) -> dict[str, Any]:
    found = {name: getattr(options, name) for name in ("outputs", "opset", "sparse") if getattr(options, name) is not None}
    return {**found, "lengths": False} if options.no_lengths else found


def _signature(path: str) -> tuple[list[str], list[str]]:
    """Inputs and outputs of an ONNX file."""
    from cntk.plugins.formats.onnx.format import signature_of

    inputs, outputs = signature_of(path)
    return list(inputs), list(outputs)


class Verdict(NamedTuple):
    """What comparing the two models says of an output.

    Attributes:
        output: its name.
        largest, scale: the largest difference, and the largest number.
        tolerance: the part of the largest number that rounding explains.
        is_equal: whether the difference is no more than that.
    """

    output: str
    largest: float
    scale: float
    tolerance: float
    is_equal: bool

    def __str__(self) -> str:
        words = "equal up to rounding" if self.is_equal else f"more than rounding explains ({self.tolerance:g} of the largest number)"
        return f"{self.output}: largest difference {self.largest:.2g}, largest number {self.scale:.3g}: {words}"


def _checked(function: Function, path: str, options: dict[str, Any]) -> list[Verdict]:
    from cntk.plugins.formats.onnx.check import differences

    found = differences(function, path, **options)
    tolerance = max(TOLERANCES.get(str(v.dtype.__name__), 1e-4) for v in function.outputs)
    return [
        Verdict(one.output, float(one.largest), float(one.scale), tolerance, bool(one.largest <= tolerance * max(one.scale, 1)))
        for one in found
    ]
