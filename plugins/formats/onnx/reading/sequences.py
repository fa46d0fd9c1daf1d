"""An axis of steps as a sequence axis, so that recurrences run along it, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .....core.common.shape import FreeDimension
from .....core.graph.variable import Placeholder, Variable
from .....core.types.spec import Spec
from ....ops import arithmetic, delay, shaping
from ....ops.sequence_making import to_sequence, to_sequence_like
from ....ops.sequence_slicing import first, last
from ....ops.sequence_unpacking import unpack
from .arrays import Array, batched, made, reshape, static, transpose, unsqueeze
from .sizes import Size


class Steps:
    """The steps of an array along an axis, as a sequence.

    Attributes:
        variable: the sequence; a step has the array's shape without the axis of steps and the batch axis.
        count: the size of the axis.
        of_one: whether the array had no batch axis, so that the sequence is the only sample of a minibatch.
    """

    def __init__(self, x: Array, axis: int, like: Steps | None = None) -> None:
        if x.batch == axis:
            x = static(x)
        self.of_one: bool = x.batch is None if like is None else like.of_one
        if self.of_one:
            x, axis = batched(unsqueeze(static(x), [0])), axis + 1
        elif x.batch is None:
            raise ValueError("a sequence without a batch axis beside one with it")
        assert x.batch is not None
        place = axis - (axis > x.batch)
        self.count, self.samples = x.dims[axis], x.dims[x.batch]
        rest = [at for at in range(x.rank - 1) if at != place]
        variable: Any = x.held()
        if place:
            variable = shaping.transpose(variable, [place, *rest])
        self.variable: Variable = (to_sequence(variable) if like is None else to_sequence_like(variable, like.variable)).output

    def placeholder(self, shape: Sequence[int], dtype: Any) -> Placeholder:
        """What stands for a state of this shape until the recurrence is closed."""
        return Placeholder(Spec(tuple(shape), dtype, self.variable.spec.axes))

    def running_sum(self, *, reverse: bool) -> Variable:
        """The sum of the steps up to each, or from each on."""
        before = self.placeholder(self.variable.shape, self.variable.dtype)
        delayed = (delay.future_value if reverse else delay.past_value)(before)
        total = arithmetic.plus(self.variable, delayed)
        return total.replace_placeholders({before: total.output}).output

    def unpacked(self, variable: Any) -> Any:
        """The steps of a sequence on these axes as a first static axis."""
        found = unpack(variable, 0, no_mask_output=True)
        if isinstance(self.count, Size):
            return found
        return shaping.reshape(found, (self.count,), begin_axis=0, end_axis=1) if found.output.shape[0] == FreeDimension else found


def steps_of(x: Array, axis: int) -> Steps:
    """The steps of an array along an axis."""
    return Steps(x, axis)


def from_steps(variable: Any, dims: Sequence[Any], axis: int, dtype: Any, steps: Steps, at: int | None = None) -> Array:
    """The array that steps make up.

    Args:
        variable: the sequence.
        dims: ONNX's shape of the array.
        axis: where the axis of steps is in it.
        dtype: its element type.
        steps: what the axes of the sequence were made of.
        at: where the batch axis is in the array; in front of the others, if there is one, where None.
    """
    found = steps.unpacked(variable)
    rest = [dim for place, dim in enumerate(dims) if place != axis]
    if steps.of_one:
        array = made(found, [1, dims[axis], *rest], dtype, 0)
        array = reshape(static(array), [dims[axis], *rest])
    else:
        at = next(place for place, dim in enumerate(rest) if dim == steps.samples) if at is None else at - (at > axis)
        array = made(found, [dims[axis], *rest], dtype, at + 1)
    order = list(range(1, len(dims)))
    order.insert(axis, 0)
    return transpose(array, order)


def end_of(variable: Any, *, reverse: bool) -> Any:
    """The last state of a recurrence: on the first step where it runs backwards."""
    return (first if reverse else last)(variable)
