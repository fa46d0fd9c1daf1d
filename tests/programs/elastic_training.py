"""Train in a session that is killed, and note what each worker reads; run by test_elastic.py.

elastic_training.py KIND FOLDER RUN KILLED_AT      0 for a run that comes to its end
"""

import os
import signal
import sys
from pathlib import Path

import numpy as np

import cntk as C
from cntk.train.training_session import TrainingSession

kind, place, run, killed_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
RANK, WORKERS, COUNT, SWEEPS = C.Communicator.rank(), C.Communicator.num_workers(), 100, 3


def sequences():
    """Sequences of one to seven steps from a text file, in chunks of a few."""
    path = place / f"data{run}.txt"
    if RANK == 0:
        path.write_text("".join(f"{i} |x {i} |y {i % 3}\n" * (i * i % 7 + 1) for i in range(COUNT)), encoding="utf-8")
    C.distributed.mpi_communicator().barrier()
    deserializer = C.io.CTFDeserializer(str(path), C.io.StreamDefs(x=C.io.StreamDef("x", 1), y=C.io.StreamDef("y", 1)))
    deserializer["chunkSizeInBytes"] = 600
    source = C.io.MinibatchSource(deserializer, max_sweeps=SWEEPS, randomization_seed=3)
    return source, C.sequence.input_variable(1), C.sequence.input_variable(1)


def arrays():
    """Samples from memory."""
    x = np.arange(COUNT, dtype=np.float32).reshape(COUNT, 1)
    return C.io.MinibatchSourceFromData({"x": x, "y": x % 3}, max_samples=SWEEPS * COUNT), C.input_variable(1), C.input_variable(1)


source, x, y = {"sequences": sequences, "arrays": arrays}[kind]()
model = C.layers.Dense(1)(x / COUNT)
loss = C.squared_error(model, y)
trainer = C.Trainer(model, loss, C.data_parallel_distributed_learner(C.sgd(model.parameters, 0.001)))
read = source.next_minibatch

with (place / f"read.{run}.{RANK}").open("w", encoding="utf-8") as notes:

    def noted(*args, **options):
        minibatch = read(*args, **options)
        found = [int(part.reshape(-1)[0]) for part in minibatch[source.streams.x].as_sequences()] if minibatch else []
        print(trainer.total_number_of_samples_seen, *found, file=notes, flush=True)
        return minibatch

    source.next_minibatch = noted

    class Session(TrainingSession):
        def on_minibatch_end(self):
            if killed_at and trainer.total_number_of_samples_seen >= killed_at and RANK == WORKERS - 1:
                os.kill(os.getpid(), signal.SIGKILL)
            return True

    checkpoints = C.CheckpointConfig(str(place / "checkpoint"), frequency=40)
    streams = {x: source.streams.x, y: source.streams.y}
    Session(trainer, source, 12, streams, None, None, checkpoints, None, None).train()
    print(trainer.total_number_of_samples_seen, file=notes)
C.Communicator.finalize()
