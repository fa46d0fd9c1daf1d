"""Replaces stacks of recurrent layers that run as one operator by recurrent layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from cntk import ops
from cntk.core.common.shape import is_concrete
from cntk.default_options import default_options
from cntk.layers import LSTM, Recurrence, RNNStep
from cntk.misc.converter import convert
from cntk.ops.functions import Function

OPERATOR = "OptimizedRNNStack"
STEPS: dict[str, Callable[..., Function]] = {
    "lstm": LSTM,
    "rnnReLU": partial(RNNStep, activation=ops.relu),
    "rnnTanh": partial(RNNStep, activation=ops.tanh),
}
"""Factories of step functions by their ``recurrent_op``."""


def convert_optimized_rnnstack(cudnn_model: Function) -> Function:
    """Copy a model and make layers :class:`LSTM` or :class:`RNNStep` of every ``optimized_rnnstack`` in it.

    The layers compute the same, and their weights are parameters of their own with the usual names.  The step function of layer 0 of
    a stack called ``rnn`` is called ``rnn_0``; in stacks that run both ways ``rnn_fw0`` and ``rnn_bw0``.  Stacks that share weights
    share the layers.

    Args:
        cudnn_model: the model.

    Returns:
        The copy; the model itself where it has no such stack.

    Raises:
        ValueError: a stack is of GRUs, which reset the state in another place than :func:`GRU` does; or the shape of its weights is
            not known yet.

    >>> x = C.sequence.input_variable(3)
    >>> W = C.Parameter((C.InferredDimension, 4), init=C.glorot_uniform())
    >>> model = C.misc.convert_optimized_rnnstack(C.optimized_rnnstack(x, W, 4, 1, recurrent_op='rnnTanh', name='rnn'))
    >>> sorted((p.name, p.shape) for p in model.parameters)
    [('H', (4, 4)), ('W', (3, 4)), ('b', (4,))]
    """
    stacks: dict[Any, Function] = {}

    def layers(node: Any) -> Function:
        operand, weights = node.inputs
        if weights in stacks:
            return stacks[weights](operand)
        with default_options(dtype=weights.dtype):
            blocks = _blocks_of(node)
            stacks[weights] = _one_after_the_other(blocks)
        applied = stacks[weights](operand)
        _fill(blocks, weights.value.reshape(-1))
        return applied

    return convert(cudnn_model, lambda node: node.op_name == OPERATOR, layers)


def _blocks_of(stack: Any) -> list[list[Function]]:
    """The step functions of a stack: for each layer one, or two of which the second goes backwards."""
    operand, weights = stack.inputs
    kind, size = stack.attributes["recurrentOp"], stack.attributes["hiddenSize"]
    if kind not in STEPS:
        raise ValueError(f"convert_optimized_rnnstack: {stack} is made of '{kind}', which no layer computes; {', '.join(STEPS)} can be")
    if not is_concrete(weights.spec.shape) or not is_concrete(operand.spec.shape):
        raise ValueError(f"convert_optimized_rnnstack: shapes of {stack} are not known yet; apply it to an input of known shape first")
    directions = ("_fw", "_bw") if stack.attributes["bidirectional"] else ("_",)
    return [
        [STEPS[kind](size, name=f"{stack.name}{direction}{layer}") for direction in directions]
        for layer in range(stack.attributes["numLayers"])
    ]


def _one_after_the_other(blocks: list[list[Function]]) -> Function:
    recurrences = [[Recurrence(block, go_backwards=i == 1) for i, block in enumerate(layer)] for layer in blocks]

    def stack(x: Any) -> Any:
        for layer in recurrences:
            results = [recurrence(x) for recurrence in layer]
            x = results[0] if len(results) == 1 else ops.splice(*results)
        return x

    return Function(stack)


def _fill(blocks: list[list[Function]], weights: Any) -> None:
    """Hand the weights out: first the matrices of all step functions, transposed, then two vectors of biases for each, which are added."""
    steps = [step for layer in blocks for step in layer]
    start = 0

    def take(count: int) -> Any:
        nonlocal start
        start += count
        return weights[start - count : start]

    for step in steps:
        for parameter in (step.W, step.H):
            columns, rows = parameter.shape
            parameter.value = _in_order(step, take(rows * columns)).reshape(rows, columns).T
    for step in steps:
        count = len(step.b.value)
        step.b.value = _in_order(step, take(count) + take(count))


def _in_order(step: Function, weights: Any) -> Any:
    """Weights in the order of the layer's gates: those of an LSTM come as i, f, g, o and are wanted as i, g, f, o."""
    return weights.reshape(4, -1)[[0, 2, 1, 3]].reshape(-1) if step.root_function.op_name == "LSTM" else weights


__all__ = ["convert_optimized_rnnstack"]
