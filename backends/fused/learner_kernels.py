"""The kernels of learners, each imported on first use, after the check that compiled loops can be used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ...core.machine import self_check

FILES = {
    "SGD": "sgd",
    "MomentumSGD": "momentum_sgd",
    "Nesterov": "nesterov",
    "AdaGrad": "adagrad",
    "AdaDelta": "adadelta",
    "RMSProp": "rmsprop",
    "FSAdaGrad": "fsadagrad",
    "Adam": "adam",
    "Adamax": "adamax",
}
"""The file of each."""


def __getattr__(name: str) -> Any:
    if name not in FILES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    self_check.require()  # here: a module that fails while it is imported disturbs other threads that import it
    return getattr(import_module(f".{FILES[name]}", __package__), name)
