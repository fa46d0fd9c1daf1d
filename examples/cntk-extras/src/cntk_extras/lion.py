"""Lion: a learner of our own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cntk.learners import IGNORE, Learner
from cntk.learners.options import LearnerOptions


class Lion(Learner):
    """Moves every weight by the learning rate, in the direction that a mixture of gradient and momentum points to."""

    state_names = ("momentum",)
    work_arrays = 1

    def __init__(self, parameters: Iterable[Any], lr: Any, beta1: float, beta2: float) -> None:
        super().__init__(parameters, lr, LearnerOptions(minibatch_size=IGNORE))
        self.beta1, self.beta2 = beta1, beta2

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        (momentum,), (change,) = states, work[:1]
        xp.subtract(momentum, g, out=change)
        xp.multiply(change, self.beta1, out=change)
        xp.add(change, g, out=change)
        xp.sign(change, out=change)
        xp.multiply(change, self.rate, out=change)
        xp.subtract(w, change, out=w)
        xp.subtract(momentum, g, out=momentum)
        xp.multiply(momentum, self.beta2, out=momentum)
        xp.add(momentum, g, out=momentum)


def lion(parameters: Iterable[Any], lr: Any, beta1: float = 0.9, beta2: float = 0.99) -> Lion:
    """Lion: every weight moves by the learning rate, whatever the size of its gradient.

    Source: Chen et al.: Symbolic Discovery of Optimization Algorithms, 2023, algorithm 2.

    Args:
        parameters: the parameters to update.
        lr: how far each weight moves in a step: a number, a list of numbers or a schedule.
        beta1: share of the momentum in the direction of a step.
        beta2: share of the momentum that is kept from step to step.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape.

    >>> w = C.parameter(2, init=1)
    >>> C.learners.lion([w], lr=0.25).update({w: np.array([3., -4.], dtype=np.float32)}, 1)
    True
    >>> w.value
    array([0.75, 1.25], dtype=float32)
    """
    return Lion(parameters, lr, beta1, beta2)
