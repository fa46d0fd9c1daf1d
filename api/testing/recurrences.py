"""A recurrence is its unrolling: an operator in a cycle of a graph, against as many copies of it without one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import cntk as C
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.nodes import Primitive
from cntk.core.operators.delay import Delay
from cntk.core.operators.samples import Sample
from cntk.core.operators.sequence_op import SequenceOp
from cntk.testing.samples import LENGTHS, Trial, as_sequences, describe, repetition_is_meant
from cntk.testing.tolerances import GRADIENTS, assert_close

SHIFTS = {"past_value": 1, "future_value": -1}


def check_in_recurrences(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that an operator does in a recurrence what it does outside one, in double precision.

    A state runs through the operator: the state before is mixed into one of the operands, and the results are mixed into the state
    after.  Values and gradients are those of the step applied as often as the longest sequence has steps, without a cycle.  The other
    operands come from outside the recurrence, and one of several may lie on the batch axis.

    An operator that looks at whole sequences, or whose result is on other dynamic axes than its operand, must be refused.
    Nothing is required of gradients where results in training depend on the minibatch (batch normalization) or on chance (dropout).

    Args:
        function: the public operator function, marked with ``operator``.
        sample: how to call it.
        device: where to compute; the default device where None.

    Raises:
        AssertionError: it gives something else in a recurrence, or is not refused as it should be.
    """
    for sequences in _on_sequences(sample):
        try:
            trial = Trial(function, sequences, np.float64, device)
        except (ValueError, TypeError, RuntimeError):
            continue  # it takes no sequence axis, of which check_on_sequences wants to know the reason
        for number, fed in enumerate(_carriers(sequences)):
            for delay in SHIFTS if number == 0 else ("past_value",):
                with repetition_is_meant():
                    _Recurrent(function, trial, fed, delay).check()


def _on_sequences(sample: Sample) -> Iterator[Sample]:
    if any(operand.kind == "sequence" for operand in sample.operands):
        yield sample
    for sequences, _ in as_sequences(sample):
        yield sequences


def _carriers(sample: Sample) -> list[int]:
    """Operands that a state can be mixed into."""
    return [i for i, operand in enumerate(sample.operands) if operand.kind == "sequence" and not operand.sparse]


class _Recurrent:
    """A trial's operator in a recurrence, with the state before it mixed into operand *fed*."""

    def __init__(self, function: Callable[..., Any], trial: Trial, fed: int, delay: str) -> None:
        self.function, self.trial, self.fed = function, trial, fed
        self.delay, self.shift = getattr(C.sequence, delay), SHIFTS[delay]
        self.name = f"{describe(function, trial.sample)} in a recurrence over {delay} through operand {fed}"
        generator = np.random.default_rng(4)
        self.weights = [self._weights(output, generator) for output in trial.result.outputs]

    def check(self) -> None:
        end = C.placeholder(())
        try:
            state = self._step(self.delay(end, 0.25))
            recurrence = state.replace_placeholders({end: state.output})
            found = self._value(recurrence)
        except (ValueError, TypeError, RuntimeError) as error:
            why = str(error).partition("[built at")[0]
            if self._may_be_refused() and ("recurrence" in why or "sequence" in why):
                return
            raise AssertionError(f"{self.name} is refused: {error}") from error
        unrolled = self._unrolled()
        right = self._value(unrolled)
        if not _alike(right, self._value(unrolled)):
            return
        for number, pair in enumerate(zip(found, right, strict=True)):
            assert_close(*pair, f"{self.name}: sequence {number}")
        wrt = self._differentiable()
        if not wrt or self._differs_in_training():
            return
        expected = self._gradients(unrolled, wrt)
        for variable, gradient in self._gradients(recurrence, wrt).items():
            assert_close(gradient, expected[variable], f"{self.name}: gradient of {variable}", GRADIENTS)

    def _step(self, before: Any) -> Function:
        """The state after a step, from that before it."""
        trial = self.trial
        variables: list[Any] = list(trial.variables)
        x = variables[self.fed]
        variables[self.fed] = x * (1 + 0.1 * C.sin(before)) if trial.sample.operands[self.fed].gradient else x + 0 * before
        result = trial.sample.build(self.function, variables)
        terms = [C.reduce_sum(C.sin(output) * weight) for output, weight in zip(result.outputs, self.weights, strict=True)]
        total = terms[0] if len(terms) == 1 else C.plus(*terms)
        return C.sin(total) + 0.5 * before

    def _unrolled(self) -> Function:
        state = C.sequence.broadcast_as(C.constant(0.25, dtype=np.float64), self.trial.variables[self.fed])
        for _ in range(max(LENGTHS)):
            state = self._step(self.delay(state, 0.25))
        return state

    def _weights(self, output: Any, generator: np.random.Generator) -> Any:
        return C.constant(generator.uniform(0.1, 1.0, [1 if dim < 0 else dim for dim in output.shape]), dtype=np.float64)

    def _value(self, function: Function) -> Any:
        return function.eval(self.trial.feed(), device=self.trial.device)

    def _differs_in_training(self) -> bool:
        """Whether the operator alone has other results in training."""
        pairs = zip(self.trial.evaluate(), self.trial.evaluate(training=True), strict=True)
        return not all(_alike(*(value if isinstance(value, list) else [value] for value in pair)) for pair in pairs)

    def _differentiable(self) -> list[Any]:
        pairs = zip(self.trial.variables, self.trial.sample.operands, strict=True)
        return [variable for variable, operand in pairs if operand.gradient and not operand.sparse]

    def _gradients(self, function: Function, wrt: Sequence[Any]) -> dict[Any, Any]:
        found = function.grad(self.trial.feed(), wrt=list(wrt), device=self.trial.device)
        by_variable = found if isinstance(found, dict) else {wrt[0]: found}
        return {v: np.concatenate(g) if isinstance(g, list) else g for v, g in by_variable.items()}

    def _may_be_refused(self) -> bool:
        """Whether the operator cannot run step by step."""
        axes = self.trial.variables[self.fed].dynamic_axes
        nodes = depth_first_search(self.trial.result.root_function, lambda node: isinstance(node, Primitive), depth=-1)
        return any(
            (isinstance(node.op, SequenceOp) and (node.op.whole_sequences or node.op.decides_layout))
            or (isinstance(node.op, Delay) and node.op.steps_back * self.shift < 0)
            or any(output.dynamic_axes != axes for output in node.outputs)
            for node in nodes
        )


def _alike(one: Any, other: Any) -> bool:
    return all(np.allclose(a, b) for a, b in zip(one, other, strict=True))
