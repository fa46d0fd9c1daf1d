"""Stochastic gradient descent with momentum."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..core.types.arguments import checked
from .learner import Learner
from .options import LearnerOptions, Options
from .schedules import ScheduleLike
from .signature import takes_options

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


class MomentumSGD(Learner):
    """Move by a velocity: a decaying sum of steps against the gradients."""

    state_names = ("velocity",)
    lazy = True
    setting_names = ("_momentum_schedule", "_unit_gain")

    def __init__(
        self, parameters: Iterable[Parameter], lr: ScheduleLike, momentum: ScheduleLike, unit_gain: bool, options: LearnerOptions
    ) -> None:
        super().__init__(parameters, lr, options)
        self._momentum_schedule = options.schedule(momentum, "momentum")
        self._unit_gain = unit_gain
        self.momentum = 0.0

    def begin(self, count: int) -> None:
        super().begin(count)
        self.announce("Momentum", self._momentum_schedule, self.current(self._momentum_schedule))
        self.momentum = self.momentum_of(self._momentum_schedule, count)

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        gain = 1.0 - self.momentum if self._unit_gain else 1.0
        return self.momentum, gain * self.rate

    def row_coefficients(self, dtype: Any) -> tuple[float, ...]:
        gain = 1.0 - self.momentum if self._unit_gain else 1.0
        return self.momentum, gain, self.rate

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (v,) = states
        momentum, rate = self.coefficients(w.dtype)
        xp.multiply(g, rate, out=g)
        xp.multiply(v, momentum, out=v)
        xp.add(v, g, out=v)
        xp.subtract(w, v, out=w)

    def step_rows(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (v,) = states
        if self._unit_gain:
            xp.multiply(g, 1.0 - self.momentum, out=g)
        xp.multiply(v, self.momentum, out=v)
        xp.add(v, g, out=v)
        xp.multiply(v, self.rate, out=g)
        xp.subtract(w, g, out=w)


@checked
@takes_options
def momentum_sgd(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    **options: Unpack[Options],
) -> Learner:
    """Stochastic gradient descent with momentum: ``v = momentum * v + gain * lr * g; w -= v``.

    The learning rate is inside the velocity *v*: a new rate holds for new gradients only.  Of a row-sparse gradient only the rows
    that are present move, and there, as in CNTK, the rate is outside: ``v = momentum * v + gain * g; w -= lr * v``.

    Args:
        momentum: a number, a list or a schedule; of each minibatch, or of the number of samples its schedule refers to.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.momentum_sgd([w], lr=0.5, momentum=0.5)
        >>> gradient = np.array([2, 4], dtype=np.float32)
        >>> [learner.update({w: gradient}, 4) for i in range(2)]
        [True, True]
        >>> w.value
        array([0.6875, 0.375 ], dtype=float32)
    """
    return MomentumSGD(parameters, lr, momentum, unit_gain, LearnerOptions(**options))
