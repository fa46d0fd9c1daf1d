"""The language of compiled loops: Python, and a few functions that differ from Python's, or exist at all, in compiled code only.

Nothing here imports Numba, which loops with cached machine code do not need.  Each compiler
reads :data:`overloads` before it compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Overload(NamedTuple):
    """The implementation of a function in compiled code.

    Attributes:
        function: the function that loops call.
        choose: from the types of the arguments returns the function that is compiled in its place.
        options: the compiler's options for it.
    """

    function: Function
    choose: Function
    options: dict[str, Any]


overloads: list[Overload] = []
"""All overloads."""


class Unread:
    """The overloads that a compiler has not registered yet; each compiler has one of these."""

    def __init__(self) -> None:
        self._read = 0

    def __iter__(self) -> Iterator[Overload]:
        while self._read < len(overloads):
            self._read += 1
            yield overloads[self._read - 1]


def overload_for(function: Function, **options: Any) -> Callable[[Function], Function]:
    """Decorates a function that chooses what is compiled for *function*, by the types of its arguments; *options* are the compiler's."""

    def register(choose: Function) -> Function:
        overloads.append(Overload(function, choose, options))
        return choose

    return register


def jittable(function: Function | None = None, **options: Any) -> Any:
    """Decorates a function that compiled code may call; *options* are the compiler's, such as ``fastmath``."""
    if function is None:
        return lambda function: jittable(function, **options)
    overloads.append(Overload(function, lambda *_: function, options))
    return function


def kind_of(x: Any) -> Any:
    """What a NumPy number is in place of its type in compiled code, so that Python can run what is chosen by that.

    >>> from cntk.core.machine.language import kind_of
    >>> kind_of(np.float32(1)).bitwidth
    32
    """
    return SimpleNamespace(bitwidth=8 * x.itemsize)


def lowered_in(module: str) -> Callable[[Function], Function]:
    """Decorates a declaration that only compiled code may call: the function of that name in *module*, beside it, generates LLVM code."""

    def declare(function: Function) -> Function:
        name, package = function.__name__, function.__module__.rpartition(".")[0]

        @wraps(function)
        def refuse(*_: Any) -> Any:
            raise NotImplementedError(f"{name} is called from compiled code only")

        def choose(*_: Any) -> Function:
            written = getattr(import_module(f".{module}", package), name)
            return lambda *arguments: written(*arguments)

        overloads.append(Overload(refuse, choose, {}))
        return refuse

    return declare


def prange(turns: int) -> range:
    """The iterations of a loop; in compiled code those of the piece that this thread does, one after another."""
    return range(turns)


def slot() -> int:
    """The number of the calling thread among those that share a call, the caller being 0; in compiled code, 0 elsewhere."""
    return 0


def share(code: int, arguments: int, helpers: int, is_offered: bool) -> None:
    """Have threads help with a loop, from one that runs on one thread; in compiled code only.

    Args:
        code, arguments: what :meth:`~cntk.core.machine.loops.Loop.callee` tells of the loop.
        helpers: at most so many.
        is_offered: whether those alone that look for work anyway are to help, as with a call of microseconds.
    """
    raise NotImplementedError("share is called from compiled code only")


def carray(pointer: Any, size: int) -> Any:
    """The flat array of *size* elements at an address; in compiled code only."""
    raise NotImplementedError("carray is called from compiled code only")


def copy_bytes(target: int, source: int, size: int) -> None:
    """Copy bytes from address to address; in compiled code only."""
    raise NotImplementedError("copy_bytes is called from compiled code only")
