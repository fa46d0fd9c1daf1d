"""CUDA C++ texts and their kernels: compiled by NVRTC once, bound to arrays once, and then only launched.

CuPy keeps what NVRTC makes in its folder of kernels, by text, options and processor, so that other processes find it there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

OPTIONS = ("-std=c++17", "--fmad=false")
"""No product is joined with a sum, so that element-wise kernels compute what NumPy does, to the bit where they call no function."""

THREADS = 256
"""Threads of a block."""

BLOCKS = 4
"""Blocks that a multiprocessor is to have at least, where texts say so: the compiler may otherwise save registers for more, and keep
some in memory."""

MOST_BLOCKS = 2048
"""Blocks of kernels whose threads go on to further elements: some for each of a large GPU's multiprocessors."""


class Kernel:
    """A kernel of a text.

    Args:
        text: the text, CUDA C++ with ``extern "C"`` kernels.
        name: the kernel's name in it.
        together: whether blocks wait for each other: the driver then refuses a launch of more than there is room for at once.
    """

    def __init__(self, text: str, name: str, together: bool = False) -> None:
        import cupy

        self.text, self.name = text, name
        self._function = cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=together).get_function(name)

    def bound(self, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, shared: int = 0) -> Callable[[], None]:
        """A function that launches the kernel with these arguments on the stream that is current whenever it is called.

        The arrays' places are noted here, and the function keeps the arrays.

        Args:
            grid: how many blocks, or how many along up to three axes; nothing is launched where one is 0.
            block: how many threads a block has, likewise.
            arguments: arrays of the device, None for no array, and NumPy's scalars of the types that the kernel takes.
            shared: bytes of dynamic shared memory.
        """
        blocks, threads = _sizes(grid), _sizes(block)
        if 0 in blocks:
            return _nothing
        launch = Launch(self._function, blocks, threads, tuple(map(_packed, arguments)), shared_mem=shared)
        launch.arrays = arguments
        return launch


class Launch(partial[None]):
    """A launch of a kernel, which keeps the arrays that the kernel is given the places of."""

    arrays: tuple[Any, ...]


@cache
def compile(text: str, name: str, together: bool = False) -> Kernel:
    """The kernel called *name* of a text, compiled when it is first asked for.

    Args:
        text: the text.
        name: the kernel's name in it.
        together: whether its blocks wait for each other.

    Raises:
        RuntimeError: NVRTC refuses the text; the message is CuPy's.
    """
    return Kernel(text, name, together)


def blocks_for(count: int) -> int:
    """How many blocks go through *count* elements, one element for each thread at a time."""
    return min(-(-count // THREADS), MOST_BLOCKS)


def index_type(count: int) -> Any:
    """The type of indices of *count* elements: NumPy's, which :data:`INDEX_NAMES` has in C."""
    return np.uint32 if count < 2**31 else np.uint64


INDEX_NAMES = {np.uint32: "unsigned int", np.uint64: "unsigned long long"}
"""Types of indices in C."""


def _sizes(given: int | Sequence[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


def _packed(argument: Any) -> Any:
    if argument is None:
        return np.uintp(0)
    return argument if isinstance(argument, np.generic) else np.uintp(argument.data.ptr)


def _nothing() -> None:
    return None
