"""Steps of sequences picked by their number: slice, first and last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import Shape
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec
from .identity import alias
from .sequence_rows import derived_axes, require_steps, sequence_axes, sequences, take_rows


class SequenceSlice(SequenceOp):
    """The steps of each sequence from one number up to another, negative ones counted from the end; 0 is the end behind the last.

    A slice that is one step long by its numbers has no sequence axis.
    """

    op_name = "Sequence::Slice"
    traits = Traits(recordable=True)
    sparse_inputs: ClassVar[tuple[int, ...]] = (0,)
    by_rows = False
    begin_index: int
    end_index: int

    def infer(self, *inputs: Spec) -> Spec:
        (x,) = inputs
        axes = sequence_axes(x)
        begin, end = self.begin_index, self.end_index
        same_end = (begin < 0) == (end <= 0)
        if same_end and end <= begin:
            raise RuntimeError(f"the slice from step {begin} to step {end} is empty, whatever the sequence")
        if begin < 0 < end:
            axes = axes and (axes[0], Axis(f"{axes[1].name}_from_{begin}_to_{end}"))
        else:
            axes = derived_axes(axes, 0 if same_end else 1, end - begin)
        return x.but(axes=axes, sparse=x.sparse)

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: the steps of each sequence that lie between the two numbers."""
        before, lengths = sequences(layouts[0])
        begin = np.clip(self.begin_index + (lengths if self.begin_index < 0 else 0), 0, lengths)
        end = np.clip(self.end_index + (lengths if self.end_index <= 0 else 0), 0, lengths)
        require_steps(end - begin, f"the slice from step {self.begin_index} to step {self.end_index}")
        if self.is_one_step:
            return Layout(before.samples, None, before.rows_at(begin))
        after = Layout(before.samples, end - begin)
        sequence = after.sequence_of_row
        after.source = before.offsets[begin[sequence] + after.step_of_row] + before.rank[sequence]
        return after

    @property
    def is_one_step(self) -> bool:
        return (self.begin_index < 0) == (self.end_index <= 0) and self.end_index - self.begin_index == 1

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        assert ctx.layout is not None
        take_rows(ctx, out, inputs[0], ctx.layout, "source")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        assert ctx.layout is not None
        grads[0].fill(0)
        grads[0][ctx.index(ctx.layout, "source")] = grad


@operator(
    sample(Operand((2, 3), kind="sequence"), begin_index=-2, end_index=0, expected=lambda x: x[-2:]),
    sample(Operand((), kind="sequence"), begin_index=0, end_index=2, expected=lambda x: x[:2]),
    sample(Operand((2,), kind="sequence"), begin_index=-1, end_index=0, expected=lambda x: x[-1]),
    sample(Operand((2,), kind="sequence"), begin_index=0, end_index=1, expected=lambda x: x[0]),
    sample(Operand((2,), kind="sequence"), begin_index=-3, end_index=7, expected=lambda x: x[-3:7]),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), begin_index=-2, end_index=0, expected=lambda x: x[-2:]),
)
def slice(seq: TensorLike, begin_index: int, end_index: int, name: str = "") -> Function:
    """The steps of each sequence from *begin_index* up to, not including, *end_index*.

    Args:
        seq: sequence of any static shape; may be sparse.
        begin_index: number of the first step; a negative one counts from the end.
        end_index: number of the step behind the last; a negative one counts from the end, 0 is the end.
        name: name of the function.

    Returns:
        sequences of the operand's static shape on a sequence axis that is derived from the operand's: slices of as many steps, or of as
        many steps fewer, of values on one axis combine.  A slice of one step, as -1 to 0 or 2 to 3, has no sequence axis.  ``seq`` itself
        for the slice from 0 to 0.

    Raises:
        ValueError: *seq* is not a sequence.
        RuntimeError: a slice is empty.

    >>> x = C.sequence.input_variable(2)
    >>> data = [np.float32([[1, 2], [3, 4], [5, 6]])]
    >>> C.sequence.slice(x, 1, 0).eval(data)
    [array([[3., 4.],
           [5., 6.]], dtype=float32)]
    >>> C.sequence.slice(x, -1, 0).eval(data)
    array([[5., 6.]], dtype=float32)
    >>> difference = C.sequence.slice(x, 1, 0) - C.sequence.slice(x, 0, -1)
    >>> difference.eval(data)
    [array([[2., 2.],
           [2., 2.]], dtype=float32)]
    """
    if begin_index == end_index == 0:
        return alias(seq, name=name)
    return SequenceSlice(begin_index=int(begin_index), end_index=int(end_index))(seq, name=name)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=lambda x: x[0]),
    sample(Operand((), kind="sequence"), expected=lambda x: x[0]),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), expected=lambda x: x[0]),
)
def first(seq: TensorLike, name: str = "") -> Function:
    """The first step of each sequence.

    Args:
        seq: sequence of any static shape; may be sparse.
        name: name of the function.

    Returns:
        a value of the operand's static shape with a batch axis only.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.first(x).eval([np.float32([[1, 2], [3, 4]]), np.float32([[5, 6]])])
    array([[1., 2.],
           [5., 6.]], dtype=float32)
    """
    return SequenceSlice(begin_index=0, end_index=1)(seq, name=name)


@operator(
    sample(Operand((2, 3), kind="sequence"), expected=lambda x: x[-1]),
    sample(Operand((), kind="sequence"), expected=lambda x: x[-1]),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), expected=lambda x: x[-1]),
)
def last(seq: TensorLike, name: str = "") -> Function:
    """The last step of each sequence.

    Args:
        seq: sequence of any static shape; may be sparse.
        name: name of the function.

    Returns:
        a value of the operand's static shape with a batch axis only.

    Raises:
        ValueError: *seq* is not a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.last(x).eval([np.float32([[1, 2], [3, 4]]), np.float32([[5, 6]])])
    array([[3., 4.],
           [5., 6.]], dtype=float32)
    """
    return SequenceSlice(begin_index=-1, end_index=0)(seq, name=name)
