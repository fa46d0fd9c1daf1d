"""A backend with NumPy's arrays for kernels of the backend ``cupy``: generated sources run on the host, libraries are stand-ins.

Memory is initialised with NaN, so that elements that are never written are found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cntk as C
from cntk.backends.cupy import compiler, kernels, libraries
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor, DeviceKind, cpu, default_device, device
from cntk.core.extension.hookspecs import Register, RegisterEngine, RegisterKernel, hookimpl

from . import host_cuda
from .library import calls_library
from .nvidia import loading

STREAM = 0x57EA

ROUNDING = {ml_dtypes.bfloat16: 8 * 3e-2, np.float16: 3e-2, np.float32: 1e-4, np.float64: 1e-10}


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
    """Backend of such arrays."""

    name = "host-cuda"
    kind = DeviceKind.GPU
    for_tests = True
    fewest_for_learners = 0
    blocks_together = 3
    shared_memory = 232448
    is_recording = False
    xp = Namespace("xp")  # type: ignore[assignment]

    def refuse_to_record(self, what: str) -> None:
        """Nothing is recorded."""

    def allocate(self, nbytes: int) -> Any:
        return _poisoned(super().allocate(nbytes).view(HostArray))

    def view(self, memory: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return np.ndarray.__new__(HostArray, shape, dtype, np.asarray(memory), offset)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return _poisoned(super().empty(shape, dtype).view(HostArray))

    def on_device(self, *data: Any) -> Any:
        return [one.view(HostArray) for one in data]

    def duration(self, call: Callable[[], None]) -> float:
        """Milliseconds that a call takes, which tests replace by others."""
        start = perf_counter()
        call()
        return 1000 * (perf_counter() - start)

    def index(self, layout: Any, name: str) -> Any:  # type: ignore[override]
        return getattr(layout, name).view(HostArray)

    def asarray(self, data: Any, dtype: Any) -> Any:
        return super().asarray(data, dtype).view(HostArray)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)


class Plugin:
    """Registers the backend with some of the kernels of ``cupy``.

    Args:
        has: whether it has a kernel, given by the kernel's import string.
    """

    def __init__(self, has: Callable[[str], bool]) -> None:
        self._has = has

    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        register(HostBackend.name, type("HostBackend", (HostBackend,), {}))  # instances are kept by class, and what they load by instance

    @hookimpl
    def cntk_register_kernels(self, register: RegisterKernel) -> None:
        kernels.cntk_register_kernels(lambda of, _, kernel: register(of, HostBackend.name, kernel) if self._has(kernel) else None)

    @hookimpl
    def cntk_register_engines(self, register: RegisterEngine) -> None:
        kernels.cntk_register_engines(lambda name, _, engine: register(name, HostBackend.name, engine) if self._has(engine) else None)


def is_generated(kernel: str) -> bool:
    """Whether a kernel, given by its import string, has a generated source."""
    return not calls_library(kernel)


@contextmanager
def host_device(has: Callable[[str], bool] = calls_library) -> Iterator[DeviceDescriptor]:
    """Context manager that makes the device of such a backend the default device.

    Args:
        has: whether the backend has a kernel, given by the kernel's import string; by default those that call libraries.
    """
    plugins.register_plugin(Plugin(has), HostBackend.name)
    try:
        with default_device(device(HostBackend.name)):
            yield device(HostBackend.name)
    finally:
        plugins.unregister_plugin(HostBackend.name)


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
    compiler.compile.cache_clear()
    try:
        with pytest.MonkeyPatch.context() as patched:
            patched.setitem(sys.modules, "cupy", standin)
            yield texts
    finally:
        compiler.compile.cache_clear()


@contextmanager
def with_libraries(monkeypatch: pytest.MonkeyPatch, **standins: Any) -> Iterator[None]:
    """Context manager that replaces libraries by stand-ins, given by name; the others are missing."""

    with monkeypatch.context() as patched:
        patched.setattr(libraries, "load", loading(**standins))
        patched.setattr(libraries, "current_stream", lambda: lambda: STREAM)
        yield
    for standin in standins.values():
        assert standin.errors == [], standin.errors[0]


def results(build: Callable[[Any], Any], dtype: Any, data: Any) -> list[Any]:
    """Return the value of a function, and the gradients of its input and parameters."""
    with C.default_options(dtype=dtype):
        f = build(dtype)
    wanted = [*f.arguments, *f.parameters]
    given = dict(zip(f.arguments, data, strict=True))
    gradients, value = f.grad(given, wrt=wanted, outputs=[f.output])
    return [value, *([gradients] if len(wanted) == 1 else (gradients[variable] for variable in wanted))]


def compare(build: Callable[[Any], Any], dtype: Any, data: Any) -> None:
    """Compare a function and its gradients as computed by kernels and by operators."""
    with default_device(cpu()):
        wanted = results(build, dtype, data)
    with host_device():
        found = results(build, dtype, data)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(_flat(one), _flat(other), rtol=ROUNDING[dtype], atol=ROUNDING[dtype])


def _poisoned(found: Any) -> Any:
    found.fill(np.nan if found.dtype.kind == "f" else np.array(-1).astype(found.dtype))
    return found


def _flat(result: Any) -> Any:
    """Return an array, or those of several sequences, as one float64 array."""
    return np.concatenate([np.ravel(part) for part in result]).astype(float) if isinstance(result, list) else np.asarray(result, float)
