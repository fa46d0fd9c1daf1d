"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from .kernel import Elementwise, compiled, prepared


@compiled
def descend(w: Any, g: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in range(w.size):
        w[i] -= prepared(g[i], w[i], scale, threshold, weight) * rate


SGD = Elementwise(descend)
