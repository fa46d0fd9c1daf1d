"""The trainer: one minibatch at a time, from data to new parameter values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from cntk.core.common.displayed import Displayed
from cntk.core.common.tracebacks import answers, end_at_user
from cntk.core.graph.function import Function
from cntk.core.run.workspace import Run
from cntk.core.types.arguments import checked
from cntk.core.values.minibatch import Minibatch
from cntk.debugging.profiler import timing_of
from cntk.learners.interface import LearnerInterface
from cntk.learners.loss_scale import LossScale
from cntk.plugins.distributed.base import Transport
from cntk.plugins.progress.not_finite import warn_unless_finite
from cntk.train.criterion import Criterion, CriterionLike, Model, function_of
from cntk.train.loss_scales import scale_for
from cntk.train.plan import Planner, TrainingPlan, values_of, wanted
from cntk.train.progress import Progress, Writers
from cntk.train.state import TrainerState
from cntk.train.updates import updates_by


class Trainer(Displayed):
    """Trains a criterion with learners.

    Args:
        model: the model, for reference and for saving; may be None.
        criterion: a function with the loss as its first and a metric as its optional second output, or a tuple of these.
        parameter_learners: a learner, or several that share the parameters between them.
        progress_writers: a progress writer, several, or None.
        loss_scale: what the loss's gradient is multiplied by, and its parameters' gradients are divided by where they have become float32,
            so that small ones are not lost in float16: a number; ``'dynamic'`` for one that is adapted, by the rule of PyTorch's
            ``GradScaler``; a :class:`~cntk.train.LossScale`, to say how; or None. The losses that are told stay as they are.

    Attributes:
        team: what connects the workers of distributed learners; None with others.

    Raises:
        ValueError: a criterion of more than two parts, no learner, a learner's parameter that the loss does not contain, or a
            parameter that two learners update; workers differ in what they train; or a loss scale beyond the loss's element type.
        TypeError: a part of the criterion, a learner, a progress writer or the loss scale is something else, or there is a loss scale for
            a learner with an ``update`` of its own.

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
        model: Model,
        criterion: CriterionLike,
        parameter_learners: LearnerInterface | Sequence[LearnerInterface],
        progress_writers: Writers = None,
        loss_scale: float | str | LossScale | None = None,
    ) -> None:
        self._criterion = Criterion(model, criterion)
        self._progress = Progress(progress_writers)
        self._loss_scale = scale_for(self._criterion.loss, loss_scale)
        self._updates = updates_by(parameter_learners, self._criterion.loss, self._loss_scale)
        self._progress.seen = self._updates.learners[0].samples_seen
        self._planner = Planner(self._criterion, self._updates.learners)
        self._state = TrainerState(self._criterion.function, self._updates, self._progress, self._loss_scale)
        self.team = self._updates.team

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
            A minibatch that a dynamic loss scale leaves out counts as one that updated them: a loop goes on.

        Raises:
            ValueError: data that does not fit the inputs.

        >>> x, w = C.input_variable(1), C.parameter(1)
        >>> trainer = C.Trainer(None, C.squared_error(x * w, 1), C.sgd([w], C.learning_parameter_schedule_per_sample(0.25)))
        >>> trainer.train_minibatch({x: np.ones((2, 1), np.float32)})
        True
        >>> trainer.previous_minibatch_loss_average, w.value
        (1.0, array([1.], dtype=float32))
        """
        try:
            extra = {} if outputs is None else wanted(outputs)
            updates = self._updates
            if isinstance(arguments, dict) and not arguments:
                updated = self._learn_without_data(extra, device)
                return updated if outputs is None else (updated, {})
            plan = self._planner.plan_for(extra, device)
            updates.begin()
            run = plan.start(arguments)
            try:
                with run.guard():
                    run.forward()
                    minibatch = plan.sums(run, arguments, is_sweep_end)
                    updated = updates.learn(plan, run, minibatch) if self._loss_scale is None else self._learn_scaled(plan, run, minibatch)
                    values = values_of(run, extra) if extra else {}
                    run.finish()
            finally:
                run.close()
            self._progress.count(minibatch, updates)
            return updated if outputs is None else (updated, values)
        except Exception as error:
            end_at_user(error)
            raise

    def _learn_without_data(self, extra: dict[Any, Any], device: Any) -> bool:
        """Learn from what other workers have trained on; whether any of them had samples."""
        updates = self._updates
        with nullcontext() if self._loss_scale is None else self._loss_scale.at_work(updates.learners):
            updated, minibatch = updates.learn_without_data(partial(self._planner.plan_for, extra, device))
        if minibatch.samples and self._loss_scale is not None:
            updated = self._loss_scale.finish() or updated
        if minibatch.samples:
            self._progress.count(minibatch, updates)
        return updated

    def _learn_scaled(self, plan: TrainingPlan, run: Run, minibatch: Minibatch) -> bool:
        """Learn from gradients that are multiplied by the loss scale, and adapt that; True also where it has left the minibatch out."""
        assert self._loss_scale is not None
        run.seed = self._loss_scale.value
        with self._loss_scale.at_work(self._updates.learners):
            updated = self._updates.learn(plan, run, minibatch)
        return self._loss_scale.finish() or updated

    def test_minibatch(self, arguments: Any, device: Any = None) -> float:
        """Average of the metric over one minibatch, without training; with distributed learners over this worker's samples only.

        Raises:
            ValueError: the criterion has no metric.

        >>> x, y = C.input_variable(2), C.input_variable(2)
        >>> z = x + C.parameter(2)
        >>> criterion = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
        >>> trainer = C.Trainer(z, criterion, C.sgd(z.parameters, 0.1))
        >>> trainer.test_minibatch({x: np.float32([[1, 0], [3, 2]]), y: np.float32([[1, 0], [0, 1]])})
        0.5
        """
        try:
            self._criterion.require_metric()
            return self.measure_minibatch(arguments, device)[0]
        except Exception as error:
            end_at_user(error)
            raise

    def measure_minibatch(self, arguments: Any, device: Any = None, transport: Transport | None = None) -> tuple[float, int]:
        """Average of the metric, or of the loss where there is none, and the number of samples that it is the average of.

        Args:
            arguments, device: as for :meth:`test_minibatch`; with a *transport*, ``{}`` stands for no samples.
            transport: what connects this worker with others over whose samples to average, too.
        """
        average, samples = self._criterion.measure(arguments, device, transport)
        self._progress.count_test(average, samples)
        return average, samples

    def summarize_training_progress(self) -> None:
        """Have the progress writers sum up training since the last summary."""
        self.take_training_summary()()

    def take_training_summary(self) -> Callable[[], None]:
        """Reset the progress writers, and return a function that writes their summary of training until now."""
        return self._progress.take_training_summary()

    @answers
    def add_progress_writers(self, progress_writers: Writers) -> None:
        """Add progress writers.

        Raises:
            TypeError: something is not a progress writer.
        """
        self._progress.add(progress_writers)

    @answers
    def remove_progress_writers(self, progress_writers: Writers) -> None:
        """Remove progress writers.

        Raises:
            ValueError: one is not among those of the trainer.
        """
        self._progress.remove(progress_writers)

    def summarize_test_progress(self) -> None:
        """Have the progress writers sum up tests since the last summary."""
        self._progress.summarize_test()

    # ---- checkpoints ----

    @answers
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

        >>> import os, tempfile
        >>> x, w = C.input_variable(1), C.parameter(1)
        >>> trainer = C.Trainer(x * w, C.squared_error(x * w, 1), C.adam([w], 0.1, 0.9))
        >>> ones = np.ones((2, 1), np.float32)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     trained = trainer.train_minibatch({x: ones})
        ...     trainer.save_checkpoint(os.path.join(folder, 'checkpoint'))
        ...     trained, first = trainer.train_minibatch({x: ones}), w.value
        ...     state = trainer.restore_from_checkpoint(os.path.join(folder, 'checkpoint'))
        ...     trained, again = trainer.train_minibatch({x: ones}), w.value
        >>> bool(first == again)
        True
        """
        self._state.save(filename, {} if external_state is None else external_state)

    def require_savable(self) -> None:
        """Refuse a model that :meth:`save_checkpoint` cannot save.

        Raises:
            ValueError, TypeError: it is such a one.
        """
        self._state.require_savable()

    @answers
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
        return self._state.checked(filename)

    def print_node_timing(self) -> None:
        """Print how long operators have taken on average since :func:`cntk.debugging.set_node_timing` was switched on."""
        print(timing_of(self._criterion.function), end="")

    # ---- what it knows ----

    @property
    def model(self) -> Model:
        """The model given at construction."""
        return self._criterion.model

    @property
    def loss_function(self) -> Function:
        """The loss."""
        return function_of(self._criterion.loss)

    @property
    def evaluation_function(self) -> Function | None:
        """The metric, or None."""
        return None if self._criterion.metric is None else function_of(self._criterion.metric)

    @property
    def parameter_learners(self) -> tuple[LearnerInterface, ...]:
        """The learners."""
        return tuple(self._updates.learners)

    @property
    @answers
    def previous_minibatch_loss_average(self) -> float:
        """Loss of the last minibatch, per sample.

        Raises:
            RuntimeError: there was none.
        """
        samples, loss, _ = self._progress.previous()
        warn_unless_finite(loss)
        return loss / samples

    @property
    @answers
    def previous_minibatch_evaluation_average(self) -> float:
        """Metric of the last minibatch, per sample.

        Raises:
            RuntimeError: there was no minibatch.
            ValueError: there is no metric.
        """
        samples, _, metric = self._progress.previous()
        self._criterion.require_metric()
        return metric / samples

    @property
    def previous_minibatch_sample_count(self) -> int:
        """Samples of the last minibatch, as the loss counts them; 0 before the first."""
        return 0 if self._progress.last is None else self._progress.last[0]

    @property
    def previous_minibatch_ended_sweep(self) -> bool:
        """Whether a pass over the data ended in the last minibatch, on any worker."""
        return self._progress.ended_sweep

    @property
    def total_number_of_samples_seen(self) -> int:
        """Samples trained on so far, those included that the first learner had seen before it came to this trainer."""
        return self._progress.seen


__all__ = ["Trainer"]
