"""Machine code of loops: read from disk or compiled, and loaded by LLVM alone, in a tenth of the time that it takes to import Numba.

A package may contain prebuilt code, for processors of a level; it is preferred, so that a machine always computes the same.  Other code is
cached where it was compiled, for one processor and one toolchain.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

from ..extension.compiled import Unusable, warn_not_cached
from ..storage.cache_folder import user_cache
from ..storage.trusted import SHARED, Untrusted, make_folder, require_trusted, warn_of
from . import pool, processor
from .code_files import HERE, WITHOUT, Code, Key, Toolchain, can_keep, complete_file, keep, key_of, read, write
from .numba_version import why_not

ENTRY = "cntk_loop"
"""The name of a loop's entry function."""

IRRELEVANT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
"""Settings of Numba's that do not change machine code."""

PREBUILT = HERE / "prebuilt"
"""The folder of the package's prebuilt code, with a folder for each level."""

_engines: list[Any] = []


def has_prebuilt_code() -> bool:
    """Whether the package contains code for this processor."""
    level = _level()
    return level is not None and (PREBUILT / level).is_dir()


def is_complete() -> bool:
    """Whether all loops were compiled for this machine, by whoever made the package or by ``cntk compile``."""
    return has_prebuilt_code() or any(complete_file(folder, _toolchain()).exists() for folder in _folders())


def note_complete() -> None:
    """Note that all loops have been compiled, where their code is kept."""
    folder = folder_to_keep()
    if folder is not None:
        complete_file(folder, _toolchain()).touch()


def folder_to_keep() -> Path | None:
    """The folder that code is cached in; None if none can be written to."""
    return next(filter(can_keep, _folders()), None)


def address_of(function: Callable[..., None], kinds: Sequence[str]) -> int:
    """The address of a loop for arguments of some kinds, which is loaded into memory."""
    return _load(*code_of(function, kinds))


def code_of(function: Callable[..., None], kinds: Sequence[str]) -> Code:
    """A loop's code for arguments of some kinds: from disk, or else compiled, and cached where a folder can be written to.

    Raises:
        Unusable: there is no code, and no Numba to compile it.
    """
    key = key_of(function, kinds)
    if key is None:
        return _compiled(function, kinds, _level())
    for folder, toolchain in _places():
        found = read(folder, key, toolchain)
        if found is not None:
            return found
    code = _compiled(function, kinds, _level())
    _keep(key, code)
    return code


def _keep(key: Key, code: Code) -> None:
    """Cache code in the first folder that can be written to; warns, once, if there is none."""
    reasons = []
    for folder in _folders():
        try:
            keep(folder, key, _toolchain(), code)
        except OSError as error:
            reasons.append(f"{folder}: {error.strerror or error}")
        else:
            return
    warn_not_cached("; ".join(reasons) or "the user has no home, and NUMBA_CACHE_DIR names no folder")


def prebuild(function: Callable[..., None], kinds: Sequence[str], folder: Path) -> None:
    """Compile a loop for the level that has been :func:`chosen <.processor.choose>`, into a folder that becomes :data:`PREBUILT`.

    Raises:
        ValueError: there is no level, or the function is not one of a file.
        RuntimeError: its code would have to import Numba.
    """
    key, level = key_of(function, kinds), processor.level()
    if key is None or level is None:
        raise ValueError(f"prebuild: expected a function of a file, and a level; got {function.__qualname__} and {level}")
    code = _compiled(function, kinds, level)
    of_numba = [name for name in code.wanted if name.startswith(("NRT_", "numba_"))]
    if of_numba:
        raise RuntimeError(f"loop '{function.__qualname__}' wants {', '.join(of_numba)} of Numba: loops must not make arrays")
    make_folder(folder / level, SHARED)
    write(folder / level, key, _toolchain_of(level), code)


def _compiled(function: Callable[..., None], kinds: Sequence[str], level: str | None) -> Code:
    why = why_not()
    if why:
        raise Unusable(f"there is no machine code for loop '{function.__qualname__}' and these arguments, and {why}")
    try:
        from .compiler import compiled
    except ImportError as error:
        raise Unusable(f"Numba cannot be imported: {error}") from error
    return Code(*compiled(function, kinds, level))


# ---- folders and toolchains ----


def _places() -> Iterator[tuple[Path, Toolchain]]:
    """Folders that may have the code, by preference, and the toolchain that made it."""
    level = _level()
    if level is not None:
        yield PREBUILT / level, _toolchain_of(level)
    if not why_not():
        for folder in _folders():
            yield folder, _toolchain()


def _folders() -> Iterator[Path]:
    """Folders that code may be cached in, by preference."""
    given = os.environ.get("NUMBA_CACHE_DIR")
    if given and _is_trusted(Path(given)):
        yield Path(given)
        return
    if not given:
        yield HERE / "__pycache__"
    kept = user_cache("opencntk")
    if kept is not None:
        yield kept


def _is_trusted(folder: Path) -> bool:
    """Whether nobody else can replace files in a folder; warns if somebody can."""
    try:
        require_trusted(folder)
    except Untrusted as error:
        warn_of(error.place, error.why, WITHOUT)
        return False
    return True


def _level() -> str | None:
    """The level that loops are compiled for; None where Numba chooses the processor, as its settings may say."""
    return None if _settings() and not why_not() else processor.level()


@lru_cache(maxsize=1)
def _settings() -> list[str]:
    return sorted(f"{name}={value}" for name, value in os.environ.items() if value and name.startswith("NUMBA_") and name not in IRRELEVANT)


def _toolchain_of(level: str) -> Toolchain:
    """All that code for a level depends on; the fields of an array begin behind the header of every Python object."""
    return sys.platform, level, str(object.__basicsize__)


@lru_cache(maxsize=1)
def _toolchain() -> Toolchain:
    """Versions of the compilers in use, and the processor they compile for."""
    versions = [f"{package} {version(package)}" for package in ("numba", "llvmlite")]
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} numpy {np.__version__}"
    return (*_settings(), *versions, python, binding.get_process_triple(), _level() or processor.description())


# ---- in memory ----


def _load(code: bytes, wanted: Iterable[str]) -> int:
    _supply(wanted)
    engine = binding.create_mcjit_compiler(binding.parse_assembly(""), _target())
    engine.add_object_file(binding.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(ENTRY))


@lru_cache(maxsize=1)
def _target() -> Any:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.Target.from_triple(binding.get_process_triple()).create_target_machine(jit=True)


def _supply(wanted: Iterable[str]) -> None:
    """Give LLVM the addresses of the external functions that code calls."""
    ours = _ours()
    for name in wanted:
        if name in ours:
            binding.add_symbol(name, ours[name])
        elif binding.address_of_symbol(name) is None:
            _import_numba()


@lru_cache(maxsize=1)
def _ours() -> dict[str, int]:
    return pool.places()


def _import_numba() -> None:
    """Numba registers functions for memory and errors."""
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()
