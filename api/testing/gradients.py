"""Gradients against central finite differences.

The result is projected onto random weights, so that one number depends on all of it; each operand is moved along a random
direction that involves all its elements, and along a few elements alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import cntk as C
from cntk.core.device import DeviceDescriptor
from cntk.core.op import Sample
from cntk.testing.samples import Trial, describe
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


class Projection:
    """The results of a trial, weighted at random and summed; always computed as in training."""

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        generator = np.random.default_rng(3)
        values = trial.evaluate()
        self.weights = {}
        terms = []
        for output, value in zip(trial.result.outputs, values, strict=True):
            shape = value.shape[len(output.dynamic_axes) :]
            weight = C.input_variable(shape, np.float64, dynamic_axes=list(output.dynamic_axes))
            self.weights[weight] = generator.uniform(0.5, 1.5, value.shape)
            terms.append(C.element_times(output, weight))
        self.total = terms[0] if len(terms) == 1 else C.plus(*(C.reduce_sum(term) for term in terms))

    def gradients(self, wanted: list[int]) -> dict[int, Any]:
        """Gradient of the sum with respect to each wanted operand."""
        variables = [self.trial.variables[i] for i in wanted]
        found = self.total.grad(self.trial.feed() | self.weights, wrt=variables, device=self.trial.device)
        by_variable = found if isinstance(found, dict) else {variables[0]: found}
        return {i: by_variable[self.trial.variables[i]] for i in wanted}

    def slope(self, i: int, direction: Any) -> float:
        """Change of the sum when operand *i* moves along *direction*."""
        return (self._sum(i, STEP * direction) - self._sum(i, -STEP * direction)) / (2 * STEP)

    def _sum(self, i: int, change: Any) -> float:
        values = list(self.trial.values)
        self.trial.assign([*values[:i], values[i] + change, *values[i + 1 :]])
        outputs = self.total.outputs
        _, found = self.total.forward(self.trial.feed() | self.weights, outputs, set(outputs), device=self.trial.device)
        self.trial.assign(values)
        return float(np.sum(found[outputs[0]]))
