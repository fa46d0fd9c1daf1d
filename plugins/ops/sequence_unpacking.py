"""The sequence axis as a static axis of free dimension, padded to the longest sequence, with a mask."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import FreeDimension, Shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.spec import Spec
from .sequence_rows import sequence_axes, sequences, without_steps


class UnpackSequence(SequenceOp):
    """Steps on the first static axis, with padding behind those of shorter sequences."""

    op_name = "UnpackSequenceOp"
    by_rows = False
    traits = Traits(recordable=True)
    sequence_unpack_padding_value: float

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        (x,) = inputs
        return x.but(shape=(FreeDimension, *x.dims), axes=without_steps(sequence_axes(x)))

    def array_shape(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Any:
        """Static shape of the result: as many steps as the longest sequence has."""
        _, lengths = sequences(layouts[0])
        return (int(lengths.max()), *shapes[0][1:])

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        places = ctx.index_from(_places)
        out.fill(self.sequence_unpack_padding_value)
        _flat(out)[places] = inputs[0]

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        ctx.xp.take(_flat(grad), ctx.index_from(_places), axis=0, out=grads[0], mode="clip")


class UnpackSequenceWithMask(UnpackSequence):
    """The same, and a mask that is 1 for steps and 0 for padding."""

    outputs: ClassVar[int] = 2
    traits = Traits()

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        data = super().infer(*inputs)
        assert isinstance(data, Spec)
        return data, data.but(shape=(FreeDimension,))

    def array_shape(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Any:
        """Static shapes of the results."""
        data = super().array_shape(layouts, shapes)
        return data, data[:1]

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        self.unpack(ctx, out, inputs[0], 1)

    def unpack(self, ctx: Context, out: Any, x: Any, one: Any) -> None:
        """Write the steps, and the mask with *one*, a number or an array without axes, for each."""
        data, mask = out
        super().forward(ctx, data, x)
        mask.fill(0)
        _flat(mask)[ctx.index_from(_places)] = one

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if grad[0] is None:
            grads[0].fill(0)
        else:
            super().backward(ctx, grad[0], grads, None)


def _places(ctx: Context) -> Index:
    """Where each row goes, when samples and steps are laid out as one axis."""
    layout, lengths = sequences(ctx.layouts[0])
    places: Index = layout.sequence_of_row * lengths.max() + layout.step_of_row
    return places


def _flat(array: Any) -> Any:
    """View samples and steps, the first two axes, as one."""
    return array.reshape(-1, *array.shape[2:])


@operator(
    sample(Operand((2, 3), kind="sequence"), padding_value=0, no_mask_output=True, expected=lambda x: x),
    sample(Operand((), kind="sequence"), padding_value=0, no_mask_output=True, expected=lambda x: x),
    sample(Operand((2,), kind="sequence"), padding_value=0, expected=lambda x: (x, np.ones(len(x)))),
)
def unpack(x: TensorLike, padding_value: float, no_mask_output: bool = False, name: str = "") -> Function:
    """Turn the sequence axis into a first static axis of free dimension, as long as the longest sequence of the minibatch.

    Args:
        x: sequence of static shape ``S``.
        padding_value: what stands behind the steps of shorter sequences.
        no_mask_output: leave out the mask.
        name: name of the function.

    Returns:
        Function with two results on the batch axis alone: the data, of static shape ``(FreeDimension, *S)``, and a mask of shape
        ``(FreeDimension,)``, 1 for each step and 0 for padding; only the data with *no_mask_output*.  No gradient flows through the mask.

    Raises:
        ValueError: *x* is not a sequence.

    >>> x = C.sequence.input_variable(())
    >>> unpacked = C.sequence.unpack(x, padding_value=-1)
    >>> data, mask = unpacked.outputs
    >>> values = unpacked.eval([np.float32([1, 2, 3]), np.float32([4])])
    >>> values[data]
    array([[ 1.,  2.,  3.],
           [ 4., -1., -1.]], dtype=float32)
    >>> values[mask]
    array([[1., 1., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    kind = UnpackSequence if no_mask_output else UnpackSequenceWithMask
    return kind(sequence_unpack_padding_value=float(padding_value))(x, name=name)
