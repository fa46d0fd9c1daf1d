"""AdaGrad: one pass, or two where the steps are divided by the mean of their multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.common.sums import BLOCK
from ...core.machine.language import prange
from ...core.machine.loops import loop
from .kernel import Part, add_lanes, move, prepared, run, run_and_average


@loop("R1 R1 R1 R1 R2 r r r r")
def gather(w: Any, g: Any, squares: Any, multiplier: Any, lanes: Any, floor: Any, scale: Any, threshold: Any, weight: Any) -> None:
    one = w.dtype.type(1)
    for block in prange(-(-w.size // BLOCK)):
        for i in range(block * BLOCK, min((block + 1) * BLOCK, w.size)):
            x = prepared(g[i], w[i], scale, threshold, weight)
            squares[i] += x * x
            multiplier[i] = one / math.sqrt(squares[i] + floor)
        add_lanes(multiplier, block, lanes)


@loop("R1 R1 R1 r r r r r")
def descend(w: Any, g: Any, squares: Any, floor: Any, rate: Any, scale: Any, threshold: Any, weight: Any) -> None:
    one = w.dtype.type(1)
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        squares[i] += x * x
        w[i] -= x * (one / math.sqrt(squares[i] + floor)) * rate


class AdaGrad:
    """The kernel of AdaGrad."""

    work_arrays = 1

    @staticmethod
    def update(parts: Sequence[Part]) -> None:
        if not all(p.coefficients[-1] for p in parts):
            run(descend, [((p.w, p.g, *p.states), (*p.coefficients[:2], *p.preparation)) for p in parts])
            return
        means = run_and_average(gather, [((p.w, p.g, *p.states, p.work[0]), (p.coefficients[0], *p.preparation)) for p in parts])
        rates = [p.coefficients[1] / (mean or math.nan) for p, mean in zip(parts, means, strict=True)]
        run(move, [((p.w, p.g, p.work[0]), (rate, *p.preparation)) for p, rate in zip(parts, rates, strict=True)])
