"""FSAdaGrad."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..core.types.arguments import checked
from .learner import Learner
from .options import LearnerOptions, Options
from .schedules import DEFAULT_VARIANCE_MOMENTUM, ScheduleLike
from .signature import takes_options

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter

LARGEST_SCALE = 10.0
"""Bound on the factor by which a gradient is scaled."""


class FSAdaGrad(Learner):
    """Momentum over gradients that are scaled to the size a gradient of the minibatch would have, were all weights alike."""

    state_names = ("mean_square", "velocity")
    work_arrays = 1
    counter_names = ("smoothed_count",)
    smoothed_count: float
    setting_names = ("_momentum_schedule", "_variance_momentum_schedule", "_unit_gain")

    def __init__(
        self,
        parameters: Iterable[Parameter],
        lr: ScheduleLike,
        momentum: ScheduleLike,
        unit_gain: bool,
        variance_momentum: ScheduleLike,
        options: LearnerOptions,
    ) -> None:
        super().__init__(parameters, lr, options)
        self._momentum_schedule = options.schedule(momentum, "momentum")
        self._variance_momentum_schedule = options.schedule(variance_momentum, "variance_momentum")
        self._unit_gain = unit_gain
        self.momentum = self.variance_momentum = 0.0

    def begin(self, count: int) -> None:
        super().begin(count)
        self.momentum = self.momentum_of(self._momentum_schedule, count)
        decay = self.variance_momentum = self.momentum_of(self._variance_momentum_schedule, count)
        self.smoothed_count = decay * self.smoothed_count + (1.0 - decay) * count

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        gain = 1.0 - self.momentum if self._unit_gain else 1.0
        decay = self.variance_momentum
        return self.momentum, gain, decay, 1.0 - decay, math.sqrt(self.smoothed_count), LARGEST_SCALE, self.rate

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (mean_square, v), t = states, work[0]
        momentum, gain, decay, fresh, size, largest_scale, rate = self.coefficients(w.dtype)
        xp.multiply(g, g, out=t)
        xp.multiply(t, fresh, out=t)
        xp.multiply(mean_square, decay, out=mean_square)
        xp.add(mean_square, t, out=mean_square)
        xp.sqrt(mean_square, out=t)
        xp.divide(size, t, out=t)
        xp.minimum(t, largest_scale, out=t)
        xp.multiply(g, t, out=g)
        xp.multiply(g, gain, out=g)
        xp.multiply(v, momentum, out=v)
        xp.add(v, g, out=v)
        xp.multiply(v, rate, out=t)
        xp.subtract(w, t, out=w)


@checked
@takes_options
def fsadagrad(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    variance_momentum: ScheduleLike = DEFAULT_VARIANCE_MOMENTUM,
    **options: Unpack[Options],
) -> Learner:
    """FSAdaGrad: momentum over scaled gradients, a relative of Adam that weighs minibatches by their number of samples.

    With *m* the number of samples of the minibatch, ``n = variance_momentum * n + (1 - variance_momentum) * m``,
    ``a = variance_momentum * a + (1 - variance_momentum) * g**2``, ``v = momentum * v + gain * min(sqrt(n / a), 10) * g``
    and ``w -= lr * v``.

    Args:
        momentum: decay of the velocity: a number, a list or a schedule.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        variance_momentum: decay of the mean square.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: the learner is CNTK's own; it follows J. Duchi, E. Hazan, Y. Singer: Adaptive Subgradient Methods, JMLR 2011.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.fsadagrad([w], lr=0.5, momentum=0.5, variance_momentum=0.75)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.875, 0.875], dtype=float32)
    """
    return FSAdaGrad(parameters, lr, momentum, unit_gain, variance_momentum, LearnerOptions(**options))
