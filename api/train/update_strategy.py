"""How a trainer has its learners update the parameters: in this process alone, or together with other workers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cntk.core.run.workspace import Run
from cntk.core.values.minibatch import Minibatch
from cntk.learners.interface import LearnerInterface
from cntk.train.plan import TrainingPlan

if TYPE_CHECKING:
    from cntk.train.team import WorkerGroup


class UpdateStrategy(ABC):
    """What stands between a trainer's gradients and its learners.

    Attributes:
        learners: the learners.
        averages_models: whether workers learn from their own samples and have different parameters from time to time.
    """

    learners: Sequence[LearnerInterface]
    averages_models = False

    @property
    def team(self) -> WorkerGroup | None:
        """The workers that learn together; None where this process learns alone."""
        return None

    @property
    def place(self) -> tuple[int, int]:
        """Number of this worker, and how many there are."""
        return 0, 1

    @abstractmethod
    def begin(self) -> None:
        """Called before each minibatch."""

    @abstractmethod
    def learn(self, plan: TrainingPlan, run: Run, minibatch: Minibatch) -> bool:
        """Compute gradients, and have the learners update the parameters; whether one did.

        Args:
            plan: tells where the gradients are.
            run: has gone forward.
            minibatch: sums over this worker's samples, which become those over all workers'; to be settled.
        """

    @abstractmethod
    def learn_without_data(self, plan: Callable[[], TrainingPlan]) -> tuple[bool, Minibatch]:
        """Take part in a minibatch of other workers: whether a learner updated parameters, and the minibatch, which may be empty."""

    def take_synchronization(self, minibatch: Minibatch) -> tuple[int, float]:
        """Samples and metric of a synchronisation of models that *minibatch* has brought about; no samples where it has not."""
        return 0, 0.0

    # ---- checkpoints ----

    @abstractmethod
    def synchronize(self) -> None:
        """Make the workers' models equal, because they are to be saved or tested."""

    @abstractmethod
    def gather_states(self, state: Mapping[str, Any]) -> list[Any]:
        """The workers' own states, on the worker that writes them."""

    @abstractmethod
    def on_main_worker(self, write: Callable[[], None]) -> None:
        """Write something, once for all workers."""

    @abstractmethod
    def check_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        """Refuse states of workers that :meth:`restore_learners` cannot go on from; those of the learners have been checked.

        Raises:
            RuntimeError, KeyError, TypeError, ValueError: something is wrong with them, or missing.
        """

    @abstractmethod
    def restore_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        """Have the learners go on from their states, and from what was each worker's own."""
