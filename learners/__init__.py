"""Learners, which turn gradients into new parameter values, and the schedules of their hyper-parameters.

``cntk.learners`` shows, beside the names of this file, every learner that a plugin has registered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.extension import plugins
from ..core.extension.hookspecs import Register, hookimpl
from .learner import Learner as Learner
from .options import default_unit_gain_value as default_unit_gain_value
from .options import set_default_unit_gain_value as set_default_unit_gain_value
from .schedules import IGNORE as IGNORE
from .schedules import TrainingParameterSchedule as TrainingParameterSchedule
from .schedules import UnitType as UnitType
from .schedules import learning_parameter_schedule as learning_parameter_schedule
from .schedules import learning_parameter_schedule_per_sample as learning_parameter_schedule_per_sample
from .schedules import learning_rate_schedule as learning_rate_schedule
from .schedules import minibatch_size_schedule as minibatch_size_schedule
from .schedules import momentum_as_time_constant_schedule as momentum_as_time_constant_schedule
from .schedules import momentum_schedule as momentum_schedule
from .schedules import momentum_schedule_per_sample as momentum_schedule_per_sample
from .schedules import training_parameter_schedule as training_parameter_schedule
from .user_learner import UserLearner as UserLearner

LEARNERS = ("adadelta", "adagrad", "adam", "fsadagrad", "momentum_sgd", "nesterov", "rmsprop", "sgd", "universal")
"""The built-in learners, each in a file of its own."""

_OWN_NAMES = (
    "IGNORE",
    "Learner",
    "TrainingParameterSchedule",
    "UnitType",
    "UserLearner",
    "default_unit_gain_value",
    "learning_parameter_schedule",
    "learning_parameter_schedule_per_sample",
    "learning_rate_schedule",
    "minibatch_size_schedule",
    "momentum_as_time_constant_schedule",
    "momentum_schedule",
    "momentum_schedule_per_sample",
    "set_default_unit_gain_value",
    "training_parameter_schedule",
)


@hookimpl
def cntk_register_learners(register: Register) -> None:
    for name in LEARNERS:
        register(name, f"cntk.learners.{name}_learner:{name}")


if TYPE_CHECKING:
    from ._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted([*_OWN_NAMES, *plugins.names_to_import(plugins.learners, __name__)])
        if name in plugins.learners:
            return plugins.shown(plugins.learners, name, __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; learners are {', '.join(plugins.learners)}")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.learners})
