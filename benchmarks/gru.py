"""A classifier of sequences by a wide GRU, 1,024 units: products with a matrix of states that caches hardly hold."""

import numpy as np
from data import even_lengths, one_hot, pairs
from training import cntk_training, torch_training

TITLE = "GRU 256-1024, 32 sequences of 20 to 40 steps, SGD: training step"
SIZE, LEAST, MOST, INPUTS, HIDDEN, CLASSES = 32, 20, 40, 256, 1024, 10
RATE = 0.1

STEPS = sum(lengths.sum() for lengths in even_lengths(SIZE, LEAST, MOST)) / len(even_lengths(SIZE, LEAST, MOST))
INPUT_WEIGHTS, STATE_WEIGHTS = INPUTS * 3 * HIDDEN, HIDDEN * 3 * HIDDEN
WEIGHTS = INPUT_WEIGHTS + STATE_WEIGHTS + HIDDEN * CLASSES
# Forward and weights' gradients, and the gradients of states; data needs none.
FLOP = int(2 * STEPS * (2 * INPUT_WEIGHTS + 3 * STATE_WEIGHTS) + 2 * 3 * SIZE * HIDDEN * CLASSES)
# Data in; weights and their gradients are each read and written once.
BYTES = int(4 * (STEPS * INPUTS + SIZE * CLASSES + 4 * WEIGHTS))

ON_HOST = (1,)
"""Which parts of PyTorch's minibatches stay on the host where it computes on a GPU: lengths."""


def sequences():
    """Sequences ``(length, INPUTS)`` in lists a minibatch, and their classes, which the means of the first inputs tell."""
    random = np.random.RandomState(0)
    pool = [[random.randn(n, INPUTS).astype(np.float32) for n in lengths] for lengths in even_lengths(SIZE, LEAST, MOST)]
    return pool, [np.array([x[:, :CLASSES].mean(axis=0).argmax() for x in minibatch]) for minibatch in pool]


def cntk_model(x):
    """The network."""
    import cntk as C
    from cntk.layers import GRU, Dense, Recurrence

    return Dense(CLASSES)(C.sequence.last(Recurrence(GRU(HIDDEN))(x)))


def cntk_step():
    import cntk as C

    x, y = C.sequence.input_variable(INPUTS), C.input_variable(CLASSES)
    model = cntk_model(x)
    return cntk_training(model, x, y, C.sgd(model.parameters, C.learning_parameter_schedule(RATE)))


def cntk_data():
    pool, labels = sequences()
    return pairs(pool, one_hot(labels, CLASSES))


def torch_step():
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence

    gru, dense = nn.GRU(INPUTS, HIDDEN), nn.Linear(HIDDEN, CLASSES)

    def model(samples, lengths):
        _, ends = gru(pack_padded_sequence(samples, lengths, enforce_sorted=False))
        return dense(ends[0])

    learner = torch.optim.SGD(nn.ModuleList([gru, dense]).parameters(), lr=RATE)
    return torch_training(model, learner)


def torch_data():
    import torch
    from torch.nn.utils.rnn import pad_sequence

    return [
        (pad_sequence([torch.from_numpy(x) for x in samples]), torch.tensor([len(x) for x in samples]), torch.from_numpy(labels))
        for samples, labels in pairs(*sequences())
    ]


def jax_step():
    import jax
    import jax.numpy as jnp
    from jax_mode import dense, glorot, sgd, training

    def apply(parameters, key, samples, lengths):
        W, R, b, out = parameters
        inputs = samples @ W + b[0]

        def advance(state, step):
            number, x = step
            h = state @ R + b[1]
            r, z = (jax.nn.sigmoid(x[:, part] + h[:, part]) for part in (slice(0, HIDDEN), slice(HIDDEN, 2 * HIDDEN)))
            n = jnp.tanh(x[:, 2 * HIDDEN :] + r * h[:, 2 * HIDDEN :])
            return jnp.where((number < lengths)[:, None], (1 - z) * n + z * state, state), None

        start = jnp.zeros((samples.shape[1], HIDDEN), samples.dtype)
        end, _ = jax.lax.scan(advance, start, (jnp.arange(len(samples)), inputs))
        return end @ out[0] + out[1]

    weights = glorot((INPUTS, 3 * HIDDEN)), glorot((HIDDEN, 3 * HIDDEN)), jnp.zeros((2, 3 * HIDDEN), jnp.float32)
    return training(apply, (*weights, dense(HIDDEN, CLASSES)), sgd(RATE))


def jax_data():
    """All minibatches are padded to one length, so that one program serves them."""

    def padded(samples):
        rows = np.zeros((MOST, SIZE, INPUTS), np.float32)
        for i, x in enumerate(samples):
            rows[: len(x), i] = x
        return rows

    return [(padded(samples), np.array([len(x) for x in samples]), labels) for samples, labels in pairs(*sequences())]
