"""The slots and roots that a training step needs of a program, resolved once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.extension.backend import Asynchronous
from cntk.core.extension.device import use_default_device
from cntk.core.graph.block import as_outputs, combine
from cntk.core.graph.function import Function
from cntk.core.graph.variable import Parameter, Variable
from cntk.core.program.program import Program
from cntk.core.program.slots import ROWS
from cntk.core.run.evaluate import feeds_for, program_for, switches
from cntk.core.run.workspace import Run, start
from cntk.core.types.sparse import RowSparse
from cntk.core.values.minibatch import Minibatch
from cntk.core.values.unfeed import unfeed
from cntk.learners.interface import LearnerInterface
from cntk.train.criterion import Criterion
from cntk.train.data import ends_sweep
from cntk.train.totals import Total


class TrainingPlan:
    """How to train with a program: where its loss, its metric and the gradients of each learner's parameters are.

    Args:
        program: computes the loss, the metric and the gradients.
        criterion: what is trained.
        learners: what updates the parameters.

    Attributes:
        program: the program.
        gradient_slots: for each learner the slots of its parameters' gradients.
    """

    def __init__(self, program: Program, criterion: Criterion, learners: Sequence[LearnerInterface]) -> None:
        self.program = program
        self._function = criterion.function
        self._loss = Total(program, criterion.loss)
        self._metric = None if criterion.metric is None else Total(program, criterion.metric)
        self._totals = [self._loss] if self._metric is None else [self._loss, self._metric]
        self._asynchronous = program.backend if isinstance(program.backend, Asynchronous) else None
        self._parameters = [learner.updated_parameters for learner in learners]
        self.gradient_slots = [[program.gradient_slots[parameter] for parameter in own] for own in self._parameters]

    def start(self, arguments: Any) -> Run:
        """Load data; the caller closes the run."""
        return start(self.program, feeds_for(self.program, arguments, self._function))

    def sums(self, run: Run, arguments: Any, is_sweep_end: bool | None) -> Minibatch:
        """Loss and metric summed over the minibatch; samples are those of the loss."""
        ends = ends_sweep(arguments) if is_sweep_end is None else bool(is_sweep_end)
        samples = self._loss.samples(run)
        if self._asynchronous is not None:
            return Minibatch.begun(samples, self._asynchronous.later(*[total.array(run) for total in self._totals]), ends)
        metric = 0.0 if self._metric is None else float(self._metric.array(run))
        return Minibatch(samples, float(self._loss.array(run)), metric, ends)

    def gradients(self, run: Run) -> list[list[Any]]:
        """Gradients of each learner's parameters, in the workspace's memory: arrays of the backend or RowSparse."""
        array_of = run.binding.arrays.__getitem__
        return [list(map(array_of, slots)) for slots in self.gradient_slots]

    def zero_gradients(self) -> list[list[Any]]:
        """Gradients of zero, of the kinds that the program makes."""
        return [
            [_zero(parameter, self.program.slots[slot].kind == ROWS) for parameter, slot in zip(own, slots, strict=True)]
            for own, slots in zip(self._parameters, self.gradient_slots, strict=True)
        ]


def _zero(parameter: Parameter, is_row_sparse: bool) -> Any:
    shape, xp = tuple(parameter.shape), parameter.backend.xp
    if not is_row_sparse:
        return xp.zeros(shape, parameter.dtype)
    zero = RowSparse(shape, parameter.dtype)
    zero.set(xp.zeros(0, np.intp), xp.zeros((0, *shape[1:]), parameter.dtype))
    return zero


class Planner:
    """Makes a trainer's plans, and keeps the last one for as long as the same is asked for.

    Args:
        criterion: what is trained.
        learners: what updates the parameters.
    """

    def __init__(self, criterion: Criterion, learners: Sequence[LearnerInterface]) -> None:
        self._criterion, self._learners = criterion, list(learners)
        parameters = [parameter for learner in learners for parameter in learner.updated_parameters]
        inputs = [variable for variable in combine([criterion.loss]).arguments if variable.needs_gradient]
        self._wrt = (*parameters, *inputs)
        self._plan: TrainingPlan | None = None
        self._asked: Any = None

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the compiled program."""
        return {**self.__dict__, "_plan": None}

    def plan_for(self, extra: Mapping[Any, Variable], device: Any) -> TrainingPlan:
        """How to train and have the values of further variables; the program is looked up only where something else is asked for."""
        asked = None if extra else (use_default_device() if device is None else device, switches())
        if self._plan is None or asked is None or asked != self._asked:
            criterion = self._criterion
            roots = *criterion.roots, *extra.values()
            program = program_for(criterion.function, roots, device, self._wrt, (criterion.loss,), training=True)
            if self._plan is None or self._plan.program is not program:
                self._plan = TrainingPlan(program, criterion, self._learners)
            self._asked = asked
        return self._plan


def wanted(outputs: Any) -> dict[Any, Variable]:
    """Variables by the function or variable that stands for them; the outputs of a function with several stand for themselves."""
    listed = [outputs] if isinstance(outputs, (Function, Variable)) else list(outputs)
    found: dict[Any, Variable] = {}
    for item in listed:
        if isinstance(item, np.ndarray):
            raise TypeError(
                "train_minibatch: data of several inputs come as one dictionary, {x: X, y: Y}; the second argument is for outputs"
            )
        variables = as_outputs(item)
        found.update({item: variables[0]} if len(variables) == 1 else {variable: variable for variable in variables})
    return found


def values_of(run: Run, extra: Mapping[Any, Variable]) -> dict[Any, Any]:
    """Values of the variables that are :func:`wanted`, as users get them."""
    to_numpy = run.binding.backend.to_numpy
    return {key: unfeed(to_numpy(run.value(of)), of.dynamic_axes, run.layout(of)) for key, of in extra.items()}
