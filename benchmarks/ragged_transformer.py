"""The wide Transformer encoder on sequences of different lengths: dense layers see their steps alone, attention pads them."""

import numpy as np
from data import even_lengths, one_hot, pairs
from transformer import CLASSES, EPSILON, MOMENTUM, RATE, flop, nbytes, torch_step_of
from wide_transformer import SHAPE, SIZE

TITLE = "Transformer encoder, 6 layers of width 512 with 8 heads, 8 sequences of 16 to 128 steps, momentum: training step"
LEAST = 16
NEVER = -6e4
"""Score of a place where there is no step."""

LENGTHS = even_lengths(SIZE, LEAST, SHAPE.steps)
FLOP = int(sum(flop(SHAPE, lengths) for lengths in LENGTHS) / len(LENGTHS))
BYTES = int(sum(nbytes(SHAPE, lengths) for lengths in LENGTHS) / len(LENGTHS))


def sequences():
    """Sequences ``(length, width)`` in lists a minibatch, and their classes, which the means of the first numbers tell."""
    random = np.random.RandomState(0)
    pool = [[random.randn(n, SHAPE.width).astype(np.float32) for n in lengths] for lengths in LENGTHS]
    return pool, [np.array([x[:, :CLASSES].mean(axis=0).argmax() for x in minibatch]) for minibatch in pool]


def cntk_model(x, numbers):
    """The network; *numbers* has the number of each step, as a one-hot vector."""
    import cntk as C

    size = SHAPE.width // SHAPE.heads

    def normalised(x):
        x = x - C.reduce_mean(x, axis=-1)
        return x / C.sqrt(C.reduce_mean(x * x, axis=-1) + EPSILON) * C.parameter(SHAPE.width, init=1) + C.parameter(SHAPE.width, init=0)

    def attention(x):
        queries, keys, values = (C.sequence.unpack(C.layers.Dense(SHAPE.width)(x), 0, no_mask_output=True) for _ in range(3))
        mask = C.sequence.unpack(x, 0).outputs[1]

        def head(number):
            q, k, v = (C.slice(y, -1, number * size, (number + 1) * size) for y in (queries, keys, values))
            scores = C.times(q, C.transpose(k, (1, 0))) * size**-0.5
            scores = C.element_select(C.reshape(mask, (1, C.InferredDimension)), scores, NEVER)
            return C.times(C.softmax(scores, axis=-1), v)

        mean = C.to_sequence_like(C.splice(*map(head, range(SHAPE.heads)), axis=-1), x)
        return C.layers.Dense(SHAPE.width)(mean)

    x = x + C.times(numbers, C.parameter((SHAPE.steps, SHAPE.width), init=0))
    for _ in range(SHAPE.layers):
        x = normalised(x + attention(x))
        x = normalised(x + C.layers.Dense(SHAPE.width)(C.layers.Dense(SHAPE.inner, activation=C.relu)(x)))
    mean = C.sequence.reduce_sum(x) / C.sequence.reduce_sum(C.times(numbers, np.ones((SHAPE.steps, 1), np.float32)))
    return C.layers.Dense(CLASSES)(mean)


def cntk_step():
    import cntk as C

    x, numbers = C.sequence.input_variable(SHAPE.width), C.sequence.input_variable(SHAPE.steps, is_sparse=True)
    y = C.input_variable(CLASSES)
    model = cntk_model(x, numbers)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    criterion = C.cross_entropy_with_softmax(model, y), C.classification_error(model, y)
    trainer = C.Trainer(model, criterion, [learner])

    def step(samples, places, labels):
        trainer.train_minibatch({x: samples, numbers: places, y: labels})

    return step


def cntk_data():
    from data import csr_sequences

    pool, labels = sequences()
    places = csr_sequences([[np.arange(len(x)) for x in minibatch] for minibatch in pool], SHAPE.steps)
    return [(samples, numbers, rows) for (samples, numbers), rows in pairs(pairs(pool, places), one_hot(labels, CLASSES))]


def torch_step():
    return torch_step_of(SHAPE)


def torch_data():
    import torch
    from torch.nn.utils.rnn import pad_sequence

    return [
        (
            pad_sequence([torch.from_numpy(x) for x in samples], batch_first=True),
            torch.tensor([len(x) for x in samples]),
            torch.from_numpy(labels),
        )
        for samples, labels in pairs(*sequences())
    ]
