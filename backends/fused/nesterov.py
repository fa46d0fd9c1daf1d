"""Stochastic gradient descent with Nesterov's accelerated gradient."""

from __future__ import annotations

from typing import Any

import numba

from .kernel import Elementwise, prepared
from .loops import Loop


@Loop
def descend(w: Any, g: Any, velocity: Any, momentum: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in numba.prange(w.size):
        step = prepared(g[i], w[i], scale, threshold, weight) * rate
        v = velocity[i] * momentum + step
        velocity[i] = v
        w[i] = w[i] - v * momentum - step


Nesterov = Elementwise(descend)
