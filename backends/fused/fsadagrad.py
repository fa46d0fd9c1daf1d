"""FSAdaGrad."""

from __future__ import annotations

import math
from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .kernel import Elementwise, prepared


@loop("R1 R1 R1 R1 r r r r r r r r r r")
def descend(
    w: Any, g: Any, mean_square: Any, velocity: Any,
    momentum: Any, gain: Any, decay: Any, fresh: Any, size: Any, largest_scale: Any, rate: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        a = mean_square[i] * decay + x * x * fresh
        factor = size / math.sqrt(a)
        if factor > largest_scale:
            factor = largest_scale
        v = velocity[i] * momentum + x * factor * gain
        mean_square[i] = a
        velocity[i] = v
        w[i] -= v * rate


FSAdaGrad = Elementwise(descend)
