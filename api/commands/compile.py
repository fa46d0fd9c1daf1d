"""``cntk compile``: machine code of loops, made before a program needs it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec


def run(arguments: Sequence[str]) -> int:
    """Compile the loops of large networks, so that no first training step has to.

    Args:
        arguments: ``--double`` for float64 too, or ``--help``.

    Returns:
        0, or 1 where there is no Numba to compile with.
    """
    parser = argparse.ArgumentParser(prog="cntk compile", description="Compile the loops of large networks for this processor.")
    parser.add_argument("--double", action="store_true", help="for float64 too")
    options = parser.parse_args(arguments)
    if find_spec("numba") is None:
        print("cntk compile: loops are compiled by Numba, which is not installed; pip install numba", file=sys.stderr)
        return 1
    from cntk.backends.fused.ahead import compile_ahead

    for is_double in (False, True) if options.double else (False,):
        for name in compile_ahead(is_double):
            print(f"{name}, {'float64' if is_double else 'float32'}")
    return 0
