"""``cntk compile``: machine code of loops, made before a program needs it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import sleep

from cntk.core.machine.numba_version import COMPILER, why_not
from cntk.core.storage.file_lock import FileLock

from .arguments import Parser

PACKAGES = ("cntk.backends.fused", "cntk.readers", "cntk.readers.ctf", "cntk.readers.image")
"""Where loops are."""

WAIT = 0.5
"""Seconds between two looks whether another process has done compiling."""


def run(arguments: Sequence[str]) -> int:
    """Compile the loops of large networks, so that no first training step has to.

    Args:
        arguments: ``--double`` for float64 too, ``--into FOLDER`` for the prebuilt code of a package, ``--processes N``, or ``--help``.

    Returns:
        0, or 1 where there is no Numba that compiles loops.
    """
    parser = Parser(prog="cntk compile", description="Compile the loops of large networks for this processor.")
    parser.add_argument("--double", action="store_true", help="for float64 too")
    parser.add_argument("--into", type=Path, metavar="FOLDER", help="write a wheel's prebuilt code: both types, for AVX2")
    parser.add_argument("--json", action="store_true", help="print the names of what is compiled for programs")
    parser.add_argument("--processes", type=int, metavar="N", help="how many processes compile; one for each processor if left out")
    options = parser.parse_args(arguments)
    if options.processes is not None and options.processes < 1:
        raise ValueError(f"--processes: expected a whole number, 1 or more, got {options.processes}")
    if options.into is not None and options.into.exists() and not options.into.is_dir():
        raise ValueError(f"--into: '{options.into}' is a file; expected a folder")
    why = why_not()
    if why:
        print(f"cntk compile: {why}; install it with: pip install '{COMPILER}'", file=sys.stderr)
        return 1
    compiled = _compiled_for_wheel(options.into) if options.into else _compiled(options.double, options.processes)
    if options.json:
        print(json.dumps({"compiled": list(compiled)}, indent=2))
        return 0
    for name in compiled:
        print(name, flush=True)
    return 0


def _compiled(with_double: bool, processes: int | None) -> Iterator[str]:
    from cntk.core.machine.machine_code import folder_to_keep, note_complete
    from cntk.core.machine.precompile import compile_ahead

    with _compiling_alone(folder_to_keep()):
        for is_double in (False, True) if with_double else (False,):
            yield from compile_ahead(PACKAGES, is_double, processes)
        note_complete()


@contextmanager
def _compiling_alone(folder: Path | None) -> Iterator[None]:
    """Wait while another process compiles into a folder: what it has compiled is there then."""
    with ExitStack() as held:
        while folder is not None:
            try:
                held.enter_context(FileLock(str(folder / "compiling.lock"), str(folder)))
                break
            except BlockingIOError:
                sleep(WAIT)
        yield


def _compiled_for_wheel(folder: Path) -> Iterator[str]:
    from cntk.core.machine.precompile import compile_for_package
    from cntk.core.machine.processor import LEVELS

    for level in LEVELS:
        yield from compile_for_package(PACKAGES, level, folder)
