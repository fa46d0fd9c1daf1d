"""Options that all learners have beside the learning rate: mean gradients, clipping, regularisation, noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from ..core.common.switches import Switch
from .numerics import norm
from .schedules import IGNORE, ScheduleLike, TrainingParameterSchedule, learning_parameter_schedule, training_parameter_schedule

Preparation = tuple[float, float, float]
"""Factor of a gradient, then bound on its elements, then weight with which the parameter is added to it."""

UNPREPARED: Preparation = (1.0, math.inf, 0.0)
"""The preparation that does not change a gradient."""

_default_unit_gain = Switch("default_unit_gain", True)


def default_unit_gain_value() -> bool:
    """The value last set by :func:`set_default_unit_gain_value`; True at first.

    Example:
        >>> C.default_unit_gain_value()
        True
    """
    return _default_unit_gain.value


def set_default_unit_gain_value(value: bool) -> None:
    """Remember *value*; as in CNTK the learners' own default of ``unit_gain`` stays True.

    Example:
        >>> C.set_default_unit_gain_value(True)
    """
    _default_unit_gain.value = bool(value)


class Options(TypedDict, total=False):
    """The options that every built-in learner takes.

    Keys:
        l1_regularization_weight: per sample; parameters move towards 0 by it, times the learning rate, and stop there.
        l2_regularization_weight: per sample; multiples of the parameters that are added to the (clipped) gradient.
        gaussian_noise_injection_std_dev: standard deviation of the noise added to the parameters at each update: a number, a list or
            a schedule.
        gradient_clipping_threshold_per_sample: largest size of the elements, or of the norm, of a parameter's gradient per sample.
        gradient_clipping_with_truncation: True clips the elements, False scales each parameter's gradient to the norm.
        use_mean_gradient: legacy; True means ``minibatch_size=IGNORE``.
        minibatch_size: number of samples that learning rate and momentum refer to where their schedules do not say; ``IGNORE``: the
            gradient is the minibatch's mean.
        epoch_size: number of samples that each value of a list of learning rates or momenta is for; None for a sweep through the data.
    """

    l1_regularization_weight: float
    l2_regularization_weight: float
    gaussian_noise_injection_std_dev: ScheduleLike
    gradient_clipping_threshold_per_sample: float
    gradient_clipping_with_truncation: bool
    use_mean_gradient: bool | None
    minibatch_size: int | None
    epoch_size: int | None


@dataclass(frozen=True)
class LearnerOptions:
    """:class:`Options` with their defaults, checked.

    With *m* the number of samples of the minibatch, the gradient a learner sees is the sum over the minibatch, or its mean if
    ``minibatch_size`` is ``IGNORE``.  In the first case values per sample are multiplied by *m*.

    Attributes:
        gaussian_noise_injection_std_dev: always a schedule.

    Raises:
        ValueError: a weight, deviation, threshold or size is negative.
    """

    l1_regularization_weight: float = 0.0
    l2_regularization_weight: float = 0.0
    gaussian_noise_injection_std_dev: ScheduleLike = 0.0
    gradient_clipping_threshold_per_sample: float = math.inf
    gradient_clipping_with_truncation: bool = True
    use_mean_gradient: bool | None = None
    minibatch_size: int | None = None
    epoch_size: int | None = None

    def __post_init__(self) -> None:
        for name in ("l1_regularization_weight", "l2_regularization_weight", "gradient_clipping_threshold_per_sample", "minibatch_size"):
            value = getattr(self, name)
            if value is not None and not value >= 0:
                raise ValueError(f"{name}: expected 0 or more, got {value!r}")
        noise = training_parameter_schedule(self.gaussian_noise_injection_std_dev)
        if min(noise.values) < 0:
            raise ValueError(f"gaussian_noise_injection_std_dev: expected 0 or more, got {self.gaussian_noise_injection_std_dev!r}")
        object.__setattr__(self, "gaussian_noise_injection_std_dev", noise)

    @property
    def reference_minibatch_size(self) -> int | None:
        """The learner's minibatch size: as given, ``IGNORE`` for the legacy mean gradient, or None."""
        if self.minibatch_size is None and self.use_mean_gradient:
            return IGNORE
        return self.minibatch_size

    @property
    def prepares(self) -> bool:
        """Whether gradients are clipped or parameters are added to them."""
        return bool(self.gradient_clipping_threshold_per_sample != math.inf or self.l2_regularization_weight)

    @property
    def clips_norm(self) -> bool:
        """Whether gradients are scaled to a norm."""
        return self.gradient_clipping_threshold_per_sample != math.inf and not self.gradient_clipping_with_truncation

    @property
    def noise(self) -> TrainingParameterSchedule[float]:
        """The standard deviation of the noise, as a schedule."""
        return cast("TrainingParameterSchedule[float]", self.gaussian_noise_injection_std_dev)

    @property
    def has_noise(self) -> bool:
        """Whether noise is added at some time."""
        return any(self.noise.values)

    @property
    def changes_parameters(self) -> bool:
        """Whether :meth:`finish` does anything."""
        return bool(self.l1_regularization_weight or self.has_noise)

    @property
    def needs_work_array(self) -> bool:
        """Whether :meth:`preparation` or :meth:`finish` needs a temporary array."""
        return self.changes_parameters or self.clips_norm

    def rate_schedule(self, lr: ScheduleLike) -> TrainingParameterSchedule[float]:
        """The learning rate's schedule, with this learner's minibatch size where it has none of its own."""
        schedule = self.schedule(lr, "lr")
        if self.use_mean_gradient and schedule.minibatch_size == 1:
            schedule.minibatch_size = IGNORE
        return schedule

    def schedule(self, value: ScheduleLike, what: str) -> TrainingParameterSchedule[float]:
        """A schedule of the learner's own for the argument called *what*.

        Raises:
            ValueError: *value* is neither a schedule nor a number nor a list, or it is a momentum outside 0 … 1.
        """
        schedule = self._own_schedule(value, what)
        if "momentum" in what and not all(0 <= momentum <= 1 for momentum in schedule.values):
            raise ValueError(f"{what}: expected numbers from 0 to 1, got {schedule!r}")
        return schedule

    def _own_schedule(self, value: ScheduleLike, what: str) -> TrainingParameterSchedule[float]:
        reference = self.reference_minibatch_size
        if isinstance(value, TrainingParameterSchedule):
            schedule = value.copy()
            if reference is not None and not schedule.is_minibatch_size_explicitly_specified:
                schedule.minibatch_size = reference
            return schedule
        if not isinstance(value, (int, float, list)):
            raise ValueError(f"{what}: expected a number, a list or a schedule, got {type(value).__name__}")
        epoch_size = self.epoch_size if isinstance(value, list) else None
        return learning_parameter_schedule(value, reference or IGNORE, epoch_size)

    def preparation(self, xp: Any, g: Any, work: Sequence[Any], count: int, mean: bool, factor: float = 1.0) -> Preparation:
        """How to turn the summed gradient *g* of *count* samples, multiplied by a *factor*, into the one that the update uses."""
        samples = 1 if mean else count
        scale = factor / count if mean else factor
        threshold = self.gradient_clipping_threshold_per_sample * samples
        if self.clips_norm:
            size = norm(xp, g, work[0])
            scale, threshold = threshold / size if size * scale > threshold else scale, math.inf
        return scale, threshold, self.l2_regularization_weight * samples

    def finish(self, backend: Any, w: Any, work: Any, shrinkage: float, deviation: float, seed: int, draw: int) -> None:
        """Add noise to the updated parameter *w*, then move it by *shrinkage* towards 0 (L1), in place."""
        xp = backend.xp
        if deviation:
            backend.normal(work, seed, draw)
            xp.multiply(work, deviation, out=work)
            xp.add(w, work, out=w)
        if shrinkage:
            xp.clip(w, -shrinkage, shrinkage, out=work)
            xp.subtract(w, work, out=w)


def prepare(xp: Any, w: Any, g: Any, work: Sequence[Any], preparation: Preparation) -> None:
    """Turn the minibatch's summed gradient *g* into the one that the update uses, in place; *w* is the parameter."""
    scale, threshold, weight = preparation
    if scale != 1:
        xp.multiply(g, scale, out=g)
    if threshold != math.inf:
        xp.clip(g, -threshold, threshold, out=g)
    if weight:
        xp.multiply(w, weight, out=work[0])
        xp.add(g, work[0], out=g)
