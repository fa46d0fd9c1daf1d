"""Stochastic gradient descent with Nesterov's accelerated gradient."""

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


class Nesterov(Learner):
    """Move by the velocity as it will be after one more step."""

    state_names = ("velocity",)
    work_arrays = 1
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
        self.momentum = self.momentum_of(self._momentum_schedule, count)

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        gain = 1.0 - self.momentum if self._unit_gain else 1.0
        return self.momentum, gain * self.rate

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (v,), ahead = states, work[0]
        momentum, rate = self.coefficients(w.dtype)
        xp.multiply(g, rate, out=g)
        xp.multiply(v, momentum, out=v)
        xp.add(v, g, out=v)
        xp.multiply(v, momentum, out=ahead)
        xp.subtract(w, ahead, out=w)
        xp.subtract(w, g, out=w)


@checked
@takes_options
def nesterov(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool = True,
    **options: Unpack[Options],
) -> Learner:
    """Nesterov's accelerated gradient: ``s = gain * lr * g; v = momentum * v + s; w -= momentum * v + s``.

    Of a row-sparse gradient only the rows that are present move.

    Args:
        momentum: a number, a list or a schedule; of each minibatch, or of the number of samples its schedule refers to.
        unit_gain: True weighs the new gradient by ``1 - momentum``, so that the sum of all weights is 1; False by 1.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: I. Sutskever, J. Martens, G. Dahl, G. Hinton: On the importance of initialization and momentum in deep learning, ICML 2013.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.nesterov([w], lr=0.5, momentum=0.5)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.8125, 0.625 ], dtype=float32)
    """
    return Nesterov(parameters, lr, momentum, unit_gain, LearnerOptions(**options))
