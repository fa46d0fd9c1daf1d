"""Adamax."""

from __future__ import annotations

from typing import Any

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .kernel import Elementwise, prepared


@loop("R1 R1 R1 R1 r r r r r r r r r")
def descend(
    w: Any, g: Any, mean: Any, largest: Any,
    momentum: Any, gain: Any, decay: Any, fresh: Any, epsilon: Any, rate: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        size = abs(x)
        decayed = largest[i] * decay
        if decayed >= size or decayed != decayed:
            size = decayed
        m = mean[i] * momentum + x * gain
        largest[i] = size
        mean[i] = m
        w[i] -= m / (size + epsilon) * rate


Adamax = Elementwise(descend)
