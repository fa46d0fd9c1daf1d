"""How many threads compute: those of compiled loops, and of NumPy's products."""

from __future__ import annotations

import operator

from ..common import threads
from . import blas


def set_threads(number: int) -> None:
    """Let at most *number* threads share the work of one call on the CPU: of loops, and of products.

    It counts for the whole process, NumPy's own products among it where NumPy has an OpenBLAS; another BLAS has variables of its own, such
    as ``MKL_NUM_THREADS``.  One thread is best where many processes or requests share the processors: none waits for another then.
    Results do not depend on it, but for sums within products, as an OpenBLAS divides them.

    Args:
        number: how many, at least one; 1 leaves all of it to the thread that calls.

    Raises:
        ValueError: *number* is less than 1.
        TypeError: it is no integer.

    >>> import cntk as C
    >>> before = C.device.get_threads()
    >>> C.device.set_threads(1)
    >>> C.device.get_threads()
    1
    >>> C.device.set_threads(before)
    """
    count = operator.index(number)
    if count < 1:
        raise ValueError(f"set_threads: expected at least one thread, got {number}")
    threads.set_max_threads(count)
    library = blas.find()
    set_of_products = None if library is None else library.function("openblas_set_num_threads")
    if set_of_products is not None:
        set_of_products(count)


def get_threads() -> int:
    """The most threads that share the work of one call: one for each processor, unless :func:`set_threads` has said otherwise.

    >>> import cntk as C
    >>> C.device.get_threads() >= 1
    True
    """
    return threads.max_threads()
