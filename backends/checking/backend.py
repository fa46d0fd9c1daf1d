"""NumPy as a backend whose memory begins as NaN, which shows when an operator reads unwritten memory or writes memory not its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..numpy.backend import NumpyBackend
from .checks import Checks, poison


class CheckingBackend(NumpyBackend):
    """Arrays in the host's memory, which begins as NaN; operators compute by their own methods, and their declarations are checked."""

    name = "checking"
    passes = (Checks(),)
    for_tests = True

    def describe(self) -> str:
        return f"{super().describe()}, with checks"

    def allocate(self, nbytes: int) -> Any:
        memory = super().allocate(nbytes)
        poison(memory)
        return memory

    def empty(self, shape: Sequence[int], dtype: Any) -> Any:
        array = super().empty(shape, dtype)
        poison(array)
        return array
