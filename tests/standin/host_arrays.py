"""A backend called ``cupy`` whose arrays are NumPy's and whose kernels run on the host: what kernels' texts compute is tested on it.

Memory begins as NaN, so that what nobody writes is found.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np

from cntk.backends.cupy import compiler
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension.device import DeviceKind

from . import host_cuda


class Pointer:
    """Where an array is, as CuPy says it."""

    def __init__(self, array: np.ndarray) -> None:
        self.ptr: int = array.__array_interface__["data"][0]


class HostArray(np.ndarray):
    """A NumPy array with what kernels use of CuPy's."""

    data = property(Pointer)  # type: ignore[assignment]

    def set(self, given: Any) -> None:
        """Take over the contents of a host array of the same type and shape."""
        assert given.dtype == self.dtype and given.shape == self.shape
        self[...] = given


def array(data: Any, dtype: Any = None) -> Any:
    """A host array in an array of its own."""
    return np.array(data, dtype=dtype).view(HostArray)


class HostBackend(NumpyBackend):
    """NumPy's operators, and the kernels of the backend ``cupy``."""

    name = "cupy"
    kind = DeviceKind.GPU

    def allocate(self, nbytes: int) -> Any:
        return _poisoned(super().allocate(nbytes).view(HostArray))

    def view(self, memory: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return np.ndarray.__new__(HostArray, shape, dtype, np.asarray(memory), offset)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return _poisoned(super().empty(shape, dtype).view(HostArray))

    def asarray(self, data: Any, dtype: Any) -> Any:
        return super().asarray(data, dtype).view(HostArray)


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

    standin = ModuleType("cupy")
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
