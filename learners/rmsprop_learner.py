"""RMSProp with a step size per weight."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..core.common.sums import mean
from ..core.types.arguments import checked
from .learner import Learner
from .numerics import positive
from .options import LearnerOptions, Options
from .schedules import ScheduleLike
from .signature import takes_options

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter

FLOOR = 1e-6
"""Added to the mean square, so that its root can divide."""

FIRST_STEP = 0.02


class RMSProp(Learner):
    """Move by the gradient over the root of its mean square, times a step size that follows the agreement of signs."""

    state_names = ("mean_square", "sign", "step_size")
    work_arrays = 1
    counter_names = ("updates",)
    updates: int
    setting_names = ("_gamma", "_inc", "_dec", "_max", "_min", "_need_ave_multiplier")

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: ScheduleLike,
        gamma: float,
        inc: float,
        dec: float,
        max: float,
        min: float,
        need_ave_multiplier: bool,
        options: LearnerOptions,
    ) -> None:
        _check(gamma, inc, dec, max, min)
        super().__init__(parameters, lr, options)
        self._gamma, self._inc, self._dec, self._max, self._min = gamma, inc, dec, max, min
        self._need_ave_multiplier = need_ave_multiplier
        self._agree: dict[tuple[int, ...], Any] = {}  # space to compare in

    def begin(self, count: int) -> None:
        super().begin(count)
        self.updates += 1

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        first_step = FIRST_STEP if self.updates == 1 else 0.0
        averages = self._gamma, 1.0 - self._gamma, positive(FLOOR, dtype)
        return first_step, *averages, self._inc, self._dec, self._max, self._min, self.rate, self._need_ave_multiplier

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (squares, sign, size), t = states, work[0]
        first_step, gamma, fresh, floor, inc, dec, largest, smallest, rate, averaged = self.coefficients(w.dtype)
        xp.multiply(g, g, out=t)
        if first_step:
            squares[...] = t
            size[...] = first_step
        xp.multiply(t, fresh, out=t)
        xp.multiply(squares, gamma, out=squares)
        xp.add(squares, t, out=squares)
        xp.sign(g, out=t)
        xp.multiply(sign, t, out=sign)
        if w.shape not in self._agree:
            self._agree[w.shape] = xp.empty(w.shape, bool)
        agree = xp.greater(sign, 0, out=self._agree[w.shape])
        sign[...] = t
        xp.multiply(size, inc, out=t)
        xp.minimum(t, largest, out=t)
        xp.multiply(size, dec, out=size)
        xp.maximum(size, smallest, out=size)
        xp.copyto(size, t, where=agree)
        xp.add(squares, floor, out=t)
        xp.sqrt(t, out=t)
        xp.divide(size, t, out=t)
        if averaged:
            rate /= mean(xp, t) or math.nan  # 0 where all squares have overflowed
        if rate == 0:  # a step size that has overflowed makes the average infinite, and steps zero
            return
        xp.multiply(g, t, out=g)
        xp.multiply(g, rate, out=g)
        xp.subtract(w, g, out=w)


def _check(gamma: float, inc: float, dec: float, max: float, min: float) -> None:
    rules = (
        (0 < gamma < 1, "gamma", "between 0 and 1", gamma),
        (inc > 1, "inc", "more than 1", inc),
        (0 < dec < 1, "dec", "between 0 and 1", dec),
        (min > 0, "min", "more than 0", min),
        (max > min, "max", f"more than min, {min!r}", max),
    )
    for holds, name, expected, given in rules:
        if not holds:
            raise ValueError(f"rmsprop: {name} must be {expected}, got {given!r}")


@checked
@takes_options
def rmsprop(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    **options: Unpack[Options],
) -> Learner:
    """RMSProp with a step size *s* for each weight that grows while the gradient keeps its sign.

    ``a = gamma * a + (1 - gamma) * g**2``, ``s = min(s * inc, max)`` where the sign is that of the update before and else
    ``s = max(s * dec, min)``, ``w -= lr / average * g * s / sqrt(a)``.  The step sizes start at 0.02.

    Args:
        gamma: decay of the mean square, at each update.
        inc, dec: factors of a step size that grows, and shrinks.
        max, min: bounds of a step size that grows, and shrinks; *max* may be infinite.
        need_ave_multiplier: True divides by the *average* of ``s / sqrt(a)`` over the parameter; False does not.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: T. Tieleman, G. Hinton: Lecture 6.5 - rmsprop, COURSERA: Neural Networks for Machine Learning, 2012.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.rmsprop([w], lr=0.5, gamma=0.9, inc=1.2, dec=0.5, max=10, min=1e-8)
        >>> learner.update({w: np.array([2, 2], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.75, 0.75], dtype=float32)
    """
    return RMSProp(parameters, lr, gamma, inc, dec, max, min, need_ave_multiplier, LearnerOptions(**options))
