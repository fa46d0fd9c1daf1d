"""``cntk show``: what is in a model file."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from cntk.core.graph.function import Function
from cntk.logging.model_summary import summary


def run(arguments: Sequence[str]) -> int:
    """Print the layers of a model, with shapes, parameters and operations.

    Args:
        arguments: the file, of any format that is known.

    Returns:
        0.

    >>> import pathlib, tempfile
    >>> from cntk.commands.show import run
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     C.layers.Dense(2, name="z")(C.input_variable(3, name="x")).save(path := str(pathlib.Path(folder, "model.dnn")))
    ...     run([path])
    layer  kind   result      parameters  FLOP a sample
    z      Dense  [batch, 2]           8             14
    <BLANKLINE>
    inputs: x [batch, 3]
    outputs: z [batch, 2]
    8 parameters (32 bytes), 0 constants
    0
    """
    parser = argparse.ArgumentParser(prog="cntk show", description="Print the layers of a model.")
    parser.add_argument("model", help="the file: a model of CNTK 2, CNTK 1, or ONNX")
    options = parser.parse_args(arguments)
    function = Function.load(options.model)
    print(summary(function))
    return 0
