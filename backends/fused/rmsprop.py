"""RMSProp: one pass, or two where the steps are divided by the mean of their multipliers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...core.common.sums import BLOCK
from ...core.machine.language import jittable, prange
from ...core.machine.loops import loop
from .kernel import Part, add_lanes, move, prepared, run, run_and_average


@jittable
def adapted(size: Any, agreement: Any, inc: Any, dec: Any, largest: Any, smallest: Any) -> Any:
    """A step size after a gradient whose sign times the one before is *agreement*."""
    if agreement > 0:
        size = size * inc
        return largest if size > largest else size
    size = size * dec
    return smallest if size < smallest else size


@jittable
def noted(
    i: Any, x: Any, squares: Any, sign: Any, size: Any,
    first_step: Any, gamma: Any, fresh: Any, floor: Any, inc: Any, dec: Any, largest: Any, smallest: Any,
) -> Any:  # fmt: skip
    """The multiplier of the gradient *x* of element *i*, once it is in the states."""
    square = x * x
    before = squares[i] if first_step == 0 else square
    step = size[i] if first_step == 0 else first_step
    zero, one = squares.dtype.type(0), squares.dtype.type(1)
    new_sign = one if x > zero else (-one if x < zero else x + zero)  # as NumPy has it, of zero none
    step = adapted(step, sign[i] * new_sign, inc, dec, largest, smallest)
    squares[i] = before * gamma + square * fresh
    sign[i] = new_sign
    size[i] = step
    return step / math.sqrt(squares[i] + floor)


@loop("R1 R1 R1 R1 R1 R1 R2 r r r r r r r r r r r")
def gather(
    w: Any, g: Any, squares: Any, sign: Any, size: Any, multiplier: Any, lanes: Any,
    first_step: Any, gamma: Any, fresh: Any, floor: Any, inc: Any, dec: Any, largest: Any, smallest: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for block in prange(-(-w.size // BLOCK)):
        for i in range(block * BLOCK, min((block + 1) * BLOCK, w.size)):
            x = prepared(g[i], w[i], scale, threshold, weight)
            multiplier[i] = noted(i, x, squares, sign, size, first_step, gamma, fresh, floor, inc, dec, largest, smallest)
        add_lanes(multiplier, block, lanes)


@loop("R1 R1 R1 R1 R1 r r r r r r r r r r r r")
def descend(
    w: Any, g: Any, squares: Any, sign: Any, size: Any,
    first_step: Any, gamma: Any, fresh: Any, floor: Any, inc: Any, dec: Any, largest: Any, smallest: Any, rate: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        multiplier = noted(i, x, squares, sign, size, first_step, gamma, fresh, floor, inc, dec, largest, smallest)
        if rate != 0:
            w[i] -= x * multiplier * rate


class RMSProp:
    """The kernel of RMSProp."""

    work_arrays = 1

    @staticmethod
    def update(parts: Sequence[Part]) -> None:
        if not all(p.coefficients[-1] for p in parts):
            run(descend, [((p.w, p.g, *p.states), (*p.coefficients[:-1], *p.preparation)) for p in parts])
            return
        means = run_and_average(gather, [((p.w, p.g, *p.states, p.work[0]), (*p.coefficients[:-2], *p.preparation)) for p in parts])
        rates = [p.coefficients[-2] / (mean or math.nan) for p, mean in zip(parts, means, strict=True)]
        moves = [((p.w, p.g, p.work[0]), (rate, *p.preparation)) for p, rate in zip(parts, rates, strict=True) if rate != 0]
        run(move, moves)  # a step size that has overflowed makes the mean infinite, and steps zero
