"""Stochastic gradient descent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.arguments import checked
from .learner import Learner
from .options import LearnerOptions
from .schedules import ScheduleLike

if TYPE_CHECKING:
    from ..core.variable import Parameter


class SGD(Learner):
    """Move against the gradient."""

    lazy = True

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        return (self.rate,)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        xp.multiply(g, self.rate, out=g)
        xp.subtract(w, g, out=w)


@checked
def sgd(
    parameters: Iterable[Parameter],
    lr: ScheduleLike,
    l1_regularization_weight: float = 0.0,
    l2_regularization_weight: float = 0.0,
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0,
    gradient_clipping_threshold_per_sample: float = math.inf,
    gradient_clipping_with_truncation: bool = True,
    use_mean_gradient: bool | None = None,
    minibatch_size: int | None = None,
    epoch_size: int | None = None,
) -> Learner:
    """Stochastic gradient descent: ``w -= lr * g``.

    The gradient *g* is summed over the minibatch, and *lr* is divided by the number of samples it refers to.

    Args:
        parameters: the parameters to update.
        lr: learning rate: a number, a list of numbers (see *epoch_size*) or a schedule.
        l1_regularization_weight: weight per sample of the parameters' absolute values.
        l2_regularization_weight: weight per sample of half the parameters' squares.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update.
        gradient_clipping_threshold_per_sample: largest size of a gradient's elements, or norm, per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that *lr* refers to if it does not say; ``IGNORE``: the gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list is for; None for a sweep through the data.

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
    return SGD(parameters, lr, options)
