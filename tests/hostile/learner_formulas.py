"""The learners once more: their formulas in double precision, as papers and CNTK's documentation have them.

A formula takes one step for a parameter, or for the rows of it that a sparse gradient has.  It knows nothing of the learners' code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import cntk as C
from cntk.core.types.sparse import RowSparse

Array = Any


@dataclass
class Step:
    """What a formula is given: parameter, gradient and states of some rows, and the numbers in force."""

    w: Array
    g: Array
    states: Sequence[Array]
    rate: float
    momentum: float
    variance_momentum: float
    unit_gain: bool
    samples: int
    updates: int
    smoothed_samples: float
    is_sparse: bool

    @property
    def gain(self) -> float:
        """Weight of a new gradient."""
        return 1 - self.momentum if self.unit_gain else 1.0


def sgd(s: Step) -> Array:
    """Stochastic gradient descent."""
    return s.w - s.rate * s.g


def momentum_sgd(s: Step) -> Array:
    """The rate is inside the velocity, but outside for sparse gradients."""
    (v,) = s.states
    v[...] = s.momentum * v + s.gain * s.g * (1 if s.is_sparse else s.rate)
    return s.w - v * (s.rate if s.is_sparse else 1)


def nesterov(s: Step) -> Array:
    """Sutskever, Martens, Dahl, Hinton 2013."""
    (v,) = s.states
    v[...] = s.momentum * v + s.gain * s.rate * s.g
    return s.w - s.momentum * v - s.gain * s.rate * s.g


def adagrad(s: Step, averaged: bool = False) -> Array:
    """Duchi, Hazan, Singer 2011; the average is CNTK's."""
    (squares,) = s.states
    squares += s.g**2
    multiplier = 1 / np.sqrt(squares + 1e-16)
    return s.w - s.rate * s.g * multiplier / (multiplier.mean() if averaged else 1)


def averaged_adagrad(s: Step) -> Array:
    """With ``need_ave_multiplier``."""
    return adagrad(s, averaged=True)


RHO, EPSILON = 0.9, 1e-4


def adadelta(s: Step) -> Array:
    """Zeiler 2012."""
    squares, steps = s.states
    squares[...] = RHO * squares + (1 - RHO) * s.g**2
    step = np.sqrt(steps + EPSILON) / np.sqrt(squares + EPSILON) * s.g
    steps[...] = RHO * steps + (1 - RHO) * step**2
    return s.w - s.rate * step


def adam(s: Step) -> Array:
    """Kingma, Ba 2015, with epsilon outside the corrections as in the end of their section 2."""
    mean, variance = s.states
    mean[...] = s.momentum * mean + s.gain * s.g
    variance[...] = s.variance_momentum * variance + (1 - s.variance_momentum) * s.g**2
    correction = np.sqrt(1 - s.variance_momentum**s.updates) / (1 - s.momentum**s.updates)
    return s.w - s.rate * correction * mean / (np.sqrt(variance) + 1e-8)


def adamax(s: Step) -> Array:
    """Kingma, Ba 2015, section 7.1."""
    mean, largest = s.states
    mean[...] = s.momentum * mean + s.gain * s.g
    largest[...] = np.maximum(s.variance_momentum * largest, np.abs(s.g))
    return s.w - s.rate / (1 - s.momentum**s.updates) * mean / (largest + 1e-8)


def fsadagrad(s: Step) -> Array:
    """CNTK's own."""
    squares, v = s.states
    squares[...] = s.variance_momentum * squares + (1 - s.variance_momentum) * s.g**2
    with np.errstate(divide="ignore"):
        factor = np.minimum(np.sqrt(s.smoothed_samples / squares), 10)
    v[...] = s.momentum * v + s.gain * factor * s.g
    return s.w - s.rate * v


GAMMA, INC, DEC, LARGEST, SMALLEST = 0.9, 1.2, 0.7, 0.03, 0.01


def rmsprop(s: Step, averaged: bool = False) -> Array:
    """Tieleman, Hinton 2012, with the step sizes of Rprop."""
    squares, sign, size = s.states
    if s.updates == 1:
        squares[...], size[...] = s.g**2, 0.02
    squares[...] = GAMMA * squares + (1 - GAMMA) * s.g**2
    size[...] = np.where(sign * np.sign(s.g) > 0, np.minimum(size * INC, LARGEST), np.maximum(size * DEC, SMALLEST))
    sign[...] = np.sign(s.g)
    multiplier = size / np.sqrt(squares + 1e-6)
    return s.w - s.rate * s.g * multiplier / (multiplier.mean() if averaged else 1)


def averaged_rmsprop(s: Step) -> Array:
    """With ``need_ave_multiplier``."""
    return rmsprop(s, averaged=True)


@dataclass
class Rule:
    """A learner: its formula, how many arrays it keeps, how ours is made, and whether sparse gradients change their rows alone."""

    formula: Callable[[Step], Array]
    states: int
    make: Callable[..., Any]
    has_momentum: bool = False
    has_variance: bool = False
    is_lazy: bool = False


RULES: dict[str, Rule] = {
    "sgd": Rule(sgd, 0, C.sgd, is_lazy=True),
    "momentum_sgd": Rule(momentum_sgd, 1, C.momentum_sgd, has_momentum=True, is_lazy=True),
    "nesterov": Rule(nesterov, 1, C.nesterov, has_momentum=True, is_lazy=True),
    "adagrad": Rule(adagrad, 1, lambda p, lr, **k: C.adagrad(p, lr, need_ave_multiplier=False, **k), is_lazy=True),
    "averaged adagrad": Rule(averaged_adagrad, 1, C.adagrad, is_lazy=True),
    "adadelta": Rule(adadelta, 2, lambda p, lr, **k: C.adadelta(p, lr, RHO, EPSILON, **k)),
    "adam": Rule(adam, 2, C.adam, has_momentum=True, has_variance=True),
    "adamax": Rule(adamax, 2, lambda p, lr, **k: C.adam(p, lr, adamax=True, **k), has_momentum=True, has_variance=True),
    "fsadagrad": Rule(fsadagrad, 2, C.fsadagrad, has_momentum=True, has_variance=True),
    "rmsprop": Rule(rmsprop, 3, lambda p, lr, **k: C.rmsprop(p, lr, GAMMA, INC, DEC, LARGEST, SMALLEST, False, **k)),
    "averaged rmsprop": Rule(averaged_rmsprop, 3, lambda p, lr, **k: C.rmsprop(p, lr, GAMMA, INC, DEC, LARGEST, SMALLEST, **k)),
}


@dataclass
class Schedule:
    """Values, each for so many samples, of which the last one stays; they refer to *reference* samples, or to a minibatch if 0."""

    values: Sequence[float]
    epoch: int = 50
    reference: int = 0

    def ours(self) -> Any:
        """The same as an object of CNTK's."""
        return C.learning_parameter_schedule(list(self.values), self.reference, self.epoch)

    def at(self, samples: int) -> float:
        """The value after so many samples."""
        return self.values[min(samples // self.epoch, len(self.values) - 1)]

    def rate(self, samples: int, count: int, mean: bool) -> float:
        """The factor of the summed gradient of *count* samples, or of their mean."""
        per_sum = self.at(samples) / (self.reference or count)
        return per_sum * count if mean else per_sum

    def decay(self, samples: int, count: int) -> float:
        """The momentum of a minibatch of *count* samples."""
        return self.at(samples) ** (count / self.reference) if self.reference else self.at(samples)


@dataclass
class Options:
    """Everything that learners can be told, noise apart."""

    rate: Schedule = field(default_factory=lambda: Schedule([0.1]))
    momentum: Schedule = field(default_factory=lambda: Schedule([0.9]))
    variance_momentum: Schedule = field(default_factory=lambda: Schedule([0.99]))
    unit_gain: bool = True
    mean: bool = False
    l1: float = 0.0
    l2: float = 0.0
    threshold: float = np.inf
    truncates: bool = True

    def learner(self, rule: str, parameters: Sequence[Any]) -> Any:
        """Our learner."""
        kind = RULES[rule]
        named: dict[str, Any] = {
            "l1_regularization_weight": self.l1,
            "l2_regularization_weight": self.l2,
            "gradient_clipping_threshold_per_sample": self.threshold,
            "gradient_clipping_with_truncation": self.truncates,
        }
        if self.mean:
            named["minibatch_size"] = C.learners.IGNORE
        if kind.has_momentum:
            named |= {"momentum": self.momentum.ours(), "unit_gain": self.unit_gain}
        if kind.has_variance:
            named["variance_momentum"] = self.variance_momentum.ours()
        return kind.make(parameters, self.rate.ours(), **named)


def exact(numbers: Array) -> Array:
    """The numbers as they are."""
    return numbers


def by_formula(
    rule: str, options: Options, start: Array, gradients: Sequence[Any], counts: Sequence[int], rounded: Callable[[Array], Array] = exact
) -> tuple[Array, float]:
    """A parameter after updates with summed gradients, in double precision, and the largest number it came by.

    Before each update its gradient and the parameter are *rounded*.
    """
    kind = RULES[rule]
    w = np.array(start, np.float64)
    states = [np.zeros_like(w) for _ in range(kind.states)]
    largest = float(np.abs(w).max(initial=0))
    seen, smoothed = 0, 0.0
    for n, (gradient, count) in enumerate(zip(gradients, counts, strict=True), 1):
        lazily = isinstance(gradient, RowSparse) and kind.is_lazy and not options.l2
        rows: Any = gradient.rows if lazily else ...
        samples = 1 if options.mean else count
        w = rounded(w)
        g = prepared(options, gradient, rows, w, count, samples, rounded)
        variance_momentum = options.variance_momentum.decay(seen, count)
        smoothed = variance_momentum * smoothed + (1 - variance_momentum) * count
        rate = options.rate.rate(seen, count, options.mean)
        parts = [state[rows] for state in states]
        momentum = options.momentum.decay(seen, count)
        step = Step(w[rows], g, parts, rate, momentum, variance_momentum, options.unit_gain, count, n, smoothed, lazily)
        if g.size:
            w[rows] = kind.formula(step)
            for state, part in zip(states, parts, strict=True):
                state[rows] = part
        w[...] = np.sign(w) * np.maximum(np.abs(w) - rate * options.l1 * samples, 0)
        largest = max(largest, float(np.abs(w).max(initial=0)))
        seen += count
    return w, largest


def prepared(
    options: Options, gradient: Any, rows: Any, w: Array, count: int, samples: int, rounded: Callable[[Array], Array] = exact
) -> Array:
    """The gradient that a formula sees: the mean, clipped, and with the parameter added to it."""
    given = gradient.to_dense(np)[rows] if isinstance(gradient, RowSparse) else gradient
    g = rounded(np.array(given, np.float64) / (count if options.mean else 1))
    bound = options.threshold * samples
    if options.truncates:
        g = np.clip(g, -bound, bound)
    elif (size := np.sqrt((g**2).sum())) > bound:
        g = g * (bound / size)
    return g + options.l2 * samples * w[rows]
