"""A trainer's share in a training on several workers."""

from __future__ import annotations

import errno
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.graph.block import combine
from cntk.core.graph.variable import Parameter, Variable
from cntk.core.run.workspace import Run
from cntk.core.values.minibatch import Minibatch
from cntk.learners.loss_scale import LossScale
from cntk.plugins.distributed.base import Strategy, hand_out, sum_over_workers
from cntk.train.agreement import agree, agree_on_values, description
from cntk.train.checkpoint import from_bytes, to_bytes
from cntk.train.distributed import DistributedLearner
from cntk.train.plan import TrainingPlan
from cntk.train.update_strategy import UpdateStrategy


class WorkerGroup(UpdateStrategy):
    """Distributed learners, which learn together with those of the other workers.

    First the workers tell one another how many samples they have, so that all go on, or stop, together; then come the gradients.  That all
    train one model in one way is compared when a team is made, when its learning begins, and where their learners have come apart.

    Args:
        learners: the learners, all of them distributed.
        loss: what they are to make small.
        loss_scale: what gradients are multiplied by on all workers; None for nothing.

    Raises:
        ValueError: the workers differ in what they train, or how; it is raised on all, and names in what.
    """

    def __init__(self, learners: Sequence[DistributedLearner], loss: Variable, loss_scale: LossScale | None = None) -> None:
        self.learners: Sequence[DistributedLearner] = list(learners)
        self._loss, self._loss_scale = loss, loss_scale
        self.transport = learners[0].strategy.transport
        self.averages_models = any(learner.strategy.averages_models for learner in learners)
        self._metric = 0.0
        self._to_begin = list(learners)
        self._number = -1
        self._compare()
        self._number = self.transport.next_number()

    @property
    def team(self) -> WorkerGroup:
        return self

    @property
    def place(self) -> tuple[int, int]:
        return self.transport.rank, self.transport.size

    @property
    def is_distributed(self) -> bool:
        """Whether workers have samples of their own by now."""
        return any(learner.is_distributed for learner in self.learners)

    @property
    def partition(self) -> tuple[int, int]:
        """How many workers deal out each minibatch between them, and which of them this is."""
        return self.transport.size, self.transport.rank

    def begin(self) -> None:
        """Called before each minibatch: before the first that the workers learn from together all start from the main worker's values."""
        if self._to_begin and self.is_distributed:
            self._compare()
            hand_out(self.transport, self._without_learner() if len(self._to_begin) == len(self.learners) else ())
            self._hand_out_loss_scale()
            for learner in [learner for learner in self._to_begin if learner.is_distributed]:
                learner.begin()
                self._to_begin.remove(learner)

    def learn(self, plan: TrainingPlan, run: Run, minibatch: Minibatch) -> bool:
        minibatch.settle()
        self._share(minibatch)
        run.backward(on_final=self._early() if self.transport.size > 1 else None)
        return self._update(plan.gradients(run), minibatch)

    def learn_without_data(self, plan: Callable[[], TrainingPlan]) -> tuple[bool, Minibatch]:
        minibatch = Minibatch(0, 0.0, 0.0)
        self.begin()
        made = plan()
        self._share(minibatch)
        with made.program.backend.guard():
            return bool(minibatch.samples) and self._update(made.zero_gradients(), minibatch), minibatch

    def take_synchronization(self, minibatch: Minibatch) -> tuple[int, float]:
        self._metric += minibatch.metric
        samples = max(learner.strategy.take_synchronized() for learner in self.learners)
        metric = self._metric
        if samples:
            self._metric = 0.0
        return samples, metric

    def synchronize(self) -> None:
        """Make the workers' models equal; all call it.

        Raises:
            ValueError: they are not, because a program has set values on some workers only; it is raised on all.
        """
        for learner in self.learners:
            learner.synchronize()
        if not self._to_begin:
            agree_on_values(self.transport, [parameter for learner in self.learners for parameter in learner.updated_parameters])

    def agree(self, settings: Mapping[str, Any]) -> None:
        """Compare settings with the other workers, who all call this.

        Raises:
            ValueError: they differ; it is raised on all, and names in what.
        """
        agree(self.transport, settings)

    def sum_up(self, *numbers: float) -> list[float]:
        """Sums of numbers over the workers."""
        sums = np.array(numbers, np.float64)
        self.transport.sum(sums, "sums of all workers")
        return [float(number) for number in sums]

    def broadcast_from_root(self, text: str) -> str:
        """What the main worker hands over, on every worker."""
        texts = self.transport.gather(np.frombuffer(text.encode(), np.uint8), "what the main worker says")
        return bytes(texts[0]).decode()

    def on_main_worker(self, write: Callable[[], None]) -> None:
        """Have the main worker write something, while the others wait; an error of it is one of all workers.

        Raises:
            OSError: it cannot be written.
            RuntimeError: something else is wrong on the main worker, where it is raised as it is.
        """
        failed: Exception | None = None
        if self.transport.rank == 0:
            try:
                write()
            except Exception as error:
                failed = error
        code = failed.errno or errno.EIO if isinstance(failed, OSError) else 0
        told = self.broadcast_from_root("" if failed is None else f"{code} {failed}")
        if failed is not None:
            raise failed
        if told:
            number, _, text = told.partition(" ")
            message = f"the main worker could not write: {text}"
            raise OSError(int(number), message) if int(number) else RuntimeError(message)

    def gather_states(self, state: Mapping[str, Any]) -> list[Any]:
        """The workers' states, together with what their strategies keep, on the main worker; elsewhere nothing."""
        own = {**state, "strategies": [learner.strategy.create_own_checkpoint() for learner in self.learners]}
        nothing = np.zeros(0, np.uint8)
        pieces = [nothing] * self.transport.size
        pieces[0] = np.frombuffer(to_bytes(own), np.uint8)
        states = self.transport.exchange(pieces, "states for a checkpoint")
        return [from_bytes(bytes(received)) for received in states] if self.transport.rank == 0 else []

    def check_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        """Refuse states of strategies that :meth:`restore_learners` cannot go on from.

        Raises:
            RuntimeError, KeyError, TypeError, ValueError: something is wrong with them, or missing.
        """
        for index, (learner, saved) in enumerate(zip(self.learners, learners, strict=True)):
            learner.strategy.check_checkpoint(saved["strategy"], [worker["strategies"][index] for worker in workers])

    def restore_learners(self, learners: Sequence[Mapping[str, Any]], workers: Sequence[Mapping[str, Any]]) -> None:
        """Have the learners go on from their states, and those of the strategies of all workers then."""
        for index, (learner, saved) in enumerate(zip(self.learners, learners, strict=True)):
            learner.restore_from_checkpoint(saved, [worker["strategies"][index] for worker in workers])

    def _share(self, minibatch: Minibatch) -> None:
        if self.is_distributed and self.transport.size > 1 and not sum_over_workers(self.transport, minibatch, self._digest()):
            self._compare()

    def _digest(self) -> int:
        """What stands for how far the learners have come, and of which trainer."""
        digest = self._number
        for learner in self.learners:
            digest = learner.digest(digest)
        if self._loss_scale is not None and not self.averages_models:
            digest = zlib.crc32(struct.pack("d", self._loss_scale.value), digest)
        return digest

    def _compare(self) -> None:
        if self.transport.size > 1:
            scale = {} if self._loss_scale is None else {"loss scale": self._loss_scale.settings()}
            self.agree({"trainer": f"number {self._number}", **scale, **description(self.learners, self._loss)})

    def _hand_out_loss_scale(self) -> None:
        """Let the loss scale be that of the main worker, which may have learnt alone until now."""
        if self._loss_scale is not None:
            state = self._loss_scale.create_checkpoint()
            numbers = np.array(list(state.values()), np.float64)
            self.transport.broadcast(numbers, name="the loss scale")
            self._loss_scale.restore_from_checkpoint(dict(zip(state, numbers.tolist(), strict=True)))

    def _without_learner(self) -> list[Parameter]:
        learnt = {parameter for learner in self.learners for parameter in learner.updated_parameters}
        return [parameter for parameter in combine([self._loss]).parameters if parameter not in learnt]

    def _update(self, gradients: Sequence[Sequence[Any]], minibatch: Minibatch) -> bool:
        updated = False
        for learner, own in zip(self.learners, gradients, strict=True):
            updated = learner.update(own, minibatch) or updated
        return updated

    def _early(self) -> dict[Any, Callable[[Any], None]]:
        """Whom to tell, by parameter, as soon as its gradient is final."""
        return {
            parameter: _teller(learner.strategy, index)
            for learner in self.learners
            if learner.is_distributed and learner.strategy.wants_gradients_early
            for index, parameter in enumerate(learner.updated_parameters)
        }


def _teller(strategy: Strategy, index: int) -> Callable[[Any], None]:
    return lambda gradient: strategy.gradient_is_final(index, gradient)
