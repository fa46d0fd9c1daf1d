"""Kernels for learners, with the bodies of the loops for the CPU."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.common import sums
from ...core.machine.language import prange
from ...core.machine.loops import Loop
from ..fused import adadelta, adagrad, adam, adamax, fsadagrad, kernel, momentum_sgd, nesterov, rmsprop, sgd
from ..fused.kernel import prepared
from ..fused.rmsprop import noted
from .compiler import Kernel, Launch, flat, once

Launches = tuple[Launch, ...]


def launches(part: Any, bind: Callable[[Sequence[Any]], Launches]) -> Launches:
    """Return the launches bound to a part's arrays, bound anew by *bind* if the arrays have changed since the last update."""
    g = part.g if part.g.flags.c_contiguous else part.xp.ascontiguousarray(part.g)
    arrays = part.w, g, *part.states, *part.work
    part.bound = once(part.bound, arrays, lambda: bind([flat(array) for array in arrays]))
    bound: Launches = part.bound[1]
    return bound


class Elementwise:
    """The kernel of a learner with an element-wise update.

    Args:
        of: its kernel for the CPU.
    """

    work_arrays = 0

    def __init__(self, of: kernel.Elementwise) -> None:
        self._kernel, self._rows_kernel = Kernel.of(of.loop), None if of.rows_loop is None else Kernel.of(of.rows_loop)
        self._states = self._kernel.signature.split().count("R1") - 2

    @property
    def takes_rows(self) -> bool:
        """Whether a part may be some rows of a parameter, updated in place."""
        return self._rows_kernel is not None

    def update(self, parts: Sequence[Any]) -> None:
        """Update parameters and states in place; gradients are not modified."""
        for part in parts:
            if part.g.size:
                (self._launch_rows if part.rows is not None else self._launch)(part)

    def _launch(self, part: Any) -> None:
        (launch,) = launches(part, lambda arrays: (self._kernel.bound(part.w.size, *arrays[: 2 + self._states]),))
        launch(*part.coefficients, *part.preparation)

    def _launch_rows(self, part: Any) -> None:
        matrices = [array.reshape(len(array), -1) for array in (part.w, part.g, *part.states)]
        launch = self._rows_kernel.bound(part.rows.size, *matrices, part.rows)  # type: ignore[union-attr]
        launch(*part.coefficients, *part.preparation)


class Averaging:
    """The kernel of a learner whose steps may be divided by the mean of their multipliers, for which the host waits.

    Args:
        descend: loop over parameter, gradient and states, for updates without the division.
        gather: kernel that writes the multipliers after the states.
        stops: whether a rate of 0, which results from an infinite mean, leaves parameters unchanged whatever their gradients.
    """

    work_arrays = 1

    def __init__(self, descend: Loop, gather: Kernel, stops: bool) -> None:
        self._descend, self._gather, self._move, self._stops = Kernel.of(descend), gather, Kernel.of(kernel.move), stops

    def update(self, parts: Sequence[Any]) -> None:
        """Update parameters and states in place; gradients are not modified."""
        for part in parts:
            if part.g.size:
                self._update(part)

    def _update(self, part: Any) -> None:
        descend, gather, move = launches(part, self._bind)
        *coefficients, rate, is_divided = part.coefficients
        if not is_divided:
            descend(*coefficients, rate, *part.preparation)
            return
        gather(*coefficients, *part.preparation)
        rate /= sums.mean(part.xp, part.work[0]) or math.nan
        if rate != 0 or not self._stops:
            move(rate, *part.preparation)

    def _bind(self, arrays: Sequence[Any]) -> Launches:
        w, g, *states, multiplier = arrays
        return (
            self._descend.bound(w.size, w, g, *states),
            self._gather.bound(w.size, w, g, *states, multiplier),
            self._move.bound(w.size, w, g, multiplier),
        )


def _gather_squares(
    w: Any, g: Any, squares: Any, multiplier: Any, floor: Any, scale: Any, threshold: Any, weight: Any
) -> None:  # fmt: skip
    one = w.dtype.type(1)
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        squares[i] += x * x
        multiplier[i] = one / math.sqrt(squares[i] + floor)


def _gather_steps(
    w: Any, g: Any, squares: Any, sign: Any, size: Any, multiplier: Any,
    first_step: Any, gamma: Any, fresh: Any, floor: Any, inc: Any, dec: Any, largest: Any, smallest: Any,
    scale: Any, threshold: Any, weight: Any,
) -> None:  # fmt: skip
    for i in prange(w.size):
        x = prepared(g[i], w[i], scale, threshold, weight)
        multiplier[i] = noted(i, x, squares, sign, size, first_step, gamma, fresh, floor, inc, dec, largest, smallest)


SGD = Elementwise(sgd.SGD)
MomentumSGD = Elementwise(momentum_sgd.MomentumSGD)
Nesterov = Elementwise(nesterov.Nesterov)
AdaDelta = Elementwise(adadelta.AdaDelta)
FSAdaGrad = Elementwise(fsadagrad.FSAdaGrad)
Adam = Elementwise(adam.Adam)
Adamax = Elementwise(adamax.Adamax)
AdaGrad = Averaging(adagrad.descend, Kernel(_gather_squares, "R1 R1 R1 R1 r r r r"), stops=False)
RMSProp = Averaging(rmsprop.descend, Kernel(_gather_steps, "R1 R1 R1 R1 R1 R1 r r r r r r r r r r r"), stops=True)
