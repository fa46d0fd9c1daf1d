"""Compiling loops before they are needed, for the arguments that they mostly get: those of their signatures."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

from ..common.threads import processors
from . import self_check
from .processor import choose

if TYPE_CHECKING:
    from .loops import Loop

CHECK = f"{self_check.__name__}:{self_check.read.__name__}"
"""The function by which it is found out whether loops can be used."""


def compile_ahead(packages: Iterable[str], is_double: bool = False) -> Iterator[str]:
    """Compile all loops with a signature that are not there yet, on all processors; gives the name of each that is done.

    Args:
        packages: whose modules have the loops, by import name.
        is_double: for float64 in place of float32.
    """
    self_check.require()
    with _compilers() as pool:
        yield from _done({name: pool.submit(_keep, name, is_double) for name in _names(pool, packages)})


def compile_to_bring(packages: Iterable[str], level: str, folder: Path) -> Iterator[str]:
    """Compile all loops with a signature, for float32 and float64, as what a package brings along.

    Args:
        packages: whose modules have the loops, by import name.
        level: of the processors that it is for, one of :data:`~cntk.core.machine.processor.LEVELS`.
        folder: where folders of levels are.
    """
    with _compilers(level) as pool:
        loops = {
            f"{name}, {'float64' if is_double else 'float32'}": pool.submit(_bring, name, is_double, folder)
            for name, types in _names(pool, packages).items()
            for is_double in types
        }
        yield from _done({**loops, CHECK: pool.submit(_bring_check, folder)})


def loops(packages: Iterable[str]) -> dict[str, Loop]:
    """All loops that the modules of some packages have, by module and name, those first that take longest to compile."""
    from .loops import Loop

    modules = [import_module(f"{package}.{found.name}") for package in packages for found in iter_modules(import_module(package).__path__)]
    made = {value.function: value for module in modules for value in vars(module).values() if isinstance(value, Loop)}
    named = {f"{function.__module__}:{function.__name__}": loop for function, loop in made.items()}
    return dict(sorted(named.items(), key=lambda item: (not item[1].takes_long, item[0])))


def _names(pool: Executor, packages: Iterable[str]) -> dict[str, list[bool]]:
    """The loops with a signature, and for which types there is code of them: for float32, and for float64 where that is another.

    One of the compilers finds them, as modules of loops are made for its processor when imported.
    """
    return pool.submit(_with_signature, tuple(packages)).result()


def _with_signature(packages: Iterable[str]) -> dict[str, list[bool]]:
    found = {name: loop for name, loop in loops(packages).items() if loop.signature is not None}
    return {name: [False] if loop.kinds(False) == loop.kinds(True) else [False, True] for name, loop in found.items()}


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
    module, loop = name.split(":")
    found: Loop = getattr(import_module(module), loop)
    return found
