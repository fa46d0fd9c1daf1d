"""Base of stand-ins for C libraries: functions are called like C functions, record their calls, and are implemented in Python.

Arguments passed by address are read and written in host memory.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, c_int, c_uint8, c_void_p
from typing import Any

import numpy as np

FAILED = 14
"""Status returned by a function that has raised an exception."""


OF_LIBRARIES = ("convolution", "pooling", "products", "rnnstack")
"""Modules of the backend ``cupy`` whose kernels call libraries."""


def calls_library(kernel: str) -> bool:
    """Whether a kernel, given by its import string, calls a library."""
    return kernel.partition(":")[0].rpartition(".")[2] in OF_LIBRARIES


class Refused(Exception):
    """Raised by a function that refuses its arguments.

    Args:
        status: the status that the function returns.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class StandIn:
    """Base class of stand-ins for libraries.

    Args:
        signatures: argument types of each function; a subclass has a method for each.

    Attributes:
        launches: names of the functions that enqueue work on the device.
        hand_over: function to which this work is passed; by default it runs the work immediately.
        calls: names and arguments of the functions that were called.
        objects: objects by handle.
        errors: exceptions raised in functions, for tests to check.
    """

    launches: tuple[str, ...] = ()

    def __init__(self, signatures: Mapping[str, tuple[Any, ...]]) -> None:
        self.hand_over: Callable[[Callable[[], Any]], None] = lambda do: do()
        self.calls: list[tuple[str, tuple[Any, ...]]] = []
        self.objects: dict[int, Any] = {}
        self.errors: list[str] = []
        for name, types in signatures.items():
            setattr(self, name, CFUNCTYPE(c_int, *types)(self._noting(name, getattr(self, f"on_{name}"))))

    def _noting(self, name: str, function: Callable[..., int | None]) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append((name, arguments))
            try:
                if name in self.launches:
                    self.hand_over(lambda: function(*arguments))
                else:
                    function(*arguments)
            except Refused as refusal:
                return refusal.status
            except BaseException:
                self.errors.append(traceback.format_exc())
                return FAILED
            return 0

        return call

    def named(self, name: str) -> list[tuple[Any, ...]]:
        """Return the arguments of each call of a function."""
        return [arguments for called, arguments in self.calls if called == name]

    def handle(self, target: Any, made: Any) -> None:
        """Create a handle for a new object and write it to an address."""
        handle = 0x1000 + 0x10 * (len(self.objects) + 1)
        self.objects[handle] = made
        target[0] = c_void_p(handle)

    def forget(self, handle: int) -> None:
        """Destroy the object of a handle; the handle is not reused."""
        assert self.objects[handle] is not None
        self.objects[handle] = None


class Version:
    """A function that reports a version."""

    def __init__(self, version: int) -> None:
        self._version = version
        self.restype: Any = None

    def __call__(self) -> int:
        return self._version


class Names:
    """A function that names a status."""

    argtypes: Any = None
    restype: Any = None

    def __init__(self, names: Mapping[int, bytes]) -> None:
        self._names = names

    def __call__(self, status: int) -> bytes | None:
        return self._names.get(status)


def read(address: int, kind: Any) -> Any:
    """Return the value at an address."""
    return kind.from_address(address).value


def numbers_at(address: int, kind: Any, count: int) -> list[Any]:
    """Return *count* values starting at an address."""
    return list((kind * count).from_address(address))


def memory(address: int, nbytes: int) -> Any:
    """Return the bytes starting at an address, as a uint8 array that shares the memory."""
    return np.ctypeslib.as_array(ctypes.cast(address, POINTER(c_uint8)), (nbytes,))


def strided(address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """Return a view of the memory at an address as an array; strides are in elements."""
    size = 1 + sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True))
    if not all(shape):
        return np.empty(shape, dtype)
    itemsize = np.dtype(dtype).itemsize
    flat = memory(address, size * itemsize).view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(stride * itemsize for stride in strides))
