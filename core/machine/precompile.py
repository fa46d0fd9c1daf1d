"""Compiling loops before they are needed, for their usual arguments, which their signatures declare."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from multiprocessing import active_children, get_context
from pathlib import Path
from pkgutil import iter_modules
from signal import SIG_IGN, SIGINT, signal
from typing import TYPE_CHECKING

from ..common.threads import processors
from . import self_check
from .processor import choose

if TYPE_CHECKING:
    from .loops import Loop

CHECK = f"{self_check.__name__}:{self_check.read.__name__}"
"""The loop by which a self-check finds out whether loops can be used."""


def compile_ahead(packages: Iterable[str], is_double: bool = False, processes: int | None = None) -> Iterator[str]:
    """Compile all loops with a signature that are not compiled yet; yields the name of each when it is done.

    Args:
        packages: import names of the packages whose modules have the loops.
        is_double: for float64 in place of float32.
        processes: how many compile at a time; one for each processor if None.
    """
    self_check.require()
    with _compilers(processes=processes) as pool:
        yield from _done({name: pool.submit(_keep, name, is_double) for name in _names(pool, packages)})


def compile_for_package(packages: Iterable[str], level: str, folder: Path) -> Iterator[str]:
    """Compile all loops with a signature, for float32 and float64, as prebuilt code of a package.

    Args:
        packages: import names of the packages whose modules have the loops.
        level: the level of processors to compile for, one of :data:`~cntk.core.machine.processor.LEVELS`.
        folder: the folder in which each level has one.
    """
    with _compilers(level) as pool:
        loops = {
            f"{name}, {'float64' if is_double else 'float32'}": pool.submit(_prebuild, name, is_double, folder)
            for name, types in _names(pool, packages).items()
            for is_double in types
        }
        yield from _done({**loops, CHECK: pool.submit(_prebuild_check, folder)})


def loops(packages: Iterable[str]) -> dict[str, Loop]:
    """All loops that the modules of some packages have, by module and name, the slowest to compile first."""
    from .loops import Loop

    modules = [import_module(f"{package}.{found.name}") for package in packages for found in iter_modules(import_module(package).__path__)]
    made = {value.function: value for module in modules for value in vars(module).values() if isinstance(value, Loop)}
    named = {f"{function.__module__}:{function.__name__}": loop for function, loop in made.items()}
    return dict(sorted(named.items(), key=lambda item: (not item[1].takes_long, item[0])))


def _names(pool: Executor, packages: Iterable[str]) -> dict[str, list[bool]]:
    """The loops with a signature, and whether to compile each for float64, beside float32, where its code differs.

    One of the compiling processes lists them, since modules of loops adapt to its processor when they are imported.
    """
    return pool.submit(_with_signature, tuple(packages)).result()


def _with_signature(packages: Iterable[str]) -> dict[str, list[bool]]:
    found = {name: loop for name, loop in loops(packages).items() if loop.signature is not None}
    return {name: [False] if loop.kinds(False) == loop.kinds(True) else [False, True] for name, loop in found.items()}


@contextmanager
def _compilers(level: str | None = None, processes: int | None = None) -> Iterator[Executor]:
    """Processes that compile for a level, or for the processor at hand; they end where this one is interrupted.

    Args:
        level: the level; None for the processor at hand.
        processes: how many; one for each processor if None.
    """
    others = active_children()
    pool = ProcessPoolExecutor(processes or processors(), get_context("spawn"), _prepare, (level,))
    try:
        yield pool
    except BaseException:
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _prepare(level: str | None) -> None:
    signal(SIGINT, SIG_IGN)  # a terminal interrupts all processes, of which the first ends the others
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


def _prebuild(name: str, is_double: bool, folder: Path) -> None:
    from .machine_code import prebuild

    loop = _loop(name)
    prebuild(loop.function, loop.kinds(is_double), folder)


def _prebuild_check(folder: Path) -> None:
    from .machine_code import prebuild

    prebuild(self_check.read, self_check.READ, folder)


def _loop(name: str) -> Loop:
    module, loop = name.split(":")
    found: Loop = getattr(import_module(module), loop)
    return found
