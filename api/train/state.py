"""What a trainer writes to a checkpoint, and how it goes on from one."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from cntk.core.common import random
from cntk.core.graph.function import Function
from cntk.core.graph.operator_states import check_operator_states, operator_states, restore_operator_states
from cntk.learners.loss_scale import LossScale
from cntk.plugins.models.files import holders_of_both
from cntk.plugins.protobuf import DamagedFile
from cntk.readers.partitions import Share
from cntk.readers.reader import handed_over
from cntk.train.checkpoint import part_of, read_checkpoint, require_parts, require_plain, require_savable, write_checkpoint
from cntk.train.progress import Progress
from cntk.train.update_strategy import UpdateStrategy


class TrainerState:
    """The state of a training, in the parts of a checkpoint: learners, workers, seeds, operators, progress.

    Args:
        function: what is trained, as the model's file has it.
        updates: the learners, and the workers that learn together.
        progress: the counts.
        loss_scale: what gradients are multiplied by; each worker's own where strategies average models.
    """

    def __init__(self, function: Function, updates: UpdateStrategy, progress: Progress, loss_scale: LossScale | None = None) -> None:
        self._function, self._updates, self._progress, self._loss_scale = function, updates, progress, loss_scale

    def save(self, filename: Any, external: Mapping[str, Any]) -> None:
        """Write it; see :meth:`cntk.train.trainer.Trainer.save_checkpoint`."""
        require_plain(external, "external_state")
        updates, progress = self._updates, self._progress
        updates.synchronize()
        scale = {} if self._loss_scale is None else {"loss_scale": self._loss_scale.create_checkpoint()}
        own = {"operators": operator_states(self._function), "external": external, **scale}
        state = {
            "samples": progress.seen,
            "learners": [learner.create_checkpoint() for learner in updates.learners],
            "seeds": random.create_checkpoint(),
            "progress": [writer.create_checkpoint() for writer in progress.writers],
            "workers": updates.gather_states(own),
        }
        updates.on_main_worker(lambda: write_checkpoint(filename, self._function, state))

    def require_savable(self) -> None:
        """Refuse a model that :meth:`save` cannot save; see :func:`cntk.train.checkpoint.require_savable`."""
        require_savable(self._function)

    def checked(self, filename: Any) -> tuple[dict[str, Any], Callable[[], None]]:
        """Read and check a checkpoint: its ``external_state``, and what goes on from it; nothing is changed before.

        Raises:
            RuntimeError, ValueError: as :meth:`cntk.train.trainer.Trainer.restore_from_checkpoint`.
        """
        model, state = read_checkpoint(filename)
        where = f"{os.fsdecode(filename)}.ckp"
        require_parts(state, where, samples=int, learners=list, seeds=dict, progress=list, workers=list)
        learners, workers = state["learners"], state["workers"]
        if not workers:
            raise DamagedFile(f"{where}: expected the state of one worker at least in it, got none")
        for index, worker in enumerate(workers):
            with part_of(where, f"workers[{index}]"):
                require_parts(worker, "a worker", operators=list, external=dict)
        if len(learners) != len(self._updates.learners):
            raise RuntimeError(f"{filename}: checkpoint of {len(learners)} learners given to a trainer with {len(self._updates.learners)}")
        values = holders_of_both(self._function, Function.load(model), os.fsdecode(filename))
        rank, size = self._updates.place
        own = workers[rank if rank < len(workers) else 0]
        self._check_parts(where, state, own)
        external: dict[str, Any] = own["external"]
        if len(workers) != size:
            external = handed_over(external, [worker["external"] for worker in workers], Share(size, rank))

        def take_over() -> None:
            for mine, stored in values:
                mine.value = stored.value
            self._updates.restore_learners(learners, workers)  # after the values, by which strategies and learners go
            random.restore_from_checkpoint(state["seeds"])
            if rank < len(workers):
                restore_operator_states(self._function, own["operators"])
            if self._loss_scale is not None and "loss_scale" in own:
                self._loss_scale.restore_from_checkpoint(own["loss_scale"])
            self._progress.seen, self._progress.last = state["samples"], None
            for writer, saved in self._writers_of(state):
                writer.restore_from_checkpoint(saved)

        return external, take_over

    def _check_parts(self, where: str, state: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        """Have each part of a state checked by whom it belongs to."""
        for index, (learner, saved) in enumerate(zip(self._updates.learners, state["learners"], strict=True)):
            with part_of(where, f"learners[{index}]"):
                learner.check_checkpoint(saved)
        with part_of(where, "strategies"):
            self._updates.check_learners(state["learners"], state["workers"])
        with part_of(where, "seeds"):
            random.check_checkpoint(state["seeds"])
        with part_of(where, "operators"):
            check_operator_states(self._function, own["operators"])
        if self._loss_scale is not None and "loss_scale" in own:
            with part_of(where, "loss_scale"):
                self._loss_scale.check_checkpoint(own["loss_scale"])
        for index, (writer, saved) in enumerate(self._writers_of(state)):
            with part_of(where, f"progress[{index}]"):
                writer.check_checkpoint(saved)

    def _writers_of(self, state: Mapping[str, Any]) -> list[tuple[Any, Any]]:
        """The progress writers with their states; none where there are not as many as then."""
        writers, saved = self._progress.writers, state["progress"]
        return list(zip(writers, saved, strict=True)) if len(writers) == len(saved) else []
