"""Gradients against central finite differences.

The result is projected onto random weights, so that one number depends on all of it; each operand is moved along a random
direction that involves all its elements, and along a few elements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.operators.samples import Sample
from cntk.testing.samples import Trial, Values, describe, pick
from cntk.testing.tolerances import GRADIENTS, assert_close

STEP = 1e-5
SINGLE_ELEMENTS = 3


def check_gradients(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that the gradient of every differentiable operand agrees with finite differences, in float64."""
    trial = Trial(function, sample, np.float64, device)
    wanted = [i for i, operand in enumerate(sample.operands) if operand.gradient and not operand.sparse]
    if not wanted:
        return
    projection = Projection(trial)
    analytic = projection.gradients(wanted)
    generator = np.random.default_rng(2)
    for i in wanted:
        for direction in directions(trial.values[i].shape, generator):
            message = f"{describe(function, sample)}: gradient of operand {i} along {_name(direction)}"
            assert_close(np.vdot(analytic[i], direction), projection.slope(i, direction), message, GRADIENTS)


def directions(shape: tuple[int, ...], generator: np.random.Generator) -> Iterator[Any]:
    """A direction through all elements, then some single elements."""
    whole = generator.normal(size=shape)
    yield whole / np.linalg.norm(whole)
    for index in generator.choice(whole.size, min(SINGLE_ELEMENTS, whole.size), replace=False):
        single = np.zeros(shape)
        single.flat[index] = 1.0
        yield single


def _name(direction: Any) -> str:
    if np.count_nonzero(direction) > 1:
        return "a random direction"
    return f"element {tuple(int(i) for i in np.argwhere(direction)[0])}" if direction.ndim else "the element"


def check_gradient_sums(
    function: Callable[..., Any], sample: Sample, minibatches: Sequence[Sequence[int]], device: DeviceDescriptor | None = None
) -> None:
    """Require that results in training, and gradients, are the same whichever samples make up a minibatch, in float64.

    Gradients of operands with a batch axis are compared sample by sample, the sums of the others with the sum over minibatches of one
    sample each.  Nothing is required of an operator that says that it ``varies_in_training``.
    """
    trial = Trial(function, sample, np.float64, device)
    wanted = [i for i, operand in enumerate(sample.operands) if operand.gradient and not operand.sparse]
    projection = Projection(trial)
    if not wanted or projection.over_batch or trial.varies_in_training:
        return
    alone = sum(projection.sum_of([number]) for number in range(trial.rows))
    if not np.isclose(projection.sum_of(), alone, rtol=1e-9, atol=1e-12):
        raise AssertionError(
            f"{describe(function, sample)}: results in training depend on what else is in a minibatch: their weighted sum is "
            f"{projection.sum_of()}, that of each sample alone {alone}; an operator that means it "
            "says traits = Traits(varies_in_training=True)"
        )
    by_itself = [projection.gradients(wanted, [number]) for number in range(trial.rows)]
    for samples in minibatches:
        together = projection.gradients(wanted, samples)
        for i in wanted:
            message = f"{describe(function, sample)}: gradient of operand {i} for a minibatch of the samples {list(samples)}"
            if sample.operands[i].kind in ("batch", "sequence"):
                expected = np.concatenate([by_itself[number][i] for number in samples])
            else:
                expected = sum(by_itself[number][i] for number in samples)
            assert_close(together[i], expected, message)


class Projection:
    """The results of a trial, weighted at random and summed; always computed as in training.

    Attributes:
        over_batch: whether a result has no batch axis, so that samples do not contribute to it each by itself.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        generator = np.random.default_rng(3)
        self.weights = {}
        terms = []
        for output, value in zip(trial.result.outputs, trial.evaluate(), strict=True):
            weight = C.input_variable(output.shape, np.float64, dynamic_axes=list(output.dynamic_axes))
            self.weights[weight] = _map(lambda part: generator.uniform(0.5, 1.5, np.shape(part)), value)
            terms.append(C.element_times(output, weight))
        self.over_batch = not all(output.dynamic_axes for output in trial.result.outputs)
        self.total = terms[0] if len(terms) == 1 else C.plus(*(C.reduce_sum(term) for term in terms))

    def gradients(self, wanted: list[int], samples: Sequence[int] | None = None) -> dict[int, Any]:
        """Gradient of the sum with respect to each wanted operand, for a minibatch of these samples, by default all."""
        variables = [self.trial.variables[i] for i in wanted]
        found = self.total.grad(self._feed(samples), wrt=variables, device=self.trial.device)
        by_variable = found if isinstance(found, dict) else {variables[0]: found}
        return {i: _joined(by_variable[self.trial.variables[i]]) for i in wanted}

    def slope(self, i: int, direction: Any) -> float:
        """Change of the sum when operand *i* moves along *direction*."""
        return (self._sum_at(i, STEP * direction) - self._sum_at(i, -STEP * direction)) / (2 * STEP)

    def sum_of(self, samples: Sequence[int] | None = None) -> float:
        """The sum for a minibatch of these samples, by default all."""
        outputs = self.total.outputs
        _, found = self.total.forward(self._feed(samples), outputs, set(outputs), device=self.trial.device)
        return float(np.sum(_joined(found[outputs[0]])))

    def _sum_at(self, i: int, change: Any) -> float:
        values = list(self.trial.values)
        self.trial.assign([*values[:i], values[i] + change, *values[i + 1 :]])
        total = self.sum_of()
        self.trial.assign(values)
        return total

    def _feed(self, samples: Sequence[int] | None) -> dict[Any, Any]:
        if samples is None:
            return self.trial.feed() | self.weights
        found = self.trial.evaluate(samples)
        parts = (pick(weight, samples) for weight in self.weights.values())
        return self.trial.feed(samples) | {
            variable: _map(_cut, part, value) for variable, part, value in zip(self.weights, parts, found, strict=True)
        }


def _map(function: Callable[..., Any], *values: Values) -> Values:
    """Apply a function to the values of each sequence, or to all at once."""
    return [function(*parts) for parts in zip(*values, strict=True)] if isinstance(values[0], list) else function(*values)


def _cut(weight: Any, value: Any) -> Any:
    """Leave out what a free dimension is smaller by."""
    return weight[tuple(slice(dim) for dim in np.shape(value))]


def _joined(values: Values) -> Any:
    """The steps of all sequences in one array."""
    return np.concatenate(values) if isinstance(values, list) else values
