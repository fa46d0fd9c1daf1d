"""A backend with NumPy's arrays that runs the kernels of the backend ``cupy`` on the host, to test their sources.

Memory is initialised with NaN, so that elements that are never written are found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from cntk.backends.cupy import compiler, kernels
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension.device import DeviceKind
from cntk.core.extension.hookspecs import hookimpl

from . import host_cuda
from .library import calls_library


class Pointer:
    """The pointer of an array, as CuPy's ``data`` attribute has it."""

    def __init__(self, array: np.ndarray) -> None:
        self.ptr: int = array.__array_interface__["data"][0]


class HostArray(np.ndarray):
    """A NumPy array with those attributes of CuPy's arrays that kernels use."""

    data = property(Pointer)  # type: ignore[assignment]

    def set(self, given: Any) -> None:
        """Copy the contents of a host array of the same type and shape."""
        if (given.dtype, given.shape) != (self.dtype, self.shape):
            raise TypeError(f"set: expected {self.dtype} of {self.shape}, got {given.dtype} of {given.shape}")
        self[...] = given


def array(data: Any, dtype: Any = None) -> Any:
    """Return a copy of an array as a ``HostArray``."""
    return np.array(data, dtype=dtype).view(HostArray)


class Namespace(ModuleType):
    """NumPy's namespace, with array creation functions that return arrays of this backend."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(np, name)
        if isinstance(found, (type, np.ufunc)) or not callable(found):
            return found

        def called(*arguments: Any, **options: Any) -> Any:
            result = found(*arguments, **options)
            return result.view(HostArray) if type(result) is np.ndarray else result

        setattr(self, name, called)
        return called

    @staticmethod
    def empty(shape: Any, dtype: Any = float) -> Any:
        return _poisoned(np.empty(shape, dtype).view(HostArray))


class HostBackend(NumpyBackend):
    """Backend with NumPy's operators and the kernels of the backend ``cupy``."""

    name = "host-cuda"
    kind = DeviceKind.GPU
    fewest_for_learners = 0
    blocks_together = 3
    xp = Namespace("xp")  # type: ignore[assignment]

    def allocate(self, nbytes: int) -> Any:
        return _poisoned(super().allocate(nbytes).view(HostArray))

    def view(self, memory: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return np.ndarray.__new__(HostArray, shape, dtype, np.asarray(memory), offset)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return _poisoned(super().empty(shape, dtype).view(HostArray))

    def on_device(self, *data: Any) -> Any:
        return [one.view(HostArray) for one in data]

    def index(self, layout: Any, name: str) -> Any:  # type: ignore[override]
        return getattr(layout, name).view(HostArray)

    def asarray(self, data: Any, dtype: Any) -> Any:
        return super().asarray(data, dtype).view(HostArray)


class HostPlugin:
    """Registers this backend, and for it all kernels with generated source."""

    @hookimpl
    def cntk_register_backends(self, register: Any) -> None:
        register(HostBackend.name, HostBackend)

    @hookimpl
    def cntk_register_kernels(self, register: Any) -> None:
        kernels.cntk_register_kernels(lambda of, _, kernel: calls_library(kernel) or register(of, HostBackend.name, kernel))

    @hookimpl
    def cntk_register_engines(self, register: Any) -> None:
        kernels.cntk_register_engines(lambda name, _, engine: calls_library(engine) or register(name, HostBackend.name, engine))


def _poisoned(found: Any) -> Any:
    found.fill(np.nan if found.dtype.kind == "f" else np.array(-1).astype(found.dtype))
    return found


@contextmanager
def host_kernels() -> Iterator[list[str]]:
    """Context manager in which kernels are compiled for the host; yields the list of the sources compiled."""
    texts: list[str] = []

    class RawModule(host_cuda.RawModule):
        def __init__(self, *, code: str, **options: Any) -> None:
            texts.append(code)
            super().__init__(code=code, **options)

    standin = Namespace("cupy")
    standin.RawModule = RawModule  # type: ignore[attr-defined]
    before = sys.modules.get("cupy")
    compiler.compile.cache_clear()
    sys.modules["cupy"] = standin
    try:
        yield texts
    finally:
        compiler.compile.cache_clear()
        if before is None:
            del sys.modules["cupy"]
        else:
            sys.modules["cupy"] = before
