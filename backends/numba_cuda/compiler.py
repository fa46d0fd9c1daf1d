"""Bodies of loops as CUDA kernels, with Numba's compiler for GPUs or its simulator.

The bodies are those of compiled loops, or written like them: in Python and :mod:`cntk.core.machine.language`.  A thread has every n-th turn
of their :func:`~cntk.core.machine.language.prange`, n being the number of threads, so results do not depend on the grid.  The numbers that
a body takes lie in the device's memory, so that the same launch can be repeated with others, in a CUDA graph too.
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
"""Threads of a block."""

FEWEST_BLOCKS, MOST_BLOCKS = 128, 2048
"""Blocks of a grid; Numba warns of fewer."""

SIMULATED_THREADS, SIMULATED_BLOCKS = 8, 2
"""The same for the simulator, to which each thread is one of Python's."""

NUMBERS = {"r": "{real}.dtype.type(numbers[{at}])", "d": "numbers[{at}]", "q": "np.int64(numbers[{at}])"}
"""How a body gets a number of a kind, by the letters of :mod:`cntk.core.machine.signatures`; all are float64 in memory."""

SIMULATED = is_simulated()
"""Whether Python runs kernels: Numba goes by it when it is imported."""

_simulating = ForkSafeLock()
_unread = language.Unread()


class Kernel:
    """A body as a CUDA kernel, compiled for each combination of element types when it is first launched with them.

    Args:
        body: the body; its arrays come before its numbers.
        signature: its arguments, in the letters of :mod:`cntk.core.machine.signatures`.
        by_blocks: whether a block of threads has a turn for itself, of which the body sees to it, and not a thread.
    """

    def __init__(self, body: Body, signature: str, by_blocks: bool = False) -> None:
        self.body, self.signature, self._by_blocks = body, signature, by_blocks

    @classmethod
    def of(cls, loop: Loop) -> Kernel:
        """The body of a loop for the CPU, whose signature has been told."""
        return cls(loop.function, loop.signature or "")

    def bound(self, turns: int, *arrays: Any) -> Launch:
        """What launches the kernel on these arrays, in the memory of the device.

        Args:
            turns: how many there are for the threads to share.
            arrays: the body's arrays, which must not be empty.
        """
        return Launch(self.launcher, _grid(turns, 1 if self._by_blocks else THREADS), arrays, len(self._numbers))

    @property
    def launcher(self) -> Any:
        """What Numba has made of the body."""
        with compiling:
            return _launcher(self.body, self.signature)

    @property
    def _numbers(self) -> list[str]:
        return [letter for letter in self.signature.split() if letter in NUMBERS]


class Launch:
    """A kernel with the arrays that it works on; called with the numbers that it takes, it launches the kernel on the current stream.

    Nothing waits for the device; the arrays must live until it has done its work, as those of a program do.
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

    def __call__(self, *numbers: float) -> None:
        if self._load is not None:
            self._load(np.array(numbers, np.float64))
        stream = _current_stream()
        launch = self._by_stream.get(stream)
        if launch is None:
            launch = self._by_stream[stream] = _configured(self._launcher, self._grid, stream, self._arguments)
        launch()


def once(held: Any, given: Sequence[Any], make: Callable[[], Any]) -> Any:
    """What has been bound to arrays: *held*, if it is bound to those that are *given*, else what is made now.

    Returns:
        the arrays and what is bound to them, to be given as *held* next time.
    """
    if held is not None and all(map(_is, held[0], given)):
        return held
    return given, make()


def flat(array: Any) -> Any:
    """A contiguous array with one axis, in the same memory."""
    return array.reshape(-1)


def backend_of(array: Any) -> Any:
    """The backend that an array is on."""
    return backend_named(BACKEND, 0 if SIMULATED else array.device.id)


def _is(one: Any, other: Any) -> bool:
    return one is other


# ---- what Numba makes of a body ----


@cache
def _launcher(body: Body, signature: str) -> Any:
    _register_overloads()
    names = {"body": _device_function(body), "np": np}
    exec(entry_text(signature.split()), names)
    return cuda.jit(names["entry"])


def entry_text(letters: Iterable[str]) -> str:
    """The source text of the kernel: the body called with its arrays, and the numbers out of memory in the types that it takes.

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
    """The body with a thread's turns in the place of all."""
    names = {name: _turns if value is language.prange else value for name, value in body.__globals__.items()}
    copied = FunctionType(body.__code__, names, body.__name__, body.__defaults__, body.__closure__)
    compiled = cuda.jit(device=True)(copied)
    return _silenced(compiled) if SIMULATED else compiled


@cuda.jit(device=True)
def _turns(count: Any) -> range:
    return range(cuda.grid(1), count, cuda.gridsize(1))


def _silenced(body: Body) -> Body:
    """The body without warnings of overflows and the like, of which each of the simulator's threads would have its own."""

    def run(*arguments: Any) -> None:
        with np.errstate(all="ignore"):
            body(*arguments)

    return run


def _register_overloads() -> None:
    """Let kernels call what has been noted since; Python calls these functions as they are."""
    if SIMULATED:
        return
    from numba.cuda.extending import overload

    for function, choose, options in _unread:
        overload(function, inline=options.get("inline", "never"), strict=False)(choose)


# ---- launching ----


def _grid(turns: int, turns_of_a_block: int) -> tuple[int, int]:
    """Numbers of blocks and of their threads."""
    blocks = -(-turns // turns_of_a_block)
    if SIMULATED:
        return min(max(blocks, 1), SIMULATED_BLOCKS), SIMULATED_THREADS
    return min(max(blocks, FEWEST_BLOCKS), MOST_BLOCKS), THREADS


def _argument(array: Any) -> Any:
    """What Numba takes for an array, in the same memory."""
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
    """What launches a kernel on the stream at an address; 0 is that of programs that use no others."""
    if SIMULATED:
        return partial(_simulate, launcher, grid, arguments)
    return partial(launcher[*grid, cuda.external_stream(stream) if stream else 0], *arguments)


def _simulate(launcher: Any, grid: tuple[int, int], arguments: Sequence[Any]) -> None:
    """Run a kernel; the simulator runs one at a time, and keeps one grid for each."""
    with _simulating:
        launcher[grid](*arguments)
