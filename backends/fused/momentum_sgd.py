"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from .kernel import Elementwise, compiled, prepared


@compiled
def descend(w: Any, g: Any, velocity: Any, momentum: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in range(w.size):
        v = velocity[i] * momentum + prepared(g[i], w[i], scale, threshold, weight) * rate
        velocity[i] = v
        w[i] -= v


MomentumSGD = Elementwise(descend)
