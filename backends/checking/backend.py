"""NumPy as a backend that is full of NaN: whoever reads what nobody has written, or writes where nobody expects it, is found out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..numpy.backend import NumpyBackend
from .checks import Checks, poison


class CheckingBackend(NumpyBackend):
    """Arrays in the host's memory, which begins as NaN; operators compute by their own methods, whose promises are checked."""

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
