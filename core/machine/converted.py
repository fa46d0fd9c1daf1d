"""Loops for arguments of kinds that there is no machine code for, where none can be compiled: arrays are copied to kinds that there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy import ndarray


class Code(Protocol):
    """A loop's machine code for arguments of some kinds."""

    def run(self, threads: int, arguments: Sequence[Any]) -> bool: ...


class Converted:
    """Runs code on copies of arrays, and copies back what it has changed.

    Args:
        code: what is run.
        kinds: those of its arguments.
    """

    def __init__(self, code: Code, kinds: Sequence[str]) -> None:
        self._code = code
        self._dtypes = [np.dtype(kind.split(":")[0]) if ":" in kind else None for kind in kinds]

    def run(self, threads: int, arguments: Sequence[Any]) -> bool:
        """Run it, and tell whether that went well.

        Raises:
            OverflowError: a whole number is too large for the code.
        """
        copies: dict[Any, tuple[Any, Any, Any]] = {}  # arrays that are one stay one
        given = []
        for argument, dtype in zip(arguments, self._dtypes, strict=True):
            if not isinstance(argument, ndarray):
                given.append(argument)
                continue
            place = argument.__array_interface__["data"][0], argument.shape, argument.strides
            if place not in copies:
                copied = _copy(argument, dtype)
                copies[place] = argument, copied, copied.copy()
            given.append(copies[place][1])
        succeeded = self._code.run(threads, given)
        for argument, copied, before in copies.values():
            changed = copied != before
            if changed.any():
                np.copyto(argument, copied, where=changed, casting="same_kind")
        return succeeded

    def bound_alone(self, arguments: Sequence[Any], failure: Callable[[], RuntimeError]) -> Callable[[], None]:
        """A function that runs it with these arguments on the calling thread, and raises *failure* where it fails."""

        def call() -> None:
            if not self.run(1, arguments):
                raise failure()

        return call

    def bound_shared(
        self, arguments: Sequence[Any], failure: Callable[[], RuntimeError], threads: Callable[[], int], is_offered: bool
    ) -> Callable[[], None]:
        """The same on so many threads; those that look for work are offered nothing."""

        def call() -> None:
            if not self.run(1 if is_offered else threads(), arguments):
                raise failure()

        return call


def can_convert(kinds: Sequence[str], others: Sequence[str]) -> bool:
    """Whether arguments of some kinds become such of others: arrays of as many axes, of the same type or both of whole numbers."""
    return len(kinds) == len(others) and all(map(_becomes, kinds, others))


def _becomes(kind: str, other: str) -> bool:
    if ":" not in kind or ":" not in other:
        return kind == other or (kind, other) == ("?", "q")
    (dtype, axes, _), (wanted, as_many, _) = kind.split(":"), other.split(":")
    return axes == as_many and (dtype == wanted or np.dtype(dtype).kind == np.dtype(wanted).kind == "i")


def _copy(array: Any, dtype: Any) -> Any:
    copied = np.array(array, dtype, order="C", ndmin=array.ndim)
    if copied.dtype != array.dtype and not np.array_equal(copied, array):
        raise OverflowError(f"an index of {array.dtype} is too large for loops of {dtype}, and no Numba is there to compile others")
    return copied
