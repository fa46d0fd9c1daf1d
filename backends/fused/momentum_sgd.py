"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .ahead import fetch_row
from .kernel import Elementwise, prepared


@loop("R1 R1 R1 r r r r r")
def descend(w: Any, g: Any, velocity: Any, momentum: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in prange(w.size):
        v = velocity[i] * momentum + prepared(g[i], w[i], scale, threshold, weight) * rate
        velocity[i] = v
        w[i] -= v


@loop("R2 R2 R2 N1 r r r r r r")
def descend_rows(
    w: Any, g: Any, velocity: Any, rows: Any, momentum: Any, gain: Any, rate: Any, scale: Any, threshold: Any, weight: Any
) -> None:
    for i in prange(rows.size):
        fetch_row(w, rows, i, True)
        fetch_row(velocity, rows, i, True)
        w_row, g_row, v_row = w[rows[i]], g[i], velocity[rows[i]]
        for j in range(w_row.size):
            v = v_row[j] * momentum + prepared(g_row[j], w_row[j], scale, threshold, weight) * gain
            v_row[j] = v
            w_row[j] -= v * rate


MomentumSGD = Elementwise(descend, descend_rows)
