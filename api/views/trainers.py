"""Trainers: what they train, by which learners, and how far they are."""

from __future__ import annotations

from cntk.train.trainer import Trainer
from cntk.views import learners
from cntk.views.view import View, facts, page


def view(trainer: Trainer) -> View:
    """The view of a trainer."""
    known = [
        ("model", "none" if trainer.model is None else str(trainer.model)),
        ("loss", str(trainer.loss_function)),
        ("metric", "none" if trainer.evaluation_function is None else str(trainer.evaluation_function)),
        ("samples", trainer.total_number_of_samples_seen),
    ]
    if samples := trainer.previous_minibatch_sample_count:
        known.append(("samples of the last minibatch", samples))
        known.append(("its loss", trainer.previous_minibatch_loss_average))
        if trainer.evaluation_function is not None:
            known.append(("its metric", trainer.previous_minibatch_evaluation_average))
    views = [learners.view(learner) for learner in trainer.parameter_learners]
    title = f"Trainer of {trainer.loss_function}"
    lines = [title, *(f"{name}: {value}" for name, value in known), *(view.text for view in views)]
    return View("\n".join(lines), page(title, facts(known), *(view.html for view in views)))
