"""The peak rates of this machine, with which operators are compared."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from cntk.core.run.profiling import Tally

SIDE = 1024
"""Side of the square matrices that are multiplied."""
COPIED = 2**26
"""Bytes that are copied, more than caches hold."""
SECONDS = 0.1
"""So long is each rate measured at the least; the best of its rounds counts."""


class Rates(NamedTuple):
    """Rates of a machine.

    Attributes:
        float32, float64: floating-point operations a second of a product of large matrices, on as many threads as NumPy uses for it.
        copy: bytes a second that are read and written where memory is copied.

    >>> rates = C.debugging.Rates(float32=2e11, float64=1e11, copy=2e10)
    >>> print(rates)
    products of float32 200.0 GFLOP/s, of float64 100.0 GFLOP/s, copying 20.0 GB/s
    >>> rates.of_products(np.float64)
    100000000000.0
    """

    float32: float
    float64: float
    copy: float

    def of_products(self, dtype: Any) -> float:
        """Operations a second for numbers of this type."""
        return self.float64 if dtype == np.float64 else self.float32

    def share(self, tally: Tally) -> float:
        """The time that calls take at these rates, be it for their operations or their bytes, divided by the time that they took."""
        least = max(tally.flop / self.of_products(tally.dtype), tally.nbytes / self.copy)
        return least / tally.total if tally.total else 0.0

    def __str__(self) -> str:
        products = f"products of float32 {self.float32 / 1e9:.1f} GFLOP/s, of float64 {self.float64 / 1e9:.1f} GFLOP/s"
        return f"{products}, copying {self.copy / 1e9:.1f} GB/s"


@lru_cache(maxsize=1)
def machine_rates() -> Rates:
    """The rates of this machine, measured when they are first asked for, which takes some tenths of a second.

    Returns:
        Rates: operations and bytes a second.

    >>> rates = C.debugging.machine_rates()
    >>> min(rates.float32, rates.float64, rates.copy) > 1e6
    True
    """
    source, target = np.ones(COPIED, np.uint8), np.zeros(COPIED, np.uint8)
    return Rates(_product_rate(np.float32), _product_rate(np.float64), 2 * COPIED / _best(lambda: np.copyto(target, source)))


def _product_rate(dtype: Any) -> float:
    left, right, product = (np.ones((SIDE, SIDE), dtype) for _ in range(3))
    return 2 * SIDE**3 / _best(lambda: np.matmul(left, right, out=product))


def _best(action: Callable[[], object]) -> float:
    """The shortest time that the action takes, in seconds."""
    action()
    times: list[float] = []
    while sum(times) < SECONDS:
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return min(times)
