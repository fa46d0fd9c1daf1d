"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .ahead import fetch_row
from .kernel import Elementwise, prepared


@loop("R1 R1 r r r r")
def descend(w: Any, g: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in prange(w.size):
        w[i] -= prepared(g[i], w[i], scale, threshold, weight) * rate


@loop("R2 R2 N1 r r r r")
def descend_rows(w: Any, g: Any, rows: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    for i in prange(rows.size):
        fetch_row(w, rows, i, True)
        w_row, g_row = w[rows[i]], g[i]
        for j in range(w_row.size):
            w_row[j] -= prepared(g_row[j], w_row[j], scale, threshold, weight) * rate


SGD = Elementwise(descend, descend_rows)
