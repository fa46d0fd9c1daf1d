"""The base class of the learners: counts, schedules, checkpoints, and the order of what is done to each parameter."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..core import random
from ..core.sparse import RowSparse
from .options import LearnerOptions
from .schedules import IGNORE, ScheduleLike, TrainingParameterSchedule

if TYPE_CHECKING:
    from ..core.variable import Parameter


class Slot:
    """What a learner holds for one parameter.

    Attributes:
        parameter: the parameter.
        dtype: the type to compute in: the parameter's, but float32 for float16, in which squares of gradients vanish.
        states: the smoothed gradients, in the order of the learner's ``state_names``.
        work: temporary arrays of the parameter's shape.
        wide: space for parameter and gradient in *dtype*, if that is not their own.
    """

    __slots__ = ("_dense", "dtype", "parameter", "states", "wide", "work")

    def __init__(self, parameter: Parameter, states: int, work: int) -> None:
        backend, shape = parameter.backend, parameter.shape
        widens = parameter.dtype == np.float16
        self.dtype = dtype = np.float32 if widens else parameter.dtype
        self.parameter = parameter
        self.states = [backend.empty(shape, dtype) for _ in range(states)]
        self.work = [backend.empty(shape, dtype) for _ in range(work)]
        self.wide = [backend.empty(shape, dtype) for _ in range(2)] if widens else []
        self._dense: Any = None
        self.reset()

    def reset(self) -> None:
        """Forget all gradients."""
        for state in self.states:
            state[...] = 0

    def widened(self, gradient: Any) -> Sequence[Any]:
        """Parameter and gradient in the type to compute in."""
        for wide, array in zip(self.wide, (self.parameter.array, gradient), strict=True):
            wide[...] = array
        return self.wide

    def densify(self, gradient: RowSparse) -> Any:
        """The whole of a row-sparse gradient, in an array that is kept for it."""
        if self._dense is None:
            self._dense = self.parameter.backend.empty(self.parameter.shape, self.parameter.dtype)
        self._dense[...] = 0
        self._dense[gradient.rows] = gradient.values
        return self._dense


class Learner:
    """Base class of the learners, for ``isinstance`` and for writing further ones.

    A learner says in class attributes what it keeps for a parameter and writes :meth:`step`; one with momenta or counts of its
    own also extends :meth:`begin`.

    Attributes:
        state_names: names of the arrays kept per parameter from update to update; they start at 0.
        work_arrays: number of temporary arrays :meth:`step` needs.
        counter_names: names of numbers kept per learner; they start at 0 and are attributes.
        lazy: whether a row-sparse gradient touches only its rows; if not, the rows without gradient are updated too.
        announcements: hyper-parameters whose value has changed: what the progress writers have still to be told.

    Args:
        parameters: the parameters that it updates, distinct and of known shape.
        lr: learning rate: a number, a list or a schedule.
        options: what all learners have in common.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape; or *lr* is of another type.
    """

    state_names: ClassVar[tuple[str, ...]] = ()
    work_arrays: ClassVar[int] = 0
    counter_names: ClassVar[tuple[str, ...]] = ()
    lazy: ClassVar[bool] = False

    def __init__(self, parameters: Iterable[Parameter], lr: ScheduleLike, options: LearnerOptions) -> None:
        self._parameters = _checked(parameters)
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
        work = max(self.work_arrays, int(options.needs_work_array))
        self._slots = [Slot(parameter, len(self.state_names), work) for parameter in self._parameters]
        for name in self.counter_names:
            setattr(self, name, 0)

    # What a learner writes -----------------------------------------------------------------------------------------------------

    def begin(self, count: int) -> None:
        """Prepare for an update with the gradients of *count* samples; sets :attr:`rate`, the factor of this minibatch's gradient."""
        schedule = self._learning_rate_schedule
        rate = self.learning_rate()
        self.announce("Learning rate", schedule, rate)
        reference = schedule.minibatch_size
        if self._mean:
            self.rate = rate * count / reference if reference else rate
        else:
            self.rate = rate / (reference or count)

    def step(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any]) -> None:
        """Update *w*, a parameter or some of its rows, in place from its gradient *g*, which may be overwritten.

        Args:
            xp: array namespace.
            w, g: parameter and gradient, of one shape.
            states: the arrays named in ``state_names``, to be updated in place.
            work: ``work_arrays`` uninitialised arrays.
        """
        raise TypeError(f"{type(self).__name__}: a learner must define step(xp, w, g, states, work)")

    # For the learners that are written -----------------------------------------------------------------------------------------

    def current(self, schedule: TrainingParameterSchedule[float]) -> float:
        """The value of *schedule* for the next update."""
        return schedule[self._sweeps if schedule.is_sweep_based else self._samples]

    def momentum_of(self, schedule: TrainingParameterSchedule[float], count: int) -> float:
        """The momentum of a minibatch of *count* samples."""
        momentum = self.current(schedule)
        reference = schedule.minibatch_size
        return momentum ** (count / reference) if reference else momentum

    def announce(self, what: str, schedule: TrainingParameterSchedule[float], value: float) -> None:
        """Have the progress writers told that the hyper-parameter *what* is *value*, if they have not been."""
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
        """Number of samples that hyper-parameters refer to where their schedules do not say; ``IGNORE`` (0) for a whole minibatch."""
        return self._minibatch_size

    @minibatch_size.setter
    def minibatch_size(self, size: int) -> None:
        self._minibatch_size = size
        self._mean = size == IGNORE

    def is_compatible_mode(self) -> bool:
        """Whether updates see the mean of a minibatch's gradients, as in other toolkits, and not their sum."""
        return self._mean

    def learning_rate(self) -> float:
        """The learning rate of the next update, as the schedule gives it (not divided by any number of samples)."""
        schedule = self._learning_rate_schedule
        return schedule[(self._sweeps if schedule.is_sweep_based else self._samples) - self._learning_rate_start]

    def reset_learning_rate(self, learning_rate: TrainingParameterSchedule[float]) -> None:
        """Follow another schedule, from its start.

        Raises:
            ValueError: *learning_rate* is not a schedule.
        """
        if not isinstance(learning_rate, TrainingParameterSchedule):
            raise ValueError(
                f"reset_learning_rate: expected a schedule, got {type(learning_rate).__name__}; "
                "make one with learning_parameter_schedule(...)"
            )
        schedule = learning_rate.copy()
        if self._minibatch_size != IGNORE and not schedule.is_minibatch_size_explicitly_specified:
            schedule.minibatch_size = self._minibatch_size
        self._learning_rate_schedule = schedule
        self._learning_rate_start = self._sweeps if schedule.is_sweep_based else self._samples

    def total_number_of_samples_seen(self) -> int:
        """Number of samples whose gradients have been used."""
        return self._samples

    def total_number_of_minibatches_seen(self) -> int:
        """Number of updates."""
        return self._minibatches

    def total_number_of_sweeps_seen(self) -> int:
        """Number of updates that ended a sweep through the data."""
        return self._sweeps

    def reset_smoothed_gradients(self) -> None:
        """Forget all gradients seen; the counts of samples, minibatches and sweeps stay."""
        for slot in self._slots:
            slot.reset()
        for name in self.counter_names:
            setattr(self, name, 0)

    def update(self, gradient_values: Mapping[Parameter, Any], training_sample_count: int, is_sweep_end: bool = False) -> bool:
        """Update the parameters.

        Args:
            gradient_values: for each parameter of the learner its gradient, summed over the minibatch: an array of the
                parameter's shape (it is copied) or a :class:`~cntk.core.sparse.RowSparse`.
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
        gradients = [self._gradient_of(parameter, gradient_values) for parameter in self._parameters]
        with self._parameters[0].backend.guard():
            return self.update_arrays(gradients, count, is_sweep_end)

    def update_arrays(self, gradients: Sequence[Any], count: int, is_sweep_end: bool = False) -> bool:
        """As :meth:`update`, for a training loop: nothing is checked or copied, and the gradients may be overwritten.

        Args:
            gradients: backend arrays or RowSparse gradients, in the order of :attr:`parameters`.
            count: number of samples in the minibatch.
            is_sweep_end: whether the minibatch ends a sweep through the data.
        """
        self.begin(count)
        for slot, gradient in zip(self._slots, gradients, strict=True):
            self._update_parameter(slot, gradient, count)
        if self._options.needs_work_array:
            self._finish(count)
        self._samples += count
        self._minibatches += 1
        self._sweeps += is_sweep_end
        return True

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
            "smoothed_gradients": [
                {name: slot.parameter.backend.to_numpy(state) for name, state in zip(self.state_names, slot.states, strict=True)}
                for slot in self._slots
            ],
        }

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Go on from a state that :meth:`create_checkpoint` returned.

        Raises:
            RuntimeError: the state is of another type of learner, or of one for other parameters.
        """
        self._check_checkpoint(checkpoint)
        self._samples, self._minibatches, self._sweeps = (int(checkpoint[name]) for name in ("samples", "minibatches", "sweeps"))
        self._minibatch_size, self._mean = int(checkpoint["minibatch_size"]), bool(checkpoint["mean"])
        self._noise_seed = int(checkpoint["noise_seed"])
        self._learning_rate_schedule = TrainingParameterSchedule.from_checkpoint(checkpoint["learning_rate_schedule"])
        self._learning_rate_start = int(checkpoint["learning_rate_start"])
        for name in self.counter_names:
            setattr(self, name, checkpoint["counters"][name])
        for slot, saved in zip(self._slots, checkpoint["smoothed_gradients"], strict=True):
            for name, state in zip(self.state_names, slot.states, strict=True):
                state[...] = slot.parameter.backend.asarray(saved[name], slot.dtype)

    def __repr__(self) -> str:
        schedule = self._learning_rate_schedule
        return f"{type(self).__name__}({len(self._parameters)} parameters, learning rate {self.learning_rate()} per {schedule.unit})"

    # Inside --------------------------------------------------------------------------------------------------------------------

    def _update_parameter(self, slot: Slot, gradient: Any, count: int) -> None:
        parameter, options = slot.parameter, self._options
        xp, w = parameter.backend.xp, parameter.array
        if type(gradient) is RowSparse:
            if self.lazy and not options.l2_regularization_weight:
                self._update_rows(slot, gradient, count)
                return
            gradient = slot.densify(gradient)
        if slot.wide:
            w, gradient = slot.widened(gradient)
        work = slot.work
        if work or self._mean:
            options.prepare(xp, w, gradient, work[0] if work else None, count, self._mean)
        self.step(xp, w, gradient, slot.states, work)
        if slot.wide:
            parameter.array[...] = w

    def _update_rows(self, slot: Slot, gradient: RowSparse, count: int) -> None:
        parameter, rows = slot.parameter, gradient.rows
        if len(rows) == 0:
            return
        xp, w = parameter.backend.xp, parameter.array
        part, g = w[rows].astype(slot.dtype, copy=False), gradient.values.astype(slot.dtype, copy=False)
        states = [state[rows] for state in slot.states]
        work = [xp.empty_like(part) for _ in slot.work]
        self._options.prepare(xp, part, g, work[0] if work else None, count, self._mean)
        self.step(xp, part, g, states, work)
        w[rows] = part
        for state, changed in zip(slot.states, states, strict=True):
            state[rows] = changed

    def _finish(self, count: int) -> None:
        options = self._options
        shrinkage = self.rate * options.l1_regularization_weight * (1 if self._mean else count)
        deviation = self.current(options.gaussian_noise_injection_std_dev)
        first = self._minibatches * len(self._slots)
        for draw, slot in enumerate(self._slots, first):
            options.finish(slot.parameter.backend, slot.parameter.array, slot.work[0], shrinkage, deviation, self._noise_seed, draw)

    def _gradient_of(self, parameter: Parameter, gradient_values: Mapping[Parameter, Any]) -> Any:
        if parameter not in gradient_values:
            raise ValueError(f"update: the gradient of {parameter!r} is missing; expected one for each parameter of the learner")
        gradient = gradient_values[parameter]
        if isinstance(gradient, RowSparse):
            own = RowSparse(gradient.shape, parameter.dtype)
            own.set(gradient.rows, parameter.backend.asarray(gradient.values, parameter.dtype))
            return own
        array = parameter.backend.asarray(gradient, parameter.dtype)
        given = tuple(array.shape)
        while len(given) > len(parameter.shape) and given[0] == 1:
            given = given[1:]
        if given != tuple(parameter.shape):
            raise ValueError(f"update: the gradient of {parameter!r} has shape {tuple(array.shape)}; expected {tuple(parameter.shape)}")
        return array.reshape(given)

    def _check_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        if checkpoint.get("type") != type(self).__name__:
            raise RuntimeError(f"checkpoint of a learner of type {checkpoint.get('type')!r} given to one of type {type(self).__name__!r}")
        saved = checkpoint["smoothed_gradients"]
        if len(saved) != len(self._slots):
            raise RuntimeError(f"checkpoint of a learner with {len(saved)} parameters given to one with {len(self._slots)}")
        for slot, arrays in zip(self._slots, saved, strict=True):
            for name, array in arrays.items():
                if tuple(array.shape) != tuple(slot.parameter.shape):
                    raise RuntimeError(f"checkpoint: {name} has shape {tuple(array.shape)}, but {slot.parameter!r} is to be restored")


def _checked(parameters: Iterable[Parameter]) -> tuple[Parameter, ...]:
    if hasattr(parameters, "shape"):
        raise TypeError(f"parameters: expected a list of parameters, got {parameters!r}; put it in a list")
    found = tuple(parameters)
    if not found:
        raise ValueError("parameters: expected at least one parameter, got none")
    for parameter in found:
        if not getattr(parameter, "is_parameter", False):
            raise TypeError(f"parameters: expected Parameters, such as model.parameters, got {type(parameter).__name__} {parameter!r:.80}")
    if len({id(parameter) for parameter in found}) < len(found):
        raise ValueError(f"parameters: expected distinct parameters, got one twice in {found!r}")
    for parameter in found:
        if any(dim < 0 for dim in parameter.shape):
            raise ValueError(f"parameters: the shape of {parameter!r} is not known yet; create the learner after the model has its input")
    return found
