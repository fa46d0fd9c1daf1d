"""A backend whose arrays are NumPy's and whose kernels are those of CuPy's backend, run on the host: their texts are tested on it.

Memory begins as NaN, so that what nobody writes is found.
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
    """Where an array is, as CuPy says it."""

    def __init__(self, array: np.ndarray) -> None:
        self.ptr: int = array.__array_interface__["data"][0]


class HostArray(np.ndarray):
    """A NumPy array with what kernels use of CuPy's."""

    data = property(Pointer)  # type: ignore[assignment]

    def set(self, given: Any) -> None:
        """Take over the contents of a host array of the same type and shape."""
        if (given.dtype, given.shape) != (self.dtype, self.shape):
            raise TypeError(f"set: expected {self.dtype} of {self.shape}, got {given.dtype} of {given.shape}")
        self[...] = given


def array(data: Any, dtype: Any = None) -> Any:
    """A host array in an array of its own."""
    return np.array(data, dtype=dtype).view(HostArray)


class Namespace(ModuleType):
    """NumPy's names; what makes arrays makes those of the device."""

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
    """NumPy's operators, and the kernels of the backend ``cupy``."""

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
    """Registers this backend, and for it all kernels that have texts."""

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
    """A time in which kernels are compiled for the host; the texts that are compiled meanwhile."""
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
