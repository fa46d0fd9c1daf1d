"""``cntk predict``: a model applied to a file of data."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cntk.eval.files import FORMATS
from cntk.eval.predictor import BATCH_ROWS, Predictor
from cntk.eval.scoring import predict_file

from .arguments import Parser, number


def run(arguments: Sequence[str]) -> int:
    """Apply a model to a file, and write what it computes.

    Args:
        arguments: the model, the file with the data, and the file to write; ``--help`` lists the options.

    Returns:
        0; 130 when it was interrupted.

    >>> import pathlib, tempfile
    >>> from cntk.commands.predict import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model, data, results = (str(pathlib.Path(folder, name)) for name in ("model.dnn", "data.csv", "results.csv"))
    ...     C.layers.Dense(2, init=1, name="z")(C.input_variable(2, name="x")).save(model)
    ...     _ = pathlib.Path(data).write_text("id,x_0,x_1\\na,1,2\\nb,3,4\\n")
    ...     run([model, data, results, "--keep", "id"])
    ...     print(pathlib.Path(results).read_text(), end="")
    results.csv: 2 rows of z [batch, 2] float32
    0
    id,z_0,z_1
    a,3,3
    b,7,7
    """
    parser = Parser(prog="cntk predict", description="Apply a model to a file of data, and write what it computes.")
    parser.add_argument("model", help="the file of the model: of CNTK 2, CNTK 1, or ONNX")
    parser.add_argument("data", help=f"the file with the data; its suffix says the format: {', '.join(FORMATS)}")
    parser.add_argument("results", help="the file to write, of any of these formats")
    parser.add_argument("--outputs", nargs="+", metavar="NAME", help="results or nodes to compute; all results but losses and metrics")
    parser.add_argument(
        "--columns", nargs="+", type=_columns, default=[], metavar="INPUT=COLUMN", help="columns or fields that inputs take: x=age,height"
    )
    parser.add_argument("--keep", nargs="+", default=[], metavar="COLUMN", help="columns that are passed on to the results")
    parser.add_argument(
        "--batch_rows", type=number(int, 1), default=BATCH_ROWS, metavar="N", help="rows that are computed at once, %(default)s"
    )
    parser.add_argument("--dtype", choices=("float16", "float32", "float64"), help="type of the results; that of the model")
    parser.add_argument("--restart", action="store_true", help="begin again, where an earlier run was stopped")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    parser.add_argument("--json", action="store_true", help="print what was done for programs")
    options = parser.parse_args(arguments)
    predictor = Predictor(options.model, options.outputs, options.batch_rows, options.dtype, dict(options.columns), options.keep)
    show, hide = (None, _nothing) if options.quiet else _progress(os.path.basename(options.results))
    try:
        count = predict_file(predictor, options.data, options.results, options.restart, show)
    except KeyboardInterrupt:
        print("cntk predict: interrupted; the same command goes on from here", file=sys.stderr)
        return 130
    finally:
        hide()
    outputs = list(map(str, predictor.signature.outputs))
    if options.json:
        print(json.dumps({"file": options.results, "rows": count, "outputs": outputs}, indent=2))
    else:
        print(f"{os.path.basename(options.results)}: {count} rows of {', '.join(outputs)}")
    return 0


def _columns(text: str) -> tuple[str, list[str]]:
    """An input, and its columns."""
    name, is_there, columns = text.partition("=")
    if not (name and is_there and columns):
        raise argparse.ArgumentTypeError(f"expected INPUT=COLUMN or INPUT=COLUMN,COLUMN,…, got {text!r}")
    return name, columns.split(",")


def _progress(title: str) -> tuple[Callable[[int, int | None], Any] | None, Callable[[], Any]]:
    """What shows how far it is on the terminal, where there is one and rich is installed, and what removes that."""
    try:
        from rich.console import Console

        from cntk.plugins.progress.live import Bar, display_of
    except ImportError:
        return None, _nothing
    bar = Bar(display_of(Console(stderr=True)))

    def show(done: int, count: int | None) -> None:
        if bar.is_due():
            bar.show(title, done, count, 0, "")

    return show, bar.hide


def _nothing() -> None:
    pass
