"""Machine code of loops, on disk and in memory.

It is kept for one processor, one version of the loops' source and of all that made it, and used for no other.  To load it takes LLVM alone,
a tenth of what it takes to import Numba.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from llvmlite import binding

from . import openmp

ENTRY = "cntk_loop"
"""What the function that a loop is called by is named."""

IRRELEVANT = ("NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS")
"""Settings of Numba's that do not change machine code."""

HERE = Path(__file__).parent

_engines: list[Any] = []


def is_there() -> bool:
    """Whether machine code has been kept before, for this processor and by what is installed now."""
    return any(next(folder.glob(f"loop.*-{_maker()}"), None) for folder in _folders())


def address_of(function: Callable[..., None], kinds: Sequence[str]) -> int:
    """Where a loop for arguments of some kinds is in memory: loaded, or compiled and kept where a folder can be written to."""
    key = _key(function, kinds)
    if key is None:
        return _load(*_compiled(function, kinds))
    name = f"loop.{function.__name__}-{_digest(key['file'])[:20]}-{_maker()}"
    for folder in _folders():
        found = _read(folder / name, key)
        if found is not None:
            return _load(*found)
    code, wanted = _compiled(function, kinds)
    _keep(name, key, code, wanted)
    return _load(code, wanted)


def _compiled(function: Callable[..., None], kinds: Sequence[str]) -> tuple[bytes, list[str]]:
    from .compiler import compiled

    return compiled(function, kinds)


# ---- on disk ----


def _key(function: Any, kinds: Sequence[str]) -> dict[str, Any] | None:
    """All that the machine code depends on: what has a file of its own, what makes machine code, and what makes a file outdated.

    None where that is not known: a function that is not in a file, or depends on values of another one's.
    """
    code = function.__code__
    if function.__closure__ or not os.path.exists(code.co_filename):
        return None
    source = _source() if Path(code.co_filename).parent == HERE else _digest(Path(code.co_filename).read_text("utf-8"))
    return {"file": [function.__module__, function.__qualname__, *kinds], "maker": _machine(), "source": [source, code.co_firstlineno]}


@lru_cache(maxsize=1)
def _source() -> str:
    """Digest of the source text that loops are made of: this folder's, and that of constants from elsewhere."""
    files = sorted(HERE.glob("*.py")), [HERE.parents[1] / "core" / "sums.py"]
    return _digest([file.read_text("utf-8") for group in files for file in group])


@lru_cache(maxsize=1)
def _machine() -> list[str]:
    """Versions of what makes machine code, and the processor that it is for."""
    settings = [f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_") and name not in IRRELEVANT]
    versions = [f"{package} {version(package)}" for package in ("numba", "llvmlite")]
    python = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')} numpy {np.__version__}"
    return [*sorted(settings), *versions, python, binding.get_process_triple(), *_processor()]


@lru_cache(maxsize=1)
def _maker() -> str:
    """Short for what makes machine code."""
    return _digest(_machine())[:12]


def _processor() -> Sequence[str]:
    try:
        return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know how to ask this system
        return binding.get_host_cpu_name(), ""


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


def _folders() -> Iterator[Path]:
    """Where code may be, best first."""
    if "NUMBA_CACHE_DIR" in os.environ:
        yield Path(os.environ["NUMBA_CACHE_DIR"])
        return
    yield HERE / "__pycache__"
    with suppress(RuntimeError):  # nobody's home
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "opencntk"


def _read(file: Path, key: dict[str, Any]) -> tuple[bytes, list[str]] | None:
    """What a file holds; None if there is none, or it is outdated or damaged."""
    try:
        head, code = file.read_bytes().split(b"\n", 1)
        notes = json.loads(head)
    except (OSError, ValueError):
        return None
    if not isinstance(notes, dict) or notes.get("key") != key or notes.get("digest") != hashlib.sha256(code).hexdigest():
        return None
    return code, notes["wanted"]


def _keep(name: str, key: dict[str, Any], code: bytes, wanted: Iterable[str]) -> None:
    """Write a file as a whole, into the first folder that can be written to."""
    head = json.dumps({"key": key, "wanted": wanted, "digest": hashlib.sha256(code).hexdigest()}).encode()
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            number, temporary = tempfile.mkstemp(dir=folder)
            try:
                with open(number, "wb") as file:
                    file.write(head + b"\n" + code)
                os.replace(temporary, folder / name)
            except OSError:
                os.unlink(temporary)
                raise
            return


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
    """Let LLVM know where the functions are that code wants from elsewhere."""
    ours = _ours()
    for name in wanted:
        if name in ours:
            binding.add_symbol(name, ours[name])
        elif binding.address_of_symbol(name) is None:
            _import_numba()


@lru_cache(maxsize=1)
def _ours() -> dict[str, int]:
    return {name: ctypes.cast(function, ctypes.c_void_p).value or 0 for name, function in openmp.places().items()}


def _import_numba() -> None:
    """Numba brings functions for memory and errors."""
    from numba.core.registry import cpu_target

    cpu_target.target_context.refresh()
