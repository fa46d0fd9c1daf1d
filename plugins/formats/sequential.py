"""Convolution along sequences, which files have in several steps: unpacked to an axis of steps, convolved, and made sequences again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.graph.nodes import Primitive
from ...core.graph.variable import Output, Variable
from ...core.operators.op import Op
from ..ops.convolution import Convolution
from ..ops.convolution import convolution as convolve
from ..ops.sequence_unpacking import UnpackSequence
from ..ops.sequence_windows import SequenceWindows
from ..ops.shaping import Reshape, SwapAxes, reshape
from .expansions import filters_with_channel, with_channel

Make = Callable[[Op, list[Variable]], Primitive]


def is_part(variable: Any) -> bool:
    """Whether this is a value within such a convolution, which files do not have."""
    op = variable.owner.op if isinstance(variable, Output) else None
    return type(op) is SequenceWindows or (type(op) is Convolution and op.sequential)


def convolution_ended_by(node: Primitive) -> Primitive | None:
    """The convolution along sequences that ends with *node*, which takes away the axis of windows."""
    op = node.op
    if type(op) is not Reshape or (op.new_shape, op.begin_axis, op.end_axis) != ((), 1, 2) or not is_part(node.inputs[0]):
        return None
    return node.inputs[0].owner if type(node.inputs[0].owner.op) is Convolution else None


def keeps_steps(op: Any, filters: Variable, x: Variable) -> bool:
    """Whether there is a step of the result for each of the operand."""
    _, stride, _, padded = op.in_time(filters.shape, x.spec.rank)
    return bool(padded and stride == 1)


def with_channels(op: Any, filters: Any, x: Any) -> Any:
    """The same convolution of an operand without channels, as one with."""
    rank = x.spec.rank + 1
    settings = {"strides": op.strides, "auto_padding": op.auto_padding, "dilation": op.dilation}
    settings = {name: with_channel(value, rank) for name, value in settings.items()}
    kernels = filters_with_channel(filters, rank)
    return convolve(kernels, reshape(x, (1, *x.shape)), groups=op.groups, sequential=True, **settings)


def recognised(values: Variable, like: Variable | None, axis: Any, make: Make) -> Primitive | None:
    """The convolution along sequences that gave *values*, unpacked; None where it was none.

    Args:
        values: with an axis of steps in front, which is about to become a sequence axis.
        like: the sequences whose axis it becomes; None where it becomes an axis of its own.
        axis: that axis of its own.
        make: makes primitives.
    """
    chain = []
    for kind in (SwapAxes, Convolution, SwapAxes, UnpackSequence):
        if not isinstance(values, Output) or type(values.owner.op) is not kind:
            return None
        chain.append(values.owner)
        values = values.owner.inputs[-1]
    swapped, product, before, unpacked = chain
    op, (filters, _), x = product.op, product.inputs, unpacked.inputs[0]
    first_two = all(_swaps_first_two(node) for node in (swapped, before))
    if not first_two or unpacked.op.sequence_unpack_padding_value or op.reduction_rank != 1 or like not in (None, x):
        return None
    windows = SequenceWindows(op.strides, op.dilation, op.auto_padding, 1)
    if like is not None and not keeps_steps(windows, filters, x):
        return None
    if axis is not None:
        windows._axis = axis
    along: Any = op.copy()
    along.sequential = True
    result = make(along, [filters, make(windows, [filters, x]).outputs[0]])
    return make(Reshape(new_shape=(), begin_axis=1, end_axis=2), [result.outputs[0]])


def _swaps_first_two(node: Primitive) -> bool:
    rank = node.inputs[0].spec.rank
    op: Any = node.op
    return rank >= 2 and op.order(rank) == (1, 0, *range(2, rank))
