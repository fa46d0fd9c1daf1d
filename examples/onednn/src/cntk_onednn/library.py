"""oneDNN's shared library, called through ctypes: where it is, and the functions and numbers that are used of its C interface."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char_p, c_int, c_int64, c_size_t, c_uint, c_void_p
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

VARIABLE = "CNTK_ONEDNN"
"""Environment variable that names the library: a path, or a name that the system's loader finds."""

WHEEL = "onednn-cpu-gomp"
"""Package from PyPI with a build for the CPU whose threads are those of GNU's OpenMP."""

NAME = "libdnnl.so.3"

HOW_TO_FIX = f"install it with: pip install {WHEEL}, or let the environment variable {VARIABLE} name a {NAME}"

SPIN, FEW = "GOMP_SPINCOUNT", "10000"
"""How often OpenMP's threads look for work before they sleep: for about 0.3 ms, and not for as long as they like."""

OPENMP = 2
"""What the library says of itself when its threads are OpenMP's."""

SUCCESS, FLOAT32, ANY = 0, 3, 1
CPU, IN_ORDER, USER_SCRATCHPAD = 1, 1, 1
FORWARD_TRAINING, DIRECT = 64, 1

SOURCE, RESULT, WEIGHTS, SCRATCHPAD = 1, 17, 33, 80
SOURCE_GRADIENT, RESULT_GRADIENT, WEIGHTS_GRADIENT = 129, 145, 161
"""Numbers of a primitive's arguments."""

ARGUMENT_FORMAT, SCRATCHPAD_FORMAT = 255, 136
"""Queries for the format of an argument, by its number, and for that of the scratchpad."""

STATUS = "success", "out of memory", "invalid arguments", "not implemented", "last implementation reached", "runtime error", "not required"

Dims = c_int64 * 12


class Version(ctypes.Structure):
    """What :c:func:`dnnl_version` points to."""

    _fields_ = (
        ("major", c_int), ("minor", c_int), ("patch", c_int), ("hash", c_char_p), ("cpu_runtime", c_uint), ("gpu_runtime", c_uint),
    )  # fmt: skip


class Argument(ctypes.Structure):
    """An argument of a primitive: its number, and the memory object."""

    _fields_ = (("number", c_int), ("memory", c_void_p))


POINTERS = POINTER(c_void_p)

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "dnnl_engine_create": (POINTERS, c_int, c_size_t),
    "dnnl_stream_create": (POINTERS, c_void_p, c_uint),
    "dnnl_primitive_attr_create": (POINTERS,),
    "dnnl_primitive_attr_set_scratchpad_mode": (c_void_p, c_int),
    "dnnl_memory_desc_create_with_tag": (POINTERS, c_int, Dims, c_int, c_int),
    "dnnl_memory_desc_create_with_strides": (POINTERS, c_int, Dims, c_int, Dims),
    "dnnl_memory_create": (POINTERS, c_void_p, c_void_p, c_void_p),
    "dnnl_memory_set_data_handle": (c_void_p, c_void_p),
    "dnnl_reorder_primitive_desc_create": (POINTERS, *[c_void_p] * 5),
    "dnnl_convolution_forward_primitive_desc_create": (POINTERS, c_void_p, c_int, c_int, *[c_void_p] * 4, *[Dims] * 4, c_void_p),
    "dnnl_convolution_backward_data_primitive_desc_create": (POINTERS, c_void_p, c_int, *[c_void_p] * 3, *[Dims] * 4, *[c_void_p] * 2),
    "dnnl_convolution_backward_weights_primitive_desc_create": (POINTERS, c_void_p, c_int, *[c_void_p] * 4, *[Dims] * 4, *[c_void_p] * 2),
    "dnnl_primitive_create": (POINTERS, c_void_p),
    "dnnl_primitive_execute": (c_void_p, c_void_p, c_int, POINTER(Argument)),
    "dnnl_primitive_desc_destroy": (c_void_p,),
    "dnnl_primitive_destroy": (c_void_p,),
    "dnnl_memory_desc_destroy": (c_void_p,),
    "dnnl_memory_destroy": (c_void_p,),
    "dnnl_stream_destroy": (c_void_p,),
}
"""Arguments of the functions that return a status."""


class OneDNNError(RuntimeError):
    """A function of the library has failed."""


def find() -> str | None:
    """Name of the library: what the environment variable says, or the file of the package from PyPI; None if there is neither.

    Raises:
        FileNotFoundError: the variable names a path where there is no file.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if os.sep in named and not Path(named).is_file():
            raise FileNotFoundError(f"{VARIABLE}={named} is not a file; {HOW_TO_FIX}")
        return named
    try:
        files = distribution(WHEEL).files or []
    except PackageNotFoundError:
        return None
    return next((str(path) for file in files if file.name == NAME and (path := Path(str(file.locate()))).is_file()), None)


@lru_cache(maxsize=1)
def load() -> Any:
    """The library, its functions ready to be called; those that return a status raise an error instead.

    Raises:
        OneDNNError: there is none, it cannot be loaded, or it is another version or not built for OpenMP.
    """
    name = find()
    if name is None:
        raise OneDNNError(f"oneDNN's library is not to be found; {HOW_TO_FIX}")
    try:
        with _short_spin():
            library = ctypes.CDLL(name)
    except OSError as error:
        raise OneDNNError(f"oneDNN's library cannot be loaded: {error}; {HOW_TO_FIX}") from error
    if not hasattr(library, "dnnl_version"):
        raise OneDNNError(f"{name} is no oneDNN; {HOW_TO_FIX}")
    library.dnnl_version.restype = POINTER(Version)
    version = library.dnnl_version().contents
    if version.major != 3 or version.cpu_runtime != OPENMP:
        what = f"{name} is oneDNN {version.major}.{version.minor} for runtime {version.cpu_runtime}"
        raise OneDNNError(f"{what}, needed is 3.x for runtime {OPENMP}, OpenMP; {HOW_TO_FIX}")
    for function, arguments in SIGNATURES.items():
        getattr(library, function).argtypes = arguments
        getattr(library, function).errcheck = _checked
    library.loaded_in = os.getpid()
    library.dnnl_primitive_desc_query_md.argtypes = (c_void_p, c_int, c_int)
    library.dnnl_primitive_desc_query_md.restype = c_void_p
    library.dnnl_memory_desc_equal.argtypes = (c_void_p, c_void_p)
    library.dnnl_memory_desc_get_size.argtypes = (c_void_p,)
    library.dnnl_memory_desc_get_size.restype = c_size_t
    return library


@contextmanager
def _short_spin() -> Iterator[None]:
    """Have OpenMP, which is loaded meanwhile, let its threads sleep soon, unless the user says how long they wait for work."""
    if SPIN in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ[SPIN] = FEW
    try:
        yield
    finally:
        del os.environ[SPIN]


def _checked(status: int, function: Any, arguments: tuple[Any, ...]) -> None:
    if status != SUCCESS:
        what = STATUS[status] if status < len(STATUS) else f"status {status}"
        raise OneDNNError(f"oneDNN: {function.__name__} failed: {what}")


def created(function: Any, *arguments: Any) -> c_void_p:
    """What one of the library's functions creates."""
    handle = c_void_p()
    function(byref(handle), *arguments)
    return handle
