"""Learners: their settings with schedules, how far they are, and what they update."""

from __future__ import annotations

from typing import Any

from cntk.core.common.shape import is_concrete, size_of
from cntk.learners.interface import LearnerInterface
from cntk.learners.learner import Learner
from cntk.learners.schedules import TrainingParameterSchedule
from cntk.logging.model_summary import shown
from cntk.views.view import View, facts, folded, page, table

VALUES = 8
"""Values of a schedule at most."""


def view(learner: LearnerInterface) -> View:
    """The view of a learner, local or distributed."""
    settings = [(name.replace("_", " "), _setting(value)) for name, value in learner.settings().items() if value is not None]
    standing = learner.standing() if isinstance(learner, Learner) else {"samples": learner.samples_seen}
    parameters = learner.updated_parameters
    rows = [(p.name or p.uid, shown(p.spec), size_of(p.shape) if is_concrete(p.shape) else "") for p in parameters]
    updated = folded(f"{len(rows):,} parameters", table("", ("name", "shape", "numbers"), rows))
    return View(repr(learner), page(repr(learner), facts(settings), facts(standing.items()), updated))


def _setting(value: Any) -> Any:
    if isinstance(value, TrainingParameterSchedule):
        return schedule_text(value)
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def schedule_text(schedule: TrainingParameterSchedule[Any]) -> str:
    """A schedule in words: its values with the sample or sweep from which each holds."""
    unit = "sweep" if schedule.is_sweep_based else "sample"
    begin, parts = 0, []
    for count, value in zip(schedule.counts, schedule.values, strict=True):
        parts.append(f"{value:g} from {unit} {begin:,}" if begin else f"{value:g}")
        begin += count * (schedule.epoch_size or 1)
    more = [f"… {len(parts) - VALUES:,} more"] if len(parts) > VALUES else []
    return f"{', '.join([*parts[:VALUES], *more])} per {schedule.unit}"
