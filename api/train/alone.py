"""Learning in one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cntk.core.run.workspace import Run
from cntk.core.values.minibatch import Minibatch
from cntk.learners import Learner
from cntk.train.plan import TrainingPlan
from cntk.train.update_strategy import UpdateStrategy


class Alone(UpdateStrategy):
    """Learners that see the samples of this process and no others.

    Args:
        learners: the learners, none of them distributed.
    """

    def __init__(self, learners: Sequence[Learner]) -> None:
        self.learners: Sequence[Learner] = list(learners)

    def begin(self) -> None:
        """There are no other workers."""

    def learn(self, plan: TrainingPlan, run: Run, minibatch: Minibatch) -> bool:
        run.backward()
        array_of, updated = run.binding.arrays.__getitem__, False
        for learner, slots in zip(self.learners, plan.gradient_slots, strict=True):
            updated = learner.update_arrays(list(map(array_of, slots)), minibatch.samples, minibatch.ends_sweep) or updated
        if minibatch.pending is not None:
            minibatch.settle()
        return updated

    def learn_without_data(self, plan: Callable[[], TrainingPlan]) -> tuple[bool, Minibatch]:
        return False, Minibatch(0, 0.0, 0.0)

    def synchronize(self) -> None:
        """There is one model."""

    def gather_states(self, state: Mapping[str, Any]) -> list[Any]:
        return [state]

    def on_main_worker(self, write: Callable[[], None]) -> None:
        write()

    def check_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        """Learners keep nothing beside their states."""

    def restore_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        for learner, saved in zip(self.learners, learners, strict=True):
            learner.restore_from_checkpoint(saved)
