"""Products that an OpenBLAS would share between threads although they are small, in pieces that it leaves on one.

Its threads wait for one another by spinning: where other programs keep one from its processor, products that would take microseconds take
as long as the others are given.  The sizes alone decide on pieces, so that the number of threads changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.common.thresholds import thresholds
from ...core.machine.blas import shares_small_products
from ...core.types.context import Context

FEWEST_SHARED = 2**18
"""Multiplications up to which an OpenBLAS shares no product between threads."""

MULTIPLE = 16
"""Rows or columns that its code multiplies at a time."""


def size_of_pieces(left: Any, right: Any, out: Any) -> int:
    """Rows or columns of *out*, whichever are more, that a piece has; 0 for a product that is not cut."""
    if out.ndim != 2 or right.ndim != 2 or out.dtype.char not in "fd":
        return 0
    (m, n), depth = out.shape, left.shape[1]
    if not FEWEST_SHARED < m * n * depth < thresholds.product_shared or min(m, n) == 1 or not shares_small_products():
        return 0
    most = FEWEST_SHARED // (min(m, n) * depth)
    if most < MULTIPLE:
        return most
    count = -(-max(m, n) // (most - most % MULTIPLE))
    return -(-max(m, n) // (count * MULTIPLE)) * MULTIPLE


def pieces(left: Any, right: Any, out: Any, size: int) -> Sequence[Callable[[], Any]]:
    """Functions that multiply one piece each."""
    (m, n) = out.shape
    if m >= n:
        return [partial(np.matmul, left[i : i + size], right, out=out[i : i + size]) for i in range(0, m, size)]
    return [partial(np.matmul, left, right[:, i : i + size], out=out[:, i : i + size]) for i in range(0, n, size)]


def call_all(calls: Sequence[Callable[[], Any]]) -> None:
    """Call functions one after another."""
    for call in calls:
        call()


class SmallProducts:
    """Products that are cut, as loops that compute them where no others do.

    Args:
        loops: the others; None for none.
    """

    def __init__(self, loops: Any) -> None:
        self._loops = loops

    def fits(self, left: Any, right: Any, out: Any) -> bool:
        """Whether the others fit, or the product is cut."""
        return (self._loops is not None and self._loops.fits(left, right, out)) or size_of_pieces(left, right, out) > 0

    def multiply(self, ctx: Context, left: Any, right: Any, out: Any) -> None:
        """Write such a product."""
        size = size_of_pieces(left, right, out)
        if size:
            call_all(pieces(left, right, out, size))
        else:
            self._loops.multiply(ctx, left, right, out)
