"""Adam."""

from __future__ import annotations

import math
from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .kernel import Elementwise, prepared


@loop("R1 R1 R1 R1 r r r r r r r r r")
def descend(
    w: Any, g: Any, mean: Any, variance: Any,
    momentum: Any, gain: Any, decay: Any, fresh: Any, epsilon: Any, rate: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        v = variance[i] * decay + x * x * fresh
        m = mean[i] * momentum + x * gain
        variance[i] = v
        mean[i] = m
        w[i] -= m / (math.sqrt(v) + epsilon) * rate


Adam = Elementwise(descend)
