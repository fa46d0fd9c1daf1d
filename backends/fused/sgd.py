"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

import numba

from .kernel import Elementwise, prepared
from .loops import Loop


@Loop
def descend(w: Any, g: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in numba.prange(w.size):
        w[i] -= prepared(g[i], w[i], scale, threshold, weight) * rate


SGD = Elementwise(descend)
