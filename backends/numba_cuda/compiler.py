"""Compilation of loop bodies to CUDA kernels, by Numba's CUDA compiler or its simulator.

Bodies are those of compiled loops, or are written like them: in Python and :mod:`cntk.core.machine.language`.  Of n threads, each takes
every n-th iteration of :func:`~cntk.core.machine.language.prange`, so that results do not depend on the grid.  The numbers that a body
takes are in device memory, so that a launch can be repeated with other numbers, also in a CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from types import FunctionType
from typing import Any

import numpy as np
from numba import cuda

from ...core.common.lock import ForkSafeLock
from ...core.extension.compiled import compiling
from ...core.extension.device import backend_named
from ...core.machine import language
from ...core.machine.loops import Loop
from . import BACKEND
from .availability import is_simulated

Body = Callable[..., None]

THREADS = 256
"""Threads per block."""

FEWEST_BLOCKS, MOST_BLOCKS = 128, 2048
"""Minimum and maximum grid size; Numba warns about smaller grids."""

SIMULATED_THREADS, SIMULATED_BLOCKS = 8, 2
"""Threads per block and blocks per grid in the simulator, where each thread is a Python thread."""

NUMBERS = {"r": "{real}.dtype.type(numbers[{at}])", "d": "numbers[{at}]", "q": "np.int64(numbers[{at}])"}
"""Conversions of a body's numbers from float64 by kind, in the letters of :mod:`cntk.core.machine.signatures`."""

SIMULATED = is_simulated()
"""Whether the simulator runs kernels, which Numba decides when it is imported."""

_simulating = ForkSafeLock()
_unread = language.Unread()


class Kernel:
    """A loop body as a CUDA kernel, compiled for each combination of element types on first launch.

    Args:
        body: the body, a function of arrays followed by numbers.
        signature: its arguments, in the letters of :mod:`cntk.core.machine.signatures`.
        by_blocks: whether an iteration is handled by a thread block, as the body implements, and not by a thread.
    """

    def __init__(self, body: Body, signature: str, by_blocks: bool = False) -> None:
        self.body, self.signature, self._by_blocks = body, signature, by_blocks

    @classmethod
    def of(cls, loop: Loop) -> Kernel:
        """Return a kernel with the body and the signature of a loop for the CPU."""
        return cls(loop.function, loop.signature or "")

    def bound(self, turns: int, *arrays: Any) -> Launch:
        """Return a launch of the kernel bound to device arrays.

        Args:
            turns: number of iterations, which are shared among the threads.
            arrays: the body's arrays, which must not be empty.
        """
        return Launch(self.launcher, _grid(turns, 1 if self._by_blocks else THREADS), arrays, len(self._numbers))

    @property
    def launcher(self) -> Any:
        """The body compiled by Numba."""
        with compiling:
            return _launcher(self.body, self.signature)

    @property
    def _numbers(self) -> list[str]:
        return [letter for letter in self.signature.split() if letter in NUMBERS]


class Launch:
    """A kernel bound to arrays; calling it with the kernel's numbers launches it on the current stream.

    The launch is asynchronous; the arrays must stay alive until it has completed, as those of a program do.
    """

    def __init__(self, launcher: Any, grid: tuple[int, int], arrays: Sequence[Any], numbers: int) -> None:
        self._launcher, self._grid, self._load = launcher, grid, None
        self._by_stream: dict[int, Callable[[], None]] = {}
        backend = backend_of(arrays[0])
        with backend.guard():
            self._arguments = [_argument(array) for array in arrays]
            if numbers:
                held = backend.empty((numbers,), np.float64)
                self._arguments.append(_argument(held))
                self._load = partial(backend.load, held)

    def replace_last(self, array: Any) -> None:
        """Bind another array in the place of the last one."""
        self._arguments[-1 if self._load is None else -2] = _argument(array)
        self._by_stream.clear()

    def __call__(self, *numbers: float) -> None:
        if self._load is not None:
            self._load(np.array(numbers, np.float64))
        stream = _current_stream()
        launch = self._by_stream.get(stream)
        if launch is None:
            launch = self._by_stream[stream] = _configured(self._launcher, self._grid, stream, self._arguments)
        launch()


def once(held: Any, given: Sequence[Any], make: Callable[[], Any]) -> Any:
    """Return *held* if it is bound to the *given* arrays, otherwise bind anew with *make*.

    Returns:
        The arrays and the object bound to them, to be passed as *held* next time.
    """
    if held is not None and all(map(_is, held[0], given)):
        return held
    return given, make()


def flat(array: Any) -> Any:
    """Return a flat view of a contiguous array."""
    return array.reshape(-1)


def backend_of(array: Any) -> Any:
    """Return the backend of an array."""
    return backend_named(BACKEND, 0 if SIMULATED else array.device.id)


def _is(one: Any, other: Any) -> bool:
    return one is other


# ---- compilation ----


@cache
def _launcher(body: Body, signature: str) -> Any:
    _register_overloads()
    names = {"body": _device_function(body), "np": np}
    exec(entry_text(signature.split()), names)
    return cuda.jit(names["entry"])


def entry_text(letters: Iterable[str]) -> str:
    """Return the source of the kernel's entry, which calls the body with its arrays and with numbers read from memory and converted.
    >>> from cntk.backends.numba_cuda.compiler import entry_text
    >>> print(entry_text(["R1", "R1", "r"]))
    def entry(a0, a1, numbers):
        body(a0, a1, a0.dtype.type(numbers[0]))
    """
    letters = list(letters)
    arrays = [f"a{i}" for i, letter in enumerate(letters) if letter not in NUMBERS]
    numbers = [letter for letter in letters if letter in NUMBERS]
    real = next((f"a{i}" for i, letter in enumerate(letters) if letter[0] == "R"), "")
    values = [NUMBERS[letter].format(real=real, at=at) for at, letter in enumerate(numbers)]
    parameters = [*arrays, "numbers"] if numbers else arrays
    return f"def entry({', '.join(parameters)}):\n    body({', '.join([*arrays, *values])})"


def _device_function(body: Any) -> Any:
    """Return the body as a device function that runs the iterations of one thread."""
    names = {name: _turns if value is language.prange else value for name, value in body.__globals__.items()}
    copied = FunctionType(body.__code__, names, body.__name__, body.__defaults__, body.__closure__)
    compiled = cuda.jit(device=True)(copied)
    return _silenced(compiled) if SIMULATED else compiled


@cuda.jit(device=True)
def _turns(count: Any) -> range:
    return range(cuda.grid(1), count, cuda.gridsize(1))


def _silenced(body: Body) -> Body:
    """Return the body with floating-point warnings disabled, which each thread of the simulator would otherwise raise."""

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            body(*arguments)

    return run


def _register_overloads() -> None:
    """Register overloads noted since the last call, so that kernels can call them; Python calls these functions directly."""
    if SIMULATED:
        return
    from numba.cuda.extending import overload

    for function, choose, options in _unread:
        overload(function, inline=options.get("inline", "never"), strict=False)(choose)


# ---- launching ----


def _grid(turns: int, turns_of_a_block: int) -> tuple[int, int]:
    """Return the number of blocks and the number of threads per block."""
    blocks = -(-turns // turns_of_a_block)
    if SIMULATED:
        return min(max(blocks, 1), SIMULATED_BLOCKS), SIMULATED_THREADS
    return min(max(blocks, FEWEST_BLOCKS), MOST_BLOCKS), THREADS


def _argument(array: Any) -> Any:
    """Return a Numba array that shares an array's memory."""
    if SIMULATED:
        from numba.cuda.cudadrv.devicearray import FakeCUDAArray

        return FakeCUDAArray(array)
    return cuda.as_cuda_array(array, sync=False)


def _current_stream() -> int:
    if SIMULATED:
        return 0
    import cupy

    return int(cupy.cuda.get_current_stream().ptr)


def _configured(launcher: Any, grid: tuple[int, int], stream: int, arguments: Sequence[Any]) -> Callable[[], None]:
    """Return a function that launches a kernel on the stream with this pointer; 0 is the default stream."""
    if SIMULATED:
        return partial(_simulate, launcher, grid, arguments)
    return partial(launcher[*grid, cuda.external_stream(stream) if stream else 0], *arguments)


def _simulate(launcher: Any, grid: tuple[int, int], arguments: Sequence[Any]) -> None:
    """Run a kernel in the simulator, which runs one at a time and keeps one grid for each."""
    with _simulating:
        launcher[grid](*arguments)
