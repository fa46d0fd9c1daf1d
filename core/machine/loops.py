"""Compiled loops, whose iterations are divided among threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from struct import Struct
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from ..common.threads import max_threads
from ..common.thresholds import thresholds
from ..extension.compiled import Unusable, compiling
from . import self_check
from .converted import Converted, can_convert
from .language import prange
from .signatures import kinds_of

self_check.require()  # what follows needs LLVM

from .machine_code import address_of  # noqa: E402
from .pool import Way, pool  # noqa: E402
from .pool import threads_available as threads_available  # noqa: E402

FAILED = b"\1"

UNLIMITED = 1 << 30
"""Threads that are more than there are."""


class Callee(NamedTuple):
    """A loop that another one calls.

    Attributes:
        code, arguments: addresses of its machine code, and of its arguments.
        row: where these lie, which has to live as long as it is called.
    """

    code: int
    arguments: int
    row: Any


class Native(NamedTuple):
    """A bound loop as machine code calls it.

    Attributes:
        way: tells the function that is called as long as there are as many threads, and what it is called with.
        row: its arguments, which say whether it has failed.
        failure: makes the error that tells of it.
    """

    way: Callable[[], Way]
    row: Any
    failure: Callable[[], RuntimeError]


class Loop:
    """A loop over :func:`~cntk.core.machine.language.prange`, compiled when it is first called with arguments of some types.

    Each thread runs the whole function, with some of the loop's iterations.  So the function may have one such loop, of independent
    iterations, and beside it only what all threads may do at the same time.  A function without such a loop is run by one thread.
    Machine code is cached on disk.

    Args:
        function: what to compile, written in Python and :mod:`~cntk.core.machine.language`.
        signature: the arguments that it is compiled for in advance, in the letters of :mod:`.signatures`; None for no arguments.
        takes_long: whether it takes so long to compile that it comes first.
    """

    def __init__(self, function: Callable[..., None], signature: str | None = None, takes_long: bool = False) -> None:
        self.function, self.signature, self.takes_long = function, signature, takes_long
        self._is_parallel = any(function.__globals__.get(name) is prange for name in function.__code__.co_names)
        self._compiled: dict[Any, _Compiled | Converted] = {}

    def __call__(self, size: int, *arguments: Any) -> None:
        """Run the loop, by several threads where it goes through enough elements.

        Args:
            size: number of elements.
            arguments: of the function.
        """
        self.run(size >= thresholds.elements_shared, *arguments)

    def run(self, shared: bool, *arguments: Any, most: int = UNLIMITED) -> None:
        """Run the loop, by several threads if it is to be *shared* and they can.

        Args:
            arguments: of the function: arrays, numbers and tuples of whole numbers.
            most: threads, where each needs memory of its own.

        Raises:
            TypeError: the loop cannot be compiled for such arguments.
            ImportError: there is no machine code for such arguments, and no Numba that compiles loops.
            RuntimeError: it failed.
        """
        if not self._for(arguments).run(self._threads(shared, most), arguments):
            raise self._failure()

    def bound(self, shared: bool, *arguments: Any, most: int = UNLIMITED, offered: bool = False) -> Callable[[], None]:
        """A function that runs the loop with these arguments, as :meth:`run` would; for calls that are repeated.

        It must not be called by several threads at a time.

        Args:
            offered: whether threads that look for work anyway help where it is not shared.
        """
        code = self._for(arguments)
        if not ((shared or offered) and self._is_parallel):
            return code.bound_alone(arguments, self._failure)
        return code.bound_shared(arguments, self._failure, partial(self._threads, True, most), is_offered=not shared)

    def callee(self, *arguments: Any) -> Callee:
        """What another loop needs to :func:`~cntk.core.machine.language.share` this one, with these arguments, again and again."""
        code = self._for(arguments)
        if isinstance(code, Converted):
            raise TypeError(f"loop '{self.function.__qualname__}' is called by another, and takes arguments as it was compiled for alone")
        return code.callee(arguments)

    def kinds(self, is_double: bool) -> list[str]:
        """The kinds of arguments that the loop is compiled for in advance.

        Args:
            is_double: for float64 in place of float32.

        Raises:
            ValueError: the loop has no signature.
        """
        if self.signature is None:
            raise ValueError(f"loop '{self.function.__qualname__}' has no signature, so it is compiled only when it is called")
        return kinds_of(self.signature, is_double)

    def _threads(self, shared: bool, most: int) -> int:
        threads = min(max_threads(), most) if shared and self._is_parallel else 1
        return threads if threads > 1 and threads_available() else 1

    def _failure(self) -> RuntimeError:
        return RuntimeError(f"compiled loop '{self.function.__name__}' failed: out of memory, or arrays whose shapes do not match")

    def _for(self, arguments: Sequence[Any]) -> _Compiled | Converted:
        """The code for such arguments, compiled now or earlier."""
        key = tuple([
            (a.dtype, a.ndim, a.flags.c_contiguous) if isinstance(a, ndarray) else len(a) if isinstance(a, tuple) else type(a)
            for a in arguments
        ])  # fmt: skip
        return self._compiled.get(key) or self._compile(key, arguments)

    def _compile(self, key: Any, arguments: Sequence[Any]) -> _Compiled | Converted:
        kinds = [_kind(argument) for argument in arguments]
        with compiling:
            if key not in self._compiled:
                self._compiled[key] = self._made_for(kinds)
            return self._compiled[key]

    def _made_for(self, kinds: Sequence[str]) -> _Compiled | Converted:
        """The code for arguments of some kinds, or code for others that they can be converted to."""
        try:
            return _Compiled(address_of(self.function, kinds), kinds)
        except Unusable:
            for known in [] if self.signature is None else map(self.kinds, (False, True)):
                if can_convert(kinds, known):
                    return Converted(_Compiled(address_of(self.function, known), known), known)
            raise


def loop(signature: str, takes_long: bool = False) -> Callable[[Callable[..., None]], Loop]:
    """A decorator that makes a :class:`Loop` of a function; its arguments are those of the class."""
    return lambda function: Loop(function, signature, takes_long)


def _kind(argument: Any) -> str:
    """The kind of an argument, which decides what code is needed for it."""
    if isinstance(argument, ndarray):
        return f"{argument.dtype.str}:{argument.ndim}:{'C' if argument.flags.c_contiguous else 'A'}"
    if isinstance(argument, tuple):
        return f"({len(argument)})"
    for kind, types in (("?", (bool, np.bool_)), ("q", (int, np.integer)), ("f", np.float32), ("d", float)):
        if isinstance(argument, types):
            return kind
    raise TypeError(f"compiled loops take arrays, numbers and tuples of whole numbers, not a {type(argument).__name__}")


class _Compiled:
    """A loop's machine code for arguments of some kinds."""

    def __init__(self, address: int, kinds: Sequence[str]) -> None:
        words = ["P" if ":" in kind else "d" if kind in ("d", "f") else "q" * int(kind[1:-1]) if kind[0] == "(" else "q" for kind in kinds]
        self._struct = Struct("q" + "".join(words))
        self._has_tuples = any(kind[0] == "(" for kind in kinds)
        self._address, self._alone = address, ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        self._rows: list[Any] = []

    def run(self, threads: int, arguments: Sequence[Any]) -> bool:
        """Run it, and tell whether it succeeded."""
        try:
            row = self._rows.pop()
        except IndexError:
            row = ctypes.create_string_buffer(self._struct.size)
        self._pack(row, arguments)
        succeeded = self._run(row, threads)
        self._rows.append(row)
        return succeeded

    def bound_alone(self, arguments: Sequence[Any], failure: Callable[[], RuntimeError]) -> Callable[[], None]:
        """A function that runs it with these arguments on the calling thread, and raises *failure* where it fails."""
        row, run = self._row(arguments), self._alone

        def call() -> None:
            run(row)
            if row[0] == FAILED:
                row[0] = 0
                raise failure()

        call.natives = (Native(lambda: (run, row), row, failure),)  # type: ignore[attr-defined]
        return call

    def bound_shared(
        self, arguments: Sequence[Any], failure: Callable[[], RuntimeError], threads: Callable[[], int], is_offered: bool
    ) -> Callable[[], None]:
        """The same on so many threads, or offered to those that look for work."""
        row, known = self._row(arguments), 0
        run: Callable[[Any], None] = self._alone
        argument = row

        def way() -> Way:
            number = threads()
            return (pool().offered if is_offered else pool().shared)(self._address, row, number) if number > 1 else (self._alone, row)

        def call() -> None:
            nonlocal known, run, argument
            if known != max_threads():
                known = max_threads()
                run, argument = way()
            run(argument)
            if row[0] == FAILED:
                row[0] = 0
                raise failure()

        call.natives = (Native(way, row, failure),)  # type: ignore[attr-defined]
        return call

    def callee(self, arguments: Sequence[Any]) -> Callee:
        """What calls it from another loop with these arguments."""
        row = self._row(arguments)
        return Callee(self._address, ctypes.addressof(row), row)

    def _row(self, arguments: Sequence[Any]) -> Any:
        """The arguments in memory, as the machine code finds them."""
        row = ctypes.create_string_buffer(self._struct.size)
        row.arguments = arguments  # type: ignore[attr-defined]  # the row refers to them by their addresses
        self._pack(row, arguments)
        return row

    def _pack(self, row: Any, arguments: Sequence[Any]) -> None:
        values = [id(argument) if isinstance(argument, ndarray) else argument for argument in arguments]
        if self._has_tuples:
            values = [number for value in values for number in (value if type(value) is tuple else (value,))]
        self._struct.pack_into(row, 0, 0, *values)

    def _run(self, row: Any, threads: int) -> bool:
        if threads > 1:
            pool().share(self._address, row, threads)
        else:
            self._alone(row)
        if row[0] == FAILED:
            row[0] = 0
            return False
        return True
