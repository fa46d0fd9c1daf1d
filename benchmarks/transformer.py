"""A small Transformer encoder, built from layers and operators, that classifies sequences of 64 steps: dense layers, layer normalisation
and attention with several heads.

Source: A. Vaswani et al., "Attention is all you need", NIPS 2017, section 3.
"""

from data import classes, features, one_hot, pairs
from torch_mode import prepared
from training import cntk_training, torch_training

TITLE = "Transformer encoder, 2 layers of width 128 with 4 heads, 16 sequences of 64 steps, momentum: training step"
SIZE, STEPS, WIDTH, HEADS, INNER, LAYERS, CLASSES = 16, 64, 128, 4, 512, 2, 10
RATE, MOMENTUM = 0.01, 0.9
EPSILON = 1e-5

# Multiplications a step: queries, keys, values, their result and the two dense layers; and scores and averages of all steps.
DENSE, PAIRED = 4 * WIDTH**2 + 2 * WIDTH * INNER, 2 * STEPS * WIDTH
WEIGHTS = LAYERS * (DENSE + 9 * WIDTH + INNER) + STEPS * WIDTH + WIDTH * CLASSES
FLOP = 2 * SIZE * 3 * (STEPS * LAYERS * (DENSE + PAIRED) + WIDTH * CLASSES)
# Data in; weights, their gradients and their momentum are each read and written once.
BYTES = 4 * (SIZE * (STEPS * WIDTH + CLASSES) + 6 * WEIGHTS)


def cntk_model(x):
    """The network; samples are whole sequences (STEPS, WIDTH)."""
    import cntk as C

    def dense(x, width, **options):
        return C.layers.Dense(width, map_rank=1, **options)(x)

    def normalised(x):
        x = x - C.reduce_mean(x, axis=-1)
        return x / C.sqrt(C.reduce_mean(x * x, axis=-1) + EPSILON) * C.parameter(WIDTH, init=1) + C.parameter(WIDTH, init=0)

    def attention(x):
        queries, keys, values = (dense(x, WIDTH) for _ in range(3))

        def head(number):
            q, k, v = (C.slice(y, -1, number * WIDTH // HEADS, (number + 1) * WIDTH // HEADS) for y in (queries, keys, values))
            scores = C.times(q, C.transpose(k, (1, 0))) * (WIDTH // HEADS) ** -0.5
            return C.times(C.softmax(scores, axis=-1), v)

        return dense(C.splice(*map(head, range(HEADS)), axis=-1), WIDTH)

    x = x + C.parameter((STEPS, WIDTH), init=0)
    for _ in range(LAYERS):
        x = normalised(x + attention(x))
        x = normalised(x + dense(dense(x, INNER, activation=C.relu), WIDTH))
    return C.layers.Dense(CLASSES)(C.reshape(C.reduce_mean(x, axis=0), WIDTH))


def torch_model():
    """The same network."""
    import torch
    from torch import nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.positions = nn.Parameter(torch.zeros(STEPS, WIDTH))
            layer = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, dropout=0, layer_norm_eps=EPSILON, batch_first=True)
            self.encoder = nn.TransformerEncoder(layer, LAYERS)
            self.dense = nn.Linear(WIDTH, CLASSES)

        def forward(self, x):
            return self.dense(self.encoder(x + self.positions).mean(1))

    return Model()


def cntk_step():
    import cntk as C

    x, y = C.input_variable((STEPS, WIDTH)), C.input_variable(CLASSES)
    model = cntk_model(x)
    learner = C.momentum_sgd(model.parameters, C.learning_parameter_schedule(RATE), C.momentum_schedule(MOMENTUM))
    return cntk_training(model, x, y, learner)


def cntk_data():
    pool = features(SIZE, (STEPS, WIDTH))
    return pairs(pool, one_hot(classes(pool, CLASSES), CLASSES))


def torch_step():
    import torch

    model = prepared(torch_model())
    learner = torch.optim.SGD(model.parameters(), lr=RATE * (1 - MOMENTUM), momentum=MOMENTUM)
    return torch_training(model, learner)


def torch_data():
    import torch

    pool = features(SIZE, (STEPS, WIDTH))
    return pairs(map(torch.from_numpy, pool), map(torch.from_numpy, classes(pool, CLASSES)))
