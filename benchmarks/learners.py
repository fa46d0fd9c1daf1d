"""Updates of 5 million parameters by each learner, with dense gradients: how fast memory is gone through.

    python benchmarks/learners.py

measures opencntk's learners and PyTorch's, each in a process of its own: in one, threads that wait would take the processors from others.
"""

import numpy as np

SHAPES = [(1000, 1000)] * 5
SIZE = 5000000
SAMPLES = 32

# Of each learner: how many arrays of the parameters' size it keeps, and how many operations an element takes.
KEPT = {"sgd": 0, "momentum": 1, "nesterov": 1, "adagrad": 1, "rmsprop": 3, "adadelta": 2, "fsadagrad": 2, "adam": 2, "adamax": 2}
IN_TORCH = set(KEPT) - {"fsadagrad"}
OPERATIONS = 10

TITLES = {name: "%s: update of 5,000,000 parameters" % name for name in KEPT}  # noqa: UP031, Python 3.6 runs this too


def nbytes(name):
    """Bytes that an update moves at least: gradients are read, parameters and what the learner keeps are read and written."""
    return 4 * SIZE * (3 + 2 * KEPT[name])


def arrays(seed):
    random = np.random.RandomState(seed)
    return [random.standard_normal(shape).astype(np.float32) for shape in SHAPES]


def cntk_step(name):
    import cntk as C

    makers = {
        "sgd": lambda p: C.sgd(p, 0.001),
        "momentum": lambda p: C.momentum_sgd(p, 0.001, 0.9),
        "nesterov": lambda p: C.nesterov(p, 0.001, 0.9),
        "adagrad": lambda p: C.adagrad(p, 0.001, need_ave_multiplier=False),
        "rmsprop": lambda p: C.rmsprop(p, 0.001, 0.99, 1.2, 0.7, 10.0, 0.01, need_ave_multiplier=False),
        "adadelta": lambda p: C.adadelta(p, 0.001, 0.9, 1e-6),
        "fsadagrad": lambda p: C.fsadagrad(p, 0.001, 0.9),
        "adam": lambda p: C.adam(p, 0.001, 0.9, variance_momentum=0.999),
        "adamax": lambda p: C.adam(p, 0.001, 0.9, variance_momentum=0.999, adamax=True),
    }
    parameters = [C.Parameter(shape=a.shape, init=a) for a in arrays(0)]
    learner = makers[name](parameters)
    if hasattr(learner, "update_arrays"):  # what a training loop of opencntk calls; CNTK 2.7's is not to be had from Python
        return lambda *gradients: learner.update_arrays(gradients, SAMPLES)
    return lambda *gradients: learner.update(dict(zip(parameters, gradients)), SAMPLES)  # noqa: B905


def cntk_data(name):
    return [arrays(1)]


def torch_step(name):
    import torch

    optim = torch.optim
    makers = {
        "sgd": lambda p: optim.SGD(p, 0.001, foreach=True),
        "momentum": lambda p: optim.SGD(p, 0.001, momentum=0.9, foreach=True),
        "nesterov": lambda p: optim.SGD(p, 0.001, momentum=0.9, nesterov=True, foreach=True),
        "adagrad": lambda p: optim.Adagrad(p, 0.001, foreach=True),
        "rmsprop": lambda p: optim.RMSprop(p, 0.001, foreach=True),
        "adadelta": lambda p: optim.Adadelta(p, 0.001, foreach=True),
        "adam": lambda p: optim.Adam(p, 0.001, foreach=True),
        "adamax": lambda p: optim.Adamax(p, 0.001, foreach=True),
    }
    parameters = [torch.nn.Parameter(torch.from_numpy(a).to(torch.get_default_device())) for a in arrays(0)]
    optimizer = makers[name](parameters)

    def step(*gradients):
        for parameter, gradient in zip(parameters, gradients):  # noqa: B905
            parameter.grad = gradient
        optimizer.step()

    return step


def torch_data(name):
    import torch

    return [[torch.from_numpy(a) for a in arrays(1)]]


if __name__ == "__main__":
    import run

    run.main(["--no-page", "--only", *("learners:" + name for name in KEPT)])
