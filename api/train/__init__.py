"""Training: the trainer, and loops over data."""

from cntk.learners.schedules import minibatch_size_schedule
from cntk.train import loop, trainer
from cntk.train.data_unit import DataUnit
from cntk.train.trainer import Trainer

__all__ = ["DataUnit", "Trainer", "minibatch_size_schedule", "trainer"]

loop.extend_function()
