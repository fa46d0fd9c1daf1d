"""The slots and roots that a training step needs of a program, resolved once."""

from __future__ import annotations

from collections.abc import Sequence

from cntk.core.distributed import Minibatch
from cntk.core.dtypes import computing_type
from cntk.core.program import Program
from cntk.core.variable import Variable
from cntk.core.workspace import Run
from cntk.learners import Learner


class TrainingPlan:
    """How to train with a program: where its loss, its metric and the gradients of each learner's parameters are.

    Args:
        program: computes the loss, the metric and the gradients.
        loss, metric: its roots that are summed; the metric may be None.
        learners: what updates the parameters.

    Attributes:
        program: as given.
    """

    def __init__(self, program: Program, loss: Variable, metric: Variable | None, learners: Sequence[Learner]) -> None:
        self.program = program
        self._loss, self._loss_slot = loss, program.root_slots[loss]
        self._metric_slot = None if metric is None else program.root_slots[metric]
        self._loss_type, self._metric_type = (computing_type(of.dtype) for of in (loss, loss if metric is None else metric))
        self._updates = [(learner, [program.gradient_slots[p] for p in learner.updated_parameters]) for learner in learners]

    def sums(self, run: Run, ends_sweep: bool) -> Minibatch:
        """Loss and metric summed over the minibatch; samples are those of the loss."""
        arrays, total = run.binding.arrays, self.program.backend.xp.add.reduce
        loss = float(total(arrays[self._loss_slot], None, self._loss_type))
        metric = 0.0 if self._metric_slot is None else float(total(arrays[self._metric_slot], None, self._metric_type))
        return Minibatch(run.count(self._loss), loss, metric, ends_sweep)

    def learn(self, run: Run, minibatch: Minibatch) -> bool:
        """Go back, and have the learners update the parameters; whether one did."""
        run.backward()
        arrays, updated = run.binding.arrays, False
        for learner, slots in self._updates:
            updated = learner.update_arrays([arrays[slot] for slot in slots], minibatch.samples, minibatch.ends_sweep) or updated
        return updated
