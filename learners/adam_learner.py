"""Adam and its variant Adamax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..core.types.arguments import checked
from .learner import Learner
from .numerics import positive
from .options import LearnerOptions, Options
from .schedules import DEFAULT_VARIANCE_MOMENTUM, ScheduleLike
from .signature import takes_options

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


class Adam(Learner):
    """Move by the mean gradient over the root of the mean square of gradients, both decaying and corrected for their start at 0."""

    state_names = ("mean", "variance")
    work_arrays = 1
    counter_names = ("updates",)
    updates: int
    setting_names = ("_momentum_schedule", "_variance_momentum_schedule", "_unit_gain", "_epsilon")

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: ScheduleLike,
        momentum: ScheduleLike,
        unit_gain: bool,
        variance_momentum: ScheduleLike,
        epsilon: float,
        options: LearnerOptions,
    ) -> None:
        if not epsilon >= 0:
            raise ValueError(f"epsilon: expected 0 or more, got {epsilon!r}")
        super().__init__(parameters, lr, options)
        self._momentum_schedule = options.schedule(momentum, "momentum")
        self._variance_momentum_schedule = options.schedule(variance_momentum, "variance_momentum")
        self._unit_gain = unit_gain
        self._epsilon = epsilon
        self.momentum = self.variance_momentum = self.corrected_rate = 0.0

    def begin(self, count: int) -> None:
        super().begin(count)
        self.updates += 1
        self.momentum = self.momentum_of(self._momentum_schedule, count)
        self.variance_momentum = self.momentum_of(self._variance_momentum_schedule, count)
        self.corrected_rate = self.rate * self.correction()

    def correction(self) -> float:
        """Factor that makes up for both averages having started at 0."""
        return math.sqrt(max(1.0 - self.variance_momentum**self.updates, 0.0)) / self._weight()

    def _weight(self) -> float:
        """Sum of the weights that the mean gradient gives to all gradients; a momentum of 1 forgets none and has no mean."""
        return 1.0 - self.momentum**self.updates or math.nan

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        gain = 1.0 - self.momentum if self._unit_gain else 1.0
        decay = self.variance_momentum
        return self.momentum, gain, decay, 1.0 - decay, positive(self._epsilon, dtype), self.corrected_rate

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (mean, variance), t = states, work[0]
        momentum, gain, decay, fresh, epsilon, rate = self.coefficients(w.dtype)
        xp.multiply(g, g, out=t)
        xp.multiply(t, fresh, out=t)
        xp.multiply(variance, decay, out=variance)
        xp.add(variance, t, out=variance)
        xp.multiply(g, gain, out=g)
        xp.multiply(mean, momentum, out=mean)
        xp.add(mean, g, out=mean)
        xp.sqrt(variance, out=t)
        xp.add(t, epsilon, out=t)
        xp.divide(mean, t, out=t)
        xp.multiply(t, rate, out=t)
        xp.subtract(w, t, out=w)


class Adamax(Adam):
    """Adam with the decaying maximum of the gradients' absolute values in place of the root of their mean square."""

    def correction(self) -> float:
        return 1.0 / self._weight()

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (mean, largest), t = states, work[0]
        momentum, gain, decay, _, epsilon, rate = self.coefficients(w.dtype)
        xp.absolute(g, out=t)
        xp.multiply(largest, decay, out=largest)
        xp.maximum(largest, t, out=largest)
        xp.multiply(g, gain, out=g)
        xp.multiply(mean, momentum, out=mean)
        xp.add(mean, g, out=mean)
        xp.add(largest, epsilon, out=t)
        xp.divide(mean, t, out=t)
        xp.multiply(t, rate, out=t)
        xp.subtract(w, t, out=w)


@checked
@takes_options
def adam(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    variance_momentum: ScheduleLike = DEFAULT_VARIANCE_MOMENTUM,
    *,
    epsilon: float = 1e-8,
    adamax: bool = False,
    **options: Unpack[Options],
) -> Learner:
    """Adam, or Adamax.

    With *n* the number of updates so far, ``m = momentum * m + gain * g; v = variance_momentum * v + (1 - variance_momentum) * g**2``
    and ``w -= lr * sqrt(1 - variance_momentum**n) / (1 - momentum**n) * m / (sqrt(v) + epsilon)``.  For Adamax
    ``v = max(variance_momentum * v, |g|)`` and ``w -= lr / (1 - momentum**n) * m / (v + epsilon)``.

    Args:
        momentum: decay of the mean gradient: a number, a list or a schedule.
        unit_gain: True weighs the new gradient by ``1 - momentum``, as in the paper; False by 1.
        variance_momentum: decay of the mean square, or of the maximum.
        epsilon: keeps the divisor away from 0.
        adamax: whether to use the maximum in place of the mean square.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: D. P. Kingma, J. Ba: Adam: A Method for Stochastic Optimization, ICLR 2015.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adam([w], lr=0.5, momentum=0.9, variance_momentum=0.999, minibatch_size=C.learners.IGNORE)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value.round(3)
        array([0.5, 0.5], dtype=float32)
    """
    kind = Adamax if adamax else Adam
    return kind(parameters, lr, momentum, unit_gain, variance_momentum, epsilon, LearnerOptions(**options))
