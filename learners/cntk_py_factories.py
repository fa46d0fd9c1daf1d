"""Learners as CNTK's native engine makes them: ``cntk.cntk_py.adam_learner(...)`` and the like, with their arguments in its order."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .adadelta_learner import AdaDelta
from .adagrad_learner import AdaGrad
from .adam_learner import Adam, Adamax
from .fsadagrad_learner import FSAdaGrad
from .learner import Learner
from .momentum_sgd_learner import MomentumSGD
from .nesterov_learner import Nesterov
from .options import LearnerOptions
from .rmsprop_learner import RMSProp
from .schedules import ScheduleLike
from .sgd_learner import SGD

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter

    Parameters = Iterable[Parameter]


def SizeTWrapper(value: int) -> int:
    """A size, as the engine's dictionaries take it: a whole number."""
    return operator.index(value)


class AdditionalLearningOptions:
    """Options that all learners have beside the learning rate.

    Attributes:
        l1_regularization_weight, l2_regularization_weight, gaussian_noise_injection_std_dev, gradient_clipping_threshold_per_sample,
            gradient_clipping_with_truncation: as the learners of :mod:`cntk.learners` take them.
        dict_options: further ones by name: ``dict_options[Learner._MINIBATCH_SIZE]`` is the learner's ``minibatch_size``.
    """

    def __init__(self) -> None:
        self.l1_regularization_weight = self.l2_regularization_weight = 0.0
        self.gaussian_noise_injection_std_dev: ScheduleLike = 0.0
        self.gradient_clipping_threshold_per_sample = math.inf
        self.gradient_clipping_with_truncation = True
        self.dict_options: dict[str, Any] = {}


Options = AdditionalLearningOptions | None


def sgd_learner(parameters: Parameters, lr: ScheduleLike, options: Options = None) -> Learner:
    return SGD(parameters, lr, _options(options))


def momentum_sgd_learner(
    parameters: Parameters, lr: ScheduleLike, momentum: ScheduleLike, unit_gain: bool = True, options: Options = None
) -> Learner:
    return MomentumSGD(parameters, lr, momentum, unit_gain, _options(options))


def nesterov_learner(
    parameters: Parameters, lr: ScheduleLike, momentum: ScheduleLike, unit_gain: bool = True, options: Options = None
) -> Learner:
    return Nesterov(parameters, lr, momentum, unit_gain, _options(options))


def ada_delta_learner(
    parameters: Parameters, lr: ScheduleLike, rho: float = 0.95, epsilon: float = 1e-8, options: Options = None
) -> Learner:
    return AdaDelta(parameters, lr, rho, epsilon, _options(options))


def ada_grad_learner(parameters: Parameters, lr: ScheduleLike, need_ave_multiplier: bool = True, options: Options = None) -> Learner:
    return AdaGrad(parameters, lr, need_ave_multiplier, _options(options))


def fsada_grad_learner(
    parameters: Parameters,
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool,
    variance_momentum: ScheduleLike,
    options: Options = None,
) -> Learner:
    return FSAdaGrad(parameters, lr, momentum, unit_gain, variance_momentum, _options(options))


def adam_learner(
    parameters: Parameters,
    lr: ScheduleLike,
    momentum: ScheduleLike,
    unit_gain: bool,
    variance_momentum: ScheduleLike,
    epsilon: float = 1e-8,
    adamax: bool = False,
    options: Options = None,
) -> Learner:
    kind = Adamax if adamax else Adam
    return kind(parameters, lr, momentum, unit_gain, variance_momentum, epsilon, _options(options))


def rmsprop_learner(
    parameters: Parameters,
    lr: ScheduleLike,
    gamma: float,
    inc: float,
    dec: float,
    max: float,
    min: float,
    need_ave_multiplier: bool = True,
    options: Options = None,
) -> Learner:
    return RMSProp(parameters, lr, gamma, inc, dec, max, min, need_ave_multiplier, _options(options))


def _options(given: Options) -> LearnerOptions:
    if given is None:
        return LearnerOptions()
    return LearnerOptions(
        given.l1_regularization_weight,
        given.l2_regularization_weight,
        given.gaussian_noise_injection_std_dev,
        given.gradient_clipping_threshold_per_sample,
        given.gradient_clipping_with_truncation,
        minibatch_size=given.dict_options.get(Learner._MINIBATCH_SIZE),
    )
