# Names that plugins register, for editors and type checkers; made by: make stubs

from cntk.learners.adadelta_learner import adadelta as adadelta
from cntk.learners.adagrad_learner import adagrad as adagrad
from cntk.learners.adam_learner import adam as adam
from cntk.learners.fsadagrad_learner import fsadagrad as fsadagrad
from cntk.learners.momentum_sgd_learner import momentum_sgd as momentum_sgd
from cntk.learners.nesterov_learner import nesterov as nesterov
from cntk.learners.rmsprop_learner import rmsprop as rmsprop
from cntk.learners.sgd_learner import sgd as sgd
from cntk.learners.universal_learner import universal as universal

__all__ = [
    "adadelta",
    "adagrad",
    "adam",
    "fsadagrad",
    "momentum_sgd",
    "nesterov",
    "rmsprop",
    "sgd",
    "universal",
]
