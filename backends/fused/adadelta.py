"""AdaDelta."""

from __future__ import annotations

import math
from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .kernel import Elementwise, prepared


@loop("R1 R1 R1 R1 r r r r r r r")
def descend(
    w: Any, g: Any, squares: Any, steps: Any,
    rho: Any, fresh: Any, epsilon: Any, rate: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        a = squares[i] * rho + x * x * fresh
        step = x / math.sqrt(a + epsilon) * math.sqrt(steps[i] + epsilon)
        squares[i] = a
        steps[i] = steps[i] * rho + step * step * fresh
        w[i] -= step * rate


AdaDelta = Elementwise(descend)
