"""The interface of learners that trainers use, local or distributed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from ..core.common.displayed import Displayed

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter
    from .loss_scale import LossScale
    from .schedules import TrainingParameterSchedule


class LearnerInterface(Displayed, ABC):
    """The common base of :class:`~cntk.learners.Learner` and :class:`~cntk.train.distributed.DistributedLearner`.

    CNTK has properties in one class where it has methods in the other: :attr:`updated_parameters` and :attr:`samples_seen` are properties
    of both.

    Attributes:
        announcements: hyper-parameters whose value has changed, still to be reported to the progress writers.
        loss_scale: what the gradients of the minibatch at hand have been multiplied by; None for nothing.
    """

    announcements: dict[str, float]
    loss_scale: LossScale | None = None

    @property
    @abstractmethod
    def updated_parameters(self) -> tuple[Parameter, ...]:
        """The parameters that it updates."""

    @property
    @abstractmethod
    def samples_seen(self) -> int:
        """Number of samples that it has learnt from; of distributed learners those of all workers."""

    @property
    @abstractmethod
    def minibatch_size(self) -> int:
        """Number of samples that hyper-parameters refer to if their schedules do not specify it."""

    @abstractmethod
    def is_compatible_mode(self) -> bool:
        """Whether updates see the mean of a minibatch's gradients, and not their sum."""

    @abstractmethod
    def learning_rate(self) -> float:
        """The learning rate of the next update, as the schedule gives it."""

    @abstractmethod
    def reset_learning_rate(self, learning_rate: TrainingParameterSchedule[float]) -> None:
        """Use another schedule, from its start."""

    @abstractmethod
    def reset_smoothed_gradients(self) -> None:
        """Forget all gradients seen."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Its settings by name, which must be the same on all workers that train together."""

    @abstractmethod
    def create_checkpoint(self) -> dict[str, Any]:
        """Its whole state: numbers, strings, lists, dictionaries and NumPy arrays of its own."""

    @abstractmethod
    def check_checkpoint(self, checkpoint: Any) -> None:
        """Check that :meth:`restore_from_checkpoint` accepts a state.

        Raises:
            RuntimeError, ValueError: it is the state of something else, or something is missing in it.
        """

    @abstractmethod
    def restore_from_checkpoint(self, checkpoint: Any) -> None:
        """Restore a state that :meth:`create_checkpoint` returned.

        Raises:
            RuntimeError, ValueError: it is the state of something else, or something is missing in it.
        """
