"""Stochastic gradient descent."""

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


class SGD(Learner):
    """Move against the gradient."""

    lazy = True

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        return (self.rate,)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        xp.multiply(g, self.rate, out=g)
        xp.subtract(w, g, out=w)


@checked
@takes_options
def sgd(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    **options: Unpack[Options],
) -> Learner:
    """Stochastic gradient descent: ``w -= lr * g``.

    The gradient *g* is summed over the minibatch, and *lr* is divided by the number of samples it refers to.

    Args:
        parameters: the parameters to update.
        lr: learning rate: a number, a list of numbers (see *epoch_size*) or a schedule.
        options: those that every learner takes.

    Returns:
        The learner, for a :class:`~cntk.train.trainer.Trainer`.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape; or an option is out of range.

    Example:
        >>> w = C.parameter(2, init=1)
        >>> learner = C.sgd([w], lr=0.5)
        >>> learner.update({w: np.array([2, 4], dtype=np.float32)}, 4)
        True
        >>> w.value
        array([0.75, 0.5 ], dtype=float32)
    """
    return SGD(parameters, lr, LearnerOptions(**options))
