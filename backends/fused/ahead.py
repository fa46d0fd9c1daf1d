"""Compiling loops before they are needed, for the arguments that they mostly get: those of their signatures."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.common.threads import processors
from . import self_check
from .processor import choose

if TYPE_CHECKING:
    from .loops import Loop

CHECK = "self_check.read"
"""The function by which it is found out whether loops can be used."""


def compile_ahead(is_double: bool = False) -> Iterator[str]:
    """Compile all loops with a signature that are not there yet, on all processors; gives the name of each that is done.

    Args:
        is_double: for float64 in place of float32.
    """
    self_check.require()
    with _compilers() as pool:
        yield from _done({name: pool.submit(_keep, name, is_double) for name in _names(pool)})


def compile_to_bring(level: str, folder: Path) -> Iterator[str]:
    """Compile all loops with a signature, for float32 and float64, as what a package brings along.

    Args:
        level: of the processors that it is for, one of :data:`~cntk.backends.fused.processor.LEVELS`.
        folder: where folders of levels are.
    """
    with _compilers(level) as pool:
        loops = {
            f"{name}, {'float64' if is_double else 'float32'}": pool.submit(_bring, name, is_double, folder)
            for name in _names(pool)
            for is_double in (False, True)
        }
        yield from _done({**loops, CHECK: pool.submit(_bring_check, folder)})


def loops() -> dict[str, Loop]:
    """All loops by module and name, those first that take longest to compile."""
    from .loops import Loop

    here = Path(__file__).parent
    modules = [import_module(f".{file.stem}", __package__) for file in sorted(here.glob("*.py"))]
    found = {value for module in modules for value in vars(module).values() if isinstance(value, Loop)}
    named = {f"{loop.function.__module__.rpartition('.')[2]}.{loop.function.__name__}": loop for loop in found}
    return dict(sorted(named.items(), key=lambda item: (not item[1].takes_long, item[0])))


def _names(pool: Executor) -> list[str]:
    """The loops with a signature.  One of the compilers finds them, as modules of loops are made for its processor when imported."""
    return pool.submit(_with_signature).result()


def _with_signature() -> list[str]:
    return [name for name, loop in loops().items() if loop.signature is not None]


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


def _keep(name: str, is_double: bool) -> None:
    from .machine_code import code_of

    loop = _loop(name)
    code_of(loop.function, loop.kinds(is_double))


def _bring(name: str, is_double: bool, folder: Path) -> None:
    from .machine_code import prebuild

    loop = _loop(name)
    prebuild(loop.function, loop.kinds(is_double), folder)


def _bring_check(folder: Path) -> None:
    from .machine_code import prebuild

    prebuild(self_check.read, self_check.READ, folder)


def _loop(name: str) -> Loop:
    module, loop = name.split(".")
    found: Loop = getattr(import_module(f".{module}", __package__), loop)
    return found
