"""A library in C that is not there: functions are called as C's are, note what they are called with, and are written in Python.

What comes by address is read and written in the host's memory.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Callable, Mapping
from ctypes import CFUNCTYPE, POINTER, c_int, c_uint8, c_void_p
from typing import Any

import numpy as np

FAILED = 14
"""The status of a function that has raised an error."""


OF_LIBRARIES = ("batch_normalization", "convolution", "pooling", "products", "rnnstack")
"""Modules of the backend ``cupy`` whose kernels call libraries, and launch none of their own."""


def calls_library(kernel: str) -> bool:
    """Whether a kernel, by its import string, calls a library."""
    return kernel.partition(":")[0].rpartition(".")[2] in OF_LIBRARIES


class Refused(Exception):
    """A function refuses its arguments.

    Args:
        status: the status that it returns.
    """

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class StandIn:
    """The base of such libraries.

    Args:
        signatures: types of the arguments of each function, for which a subclass has a method.

    Attributes:
        launches: names of the functions that give work to the device.
        hand_over: what is given the work, and does it at once, if it is not told otherwise.
        calls: names of the functions that were called, with their arguments.
        objects: what is behind each handle.
        errors: what went wrong in functions, for tests to look at.
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
        """The arguments of each call of a function."""
        return [arguments for called, arguments in self.calls if called == name]

    def handle(self, target: Any, made: Any) -> None:
        """Write a handle of something new to an address."""
        handle = 0x1000 + 0x10 * (len(self.objects) + 1)
        self.objects[handle] = made
        target[0] = c_void_p(handle)

    def forget(self, handle: int) -> None:
        """Destroy what is behind a handle; the handle stays used up."""
        assert self.objects[handle] is not None
        self.objects[handle] = None


class Version:
    """A function that tells a version."""

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
    """The value at an address."""
    return kind.from_address(address).value


def numbers_at(address: int, kind: Any, count: int) -> list[Any]:
    """So many values from an address on."""
    return list((kind * count).from_address(address))


def memory(address: int, nbytes: int) -> Any:
    """The bytes from an address on, as an array of uint8 that shares them."""
    return np.ctypeslib.as_array(ctypes.cast(address, POINTER(c_uint8)), (nbytes,))


def strided(address: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
    """An array in memory; strides are in elements."""
    size = 1 + sum((dim - 1) * stride for dim, stride in zip(shape, strides, strict=True))
    if not all(shape):
        return np.empty(shape, dtype)
    itemsize = np.dtype(dtype).itemsize
    flat = memory(address, size * itemsize).view(dtype)
    return np.lib.stride_tricks.as_strided(flat, shape, tuple(stride * itemsize for stride in strides))
