"""AdaDelta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

from ..core.types.arguments import checked
from .learner import Learner
from .numerics import positive
from .options import LearnerOptions, Options
from .schedules import ScheduleLike, learning_parameter_schedule_per_sample
from .signature import takes_options

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter

DEFAULT_LEARNING_RATE = learning_parameter_schedule_per_sample(1)


class AdaDelta(Learner):
    """Move by the gradient, scaled by the ratio of the sizes of past steps and past gradients."""

    state_names = ("mean_square", "mean_square_step")
    work_arrays = 1
    setting_names = ("_rho", "_epsilon")

    def __init__(self, parameters: Iterable[Parameter], lr: ScheduleLike, rho: float, epsilon: float, options: LearnerOptions) -> None:
        super().__init__(parameters, lr, options)
        self._rho = rho
        self._epsilon = epsilon

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        return self._rho, 1.0 - self._rho, positive(self._epsilon, dtype), self.rate

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (squares, steps), t = states, work[0]
        rho, fresh, epsilon, rate = self.coefficients(w.dtype)
        xp.multiply(g, g, out=t)
        xp.multiply(t, fresh, out=t)
        xp.multiply(squares, rho, out=squares)
        xp.add(squares, t, out=squares)
        xp.add(squares, epsilon, out=t)
        xp.sqrt(t, out=t)
        xp.divide(g, t, out=g)
        xp.add(steps, epsilon, out=t)
        xp.sqrt(t, out=t)
        xp.multiply(g, t, out=g)
        xp.multiply(g, g, out=t)
        xp.multiply(t, fresh, out=t)
        xp.multiply(steps, rho, out=steps)
        xp.add(steps, t, out=steps)
        xp.multiply(g, rate, out=g)
        xp.subtract(w, g, out=w)


@checked
@takes_options
def adadelta(
    parameters: Iterable[Parameter],
    lr: ScheduleLike = DEFAULT_LEARNING_RATE,
    rho: float = 0.95,
    epsilon: float = 1e-8,
    **options: Unpack[Options],
) -> Learner:
    """AdaDelta: a step is the gradient times the ratio of the root mean squares of past steps and past gradients.

    ``a = rho * a + (1 - rho) * g**2; d = sqrt(x + epsilon) / sqrt(a + epsilon) * g; x = rho * x + (1 - rho) * d**2; w -= lr * d``.

    Args:
        lr: learning rate, 1 per sample if not given.
        rho: decay of both mean squares, at each update.
        epsilon: added to both mean squares; the size of the first steps follows from it.
        options: those that every learner takes.

    The other arguments, and the errors, are those of :func:`sgd`.

    Source: M. D. Zeiler: ADADELTA: An Adaptive Learning Rate Method, 2012, arXiv:1212.5701.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.adadelta([w], rho=0.75, epsilon=0.25)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value.round(3)
        array([0.106, 0.03 ], dtype=float32)
    """
    return AdaDelta(parameters, lr, rho, epsilon, LearnerOptions(**options))
