"""Learn real tasks in several ways, and write the errors in their test sets; run by test_mpi.py.

mpi_learning.py digits|atis RESULT KIND... [FOLDER]
"""

import json
import sys
from pathlib import Path

import numpy as np

import cntk as C

KINDS = {
    "local": lambda learner, block: learner,
    "data_parallel": lambda learner, block: C.data_parallel_distributed_learner(learner),
    "one_bit": lambda learner, block: C.data_parallel_distributed_learner(learner, num_quantization_bits=1, distributed_after=2 * block),
    "block_momentum": lambda learner, block: C.block_momentum_distributed_learner(learner, block_size=block),
}


def digits(wrap):
    """Handwritten digits of 8 x 8 pixels; the last 360 of 1797 are the test set."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.RandomState(0).permutation(len(labels))
    images, targets = (pixels[order] / 16).astype(np.float32), np.eye(10, dtype=np.float32)[labels[order]]
    x, y = C.input_variable(64), C.input_variable(10)
    model = C.layers.Sequential([C.layers.Dense(64, activation=C.relu), C.layers.Dense(10)])(x)
    learner = wrap(C.momentum_sgd(model.parameters, C.learning_parameter_schedule(0.1), C.momentum_schedule(0.9)), 512)
    trainer = C.Trainer(model, (C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)), learner)
    C.training_session(trainer, (images[:-360], targets[:-360]), 64, max_samples=30 * 1437).train()
    return trainer.test_minibatch({x: images[-360:], y: targets[-360:]})


def atis(wrap, folder):
    """Labels of the words of travellers' queries."""
    words, labels = 943, 129

    def reader(name, **options):
        fields = {"words": ("S0", words), "labels": ("S2", labels)}
        streams = {key: C.io.StreamDef(field=field, shape=size, is_sparse=True) for key, (field, size) in fields.items()}
        return C.io.MinibatchSource(C.io.CTFDeserializer(str(folder / name), C.io.StreamDefs(**streams)), **options)

    def inputs(source):
        return {x: source.streams.words, y: source.streams.labels}

    x, y = C.sequence.input_variable(words, is_sparse=True), C.sequence.input_variable(labels, is_sparse=True)
    model = C.layers.Sequential([C.layers.Embedding(50), C.layers.Recurrence(C.layers.LSTM(100)), C.layers.Dense(labels)])(x)
    rate, momentum = C.learning_parameter_schedule_per_sample(0.02), C.momentum_schedule_per_sample(0.998)
    learner = wrap(C.momentum_sgd(model.parameters, rate, momentum), 2000)
    trainer = C.Trainer(model, (C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)), learner)
    source = reader("atis.train.ctf", randomization_seed=1)
    C.training_session(trainer, source, 500, inputs(source), max_samples=5 * 36000).train()
    wrong, count = 0.0, 0
    source = reader("atis.test.ctf", randomize=False, max_sweeps=1)
    while data := source.next_minibatch(2000, inputs(source)):
        wrong += trainer.test_minibatch(data) * data[x].num_samples
        count += data[x].num_samples
    return wrong / count


task, result, *rest = sys.argv[1:]
kinds = [argument for argument in rest if argument in KINDS]
errors = {}
for kind in kinds:
    C.cntk_py.set_fixed_random_seed(1)

    def wrap(learner, block, kind=kind):
        return KINDS[kind](learner, block)

    errors[kind] = digits(wrap) if task == "digits" else atis(wrap, Path(rest[-1]))
    print(kind, errors[kind], flush=True)
if C.Communicator.rank() == 0:
    Path(result).write_text(json.dumps(errors), encoding="utf-8")
C.Communicator.finalize()
