"""CUDA C++ on the host: kernel sources are compiled by g++ with a header that emulates CUDA, and run on NumPy's memory.

Replaces ``cupy.RawModule``::

    module = RawModule(code=text, options=("-std=c++17",))
    module.get_function("scale")((blocks,), (threads,), (np.uintp(array.data.ptr), np.float32(2)), shared_mem=0)

Raises RuntimeError for out-of-bounds indices of shared and local arrays, for writes beyond dynamic shared memory, for barriers that
not all threads reach, and for blocks that wait for each other forever; and TypeError for arguments whose number or sizes do not match
the kernel's.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HEADER = Path(__file__).with_suffix(".h")
ROOT = HEADER.parents[2]
CHECKS = ("-fsanitize=bounds", "-fsanitize-recover=bounds")
COMPILE = ("-std=c++17", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-fno-strict-aliasing", *CHECKS)
GLOBAL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")
DYNAMIC = re.compile(r"extern\s+__shared__\s+([\w ]+?)\s+(\w+)\[\];")
WAITS = re.compile(r"__sync|_sync\(")
TOGETHER = re.compile(r"__nanosleep\(")
MOST_SHARED = 232448
MOST_ARGUMENTS = 512


def unavailable() -> str:
    """Return why kernels cannot run here; empty if they can."""
    return "" if shutil.which("g++") else "there is no g++"


class RawModule:
    """The kernels of a source.

    Args:
        code: the source.
        options: options of NVRTC, which g++ ignores.
    """

    def __init__(self, *, code: str, options: Sequence[str] = (), **_: Any) -> None:
        self._code = code

    def get_function(self, name: str) -> Function:
        """Return the kernel of this name.

        Raises:
            ValueError: the source has no such kernel, or is not valid C++.
        """
        if name not in GLOBAL.findall(self._code):
            raise ValueError(f"the text has no kernel called {name!r}; it has {', '.join(GLOBAL.findall(self._code)) or 'none'}")
        return Function(_library(self._code), name)


class Function:
    """A kernel, called with grid size, block size and NumPy scalars; pointers are passed as integers.

    Args:
        library: the library that contains it.
        name: its name.
    """

    def __init__(self, library: ctypes.CDLL, name: str) -> None:
        self._run, self._name = library[f"host_cuda_run_{name}"], name
        self._run.restype = ctypes.c_char_p
        sizes = (ctypes.c_int * MOST_ARGUMENTS)()
        self._sizes = sizes[: library[f"host_cuda_sizes_{name}"](sizes)]

    def __call__(self, grid: Sequence[int], block: Sequence[int], args: Sequence[Any], *, shared_mem: int = 0) -> None:
        sizes = [*grid, *(1,) * (3 - len(grid)), *block, *(1,) * (3 - len(block))]
        if not all(size > 0 for size in sizes):
            raise ValueError(f"{self._name}: launched with a grid {grid} of blocks {block}")
        if np.prod(block) > 1024 or shared_mem > MOST_SHARED:
            raise ValueError(f"{self._name}: a block of {block} threads with {shared_mem} bytes of shared memory is too large for a GPU")
        given = [np.asarray(arg) for arg in args]
        if [one.nbytes for one in given] != self._sizes or not all(isinstance(arg, np.generic) for arg in args):
            found = [(one.dtype.name, one.nbytes) for one in given]
            raise TypeError(f"{self._name}: takes arguments of {self._sizes} bytes, given {found}")
        places = (ctypes.c_void_p * len(given))(*[one.ctypes.data for one in given])
        message = self._run(places, (ctypes.c_uint * 6)(*sizes), ctypes.c_uint(shared_mem))
        if message:
            raise RuntimeError(f"{self._name}: {message.decode()}")


@cache
def _folder() -> Path:
    """Return the cache folder of compiled sources, which persists between test runs; each version of the header has its own."""
    state = hashlib.sha256(HEADER.read_bytes() + repr(COMPILE).encode()).hexdigest()[:16]
    folder = ROOT / "build" / "host_cuda" / state
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@cache
def _header() -> Path:
    """Return the header, precompiled by g++, as it takes most of the compile time."""
    header = _folder() / HEADER.name
    compiled = header.with_name(f"{HEADER.name}.gch")
    if not compiled.exists():
        header.write_bytes(HEADER.read_bytes())
        _make(compiled, "-x", "c++-header", str(header))
    return header


@cache
def _library(code: str) -> ctypes.CDLL:
    """Return the compiled source as a library."""
    place = _folder() / hashlib.sha256(code.encode()).hexdigest()
    library = place.with_suffix(".so")
    if not library.exists():
        source, compiled = (place.with_suffix(f".{os.getpid()}{suffix}") for suffix in (".cpp", ".o"))
        source.write_text(_source(code))
        _make(compiled, "-include", str(_header()), "-c", str(source))
        _make(library, "-shared", "-Wl,-Bsymbolic", str(compiled), flags=())
        source.unlink()
        compiled.unlink()
    return ctypes.CDLL(str(library))


def _source(code: str) -> str:
    """Return the source with dynamic shared memory substituted, and with functions that run its kernels."""
    waits, together = ("true" if pattern.search(code) else "false" for pattern in (WAITS, TOGETHER))
    made = [DYNAMIC.sub(r"\1 *const \2 = (\1 *)host_cuda::dynamic;", code)]
    for name in GLOBAL.findall(code):
        made.append(
            f'extern "C" const char *host_cuda_run_{name}(void **given, const unsigned *sizes, unsigned shared) {{'
            f" return host_cuda::run([](void **given) {{ host_cuda::call({name}, given); }}, given, sizes, shared, {waits}, {together});"
            " }\n"
            f'extern "C" int host_cuda_sizes_{name}(int *found) {{ return host_cuda::sizes_of({name}, found); }}'
        )
    return "\n".join(made)


def _make(target: Path, *command: str, flags: Sequence[str] = COMPILE) -> None:
    """Run g++ and create its output file atomically, as other processes may be creating the same file."""
    made = target.with_name(f"{target.name}.{os.getpid()}")
    done = subprocess.run(("g++", *flags, *command, "-o", str(made)), capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"g++ cannot compile the text:\n{done.stderr}")
    os.replace(made, target)
