"""Compiling loops before they are needed, for the arguments that they mostly get."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from ...core.common.threads import processors
from . import self_check
from .processor import choose

LOOPS = {
    "chain_tape.run": "q q (4) (2) (2) I2 R1",
    "tape.run": "q I2 I1 q q ? R1",
    "correlation._multiply": "R2 R1 R1 R1 I2 I2 I2 I2 I1 I2 I2 ? (11) R1 ?",
    "correlation._weigh": "R2 R2 R1 R1 I2 I2 I2 I2 I2 I1 I1 I2 ? ? (10)",
    "winograd._weigh": "R2 R2 R1 R1 I2 I2 (11) (11) I1 I1 I2 (3) ?",
    "winograd._convolve": "R2 R1 R1 R1 I2 (11) (11) I1 I1 I2 (3) ? R1 ?",
    "products._multiply": "R2 q q q R1 ? (13)",
    "winograd._transform": "R1 R1 ? (5)",
    "winograd._transform_back": "R2 R1 (3)",
    "products._cut_back": "R2 R2 R2 R2",
    "pools._find": "q R1 R1 R1 R1 B1 U1 B1 I2 I2 q ?",
    "maxima.find": "q R1 R1 R1 U1 I2 I2 q ?",
    "pools._send_back": "q R1 R1 B1 I1 I1 q",
    "tape.pack": "I2 R1",
    "features.measure": "R3 D3",
    "features.normalise": "R3 R3 R3 ? r R1 R1 R1 R1 R1 d D3",
    "features.add_up": "R3 R3 R3 ? R1 D3",
    "features.differentiate": "R3 R3 R3 ? R1 R1 R1 R1 R1 R3 ? R3 ? D3",
    "csr._transpose": "R1 N1 N1 q I2 I1 N1 N1 R1 N1 I1",
    "csr.multiply": "R1 N1 N1 R2 R2",
    "distributions.softmax": "R2 R2",
    "distributions.softmax_gradient": "R2 R2 R2",
    "distributions.log_softmax": "R2 R2",
    "distributions.log_softmax_gradient": "R2 R2 R2",
    "distributions.cross_entropy": "R2 R2 R1 R1 R1",
    "distributions.cross_entropy_gradient": "R2 R2 R1 R1 R1 R2",
    "distributions.sparse_cross_entropy": "R2 R1 N1 N1 R1 R1 R1",
    "distributions.sparse_cross_entropy_gradient": "R2 R1 N1 N1 R1 R1 R1 R2",
    "folds.total": "R2 R1 d",
    "folds.spread": "R1 r R2",
    "folds.greatest": "R2 R1",
    "folds.least": "R2 R1",
    "folds.spread_to_equal": "R2 R1 R1 R2",
    "folds.log_total": "R2 R1",
    "folds.spread_by_powers": "R2 R1 R1 R2",
    "masks.drop": "R1 R1 U1 V1 U1 q q r",
    "masks.drop_gradient": "R1 R1 V1 q r",
    "sgd.descend_rows": "R2 R2 N1 r r r r",
    "sgd.descend": "R1 R1 r r r r",
    "momentum_sgd.descend_rows": "R2 R2 R2 N1 r r r r r r",
    "momentum_sgd.descend": "R1 R1 R1 r r r r r",
    "nesterov.descend_rows": "R2 R2 R2 N1 r r r r r",
    "nesterov.descend": "R1 R1 R1 r r r r r",
    "kernel.move": "R1 R1 R1 r r r r",
    "adagrad.gather": "R1 R1 R1 R1 R2 r r r r",
    "adagrad.descend": "R1 R1 R1 r r r r r",
    "rmsprop.gather": "R1 R1 R1 R1 R1 R1 R2 r r r r r r r r r r r",
    "rmsprop.descend": "R1 R1 R1 R1 R1 r r r r r r r r r r r r",
    "adadelta.descend": "R1 R1 R1 R1 r r r r r r r",
    "fsadagrad.descend": "R1 R1 R1 R1 r r r r r r r r r r",
    "adam.descend": "R1 R1 R1 R1 r r r r r r r r r",
    "adamax.descend": "R1 R1 R1 R1 r r r r r r r r r",
}
"""Loops, those that take longest first, and their arguments: arrays with their number of axes, of real numbers, of float64, of whole
numbers of 64 and 32 bits, of unsigned ones of either size and of bytes; numbers, and tuples of so many."""

CHECK = "self_check.read"
"""The loop by which it is found out whether others can be used."""

ARRAYS = {"D": "<f8", "I": "<i8", "N": "<i4", "U": "<u8", "V": "<u4", "B": "|u1"}


def compile_ahead(is_double: bool = False) -> Iterator[str]:
    """Compile all of :data:`LOOPS` that are not there yet, on all processors; gives the name of each that is done.

    Args:
        is_double: for float64 in place of float32.
    """
    self_check.require()
    with _compilers() as pool:
        yield from _done({name: pool.submit(_keep, name, kinds_of(arguments, is_double)) for name, arguments in LOOPS.items()})


def compile_to_bring(level: str, folder: Path) -> Iterator[str]:
    """Compile all of :data:`LOOPS`, for float32 and float64, as what a package brings along.

    Args:
        level: of the processors that it is for, one of :data:`~cntk.backends.fused.processor.LEVELS`.
        folder: where folders of levels are.
    """
    with _compilers(level) as pool:
        loops = {
            f"{name}, {'float64' if is_double else 'float32'}": pool.submit(_bring, name, kinds_of(arguments, is_double), folder)
            for name, arguments in LOOPS.items()
            for is_double in (False, True)
        }
        yield from _done({**loops, CHECK: pool.submit(_bring, CHECK, self_check.READ, folder)})


def _compilers(level: str | None = None) -> ProcessPoolExecutor:
    """A process for each processor, to compile for a level, or for the processor at hand."""
    return ProcessPoolExecutor(processors(), get_context("spawn"), _prepare, (level,))


def _prepare(level: str | None) -> None:
    gc.disable()  # Numba makes millions of objects and little garbage, and the process will end soon
    if level is not None:
        choose(level)


def _done(jobs: Mapping[str, Future[None]]) -> Iterator[str]:
    """The names of jobs, once they are done."""
    for name, job in jobs.items():
        job.result()
        yield name


def brought_kinds(function: Callable[..., None]) -> Iterator[list[str]]:
    """The kinds of arguments that a package brings a loop's code along for."""
    arguments = LOOPS.get(f"{function.__module__.rpartition('.')[2]}.{function.__name__}")
    if arguments is not None and function.__module__.startswith(f"{__package__}."):
        yield from (kinds_of(arguments, is_double) for is_double in (False, True))


def kinds_of(arguments: str, is_double: bool) -> list[str]:
    """The kinds that the letters stand for."""
    real, number = ("<f8", "d") if is_double else ("<f4", "f")
    arrays: dict[str, Any] = {"R": real, **ARRAYS}
    return [f"{arrays[a[0]]}:{a[1]}:C" if a[0] in arrays else number if a == "r" else a for a in arguments.split()]


def _keep(name: str, kinds: Sequence[str]) -> None:
    from .machine_code import code_of

    code_of(_function(name), kinds)


def _bring(name: str, kinds: Sequence[str], folder: Path) -> None:
    from .machine_code import prebuild

    prebuild(_function(name), kinds, folder)


def _function(name: str) -> Callable[..., None]:
    module, loop = name.split(".")
    found = getattr(import_module(f".{module}", __package__), loop)
    function: Callable[..., None] = getattr(found, "function", found)
    return function
