"""A backend with NumPy's arrays that expose their addresses as CuPy's do, for kernels that call stand-ins of libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import cntk as C
from cntk.backends.cupy import kernels, libraries
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor, cpu, default_device, device
from cntk.core.extension.hookspecs import Register, RegisterKernel, hookimpl

from .library import calls_library
from .nvidia import loading

STREAM = 0x57EA

NAME = "host"

ROUNDING = {ml_dtypes.bfloat16: 8 * 3e-2, np.float16: 3e-2, np.float32: 1e-4, np.float64: 1e-10}


class HostArray(np.ndarray):  # type: ignore[type-arg]
    """A NumPy array that exposes its address as CuPy's arrays do."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.__array_interface__["data"][0])


class HostBackend(NumpyBackend):
    """Backend of such arrays."""

    name = NAME
    for_tests = True

    def allocate(self, nbytes: int) -> Any:
        return super().allocate(nbytes).view(HostArray)

    def view(self, memory: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return super().view(memory, offset, shape, dtype).view(HostArray)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return super().empty(shape, dtype).view(HostArray)

    def asarray(self, data: Any, dtype: Any) -> Any:
        return super().asarray(data, dtype).view(HostArray)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)


class Plugin:
    """Registers the backend with the kernels that call libraries; each has its own class, so that instances share no caches."""

    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        register(NAME, type("HostBackend", (HostBackend,), {}))

    @hookimpl
    def cntk_register_kernels(self, register: RegisterKernel) -> None:
        for operator, kernel in kernels.OPERATORS.items():
            if calls_library(kernel):
                register(f"cntk.plugins.ops.{operator}", NAME, f"cntk.backends.cupy.{kernel}")


@contextmanager
def with_libraries(monkeypatch: pytest.MonkeyPatch, **standins: Any) -> Iterator[None]:
    """Context manager that replaces libraries by stand-ins, given by name; the others are missing."""

    with monkeypatch.context() as patched:
        patched.setattr(libraries, "load", loading(**standins))
        patched.setattr(libraries, "current_stream", lambda: lambda: STREAM)
        yield
    for standin in standins.values():
        assert standin.errors == [], standin.errors[0]


@contextmanager
def host_device() -> Iterator[DeviceDescriptor]:
    """Context manager that makes the device of such a backend the default device."""
    plugins.register_plugin(Plugin(), "host arrays")
    try:
        with default_device(device(NAME)):
            yield device(NAME)
    finally:
        plugins.unregister_plugin("host arrays")


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


def _flat(result: Any) -> Any:
    """Return an array, or those of several sequences, as one float64 array."""
    return np.concatenate([np.ravel(part) for part in result]).astype(float) if isinstance(result, list) else np.asarray(result, float)
