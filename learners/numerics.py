"""Constants of the update rules as they are in a parameter's type."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1024)
def complement(number: float, dtype: Any) -> float:
    """``1 - number``, computed in *dtype*: for a momentum close to 1 this differs visibly from the exact difference."""
    kind = np.dtype(dtype).type
    return float(kind(1) - kind(number))


@lru_cache(maxsize=64)
def positive(number: float, dtype: Any) -> float:
    """*number*, or the smallest positive number of *dtype* where it would round to 0 and no longer guard a division."""
    return max(number, float(np.finfo(dtype).smallest_subnormal))
