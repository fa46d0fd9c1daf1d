"""AdaGrad."""

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

FLOOR = 1e-16
"""Added to the sum of squares, so that its root can divide."""


class AdaGrad(Learner):
    """Move by the gradient over the root of the sum of all squares of gradients so far."""

    state_names = ("sum_of_squares",)
    work_arrays = 1
    lazy = True
    setting_names = ("_need_ave_multiplier",)

    def __init__(self, parameters: Iterable[Parameter], lr: ScheduleLike, need_ave_multiplier: bool, options: LearnerOptions) -> None:
        super().__init__(parameters, lr, options)
        self._need_ave_multiplier = need_ave_multiplier

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        return positive(FLOOR, dtype), self.rate, self._need_ave_multiplier

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (squares,), multiplier = states, work[0]
        floor, rate, averaged = self.coefficients(w.dtype)
        xp.multiply(g, g, out=multiplier)
        xp.add(squares, multiplier, out=squares)
        xp.add(squares, floor, out=multiplier)
        xp.sqrt(multiplier, out=multiplier)
        xp.divide(1.0, multiplier, out=multiplier)
        if averaged:
            rate /= mean(xp, multiplier) or math.nan  # 0 where all squares have overflowed
        xp.multiply(g, multiplier, out=g)
        xp.multiply(g, rate, out=g)
        xp.subtract(w, g, out=w)


@checked
@takes_options
def adagrad(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    need_ave_multiplier: bool = True,
    **options: Unpack[Options],
) -> Learner:
    """AdaGrad: ``a += g**2; w -= lr / average * g / sqrt(a)``.

    Args:
        need_ave_multiplier: True divides by the *average* of ``1 / sqrt(a)`` over the parameter (over the rows present, of a
            row-sparse gradient), so that the step is about as large as plain descent would make it; with an element that never had a
            gradient the others then do not move.  False does not divide.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: J. Duchi, E. Hazan, Y. Singer: Adaptive Subgradient Methods for Online Learning and Stochastic Optimization, JMLR 2011.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adagrad([w], lr=2, need_ave_multiplier=False)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.5, 0.5], dtype=float32)
    """
    return AdaGrad(parameters, lr, need_ave_multiplier, LearnerOptions(**options))
