"""The base class of the learners: counts, schedules, checkpoints, and the order of updates."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar

from ..core.common import random
from .arguments import checked_gradient, checked_parameters
from .checkpoint import (
    MASTERS,
    check_masters,
    check_states,
    require,
    require_counts,
    restore_masters,
    restore_states,
    saved_masters,
    saved_states,
)
from .interface import LearnerInterface
from .kernels import kernel_of
from .options import UNPREPARED, LearnerOptions, prepare
from .parameter_state import ParameterState, Part
from .schedules import IGNORE, ScheduleLike, TrainingParameterSchedule

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


CHECKPOINT_KEYS = (
    "samples",
    "minibatches",
    "sweeps",
    "minibatch_size",
    "mean",
    "noise_seed",
    "learning_rate_schedule",
    "learning_rate_start",
    "counters",
    "smoothed_gradients",
)
"""The keys of a checkpoint."""
COUNTS = ("samples", "minibatches", "sweeps", "minibatch_size", "noise_seed", "learning_rate_start")
"""The keys whose values are whole numbers."""


class Learner(LearnerInterface):
    """Base class of the learners, for ``isinstance`` and for writing further ones.

    A learner declares in class attributes what it keeps for a parameter, and implements :meth:`step`; one with momenta or counts of its
    own also extends :meth:`begin`.  For large parameters a kernel that a plugin has registered for the class replaces the step.

    Attributes:
        state_names: names of the arrays kept per parameter from update to update; they start at 0.
        work_arrays: number of temporary arrays :meth:`step` needs.
        counter_names: names of numbers kept per learner; they start at 0 and are attributes.
        setting_names: names of the attributes with its settings, beside the learning rate and the options that all learners have.
        lazy: whether a row-sparse gradient touches only its rows; if not, the rows without gradient are updated too.
        announcements: hyper-parameters whose value has changed, still to be reported to the progress writers.

    Args:
        parameters: the parameters that it updates, distinct and of known shape.
        lr: learning rate: a number, a list or a schedule.
        options: what all learners have in common.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape; or *lr* is of another type.

    >>> from cntk.extend import Learner, LearnerOptions
    >>> class SignDescent(Learner):
    ...     def step(self, xp, w, g, states, work):
    ...         w -= self.rate * xp.sign(g)
    >>> w = C.parameter(2)
    >>> learner = SignDescent([w], 0.5, LearnerOptions())
    >>> learner.update({w: np.array([3, -4], np.float32)}, training_sample_count=1)
    True
    >>> w.value
    array([-0.5,  0.5], dtype=float32)
    """

    ignored_minibatch_size = IGNORE
    _MINIBATCH_SIZE = "MinibatchSize"  # under which the options of CNTK's engine have it

    state_names: ClassVar[tuple[str, ...]] = ()
    work_arrays: ClassVar[int] = 0
    counter_names: ClassVar[tuple[str, ...]] = ()
    setting_names: ClassVar[tuple[str, ...]] = ()
    lazy: ClassVar[bool] = False

    def __init__(self, parameters: Iterable[Parameter], lr: ScheduleLike, options: LearnerOptions) -> None:
        self._parameters = checked_parameters(parameters)
        self._options = options
        self._learning_rate_schedule = options.rate_schedule(lr)
        self._learning_rate_start = 0
        reference = options.reference_minibatch_size
        self._mean = reference == IGNORE and reference is not None
        self._minibatch_size = reference or IGNORE
        self._noise_seed = random.generate_random_seed() if options.has_noise else 0
        self._samples = self._minibatches = self._sweeps = 0
        self._announced: dict[str, float] = {}
        self.announcements: dict[str, float] = {}
        self.rate = 0.0
        self._factor = 1.0
        self._lazily = self.lazy and not options.l2_regularization_weight
        self._prepares, self._changes_parameters = options.prepares, options.changes_parameters
        self._equip()
        for name in self.counter_names:
            setattr(self, name, 0)

    def _equip(self) -> None:
        """Get a kernel, if there is one, and memory for each parameter."""
        options = self._options
        self._kernel = kernel_of(type(self), self._parameters)
        steps = max(self.work_arrays, options.needs_work_array, bool(options.l2_regularization_weight))
        work = steps if self._kernel is None else max(self._kernel.work_arrays, options.needs_work_array)
        fused, takes_rows = self._kernel is not None, getattr(self._kernel, "takes_rows", False)
        self._parameter_states = [ParameterState(p, len(self.state_names), work, steps, fused, takes_rows) for p in self._parameters]
        self._has_masters = any(entry.has_master for entry in self._parameter_states)

    def __getstate__(self) -> dict[str, Any]:
        """Everything but kernel and memory, with the smoothed gradients and masters as in a checkpoint."""
        state = {name: held for name, held in self.__dict__.items() if name not in ("_kernel", "_parameter_states")}
        states, masters = saved_states(self._parameter_states, self.state_names), saved_masters(self._parameter_states)
        return {**state, "smoothed_gradients": states, **masters}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update((name, held) for name, held in state.items() if name not in ("smoothed_gradients", MASTERS))
        self._equip()
        restore_states(self._parameter_states, self.state_names, state["smoothed_gradients"])
        restore_masters(self._parameter_states, state)

    # Implemented by learners -----------------------------------------------------------------------------------------------------

    def begin(self, count: int) -> None:
        """Prepare for an update with the gradients of *count* samples; sets ``rate``, the factor of this minibatch's gradient."""
        schedule = self._learning_rate_schedule
        rate = self.learning_rate()
        self.announce("Learning rate", schedule, rate)
        reference = schedule.minibatch_size
        if self._mean:
            self.rate = rate * count / reference if reference else rate
        else:
            self.rate = rate / (reference or count)

    def coefficients(self, dtype: Any) -> tuple[float, ...]:
        """The numbers of this update's formula for parameters of a type: those that :meth:`step` uses and a kernel is given.

        They are computed in double precision and rounded once, when they are combined with arrays.
        """
        return ()

    def row_coefficients(self, dtype: Any) -> tuple[float, ...]:
        """As :meth:`coefficients`, for :meth:`step_rows`."""
        return self.coefficients(dtype)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        """Update *w*, a parameter, in place from its gradient *g*, which may be overwritten.

        Args:
            xp: array namespace.
            w, g: parameter and gradient, of one shape.
            states: the arrays named in ``state_names``, to be updated in place.
            work: ``work_arrays`` uninitialised arrays.
        """
        raise TypeError(f"{type(self).__name__}: a learner must define step(xp, w, g, states, work)")

    def step_rows(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        """As :meth:`step`, for those rows of a parameter that a row-sparse gradient has, if the learner is ``lazy``."""
        self.step(xp, w, g, states, work)

    # Used by learners -----------------------------------------------------------------------------------------

    def current(self, schedule: TrainingParameterSchedule[float]) -> float:
        """The value of *schedule* for the next update."""
        return schedule[self._sweeps if schedule.is_sweep_based else self._samples]

    def momentum_of(self, schedule: TrainingParameterSchedule[float], count: int) -> float:
        """The momentum of a minibatch of *count* samples."""
        momentum = self.current(schedule)
        reference = schedule.minibatch_size
        return momentum ** (count / reference) if reference else momentum

    def announce(self, what: str, schedule: TrainingParameterSchedule[float], value: float) -> None:
        """Report the value of the hyper-parameter *what* to the progress writers, if it has changed."""
        if self._announced.get(what) != value:
            self._announced[what] = value
            self.announcements[f"{what} per {schedule.unit}"] = value

    # For users -----------------------------------------------------------------------------------------------------------------

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters that this learner updates."""
        return self._parameters

    @property
    def updated_parameters(self) -> tuple[Parameter, ...]:
        """The same, also of a :class:`UserLearner`, where ``parameters`` is a method."""
        return self._parameters

    @property
    def minibatch_size(self) -> int:
        """Number of samples that hyper-parameters refer to if their schedules do not specify it; ``IGNORE`` (0) for a whole minibatch."""
        return self._minibatch_size

    @minibatch_size.setter
    def minibatch_size(self, size: int) -> None:
        self._minibatch_size = size
        self._mean = size == IGNORE

    def is_compatible_mode(self) -> bool:
        """Whether updates see the mean of a minibatch's gradients, as in other toolkits, and not their sum."""
        return self._mean

    def learning_rate(self) -> float:
        """The learning rate of the next update, as the schedule gives it (not divided by any number of samples).

        >>> learner = C.sgd([C.parameter(1)], C.learning_parameter_schedule_per_sample([0.5, 0.25], epoch_size=10))
        >>> first = learner.learning_rate()
        >>> for update in range(2):
        ...     learnt = learner.update({learner.parameters[0]: np.zeros(1, np.float32)}, 5)
        >>> first, learner.learning_rate()
        (0.5, 0.25)
        """
        schedule = self._learning_rate_schedule
        return schedule[(self._sweeps if schedule.is_sweep_based else self._samples) - self._learning_rate_start]

    def reset_learning_rate(self, learning_rate: TrainingParameterSchedule[float]) -> None:
        """Follow another schedule, from its start.

        As in CNTK 2.7 it is the values that change: they refer to as many samples as those before, whatever *learning_rate* says.

        Raises:
            ValueError: *learning_rate* is not a schedule.

        >>> learner = C.sgd([C.parameter(1)], C.learning_parameter_schedule(0.5))
        >>> learner.reset_learning_rate(C.learning_parameter_schedule(0.25))
        >>> learner.learning_rate()
        0.25
        """
        if not isinstance(learning_rate, TrainingParameterSchedule):
            raise ValueError(
                f"reset_learning_rate: expected a schedule, got {type(learning_rate).__name__}; "
                "make one with learning_parameter_schedule(...)"
            )
        schedule = learning_rate.copy()
        schedule.minibatch_size = self._learning_rate_schedule.minibatch_size
        self._learning_rate_schedule = schedule
        self._learning_rate_start = self._sweeps if schedule.is_sweep_based else self._samples

    @property
    def samples_seen(self) -> int:
        """The same as :meth:`total_number_of_samples_seen`, also of a distributed learner, where that is a property."""
        return self.total_number_of_samples_seen()

    def total_number_of_samples_seen(self) -> int:
        """Number of samples whose gradients have been used."""
        return self._samples

    def total_number_of_minibatches_seen(self) -> int:
        """Number of updates."""
        return self._minibatches

    def total_number_of_sweeps_seen(self) -> int:
        """Number of updates that ended a sweep through the data."""
        return self._sweeps

    def settings(self) -> dict[str, Any]:
        """Its settings by name, which must be the same on all workers that train together."""
        own = {name.strip("_"): getattr(self, name) for name in self.setting_names}
        noise = {"noise_seed": self._noise_seed} if self._options.has_noise else {}
        options = {field.name: getattr(self._options, field.name) for field in fields(self._options)}
        return {"learning rate": self._learning_rate_schedule, **own, **options, "minibatch_size": self._minibatch_size, **noise}

    def standing(self) -> dict[str, float]:
        """Its progress, which must be the same before each update on all workers with the same updates."""
        counts = {"samples": self._samples, "updates": self._minibatches, "sweeps": self._sweeps}
        return {"learning rate of the next update": self.learning_rate(), **counts}

    def rule(self) -> int:
        """The values of settings that may change during training."""
        return hash((self._learning_rate_schedule, self._minibatch_size))

    def reset_smoothed_gradients(self) -> None:
        """Forget all gradients seen; the counts of samples, minibatches and sweeps stay."""
        for entry in self._parameter_states:
            entry.reset()
        for name in self.counter_names:
            setattr(self, name, 0)

    def update(self, gradient_values: Mapping[Parameter, Any], training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """Update the parameters.

        Args:
            gradient_values: for each parameter of the learner its gradient, summed over the minibatch: an array of the
                parameter's shape (it is copied) or a :class:`~cntk.core.types.sparse.RowSparse`.
            training_sample_count: number of samples in the minibatch, at least 1.
            is_sweep_end: whether the minibatch ends a sweep through the data.

        Returns:
            Whether the learner has learnt from the gradients: True.

        Raises:
            ValueError: the minibatch is empty, or a gradient is missing or of another shape.
        """
        count = operator.index(training_sample_count)
        if count < 1:
            raise ValueError(f"update: expected the gradients of at least one sample, got {training_sample_count}")
        gradients = [checked_gradient(parameter, gradient_values) for parameter in self._parameters]
        with self._parameters[0].backend.guard():
            return self.update_arrays(gradients, count, is_sweep_end)

    def update_arrays(self, gradients: Sequence[Any], count: int, is_sweep_end: bool = False) -> bool:
        """As :meth:`update`, for a training loop: nothing is checked or copied, and the gradients may be overwritten.

        Args:
            gradients: backend arrays or RowSparse gradients, in the order of :attr:`parameters`.
            count: number of samples in the minibatch.
            is_sweep_end: whether the minibatch ends a sweep through the data.

        Returns:
            Whether the learner has learnt from them; with a dynamic loss scale not from gradients that are not finite.
        """
        scale = self.loss_scale
        if scale is not None and not scale.admits(self._parameters[0].backend.xp, gradients):
            return self.skip(count, is_sweep_end)
        self._factor = 1.0 if scale is None else 1.0 / scale.value
        self.begin(count)
        for_kernel: list[Part] = []
        parts: list[Part] = []
        for entry, gradient in zip(self._parameter_states, gradients, strict=True):
            part = entry.part(gradient, self._lazily)
            if self._has_masters:
                parts.append(part)
            if part.rows is not None and not len(part.rows):
                continue
            if self._kernel is not None and not part.is_copy:
                for_kernel.append(part)
                continue
            self._step(part, count)
            if part.is_copy:
                entry.take_back(part)
            part.g = None  # it is the program's, which may need the memory for a larger minibatch
        if for_kernel:
            self._step_by_kernel(for_kernel, count)
            for part in for_kernel:
                part.g = None
        if self._changes_parameters:
            self._finish(count)
        if self._has_masters:
            for entry, part in zip(self._parameter_states, parts, strict=True):
                entry.publish(None if self._changes_parameters else part.rows)
        for parameter in self._parameters:
            parameter.updates += 1
        self._count(count, is_sweep_end)
        return True

    def skip(self, count: int, is_sweep_end: bool = False) -> bool:
        """Count a minibatch, but learn nothing from it, since the loss scale was too large for its gradients; False."""
        if self.loss_scale is not None:
            self.loss_scale.overflowed = True
        self._count(count, is_sweep_end)
        return False

    def values(self) -> list[Any]:
        """The parameters' values on the host, copies, in the type that updates compute in: of those of 16 bits their float32 masters."""
        with self._parameters[0].backend.guard():
            for entry in self._parameter_states:
                entry.follow()
        return [entry.parameter.backend.to_numpy(entry.values) for entry in self._parameter_states]

    def take_values(self, values: Sequence[Any]) -> None:
        """Set the parameters, and their masters, to what :meth:`values` returned, here or on another worker."""
        with self._parameters[0].backend.guard():
            for entry, given in zip(self._parameter_states, values, strict=True):
                entry.take_values(given)

    def create_checkpoint(self) -> dict[str, Any]:
        """The learner's whole state: numbers, strings, lists, dictionaries and NumPy arrays of its own."""
        return {
            "type": type(self).__name__,
            "samples": self._samples,
            "minibatches": self._minibatches,
            "sweeps": self._sweeps,
            "minibatch_size": self._minibatch_size,
            "mean": self._mean,
            "noise_seed": self._noise_seed,
            "learning_rate_schedule": self._learning_rate_schedule.create_checkpoint(),
            "learning_rate_start": self._learning_rate_start,
            "counters": {name: getattr(self, name) for name in self.counter_names},
            "smoothed_gradients": saved_states(self._parameter_states, self.state_names),
            **saved_masters(self._parameter_states),
        }

    def check_checkpoint(self, checkpoint: Any) -> None:
        """Check that :meth:`restore_from_checkpoint` accepts a state.

        A learner that overrides that method, but not this one, has its state checked when it is restored.

        Raises:
            RuntimeError: the state is of another type of learner, or of one for other parameters, or something is missing in it.
            ValueError: its schedule is not a schedule.
        """
        own = type(self)
        if own.restore_from_checkpoint is Learner.restore_from_checkpoint or own.check_checkpoint is not Learner.check_checkpoint:
            self._check(checkpoint)

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Restore a state that :meth:`create_checkpoint` returned.

        Raises:
            RuntimeError: the state is of another type of learner, or of one for other parameters, or something is missing in it.
            ValueError: its schedule is not a schedule.
        """
        self._check(checkpoint)
        restore_states(self._parameter_states, self.state_names, checkpoint["smoothed_gradients"])
        restore_masters(self._parameter_states, checkpoint)
        self._samples, self._minibatches, self._sweeps = (checkpoint[key] for key in ("samples", "minibatches", "sweeps"))
        self._minibatch_size, self._mean = checkpoint["minibatch_size"], checkpoint["mean"]
        self._noise_seed = checkpoint["noise_seed"]
        self._learning_rate_schedule = TrainingParameterSchedule.from_checkpoint(checkpoint["learning_rate_schedule"])
        self._learning_rate_start = checkpoint["learning_rate_start"]
        for counter in self.counter_names:
            setattr(self, counter, checkpoint["counters"][counter])

    def _check(self, checkpoint: Any) -> None:
        name = type(self).__name__
        require(checkpoint, ("type",), name)
        if checkpoint["type"] != name:
            raise RuntimeError(
                f"checkpoint of a learner of type {checkpoint['type']!r} given to one of type {name!r}; "
                "make the learner as it was, or load the model alone with C.load_model"
            )
        require(checkpoint, CHECKPOINT_KEYS, name)
        require_counts(checkpoint, COUNTS, name)
        if not isinstance(checkpoint["mean"], bool):
            raise RuntimeError(f"checkpoint of {name}: 'mean' is True or False, got {checkpoint['mean']!r:.80}")
        require(checkpoint["counters"], self.counter_names, f"the counters of {name}")
        numbers = [checkpoint["counters"][counter] for counter in self.counter_names]
        if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
            raise RuntimeError(f"checkpoint of {name}: the counters {self.counter_names} are numbers, got {numbers!r:.80}")
        TrainingParameterSchedule.from_checkpoint(checkpoint["learning_rate_schedule"])
        check_states(self._parameter_states, self.state_names, checkpoint["smoothed_gradients"])
        check_masters(self._parameter_states, checkpoint)

    def __repr__(self) -> str:
        schedule = self._learning_rate_schedule
        return f"{type(self).__name__}({len(self._parameters)} parameters, learning rate {self.learning_rate()} per {schedule.unit})"

    # Inside --------------------------------------------------------------------------------------------------------------------

    def _step(self, part: Part, count: int) -> None:
        """Prepare the gradient and update a parameter, or rows of it."""
        xp, w, g, states, work = part.xp, part.w, part.g, part.states, part.work
        if self._prepares or self._mean or self._factor != 1:
            prepare(xp, w, g, work, self._options.preparation(xp, g, work, count, self._mean, self._factor))
        if part.rows is None:
            self.step(xp, w, g, states, work)
        else:
            self.step_rows(xp, w, g, states, work)

    def _step_by_kernel(self, parts: Sequence[Part], count: int) -> None:
        """The same for whole parameters, and for rows that lie in them, all at once."""
        for part in parts:
            coefficients = self.coefficients if part.rows is None else self.row_coefficients
            part.preparation, part.coefficients = UNPREPARED, coefficients(part.w.dtype)
            if self._prepares or self._mean or self._factor != 1:
                part.preparation = self._options.preparation(part.xp, part.g, part.work, count, self._mean, self._factor)
        self._kernel.update(parts)

    def _finish(self, count: int) -> None:
        options = self._options
        shrinkage = self.rate * options.l1_regularization_weight * (1 if self._mean else count)
        deviation = self.current(options.noise)
        first = self._minibatches * len(self._parameter_states)
        for draw, entry in enumerate(self._parameter_states, first):
            options.finish(entry.parameter.backend, entry.values, entry.work[0], shrinkage, deviation, self._noise_seed, draw)

    def _count(self, samples: int, is_sweep_end: bool) -> None:
        self._samples += samples
        self._minibatches += 1
        self._sweeps += is_sweep_end
