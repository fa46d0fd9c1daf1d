"""What a trainer asks of a learner, whether it learns alone or together with those of other workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter
    from .loss_scale import LossScale
    from .schedules import TrainingParameterSchedule


class LearnerInterface(ABC):
    """What :class:`~cntk.learners.Learner` and :class:`~cntk.train.distributed.DistributedLearner` have in common.

    CNTK has properties in one class where it has methods in the other: :attr:`updated_parameters` and :attr:`samples_seen` are properties
    of both.

    Attributes:
        announcements: hyper-parameters whose value has changed: what the progress writers have still to be told.
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
        """Number of samples that hyper-parameters refer to where their schedules do not say."""

    @abstractmethod
    def is_compatible_mode(self) -> bool:
        """Whether updates see the mean of a minibatch's gradients, and not their sum."""

    @abstractmethod
    def learning_rate(self) -> float:
        """The learning rate of the next update, as the schedule gives it."""

    @abstractmethod
    def reset_learning_rate(self, learning_rate: TrainingParameterSchedule[float]) -> None:
        """Follow another schedule, from its start."""

    @abstractmethod
    def reset_smoothed_gradients(self) -> None:
        """Forget all gradients seen."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """How it learns, by name: what must be the same on all workers that learn together."""

    @abstractmethod
    def create_checkpoint(self) -> dict[str, Any]:
        """Its whole state: numbers, strings, lists, dictionaries and NumPy arrays of its own."""

    @abstractmethod
    def check_checkpoint(self, checkpoint: Any) -> None:
        """Refuse a state that :meth:`restore_from_checkpoint` cannot go on from.

        Raises:
            RuntimeError, ValueError: it is the state of something else, or something is missing in it.
        """

    @abstractmethod
    def restore_from_checkpoint(self, checkpoint: Any) -> None:
        """Go on from a state that :meth:`create_checkpoint` returned.

        Raises:
            RuntimeError, ValueError: it is the state of something else, or something is missing in it.
        """
