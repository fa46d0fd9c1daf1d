"""The learners whose kernels are tested, on whatever backend: each update rule, with and without averaging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cntk as C

RULES: dict[str, Callable[..., Any]] = {
    "sgd": lambda p, **k: C.sgd(p, 0.3, **k),
    "momentum_sgd": lambda p, **k: C.momentum_sgd(p, 0.3, 0.9, **k),
    "nesterov": lambda p, **k: C.nesterov(p, 0.3, 0.9, unit_gain=False, **k),
    "adagrad": lambda p, **k: C.adagrad(p, 0.3, **k),
    "adagrad without average": lambda p, **k: C.adagrad(p, 0.3, False, **k),
    "adadelta": lambda p, **k: C.adadelta(p, 0.3, 0.9, 1e-3, **k),
    "adam": lambda p, **k: C.adam(p, 0.3, 0.9, variance_momentum=0.99, **k),
    "adamax": lambda p, **k: C.adam(p, 0.3, 0.9, unit_gain=False, variance_momentum=0.99, adamax=True, **k),
    "fsadagrad": lambda p, **k: C.fsadagrad(p, 0.3, 0.9, variance_momentum=0.99, **k),
    "rmsprop": lambda p, **k: C.rmsprop(p, 0.3, 0.9, 1.2, 0.7, 0.03, 0.01, **k),
    "rmsprop without average": lambda p, **k: C.rmsprop(p, 0.3, 0.9, 1.2, 0.7, 0.03, 0.01, False, **k),
}
