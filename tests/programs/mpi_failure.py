"""Fail in one of several ways on one worker; run by test_mpi.py.

mpi_failure.py HOW [CHECKPOINT [SAMPLES]]
"""

import os
import resource
import sys
import time

import numpy as np

import cntk as C
from cntk.train.training_session import TrainingSession

how, *checkpoint = sys.argv[1:]
communicator = C.distributed.mpi_communicator()
communicator.barrier()
if C.Communicator.rank() == C.Communicator.num_workers() - 1:
    if how == "raises":
        raise ValueError("lost the thread")
    if how == "killed":
        os.kill(os.getpid(), 9)
    if how == "leaves":
        sys.exit()
    if how == "sleeps":
        time.sleep(2.5)
    if how == "waits elsewhere":
        communicator.transport.start_sum(np.ones(100), "a sum of its own").wait()
if how == "fills the disk":
    x, w = C.input_variable(1), C.parameter(1000)
    trainer = C.Trainer(None, C.reduce_sum(w * x), C.data_parallel_distributed_learner(C.sgd([w], 0.5)))
    for number in (1, 2):
        trainer.train_minibatch({x: np.ones((2, 1), np.float32)})
        trainer.save_checkpoint(checkpoint[0], {"round": number})
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
if how == "is killed while it trains":
    path, samples = checkpoint[0], int(checkpoint[1])
    C.cntk_py.reset_random_seed(1)
    x, y = C.input_variable(4), C.input_variable(3)
    model = C.layers.Dense(3)(x)
    trainer = C.Trainer(
        model, C.cross_entropy_with_softmax(model, y), C.data_parallel_distributed_learner(C.adam(model.parameters, 0.1, 0.9))
    )
    random = np.random.RandomState(0)
    data = random.randn(100, 4).astype(np.float32), np.eye(3, dtype=np.float32)[random.randint(3, size=100)]

    class Session(TrainingSession):
        def on_minibatch_end(self):
            if trainer.total_number_of_samples_seen == samples and C.Communicator.rank() == 1:
                os.kill(os.getpid(), 9)

    Session(trainer, data, 10, None, 300, None, C.CheckpointConfig(path, frequency=40), None, None).train()
if how == "computes while a sum waits":
    values = np.ones(100)
    pending = None
    if C.Communicator.rank() == 1:
        pending = communicator.transport.start_sum(values)
        time.sleep(4)
    communicator.barrier()
    (pending or communicator.transport.start_sum(values)).wait()
    assert (values == 2).all()
if how == "comes late":
    if C.Communicator.rank() in (1, 2):
        time.sleep(3)
    communicator.broadcast(np.ones(1))  # on its way from worker 0, who need not wait, to worker 3
else:
    communicator.barrier()
C.Communicator.finalize()
