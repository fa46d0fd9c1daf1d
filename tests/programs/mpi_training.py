"""Train in several ways, on one worker or several, and keep what came of it; run by test_mpi.py.

mpi_training.py FOLDER JOB...    a job is NAME:TASK:KIND:SAMPLES, and :CHECKPOINT where there is to be one

Each worker writes the parameters and some numbers to FOLDER/NAME.<rank>.npz.
"""

import os
import sys
from pathlib import Path

import numpy as np

import cntk as C
from cntk.core.graph.operator_states import operator_states
from cntk.train.training_session import TrainingSession

sys.path.append(str(Path(__file__).parents[2] / "examples" / "cntk-extras" / "src"))
from cntk_extras.top_k import TopK

KINDS = {
    "local": lambda learner: learner,
    "data_parallel": C.data_parallel_distributed_learner,
    "one_bit": lambda learner: C.data_parallel_distributed_learner(learner, num_quantization_bits=1, distributed_after=40),
    "three_bits": lambda learner: C.data_parallel_distributed_learner(learner, num_quantization_bits=3),
    "block_momentum": lambda learner: C.block_momentum_distributed_learner(learner, block_size=80),
    "top_k": lambda learner: C.distributed.distributed_learner(TopK, learner, share=0.2),
}

random = np.random.RandomState(0)
X = random.randn(200, 4).astype(np.float32)
Y = np.eye(3, dtype=np.float32)[(X @ random.randn(4, 3)).argmax(1)]
RANK, WORKERS = C.Communicator.rank(), C.Communicator.num_workers()


def written(path, lines):
    """A file that the main worker has written."""
    if RANK == 0:
        path.write_text("".join(lines), encoding="utf-8")
    C.distributed.mpi_communicator().barrier()
    return str(path)


def source_of(folder, steps=1, **options):
    """The data as a text file; every so many samples make a sequence."""
    lines = (f"{i // steps} |x {' '.join(map(str, x))} |y {' '.join(map(str, y))}\n" for i, (x, y) in enumerate(zip(X, Y, strict=True)))
    streams = C.io.StreamDefs(x=C.io.StreamDef("x", 4), y=C.io.StreamDef("y", 3))
    path = written(folder / f"data{steps}.{WORKERS}.txt", lines)
    return C.io.MinibatchSource(C.io.CTFDeserializer(path, streams), randomization_seed=5, **options)


def classifier(kind, x, y, layers):
    model = C.layers.Sequential([C.layers.Dense(16, activation=C.tanh), *layers, C.layers.Dense(3)])(x)
    criterion = C.combine([C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)])
    learner = KINDS[kind](C.momentum_sgd(model.parameters, C.learning_parameter_schedule(0.5), C.momentum_schedule(0.9)))
    return C.Trainer(model, criterion, learner, [C.logging.ProgressPrinter()]), criterion


def session(trainer, criterion, source, inputs, samples, checkpoint):
    """Train in a session that validates and tests; the validations."""
    validations = []

    def validated(index, error, count, minibatches):
        validations.append((index, error, count, minibatches))
        return True

    C.training_session(
        trainer,
        source,
        20,
        inputs,
        max_samples=samples,
        progress_frequency=200,
        checkpoint_config=C.CheckpointConfig(checkpoint, frequency=200) if checkpoint else None,
        cv_config=C.CrossValidationConfig((X[:50], Y[:50]), 400, minibatch_size=16, criterion=criterion, callback=validated)
        if inputs is None
        else None,
        test_config=C.TestConfig((X, Y), criterion=criterion) if inputs is None else None,
    ).train()
    return {"validations": validations}


def arrays(folder, kind, samples, checkpoint, *layers):
    trainer, criterion = classifier(kind, C.input_variable(4), C.input_variable(3), layers)
    return trainer, session(trainer, criterion, (X, Y), None, samples, checkpoint)


def dropout(folder, kind, samples, checkpoint):
    trainer, found = arrays(folder, kind, samples, checkpoint, C.layers.Dropout(0.5))
    (masks,) = filter(None, operator_states(trainer.model))
    return trainer, {"seed": masks["seed"], "draws": masks["draws"], **found}


def source(folder, kind, samples, checkpoint):
    x, y = C.input_variable(4), C.input_variable(3)
    data = source_of(folder)
    trainer, criterion = classifier(kind, x, y, [])
    return trainer, session(trainer, criterion, data, {x: data.streams.x, y: data.streams.y}, samples, checkpoint)


def pieces(folder, kind, samples, checkpoint):
    """Sequences of 10 samples, 4 at a time: each worker's source stands elsewhere."""
    x, y = C.sequence.input_variable(4), C.sequence.input_variable(3)
    data = source_of(folder, 10, truncation_length=4)
    trainer, criterion = classifier(kind, x, y, [])
    return trainer, session(trainer, criterion, data, {x: data.streams.x, y: data.streams.y}, samples, checkpoint)


def sequences(folder, kind, rounds, checkpoint):
    """Two sweeps over sequences of one to seven samples in chunks of a few, of which each worker has its own; or the first *rounds*."""
    lines = (f"{i} |x {i} |y {' '.join(map(str, Y[i]))}\n" * (i * i % 7 + 1) for i in range(60))
    streams = C.io.StreamDefs(x=C.io.StreamDef("x", 1), y=C.io.StreamDef("y", 3))
    deserializer = C.io.CTFDeserializer(written(folder / f"sequences{WORKERS}.txt", lines), streams)
    deserializer["chunkSizeInBytes"] = 600
    data = C.io.MinibatchSource(deserializer, max_sweeps=2)
    x, y = C.sequence.input_variable(1), C.sequence.input_variable(3)
    trainer, _ = classifier(kind, x, y, [])
    inputs = {x: data.streams.x, y: data.streams.y}
    if os.path.exists(checkpoint):
        data.restore_from_checkpoint(trainer.restore_from_checkpoint(checkpoint)["source"])
    read = []
    while not rounds or len(read) < rounds:
        minibatch = data.next_minibatch(20, inputs, num_data_partitions=WORKERS, partition_index=RANK)
        if not trainer.train_minibatch(minibatch):
            break
        read.append([int(part[0, 0]) for part in minibatch[x].as_sequences()] if minibatch else [])
    if rounds:
        trainer.save_checkpoint(checkpoint, {"source": data.get_checkpoint_state()})
    return trainer, {"rounds": len(read), "read": np.array([number for part in read for number in part])}


def loop(folder, kind, samples, checkpoint):
    """The loop by hand of CNTK's tutorial: the exclusive or, with a checkpoint after each minibatch."""
    lines = ["|xy 0 0\t|r 0\n", "|xy 1 0\t|r 1\n", "|xy 0 1\t|r 1\n", "|xy 1 1\t|r 0\n"]
    streams = C.io.StreamDefs(xy=C.io.StreamDef(field="xy", shape=2), r=C.io.StreamDef(field="r", shape=1))
    mb_source = C.io.MinibatchSource(C.io.CTFDeserializer(written(folder / f"xor{WORKERS}.txt", lines), streams))
    xy, label = C.input_variable(2), C.input_variable(1)
    z = C.layers.Sequential([C.layers.Dense(2, activation=C.tanh), C.layers.Dense(1)])(xy)
    loss = C.squared_error(z, label)
    learner = KINDS[kind](C.sgd(z.parameters, C.learning_rate_schedule(0.1, C.UnitType.sample)))
    trainer = C.Trainer(z, (loss, loss), learner, C.logging.ProgressPrinter(freq=10))
    input_map = {xy: mb_source["xy"], label: mb_source["r"]}
    if os.path.exists(checkpoint):
        mb_source.restore_from_checkpoint(trainer.restore_from_checkpoint(checkpoint))
    train = True
    while train and trainer.total_number_of_samples_seen < samples:
        data = mb_source.next_minibatch(4, input_map, num_data_partitions=WORKERS, partition_index=RANK)
        train = trainer.train_minibatch(data)
        trainer.save_checkpoint(checkpoint, mb_source.get_checkpoint_state())
    return trainer, {"loss": trainer.previous_minibatch_loss_average}


def stopped(folder, kind, samples, checkpoint):
    """The last worker alone wants to end training, after three minibatches."""
    x, y = C.input_variable(4), C.input_variable(3)
    trainer, _ = classifier(kind, x, y, [])

    class Session(TrainingSession):
        def on_minibatch_end(self):
            return RANK < WORKERS - 1 or trainer.total_number_of_samples_seen < 60

    Session(trainer, (X, Y), 20, None, samples, None, None, None, None).train()
    return trainer, {}


def unequal(folder, kind, samples, checkpoint):
    """Every worker has fewer minibatches than the one before, and all leave the loop together."""
    x, y = C.input_variable(4), C.input_variable(3)
    trainer, _ = classifier(kind, x, y, [])
    own = [{x: X[:5], y: Y[:5]}] * (2 * (WORKERS - RANK))
    rounds = 0
    while trainer.train_minibatch(own[rounds] if rounds < len(own) else {}):
        rounds += 1
    error = C.Evaluator(C.classification_error(trainer.model, y)).test_minibatch({x: X, y: Y} if RANK == 0 else {}, distributed=True)
    return trainer, {"rounds": rounds, "error": error}


TASKS = {task.__name__: task for task in (arrays, dropout, source, pieces, sequences, loop, stopped, unequal)}

folder = Path(sys.argv[1])
for job in sys.argv[2:]:
    name, task, kind, samples, *checkpoint = job.split(":")
    C.cntk_py.reset_random_seed(1)
    if RANK == 0:
        print(f"job {name}", flush=True)
    trainer, numbers = TASKS[task](folder, kind, int(samples), str(folder / checkpoint[0]) if checkpoint else "")
    parameters = {f"parameter{index}": parameter.value for index, parameter in enumerate(trainer.model.parameters)}
    np.savez(folder / f"{name}.{RANK}", seen=trainer.total_number_of_samples_seen, **parameters, **numbers)
C.Communicator.finalize()
