"""Adam and its variant Adamax."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .learner import Learner
from .numerics import complement, positive
from .options import LearnerOptions
from .schedules import DEFAULT_VARIANCE_MOMENTUM, ScheduleLike

if TYPE_CHECKING:
    from ..core.variable import Parameter


class Adam(Learner):
    """Move by the mean gradient over the root of the mean square of gradients, both decaying and corrected for their start at 0."""

    state_names = ("mean", "variance")
    work_arrays = 1
    counter_names = ("updates",)
    updates: int

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
        return math.sqrt(1.0 - self.variance_momentum**self.updates) / (1.0 - self.momentum**self.updates)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (mean, variance), t = states, work[0]
        xp.multiply(g, g, out=t)
        xp.multiply(t, complement(self.variance_momentum, w.dtype), out=t)
        xp.multiply(variance, self.variance_momentum, out=variance)
        xp.add(variance, t, out=variance)
        self.update_mean(xp, mean, g)
        xp.sqrt(variance, out=t)
        self.move(xp, w, mean, t)

    def update_mean(self, xp: Any, mean: Any, g: Any) -> None:
        """Let the mean gradient decay, and add the new one to it."""
        if self._unit_gain:
            xp.multiply(g, complement(self.momentum, g.dtype), out=g)
        xp.multiply(mean, self.momentum, out=mean)
        xp.add(mean, g, out=mean)

    def move(self, xp: Any, w: Any, mean: Any, size: Any) -> None:
        """Move *w* by the mean gradient over *size*, which is overwritten."""
        xp.add(size, positive(self._epsilon, w.dtype), out=size)
        xp.divide(mean, size, out=size)
        xp.multiply(size, self.corrected_rate, out=size)
        xp.subtract(w, size, out=w)


class Adamax(Adam):
    """Adam with the decaying maximum of the gradients' absolute values in place of the root of their mean square."""

    def correction(self) -> float:
        return 1.0 / (1.0 - self.momentum**self.updates)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (mean, largest), t = states, work[0]
        xp.absolute(g, out=t)
        xp.multiply(largest, self.variance_momentum, out=largest)
        xp.maximum(largest, t, out=largest)
        self.update_mean(xp, mean, g)
        t[...] = largest
        self.move(xp, w, mean, t)


def adam(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    variance_momentum: ScheduleLike = DEFAULT_VARIANCE_MOMENTUM,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    epsilon: float = 1e-8,
    adamax: bool = False,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
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
    options = LearnerOptions(
        l1_regularization_weight,
        l2_regularization_weight,
        gaussian_noise_injection_std_dev,
        gradient_clipping_threshold_per_sample,
        gradient_clipping_with_truncation,
        use_mean_gradient,
        minibatch_size,
        epoch_size,
    )
    kind = Adamax if adamax else Adam
    return kind(parameters, lr, momentum, unit_gain, variance_momentum, epsilon, options)
