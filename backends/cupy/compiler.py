"""Compilation and launching of CUDA C++ kernels: compiled once by NVRTC, bound to arrays once, then only launched.

CuPy caches the compiled kernels on disk by source, options and GPU architecture, so that other processes find them there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

OPTIONS = ("-std=c++17", "--fmad=false")
"""Compiler options. Without fused multiply-add, element-wise kernels that call no function match NumPy to the bit."""

THREADS = 256
"""Threads per block."""

BLOCKS = 4
"""Minimum number of resident blocks per multiprocessor, in kernels that specify one; otherwise the compiler may limit registers for
more blocks and spill some to memory."""

MOST_BLOCKS = 2048
"""Maximum grid size of kernels with grid-stride loops: several blocks for each multiprocessor of a large GPU."""


SHARED_BY_DEFAULT = 48 << 10
"""Bytes of shared memory that a block may have without the kernel asking for more."""


class Kernel:
    """A compiled kernel.

    Args:
        text: CUDA C++ source with ``extern "C"`` kernels.
        name: name of the kernel in the source.
        together: whether blocks wait for each other; the launch is then cooperative, and fails if not all blocks fit on the device.
    """

    def __init__(self, text: str, name: str, together: bool = False) -> None:
        import cupy

        self.text, self.name = text, name
        self._function = cupy.RawModule(code=text, options=OPTIONS, enable_cooperative_groups=together).get_function(name)
        self._most_shared = SHARED_BY_DEFAULT

    def bound(self, grid: int | Sequence[int], block: int | Sequence[int], *arguments: Any, shared: int = 0) -> Callable[[], None]:
        """Return a function that launches the kernel with these arguments on the current stream.

        The addresses of the arrays are bound here; the function holds references to the arrays.

        Args:
            grid: number of blocks, along up to three axes; nothing is launched if one is 0.
            block: number of threads per block, along up to three axes.
            arguments: device arrays, None for a null pointer, and NumPy scalars of the kernel's parameter types.
            shared: bytes of dynamic shared memory.
        """
        blocks, threads = _sizes(grid), _sizes(block)
        if 0 in blocks:
            return _nothing
        if shared > self._most_shared:
            self._function.max_dynamic_shared_size_bytes = self._most_shared = shared
        launch = Launch(self._function, blocks, threads, tuple(map(_packed, arguments)), shared_mem=shared)
        launch.arrays = arguments
        return launch


class Launch(partial[None]):
    """A kernel launch that keeps alive the arrays whose addresses it passes."""

    arrays: tuple[Any, ...]


@cache
def compile(text: str, name: str, together: bool = False) -> Kernel:
    """Return the kernel *name* of the source *text*, compiled on first use.

    Args:
        text: the source.
        name: name of the kernel in the source.
        together: whether its blocks wait for each other.

    Raises:
        RuntimeError: NVRTC cannot compile the source; the message is CuPy's.
    """
    return Kernel(text, name, together)


def blocks_for(count: int) -> int:
    """Return the grid size for a grid-stride loop over *count* elements, one element per thread at a time."""
    return min(-(-count // THREADS), MOST_BLOCKS)


def index_type(count: int) -> Any:
    """Return the NumPy type for indices of *count* elements; :data:`INDEX_NAMES` maps it to C."""
    return np.uint32 if count < 2**31 else np.uint64


INDEX_NAMES = {np.uint32: "unsigned int", np.uint64: "unsigned long long"}
"""C types of indices by NumPy type."""


def _sizes(given: int | Sequence[int]) -> tuple[int, ...]:
    return (given,) if isinstance(given, int) else tuple(given)


def _packed(argument: Any) -> Any:
    if argument is None:
        return np.uintp(0)
    return argument if isinstance(argument, np.generic) else np.uintp(argument.data.ptr)


def _nothing() -> None:
    return None
