"""Loops of dropout: random bits, and the elements that they keep."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import jittable, prange
from ...core.machine.loops import loop
from .philox import philox
from .pieces import address

AT_ONCE = 8
"""Elements whose bits come together, 32 for each."""

SPARE = np.uint32(8)
"""Low bits that are not part of the random number."""

BLOCK = 512
"""Times as many elements, whose bits a thread makes before it goes through them."""


@jittable
def _keep(y: Any, x: Any, bits: Any, begin: int, end: int, least: Any, scale: Any) -> None:
    """Write the kept ones of some elements to y, which may be x: the compiler does not vectorise if arrays may overlap."""
    part, source, numbers, zero = y[begin:end], x[begin:end], bits[begin:end], y.dtype.type(0)
    if address(y, begin) == address(x, begin):
        for i in range(part.size):
            part[i] *= scale if numbers[i] >> SPARE >= least else zero
    else:
        for i in range(part.size):
            part[i] = source[i] * (scale if numbers[i] >> SPARE >= least else zero)


@loop("R1 R1 U1 V1 U1 q q r")
def drop(x: Any, y: Any, words: Any, bits: Any, key: Any, draw: int, least: int, scale: Any) -> None:
    """Multiply elements by *scale*, or by 0 where their random numbers are less than *least*.

    Args:
        x, y: flat operand and result, which may be the same.
        words: space for the bits, in words of 64.
        bits: the same memory in words of 32, which an element has one of.
        key, draw: what the bits depend on: two words, and a number.
    """
    both, turn, limit = (key[0], key[1]), np.uint64(draw), np.uint32(least)
    groups = words.size // 4
    for block in prange((groups + BLOCK - 1) // BLOCK):
        first, last = block * BLOCK, min(groups, (block + 1) * BLOCK)
        made = words[4 * first : 4 * last]
        for i in range(last - first):
            made[4 * i], made[4 * i + 1], made[4 * i + 2], made[4 * i + 3] = philox(both, np.uint64(first + i + 1), turn)
        _keep(y, x, bits, AT_ONCE * first, min(x.size, AT_ONCE * last), limit, scale)


@loop("R1 R1 V1 q r")
def drop_gradient(dy: Any, dx: Any, bits: Any, least: int, scale: Any) -> None:
    """Multiply the gradient by the same; arrays may be the same too."""
    limit, step = np.uint32(least), AT_ONCE * BLOCK
    for block in prange((dy.size + step - 1) // step):
        _keep(dx, dy, bits, block * step, min(dy.size, (block + 1) * step), limit, scale)
