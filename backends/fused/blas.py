"""The matrix product of NumPy's BLAS, for loops that Numba compiles.

Each of a loop's threads calls it for itself, so the BLAS must not start threads of its own meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from ...core.lock import Lock
from .language import means
from .pieces import address

NAMES = ("scipy_{}64_", "{}64_", "scipy_{}", "{}")
"""How builds of OpenBLAS name their functions: those with 64 in the name take integers of 64 bits."""

FUNCTIONS = ("cblas_sgemm", "cblas_dgemm", "openblas_get_num_threads", "openblas_set_num_threads")

Matrix = tuple[Any, int]
"""A flat contiguous array, and the place in it where a matrix begins."""

ROW_MAJOR, PLAIN, TRANSPOSED = 101, 111, 112


class Blas(NamedTuple):
    """What is used of a BLAS.

    Attributes:
        wide: whether its integers have 64 bits.
        sgemm, dgemm: addresses of its products.
        get_threads, set_threads: how many threads it shares a product between.
        library: where they are.
        name: how its functions are named.
    """

    wide: bool
    sgemm: int
    dgemm: int
    get_threads: Callable[[], int]
    set_threads: Callable[[int], None]
    library: Any
    name: str

    def function(self, name: str) -> Any:
        """Another of its functions; None if it has none of that name."""
        return getattr(self.library, self.name.format(name), None)


@lru_cache(maxsize=1)
def find() -> Blas | None:
    """The BLAS that NumPy is linked with; None if it is no OpenBLAS that can be looked into."""
    return look_up(ctypes.CDLL(np.linalg._umath_linalg.__file__))  # also finds what that is linked with


def found() -> Blas:
    """The BLAS, where it is known that there is one."""
    library = find()
    if library is None:
        raise RuntimeError("NumPy has no BLAS that compiled loops can call")
    return library


def symbols() -> dict[str, int]:
    """Where its products are, under the names that compiled loops call them by: none if there is no such BLAS."""
    library = find()
    if library is None:
        return {}
    return {f"cntk_{letter}gemm{bits}": product for bits in (32, 64) for letter, product in (("s", library.sgemm), ("d", library.dgemm))}


def look_up(library: Any) -> Blas | None:
    """The functions that a library has under one of the names in use; None if one is missing."""
    for name in NAMES:
        functions = [getattr(library, name.format(function), None) for function in FUNCTIONS]
        if None not in functions:
            sgemm, dgemm, get_threads, set_threads = cast(list[Any], functions)
            return Blas("64" in name, _address(sgemm), _address(dgemm), get_threads, set_threads, library, name)
    return None


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


_lock = Lock()
_callers: list[int] = []


@contextmanager
def one_thread(blas: Blas) -> Iterator[None]:
    """Keep the BLAS from sharing products between threads, until the last caller is done."""
    with _lock:
        _callers.append(blas.get_threads())
        blas.set_threads(1)
    try:
        yield
    finally:
        with _lock:
            before = _callers.pop()
            if not _callers:
                blas.set_threads(before)


def multiply(
    wide: bool, flip_a: bool, flip_b: bool, m: int, n: int, k: int, a: Matrix, lda: int, b: Matrix, ldb: int, add: bool, c: Matrix, ldc: int
) -> None:
    """Write the product of two matrices into a third, or add it; for compiled loops only.

    Args:
        wide: whether the BLAS's integers have 64 bits.
        flip_a, flip_b: whether *a* and *b* hold the transposed matrices.
        m, n, k: rows and columns of the product, and what is summed over.
        a, b, c: the matrices, all of one type.
        lda, ldb, ldc: distance between the rows of each.
        add: whether *c* is added to.
    """
    raise NotImplementedError("multiply runs in compiled loops only")


@means(multiply)
def _multiply(wide, flip_a, flip_b, m, n, k, a, lda, b, ldb, add, c, ldc):  # type: ignore[no-untyped-def]
    from numba import types

    real = c[0].dtype

    def product(integer: Any) -> Any:
        order_and_sizes = [types.int32] * 3 + [integer] * 3
        return types.ExternalFunction(
            f"cntk_{'s' if real == types.float32 else 'd'}gemm{integer.bitwidth}",
            types.void(*order_and_sizes, real, types.voidptr, integer, types.voidptr, integer, real, types.voidptr, integer),
        )

    narrow_product, wide_product = product(types.int32), product(types.int64)

    def compiled(wide, flip_a, flip_b, m, n, k, a, lda, b, ldb, add, c, ldc):  # type: ignore[no-untyped-def]
        first, second = (TRANSPOSED if flip_a else PLAIN), (TRANSPOSED if flip_b else PLAIN)
        one, beta = real(1), real(add)
        left, right, out = address(*a), address(*b), address(*c)
        if wide:
            wide_product(ROW_MAJOR, first, second, m, n, k, one, left, lda, right, ldb, beta, out, ldc)
        else:
            narrow_product(ROW_MAJOR, first, second, m, n, k, one, left, lda, right, ldb, beta, out, ldc)

    return compiled
