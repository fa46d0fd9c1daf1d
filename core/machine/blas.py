"""The BLAS that NumPy is linked with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

NAMES = ("scipy_{}64_", "{}64_", "scipy_{}", "{}")
"""How builds of OpenBLAS name their functions."""

PTHREADS = 1
"""What ``openblas_get_parallel`` returns for an OpenBLAS with threads of its own."""


class Blas(NamedTuple):
    """What is used of a BLAS.

    Attributes:
        get_threads: how many threads it shares a product between.
        library: where its functions are.
        name: how they are named.
    """

    get_threads: Callable[[], int]
    library: Any
    name: str

    def function(self, name: str) -> Any:
        """One of its functions; None if it has none of that name."""
        return getattr(self.library, self.name.format(name), None)


@lru_cache(maxsize=1)
def find() -> Blas | None:
    """The BLAS that NumPy is linked with; None if it is no OpenBLAS that can be looked into."""
    return look_up(ctypes.CDLL(np.linalg._umath_linalg.__file__))  # also finds what that is linked with


def look_up(library: Any) -> Blas | None:
    """A library's functions under one of the names in use; None if it has none."""
    for name in NAMES:
        get_threads = getattr(library, name.format("openblas_get_num_threads"), None)
        if get_threads is not None:
            return Blas(get_threads, library, name)
    return None


def on_one_thread(call: Callable[[], Any]) -> Callable[[], Any]:
    """A function that calls another one, of whose products threads share none.

    The threads of an OpenBLAS wait for one another by spinning: where other programs keep one from its processor, products that would take
    microseconds take as long as the others are given.
    """
    library = find()
    if library is None:
        return call
    parallel, set_threads = library.function("openblas_get_parallel"), library.function("openblas_set_num_threads")
    if parallel is None or set_threads is None or parallel() != PTHREADS:
        return call
    return partial(_on_one_thread, library.get_threads, set_threads, call)


def _on_one_thread(get_threads: Callable[[], int], set_threads: Callable[[int], None], call: Callable[[], Any]) -> None:
    threads = get_threads()
    if threads == 1:
        call()
        return
    set_threads(1)
    try:
        call()
    finally:
        set_threads(threads)
