"""Learners that users write in terms of arrays and graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..core.types.sparse import RowSparse
from ..core.values.value import NDArrayView
from .learner import Learner
from .options import LearnerOptions
from .schedules import TrainingParameterSchedule

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


class UserLearner(Learner):
    """Base class of learners written by users, who define :meth:`update` and keep the state that they need.

    A rule that works on arrays in place, as the built-in learners do, derives from :class:`Learner` instead and is faster.
    Its own state is in checkpoints only if it overrides ``create_checkpoint`` and ``restore_from_checkpoint``, adding to the state of
    this class.  The learner counts no samples itself, so that :meth:`learning_rate` stays at the schedule's first value.

    Args:
        parameters: the parameters that it updates, distinct and of known shape.
        lr_schedule: learning rate, a schedule such as ``learning_parameter_schedule(0.1)``.
        as_numpy: accepted for compatibility; gradients are views either way, as in CNTK.

    Raises:
        ValueError: *parameters* is empty, repeats one or has one of unknown shape.
        TypeError: *lr_schedule* is not a schedule.

    >>> class Sgd(C.UserLearner):
    ...     def update(self, gradient_values, training_sample_count, sweep_end):
    ...         rate = self.learning_rate() / training_sample_count
    ...         for p, g in gradient_values.items():
    ...             p.set_value((p - rate * C.constant(g)).eval(as_numpy=False).data)
    ...         return True
    >>> x, w = C.input_variable(2), C.parameter(2, init=1)
    >>> trainer = C.Trainer(None, C.reduce_sum(w * x), Sgd([w], C.learning_parameter_schedule(0.1)))
    >>> trainer.train_minibatch({x: np.ones((3, 2), np.float32)})
    True
    >>> w.value
    array([0.9, 0.9], dtype=float32)
    """

    def __init__(self, parameters: Iterable[Parameter], lr_schedule: TrainingParameterSchedule[float], as_numpy: bool = True) -> None:
        if not isinstance(lr_schedule, TrainingParameterSchedule):
            raise TypeError(
                f"{type(self).__name__}: lr_schedule must be a schedule, got {type(lr_schedule).__name__} {lr_schedule!r:.80}; "
                "make one with learning_parameter_schedule(...)"
            )
        super().__init__(parameters, lr_schedule, LearnerOptions())
        self.as_numpy = as_numpy

    def parameters(self) -> tuple[Parameter, ...]:  # type: ignore[override]
        """The parameters that this learner updates; a method here, where the built-in learners have a property."""
        return self.updated_parameters

    def update(self, gradient_values: Mapping[Parameter, NDArrayView], training_sample_count: int, sweep_end: bool) -> bool:  # type: ignore[override]
        """Update the parameters; to be implemented by subclasses.

        Args:
            gradient_values: for each parameter its gradient, summed over the minibatch; the views are the method's to keep.
            training_sample_count: number of samples in the minibatch.
            sweep_end: whether the minibatch ends a sweep through the data.

        Returns:
            Whether the learner has learnt from the gradients; ``train_minibatch`` passes it on.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define update(gradient_values, training_sample_count, sweep_end)")

    def update_arrays(self, gradients: Sequence[Any], count: int, is_sweep_end: bool = False) -> bool:
        views = {parameter: _view(parameter, gradient) for parameter, gradient in zip(self.updated_parameters, gradients, strict=True)}
        learnt = self.update(views, count, is_sweep_end)
        if not isinstance(learnt, bool):
            raise TypeError(f"{type(self).__name__}: update must return True, or False if nothing was learnt; got {learnt!r:.80}")
        return learnt


def _view(parameter: Parameter, gradient: Any) -> NDArrayView:
    array = gradient.to_dense(parameter.backend.xp) if isinstance(gradient, RowSparse) else gradient
    return NDArrayView.from_dense(parameter.backend.to_numpy(array), parameter.device, borrow=True)
