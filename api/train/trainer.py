"""The trainer: one minibatch at a time, from data to new parameter values."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any

import numpy as np

from cntk.core import random
from cntk.core.arguments import checked
from cntk.core.block import as_composite, as_outputs, combine
from cntk.core.device import use_default_device
from cntk.core.distributed import Minibatch, Transport
from cntk.core.dtypes import computing_type
from cntk.core.evaluate import feeds_for, program_for, switches
from cntk.core.function import Function
from cntk.core.graph import depth_first_search
from cntk.core.model_files import holders_of_both
from cntk.core.operator_states import check_operator_states, operator_states, restore_operator_states
from cntk.core.progress import ProgressWriter
from cntk.core.unfeed import unfeed
from cntk.core.variable import Output, Parameter, Variable
from cntk.core.workspace import Run
from cntk.debugging.profiler import node_timing
from cntk.learners import Learner
from cntk.plugins.formats.wire import DamagedFile
from cntk.readers.reader import handed_over
from cntk.readers.shares import Share
from cntk.readers.streams import MinibatchData
from cntk.train.checkpoint import part_of, read_checkpoint, require_parts, require_plain, require_savable, write_checkpoint
from cntk.train.distributed import DistributedLearner
from cntk.train.plan import TrainingPlan
from cntk.train.team import Team, team_of

logger = logging.getLogger("cntk.train")


class Trainer:
    """Trains a criterion with learners.

    Args:
        model: the model, for reference and for saving; may be None.
        criterion: a function with the loss as its first and a metric as its optional second output, or a tuple of these.
        parameter_learners: a learner, or several that share the parameters between them.
        progress_writers: a progress writer, several, or None.

    Raises:
        ValueError: a criterion of more than two parts, no learner, a learner's parameter that the loss does not contain, or a
            parameter that two learners update; or workers differ in what they train.
        TypeError: a part of the criterion, a learner or a progress writer is something else.

    >>> x, y = C.input_variable(2), C.input_variable(1)
    >>> model = C.layers.Dense(1, init=0)(x)
    >>> trainer = C.Trainer(model, C.squared_error(model, y), C.sgd(model.parameters, 0.1))
    >>> trainer.train_minibatch({x: np.ones((4, 2), np.float32), y: np.ones((4, 1), np.float32)})
    True
    >>> trainer.previous_minibatch_loss_average
    1.0
    """

    @checked
    def __init__(
        self,
        model: Function | Variable | None,
        criterion: Any,
        parameter_learners: Learner | Sequence[Learner],
        progress_writers: ProgressWriter | Sequence[ProgressWriter] | None = None,
    ) -> None:
        if not isinstance(model, (Function, Variable, NoneType)):
            raise TypeError(f"Trainer: the model must be a Function or None, got {type(model).__name__} {model!r:.80}")
        self._model = model
        self._loss, self._metric = _parts_of(criterion)
        self._learners = as_list(parameter_learners)
        self._writers = writers_of(progress_writers)
        self._parameters = _check_learners(self._learners, self._loss)
        _tell_of_others(self._parameters, self._loss)
        self._roots = [self._loss] if self._metric is None else [self._loss, self._metric]
        outputs = model.outputs if isinstance(model, Function) else [model] if isinstance(model, Variable) else []
        self._function = combine([*self._roots, *outputs])
        self._saved = combine([*outputs, *self._roots])
        self._wrt = (*self._parameters, *(v for v in combine([self._loss]).arguments if v.needs_gradient))
        self._gradient_roots = (self._loss,)
        self._plan: TrainingPlan | None = None
        self._plan_asked: Any = None
        self._team = team_of(self._learners, self._loss)
        seen = self._learners[0].total_number_of_samples_seen
        self._seen: int = seen if self._team is not None else seen()
        self._last: tuple[int, float, float] | None = None
        self._ended_sweep = False

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the compiled program."""
        return {**self.__dict__, "_plan": None}

    # ---- training and testing ----

    def train_minibatch(
        self, arguments: Any, outputs: Iterable[Any] | None = None, device: Any = None, is_sweep_end: bool | None = None
    ) -> Any:
        """Train on one minibatch.

        Args:
            arguments: data by input variable or name, or one input's data where there is one input; with flags that say of each sequence
                whether it is new, a pair of these and the flags.
            outputs: functions of one output and variables whose values, from before the update, are wanted.
            device: where to compute; the default device where None.
            is_sweep_end: whether the minibatch is the last of a pass over the data, for schedules that count passes; data of a
                minibatch source says so itself.

        With distributed learners all workers call this, with samples of their own or with ``{}`` for none; it returns True while any of
        them has samples, so that all leave a loop together.

        Returns:
            Whether parameters were updated; with *outputs* a pair of that and a dictionary of the values by what was asked for.

        Raises:
            ValueError: data that does not fit the inputs.
        """
        extra = {} if outputs is None else _by_output(outputs)
        if isinstance(arguments, dict) and not arguments:
            updated = self._team is not None and self._train_without_data(self._team, extra, device)
            return updated if outputs is None else (updated, {})
        plan = self._plan_for(extra, device)
        if self._team is not None:
            self._team.begin()
        run = plan.program.start(feeds_for(plan.program, arguments, self._function))
        try:
            with run.guard():
                run.forward()
                minibatch = plan.sums(run, _ends_sweep(arguments) if is_sweep_end is None else bool(is_sweep_end))
                updated = plan.learn(run, minibatch) if self._team is None else self._team.learn(run, minibatch)
                values = {wanted: _host(run, variable) for wanted, variable in extra.items()} if extra else {}
                run.finish()
        finally:
            run.close()
        self._report(minibatch)
        return updated if outputs is None else (updated, values)

    def test_minibatch(self, arguments: Any, device: Any = None) -> float:
        """Average of the metric over one minibatch, without training; with distributed learners over this worker's samples only.

        Raises:
            ValueError: the criterion has no metric.
        """
        self._known_metric()
        return self.measure_minibatch(arguments, device)[0]

    def measure_minibatch(self, arguments: Any, device: Any = None, transport: Transport | None = None) -> tuple[float, int]:
        """Average of the metric, or of the loss where there is none, and the number of samples that it is the average of.

        Args:
            arguments, device: as for :meth:`test_minibatch`; with a *transport*, ``{}`` stands for no samples.
            transport: what connects this worker with others over whose samples to average, too.
        """
        average, samples = measure(self._function, self._loss if self._metric is None else self._metric, arguments, device, transport)
        for writer in self._writers:
            writer.update_test(samples, average * samples)
        return average, samples

    def summarize_training_progress(self) -> None:
        """Have the progress writers sum up training since the last summary."""
        self.take_training_summary()()

    def take_training_summary(self) -> Callable[[], None]:
        """Have the progress writers start anew, and return what has them write the summary of training until now."""
        summaries = [writer.take_training_summary() for writer in self._writers]

        def write() -> None:
            for summary in summaries:
                summary()

        return write

    def add_progress_writers(self, progress_writers: ProgressWriter | Sequence[ProgressWriter]) -> None:
        """Have further progress writers told of what comes.

        Raises:
            TypeError: something is no progress writer.
        """
        self._writers.extend(writers_of(progress_writers))

    def remove_progress_writers(self, progress_writers: ProgressWriter | Sequence[ProgressWriter]) -> None:
        """Have progress writers told no more.

        Raises:
            ValueError: one is not among those of the trainer.
        """
        for writer in writers_of(progress_writers):
            if writer not in self._writers:
                raise ValueError(f"remove_progress_writers: {writer!r:.80} is none of this trainer's progress writers")
            self._writers.remove(writer)

    def summarize_test_progress(self) -> None:
        """Have the progress writers sum up tests since the last summary."""
        for writer in self._writers:
            writer.summarize_test()

    # ---- checkpoints ----

    def save_checkpoint(self, filename: Any, external_state: Mapping[str, Any] | None = None) -> None:
        """Write the state of training to two files: the model to *filename*, everything else to *filename* with ``.ckp`` appended.

        Everything else is the state of the learners with their schedules' positions, of random numbers (dropout, noise, seeds to be
        chosen), the counts of the trainer and of the progress writers, and *external_state*.  A process that is killed meanwhile leaves
        the checkpoint that was there before, or the new one.

        With distributed learners all workers call this, the main worker writes, and *external_state* is kept of each.

        Args:
            filename: path of the model's file, which :meth:`Function.load` reads; its outputs are those of the model, the loss, the metric.
            external_state: what else to keep, such as a minibatch source's position: a dictionary with strings as keys of numbers,
                strings, bools, None, NumPy arrays, lists and dictionaries.

        Raises:
            TypeError: *external_state* holds something else.
            OSError: a file cannot be written.
        """
        team, external = self._team, {} if external_state is None else external_state
        require_plain(external, "external_state")
        if team is not None:
            team.synchronize()
        own = {"operators": operator_states(self._saved), "external": external}
        state = {
            "samples": self._seen,
            "learners": [learner.create_checkpoint() for learner in self._learners],
            "seeds": random.create_checkpoint(),
            "progress": [writer.create_checkpoint() for writer in self._writers],
            "workers": [own] if team is None else team.gather_states(own),
        }
        if team is None:
            write_checkpoint(filename, self._saved, state)
        else:
            team.on_main_worker(lambda: write_checkpoint(filename, self._saved, state))

    def require_savable(self) -> None:
        """Refuse a model that :meth:`save_checkpoint` cannot save.

        Raises:
            ValueError, TypeError: it is such a one.
        """
        require_savable(self._saved)

    def restore_from_checkpoint(self, filename: Any) -> dict[str, Any]:
        """Go on from a state that :meth:`save_checkpoint` has written: what follows is what followed then, bit for bit.

        The trainer, made by the same program, has the same model, criterion and learners.  Progress writers go on counting where there
        are as many as then.  With distributed learners all workers call this and read the file; there may be more of them than then, or
        fewer: of what was each worker's own a new one takes the ``external_state`` from the main worker, and draws random numbers of
        seeds of its own, from their start.  All take over what the workers have left of a ``MinibatchSource`` that they shared, whose
        states ``external_state`` holds.

        Args:
            filename: path of the model's file.

        Returns:
            The ``external_state``.

        Raises:
            RuntimeError: the files are missing or damaged, or the learners are of another type; nothing is changed then.
            ValueError: the model is another one.
        """
        external, take_over = self.checked_checkpoint(filename)
        take_over()
        return external

    def checked_checkpoint(self, filename: Any) -> tuple[dict[str, Any], Callable[[], None]]:
        """Read and check a checkpoint: its ``external_state``, and what has the trainer go on from it; nothing is changed before.

        Raises:
            RuntimeError, ValueError: as :meth:`restore_from_checkpoint`.
        """
        model, state = read_checkpoint(filename)
        where = f"{os.fsdecode(filename)}.ckp"
        require_parts(state, where, samples=int, learners=list, seeds=dict, progress=list, workers=list)
        learners, workers, progress = state["learners"], state["workers"], state["progress"]
        if not workers:
            raise DamagedFile(f"{where}: expected the state of one worker at least in it, got none")
        for index, worker in enumerate(workers):
            with part_of(where, f"workers[{index}]"):
                require_parts(worker, "a worker", operators=list, external=dict)
        if len(learners) != len(self._learners):
            raise RuntimeError(f"{filename}: checkpoint of {len(learners)} learners given to a trainer with {len(self._learners)}")
        values = holders_of_both(self._saved, Function.load(model), os.fsdecode(filename))
        rank, size = (0, 1) if self._team is None else (self._team.transport.rank, self._team.transport.size)
        own = workers[rank if rank < len(workers) else 0]
        for index, (learner, saved) in enumerate(zip(self._learners, learners, strict=True)):
            with part_of(where, f"learners[{index}]"):
                learner.check_checkpoint(saved)
        if self._team is not None:
            with part_of(where, "strategies"):
                self._team.check_learners(learners, workers)
        with part_of(where, "seeds"):
            random.check_checkpoint(state["seeds"])
        with part_of(where, "operators"):
            check_operator_states(self._saved, own["operators"])
        if len(progress) == len(self._writers):
            for index, (writer, saved) in enumerate(zip(self._writers, progress, strict=True)):
                with part_of(where, f"progress[{index}]"):
                    writer.check_checkpoint(saved)
        external: dict[str, Any] = own["external"]
        if len(workers) != size:
            external = handed_over(external, [worker["external"] for worker in workers], Share(size, rank))

        def take_over() -> None:
            if self._team is not None:
                self._team.restore_learners(learners, workers)
            else:
                for learner, saved in zip(self._learners, learners, strict=True):
                    learner.restore_from_checkpoint(saved)
            for mine, stored in values:
                mine.value = stored.value
            random.restore_from_checkpoint(state["seeds"])
            if rank < len(workers):
                restore_operator_states(self._saved, own["operators"])
            self._seen, self._last = state["samples"], None
            if len(progress) == len(self._writers):
                for writer, saved in zip(self._writers, progress, strict=True):
                    writer.restore_from_checkpoint(saved)

        return external, take_over

    def print_node_timing(self) -> None:
        """Print how long operators have taken on average since :func:`cntk.debugging.set_node_timing` was switched on."""
        print(timing_of(self._function), end="")

    # ---- what it knows ----

    @property
    def model(self) -> Function | Variable | None:
        """The model given at construction."""
        return self._model

    @property
    def loss_function(self) -> Function:
        """The loss."""
        return function_of(self._loss)

    @property
    def evaluation_function(self) -> Function | None:
        """The metric, or None."""
        return None if self._metric is None else function_of(self._metric)

    @property
    def parameter_learners(self) -> tuple[Learner, ...]:
        """The learners."""
        return tuple(self._learners)

    @property
    def previous_minibatch_loss_average(self) -> float:
        """Loss of the last minibatch, per sample.

        Raises:
            RuntimeError: there was none.
        """
        samples, loss, _ = self._previous()
        return loss / samples

    @property
    def previous_minibatch_evaluation_average(self) -> float:
        """Metric of the last minibatch, per sample.

        Raises:
            RuntimeError: there was no minibatch.
            ValueError: there is no metric.
        """
        samples, _, metric = self._previous()
        self._known_metric()
        return metric / samples

    @property
    def previous_minibatch_sample_count(self) -> int:
        """Samples of the last minibatch, as the loss counts them; 0 before the first."""
        return 0 if self._last is None else self._last[0]

    @property
    def previous_minibatch_ended_sweep(self) -> bool:
        """Whether a pass over the data ended in the last minibatch, on any worker."""
        return self._ended_sweep

    @property
    def team(self) -> Team | None:
        """What connects the workers of distributed learners; None with others."""
        return self._team

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples trained on so far, those included that the first learner had seen before it came to this trainer."""
        return self._seen

    # ---- inside ----

    def _plan_for(self, extra: Mapping[Any, Variable], device: Any) -> TrainingPlan:
        """How to train and have the values of further variables; kept for as long as the same are asked for."""
        asked = None if extra else (use_default_device() if device is None else device, switches())
        if self._plan is None or asked is None or asked != self._plan_asked:
            program = program_for(self._function, (*self._roots, *extra.values()), device, self._wrt, self._gradient_roots, training=True)
            if self._plan is None or self._plan.program is not program:
                self._plan = TrainingPlan(program, self._loss, self._metric, self._learners)
            self._plan_asked = asked
        return self._plan

    def _train_without_data(self, team: Team, extra: Mapping[Any, Variable], device: Any) -> bool:
        """Take part in a minibatch of the other workers; whether there was one."""
        minibatch = Minibatch(0, 0.0, 0.0)
        team.begin()
        updated = team.learn_from_others(self._plan_for(extra, device).program, minibatch)
        if minibatch.samples:
            self._report(minibatch)
        return updated

    def _report(self, minibatch: Minibatch) -> None:
        self._seen += minibatch.samples
        self._ended_sweep = minibatch.ends_sweep
        self._last = minibatch.own if self._team is not None and self._team.averages_models else minibatch.sums
        for learner in self._learners:
            if learner.announcements:
                for name, value in learner.announcements.items():
                    for writer in self._writers:
                        writer.write(name, value)
                learner.announcements.clear()
        for writer in self._writers:
            writer.update_training(*minibatch.sums)
        if self._team is not None and (synchronized := self._team.take_synchronization(minibatch))[0]:
            for writer in self._writers:
                writer.update_distributed(*synchronized)

    def _previous(self) -> tuple[int, float, float]:
        if self._last is None or not self._last[0]:
            raise RuntimeError("Trainer: no minibatch has been trained yet, or this worker had no samples in the last one")
        return self._last

    def _known_metric(self) -> Variable:
        if self._metric is None:
            raise ValueError("Trainer: the criterion has no metric; give it a second output, such as classification_error")
        return self._metric


def measure(
    function: Function, metric: Variable, arguments: Any, device: Any = None, transport: Transport | None = None
) -> tuple[float, int]:
    """Average of *metric* over a minibatch, and the number of samples it is the average of.

    Args:
        arguments: the data; with a *transport*, ``{}`` for none.
        transport: what connects this worker with others that measure, too, and whose samples count.
    """
    is_empty = transport is not None and isinstance(arguments, dict) and not arguments
    total, samples = (0.0, 0) if is_empty else _sum_of(function, metric, arguments, device)
    if transport is not None:
        sums = np.array([total, samples], np.float64)
        transport.sum(sums, "sums of a test")
        total, samples = float(sums[0]), int(sums[1])
    return total / samples if samples else 0.0, samples


def _sum_of(function: Function, metric: Variable, arguments: Any, device: Any) -> tuple[float, int]:
    program = program_for(function, [metric], device)
    run = program.start(feeds_for(program, arguments, function))
    try:
        with run.guard():
            run.forward()
        return float(run.value(metric).sum(dtype=computing_type(metric.dtype))), run.count(metric)
    finally:
        run.close()


def timing_of(function: Function) -> str:
    """What :func:`cntk.debugging.set_node_timing` has measured of a function's nodes, a line for each."""
    nodes = depth_first_search(function.root_function, lambda node: not isinstance(node, Variable), -1)
    return node_timing({node.uid for node in nodes})


def function_of(variable: Variable) -> Function:
    """The function whose only output is *variable*."""
    if isinstance(variable, Output) and len(variable.owner.outputs) == 1:
        return as_composite(variable.owner)
    return combine([variable])


def _by_output(outputs: Any) -> dict[Any, Variable]:
    """Variables by the function or variable that stands for them; the outputs of a function with several stand for themselves."""
    listed = [outputs] if isinstance(outputs, (Function, Variable)) else list(outputs)
    found: dict[Any, Variable] = {}
    for item in listed:
        variables = as_outputs(item)
        found.update({item: variables[0]} if len(variables) == 1 else {variable: variable for variable in variables})
    return found


def _host(run: Run, variable: Variable) -> Any:
    return unfeed(run.binding.backend.to_numpy(run.value(variable)), variable.dynamic_axes, run.layout(variable))


def _ends_sweep(arguments: Any) -> bool:
    """Whether data of a minibatch source says that a sweep ends in it."""
    for data in arguments.values() if isinstance(arguments, dict) else (arguments,):
        if isinstance(data, MinibatchData) and data.end_of_sweep:
            return True
    return False


def _parts_of(criterion: Any) -> tuple[Variable, Variable | None]:
    """Loss and metric of a criterion; a metric of None is none."""
    given = list(criterion) if isinstance(criterion, (tuple, list)) else [criterion]
    if len(given) == 2 and given[1] is None:
        given.pop()
    parts = as_outputs(given, "Trainer: a criterion consists of functions")
    if not 1 <= len(parts) <= 2:
        raise ValueError(f"Trainer: the criterion must have a loss and at most one metric, got {len(parts)} outputs")
    return parts[0], parts[1] if len(parts) == 2 else None


def writers_of(given: Any) -> list[ProgressWriter]:
    """Progress writers as a list, of one, several or None.

    Raises:
        TypeError: one is something else.
    """
    writers = as_list(given)
    for writer in writers:
        if not isinstance(writer, ProgressWriter):
            raise TypeError(f"progress_writers: expected progress writers, got {type(writer).__name__} {writer!r:.80}")
        if not hasattr(writer, "_training"):
            raise TypeError(f"progress_writers: {type(writer).__name__}.__init__ must call super().__init__(freq, ...)")
    return writers


def as_list(items: Any) -> list[Any]:
    """A list of what is given as None, one item or several."""
    if items is None:
        return []
    return list(items) if isinstance(items, (list, tuple)) else [items]


def _tell_of_others(learnt: Sequence[Parameter], loss: Variable) -> None:
    """Tell of parameters without a learner, which may have been forgotten."""
    known = set(learnt)
    left = [parameter.name or parameter.uid for parameter in combine([loss]).parameters if parameter not in known]
    if left:
        logger.warning("Trainer: %d parameters of the loss belong to no learner and stay as they are: %s", len(left), ", ".join(left))


def _check_learners(learners: Sequence[Learner], loss: Variable) -> list[Parameter]:
    """The learners' parameters, each once and part of the loss."""
    if not learners:
        raise ValueError("Trainer: at least one learner is needed")
    known = set(combine([loss]).parameters)
    owned: dict[Parameter, None] = {}
    for learner in learners:
        if not isinstance(learner, (Learner, DistributedLearner)):
            raise TypeError(f"Trainer: expected learners, made by cntk.sgd(...) or the like, got {type(learner).__name__} {learner!r:.80}")
        for parameter in learner.updated_parameters:
            if parameter not in known:
                raise ValueError(f"Trainer: {parameter!r} of a learner is not a parameter of the loss")
            if parameter in owned:
                raise ValueError(f"Trainer: {parameter!r} belongs to two learners; a parameter is updated by one")
            owned[parameter] = None
    return list(owned)


__all__ = ["Trainer"]
