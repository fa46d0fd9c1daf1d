"""Numbers of the update rules: constants as they are in a parameter's type, and norms."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ..core.common.sums import deterministic_sum


@lru_cache(maxsize=64)
def positive(number: float, dtype: Any) -> float:
    """*number*, or the smallest normal number of *dtype* where it is less: GPUs may take it for 0, which guards no division."""
    return max(number, float(np.finfo(dtype).tiny))


def norm(xp: Any, array: Any, work: Any) -> float:
    """The Frobenius norm of an array; *work* is a temporary array of its shape."""
    xp.multiply(array, array, out=work)
    squares = deterministic_sum(xp, work)
    if np.finfo(array.dtype).tiny < squares < math.inf:
        return math.sqrt(squares)
    peak = max(float(xp.max(array)), -float(xp.min(array)))
    if peak == 0 or not math.isfinite(peak):
        return peak
    xp.divide(array, peak, out=work)  # the squares of what is at most 1 do not overflow
    xp.multiply(work, work, out=work)
    return peak * math.sqrt(deterministic_sum(xp, work))
