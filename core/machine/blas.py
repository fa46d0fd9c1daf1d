"""The BLAS that NumPy is linked with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

NAMES = ("scipy_{}64_", "{}64_", "scipy_{}", "{}")
"""How builds of OpenBLAS name their functions."""

PTHREADS = 1
"""What ``openblas_get_parallel`` returns for an OpenBLAS with threads of its own."""


WITH_SMALL_PRODUCTS = (b"SkylakeX", b"Cooperlake", b"SapphireRapids")
"""What ``openblas_get_corename`` returns for processors with vectors of 512 bits."""


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


@lru_cache(maxsize=1)
def shares_small_products() -> bool:
    """Whether it is an OpenBLAS with threads of its own, which also share products that take no longer than to wait for one another.

    With the widest vectors it has code for small products that shares none.
    """
    library = find()
    parallel, name_of_code = (None, None) if library is None else map(library.function, ("openblas_get_parallel", "openblas_get_corename"))
    if parallel is None or name_of_code is None or parallel() != PTHREADS:
        return False
    name_of_code.restype = ctypes.c_char_p
    return name_of_code() not in WITH_SMALL_PRODUCTS
