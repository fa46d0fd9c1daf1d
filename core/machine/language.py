"""What compiled loops are written in: Python, and a few functions that mean more, or anything at all, in compiled code only.

Nothing here imports Numba, since loops whose machine code is kept do without.  What has been noted here, compilers look up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from importlib import import_module
from types import SimpleNamespace
from typing import Any, NamedTuple

Function = Callable[..., Any]


class Overload(NamedTuple):
    """What a function is in compiled code.

    Attributes:
        function: what is called.
        choose: given the types of the arguments returns what is compiled in its place.
        options: how that is compiled.
    """

    function: Function
    choose: Function
    options: dict[str, Any]


overloads: list[Overload] = []
"""All that have been noted."""


class Unread:
    """What has been noted since a compiler went through it last; each compiler has one of these."""

    def __init__(self) -> None:
        self._read = 0

    def __iter__(self) -> Iterator[Overload]:
        while self._read < len(overloads):
            self._read += 1
            yield overloads[self._read - 1]


def means(function: Function, **options: Any) -> Callable[[Function], Function]:
    """Notes what stands for a function in compiled code, by the types of its arguments."""

    def note(choose: Function) -> Function:
        overloads.append(Overload(function, choose, options))
        return choose

    return note


def helper(function: Function | None = None, **options: Any) -> Any:
    """Lets compiled code call a function; *options* are the compiler's, such as ``fastmath``."""
    if function is None:
        return lambda function: helper(function, **options)
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
    """Lets compiled code call a function that a module beside it writes in LLVM's code, under the same name; nothing else can."""

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
    """The turns of a loop; in compiled code those of them that are this thread's, one after another."""
    return range(turns)


def carray(pointer: Any, size: int) -> Any:
    """The flat array of *size* elements at an address; in compiled code only."""
    raise NotImplementedError("carray is called from compiled code only")


def copy_bytes(target: int, source: int, size: int) -> None:
    """Copy bytes from address to address; in compiled code only."""
    raise NotImplementedError("copy_bytes is called from compiled code only")
