"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

import numba

from .kernel import Elementwise, prepared
from .loops import Loop


@Loop
def descend(w: Any, g: Any, velocity: Any, momentum: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in numba.prange(w.size):
        v = velocity[i] * momentum + prepared(g[i], w[i], scale, threshold, weight) * rate
        velocity[i] = v
        w[i] -= v


MomentumSGD = Elementwise(descend)
