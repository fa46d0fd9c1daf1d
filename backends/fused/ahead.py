"""Compiling loops before they are needed, for the arguments that they mostly get."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from typing import Any

from ...core.threads import processors

LOOPS = {
    "tape.run": "q I2 I1 q q ? R1",
    "correlation._multiply": "R2 R1 R1 R1 I2 I2 I2 I2 I1 I2 I2 ? (11) R1 ?",
    "correlation._weigh": "R2 R2 R1 R1 I2 I2 I2 I2 I2 I1 I1 I2 ? ? (10)",
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
    "momentum_sgd.descend": "R1 R1 R1 r r r r r",
    "nesterov.descend": "R1 R1 R1 r r r r r",
    "adagrad.descend": "R1 R1 R1 r r r r r",
    "rmsprop.descend": "R1 R1 R1 R1 R1 r r r r r r r r r r r r",
    "adadelta.descend": "R1 R1 R1 R1 r r r r r r r",
    "fsadagrad.descend": "R1 R1 R1 R1 r r r r r r r r r r",
    "adam.descend": "R1 R1 R1 R1 r r r r r r r r r",
    "adamax.descend": "R1 R1 R1 R1 r r r r r r r r r",
}
"""Loops, those that take longest first, and their arguments: arrays with their number of axes, of real numbers, of float64, of whole
numbers of 64 and 32 bits, of unsigned ones of either size and of bytes; numbers, and tuples of so many."""

ARRAYS = {"D": "<f8", "I": "<i8", "N": "<i4", "U": "<u8", "V": "<u4", "B": "|u1"}


def compile_ahead(is_double: bool = False) -> Iterator[str]:
    """Compile all of :data:`LOOPS` that are not kept yet, on all processors; gives the name of each that is done.

    Args:
        is_double: for float64 in place of float32.
    """
    with ProcessPoolExecutor(processors(), multiprocessing.get_context("spawn")) as pool:
        jobs = {name: pool.submit(_compile, name, kinds_of(arguments, is_double)) for name, arguments in LOOPS.items()}
        for name, job in jobs.items():
            job.result()
            yield name


def kinds_of(arguments: str, is_double: bool) -> list[str]:
    """The kinds that the letters stand for."""
    real, number = ("<f8", "d") if is_double else ("<f4", "f")
    arrays: dict[str, Any] = {"R": real, **ARRAYS}
    return [f"{arrays[a[0]]}:{a[1]}:C" if a[0] in arrays else number if a == "r" else a for a in arguments.split()]


def _compile(name: str, kinds: Sequence[str]) -> None:
    from .machine_code import address_of

    module, loop = name.split(".")
    address_of(getattr(import_module(f".{module}", __package__), loop).function, kinds)
