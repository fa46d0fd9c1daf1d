"""One step of training: what the docs say of its way is how it goes."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.learners.interface import LearnerInterface

ARCHITECTURE = Path(__file__).parents[4] / "docs" / "architecture.md"
MOST_HOPS = 14

Hop = tuple[str, str]
"""Module and qualified name of a function."""


def listed_hops() -> list[Hop]:
    """The functions that the docs list, in their order."""
    section = ARCHITECTURE.read_text(encoding="utf-8").partition("### One step\n")[2].partition("\n#")[0]
    found = re.findall(r"^\d+\. `([\w/]+)\.py`, `([\w.]+)`", section, re.MULTILINE)
    return [(".".join(["cntk", *[part for part in path.split("/") if part != "api"]]), name) for path, name in found]


def hop_of(frame: FrameType) -> Hop:
    return str(frame.f_globals.get("__name__")), frame.f_code.co_qualname


def calls_of(step: Any) -> list[tuple[Hop, list[Hop]]]:
    """Our functions in the order in which they are first called, with those of ours that they are called through."""
    found: dict[Hop, list[Hop]] = {}

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and hop_of(frame)[0].startswith("cntk.") and hop_of(frame) not in found:
            through, outer = [], frame.f_back
            while outer is not None and hop_of(outer)[0].startswith("cntk."):
                through.append(hop_of(outer))
                outer = outer.f_back
            found[hop_of(frame)] = through

    sys.setprofile(note)
    try:
        step()
    finally:
        sys.setprofile(None)
    return list(found.items())


def test_the_hops_of_a_step_are_those_that_the_docs_list_and_there_are_few() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    model = C.layers.Dense(2)(x)
    trainer = C.Trainer(model, C.cross_entropy_with_softmax(model, y), C.sgd(model.parameters, 0.1))
    data = {x: np.ones((4, 2), np.float32), y: np.ones((4, 2), np.float32)}
    trainer.train_minibatch(data)
    listed, calls = listed_hops(), calls_of(lambda: trainer.train_minibatch(data))
    assert listed[0] == ("cntk.train.trainer", "Trainer.train_minibatch")
    assert listed[-1] == ("cntk.learners.learner", "Learner.update_arrays")
    assert [hop for hop, _ in calls if hop in listed] == listed
    assert len(listed) <= MOST_HOPS
    hidden = {hop: [outer for outer in through if outer not in listed] for hop, through in calls if hop in listed}
    assert not any(hidden.values()), hidden


@pytest.mark.parametrize("wrap", [lambda learner: learner, C.data_parallel_distributed_learner, lambda learner: Double(learner.parameters)])
def test_learners_tell_a_trainer_the_same_whether_distributed_or_not(wrap: Any) -> None:
    x, w = C.input_variable(1), C.parameter(1)
    learner = wrap(C.sgd([w], 0.5))
    assert isinstance(learner, LearnerInterface)
    assert learner.samples_seen == 0
    assert learner.updated_parameters == (w,)
    trainer = C.Trainer(None, C.reduce_sum(w * x), learner)
    assert trainer.train_minibatch({x: np.ones((4, 1), np.float32)})
    assert trainer.total_number_of_samples_seen == 4
    assert trainer.parameter_learners == (learner,)
    assert learner.samples_seen == (8 if isinstance(learner, Double) else 4)


class Double(C.UserLearner):
    """Counts in a way of its own."""

    learnt = 0

    def __init__(self, parameters: Any) -> None:
        super().__init__(parameters, C.learning_parameter_schedule(0.1))

    def update(self, gradient_values: Any, training_sample_count: int, sweep_end: bool) -> bool:
        self.learnt += 2 * training_sample_count
        return True

    def total_number_of_samples_seen(self) -> int:
        return self.learnt
