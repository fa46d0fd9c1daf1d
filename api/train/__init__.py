"""Training: the trainer, training sessions, and what ``Function.train`` and ``Function.test`` do."""

from cntk.learners.schedules import minibatch_size_schedule
from cntk.train import distributed, trainer
from cntk.train.data_unit import DataUnit
from cntk.train.function import extend_function
from cntk.train.session_config import CheckpointConfig, CrossValidationConfig, TestConfig
from cntk.train.trainer import Trainer
from cntk.train.training_session import TrainingSession, training_session

__all__ = [
    "CheckpointConfig",
    "CrossValidationConfig",
    "DataUnit",
    "TestConfig",
    "Trainer",
    "TrainingSession",
    "distributed",
    "minibatch_size_schedule",
    "trainer",
    "training_session",
]

extend_function()
