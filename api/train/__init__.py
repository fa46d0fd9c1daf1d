"""Training: the trainer, training sessions, ``Function.train`` and ``Function.test``."""

from cntk.learners.loss_scale import LossScale
from cntk.learners.schedules import minibatch_size_schedule
from cntk.train import distributed, trainer
from cntk.train.data_unit import DataUnit
from cntk.train.distributed import (
    Communicator,
    DistributedLearner,
    WorkerDescriptor,
    block_momentum_distributed_learner,
    data_parallel_distributed_learner,
    distributed_learner,
    mpi_communicator,
)
from cntk.train.function import extend_function
from cntk.train.session_config import CheckpointConfig, CrossValidationConfig, TestConfig
from cntk.train.trainer import Trainer
from cntk.train.training_session import TrainingSession, training_session

__all__ = [
    "CheckpointConfig",
    "Communicator",
    "CrossValidationConfig",
    "DataUnit",
    "DistributedLearner",
    "LossScale",
    "TestConfig",
    "Trainer",
    "TrainingSession",
    "WorkerDescriptor",
    "block_momentum_distributed_learner",
    "data_parallel_distributed_learner",
    "distributed",
    "distributed_learner",
    "minibatch_size_schedule",
    "mpi_communicator",
    "trainer",
    "training_session",
]

extend_function()
