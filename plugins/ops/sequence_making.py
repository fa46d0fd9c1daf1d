"""The first static axis as a sequence axis: to_sequence and to_sequence_like."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np

from ...core.common.shape import Shape, format_shape, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.graph.inference import as_variable
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.axis import Axes, Axis, format_axes
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec
from .sequence_rows import matrix_rows, sequence_axes, sequences, shaped


class _SequenceOfStatic(SequenceOp):
    """Base: row r of the result is the part of the first operand that step and sequence of the row name."""

    sparse_inputs: ClassVar[tuple[int, ...]] = (0,)
    gradient_inputs = (0,)
    traits = Traits(expands_operands=False)
    by_rows = False

    def made(self, x: Spec, axes: Axes | None) -> Spec:
        """Type of the result, on the given dynamic axes."""
        if x.axes is not None and len(x.axes) != 1:
            held = f"has the dynamic axes {format_axes(x.axes)}"
            fix = "a sequence can be put on other axes with reconcile_dynamic_axes" if x.axes else "to_batch makes the first axis one"
            raise ValueError(f"the operand must have a batch axis and no sequence axis, but {held}; {fix}")
        if not x.dims:
            raise ValueError("the operand is a scalar; its first static axis is to become the sequence axis")
        if x.sparse and x.rank == 1:
            raise ValueError(
                f"the operand is sparse and of shape {format_shape(x.shape)}, whose only axis cannot become steps; make it dense with "
                "times(x, identity), or give it the shape (steps, values)"
            )
        return x.but(shape=x.dims[1:], axes=axes, sparse=x.sparse)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x, *_), places = inputs, self._places(ctx, inputs[0].shape[1])
        if isinstance(x, SparseRows):
            out.set(*x.take(ctx.xp, ctx.brought(matrix_rows(out, places))))
        else:
            ctx.xp.take(_flat(x), ctx.brought(places), axis=0, out=out, mode="clip")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        grads[0].fill(0)
        _flat(grads[0])[ctx.brought(self._places(ctx, grads[0].shape[1]))] = grad

    def _places(self, ctx: Context, longest: int) -> Index:
        layout, _ = sequences(ctx.layout)
        return layout.sequence_of_row * longest + layout.step_of_row


def _flat(array: Any) -> Any:
    """View samples and steps, the first two axes, as one."""
    return array.reshape(-1, *array.shape[2:])


class ToSequence(_SequenceOfStatic):
    """Sequences as long as the axis."""

    op_name = "ToSequenceOp"

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._axis = Axis.new_unique_dynamic_axis(prefix)

    def copy(self) -> Self:
        return type(self)(self._prefix)

    def infer(self, *inputs: Spec) -> Spec:
        axes = inputs[0].axes
        return self.made(inputs[0], axes and (axes[0], self._axis))

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: as many steps in every sequence."""
        samples, steps = shapes[0][:2]
        if steps < 1:
            raise RuntimeError("the first static axis has no element, so that the sequences would have no step")
        return Layout(samples, np.full(samples, steps))


class ToSequenceOfLengths(_SequenceOfStatic):
    """Sequences whose lengths the second operand says."""

    op_name = "ToSequenceOp"
    traits = Traits(uniform_inputs=(), expands_operands=False)

    def __init__(self, prefix: str) -> None:
        super().__init__()
        self._prefix = prefix
        self._axis = Axis.new_unique_dynamic_axis(prefix)

    def copy(self) -> Self:
        return type(self)(self._prefix)

    def infer(self, *inputs: Spec) -> Spec:
        x, lengths = inputs
        made = self.made(x, x.axes and (x.axes[0], self._axis))
        if x.axes is not None and lengths.axes is not None and lengths.axes != x.axes:
            raise ValueError(
                f"the lengths of the sequences are on the dynamic axes {format_axes(lengths.axes)}, but must be on those of the operand, "
                f"{format_axes(x.axes)}; reconcile_dynamic_axes brings them there"
            )
        if lengths.is_concrete and size_of(lengths.dims) != 1:
            raise ValueError(f"the lengths must be one number for each sequence, but have the shape {format_shape(lengths.shape)}")
        return made

    def decide_layout(self, ctx: Context, x: Any, lengths: Any) -> Layout:
        """Layout of the result: as many steps as the second operand says."""
        values = ctx.backend.to_numpy(lengths).reshape(-1).astype(np.float64)
        longest = x.shape[1]
        wrong = ~((values >= 1) & (values <= longest) & (values == np.floor(values)))
        if wrong.any():
            which = int(np.argmax(wrong))
            raise ValueError(
                f"the length of sequence {which} of the minibatch is {values[which]:g}; expected a whole number from 1 to {longest}, "
                "the dimension of the first static axis"
            )
        return Layout(len(values), values.astype(np.intp))


class ToSequenceLike(_SequenceOfStatic):
    """Sequences as long as those of the second operand, on its dynamic axes."""

    op_name = "ToSequenceLikeOp"
    sparse_inputs = (0, 1)
    traits = Traits(layout_inputs=(1,), uniform_inputs=(), expands_operands=False)

    def infer(self, *inputs: Spec) -> Spec:
        return self.made(inputs[0], sequence_axes(inputs[1], "dynamic_axes_like"))

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        x, like = inputs
        return None if x.shape is None else (x, shaped(like))

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: that of the second operand."""
        layout, lengths = sequences(layouts[1])
        samples, longest = shapes[0][:2]
        if layout.samples != samples:
            raise ValueError(f"the operand has {samples} samples, but dynamic_axes_like has {layout.samples} sequences")
        if lengths.max() > longest:
            which = int(lengths.argmax())
            raise ValueError(
                f"sequence {which} of dynamic_axes_like has {lengths[which]} steps, but the first static axis of the operand has only "
                f"{longest} elements to make steps of"
            )
        return layout


def _steps_of(lengths: Any) -> int:
    return int(np.asarray(lengths).reshape(-1)[0])


@operator(
    sample((3, 2), sequences="none", expected=lambda x: x),
    sample((4,), sequences="none", expected=lambda x: x),
    sample((3, 2), Operand(np.array(2.0), gradient=False), sequences="none", expected=lambda x, n: x[: _steps_of(n)]),
    sample((3, 2), Operand(np.array([1.0]), gradient=False), sequences="none", expected=lambda x, n: x[: _steps_of(n)]),
    sample(Operand((3, 4), sparse=True, gradient=False), sequences="none", expected=lambda x: x),
    sample(
        Operand((3, 2, 4), sparse=True, gradient=False),
        Operand(np.array(2.0), gradient=False),
        sequences="none",
        expected=lambda x, n: x[:2],
    ),
)
def to_sequence(
    x: TensorLike, sequence_lengths: TensorLike | None = None, sequence_axis_name_prefix: str = "toSequence_", name: str = ""
) -> Function:
    """Turn the first static axis into a sequence axis.

    Args:
        x: operand of static shape ``(T, *S)`` with a batch axis and no sequence axis; may be sparse.
        sequence_lengths: whole numbers from 1 to ``T``, shape () or (1,) on the batch axis, of the steps to keep of each sample; all
            where None.
        sequence_axis_name_prefix: how the name of the new sequence axis begins.
        name: name of the function.

    Returns:
        sequences of static shape ``S`` on a new sequence axis.

    Raises:
        ValueError: *x* is a scalar, or has a sequence axis or no batch axis; a length is not between 1 and ``T``.

    >>> x, lengths = C.input_variable((3, 2)), C.input_variable(())
    >>> data = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    >>> C.to_sequence(x, lengths).eval({x: data, lengths: np.float32([1, 2])})
    [array([[0., 1.]], dtype=float32), array([[6., 7.],
           [8., 9.]], dtype=float32)]
    """
    operand = as_variable(x, op_name="to_sequence")
    prefix = sequence_axis_name_prefix + operand.uid
    if sequence_lengths is None:
        return ToSequence(prefix)(operand, name=name)
    return ToSequenceOfLengths(prefix)(operand, sequence_lengths, name=name)


@operator(
    sample((9, 2), Operand((3,), kind="sequence", gradient=False), expected=lambda x, like: x[: len(like)]),
    sample((9,), Operand((), kind="sequence", gradient=False), expected=lambda x, like: x[: len(like)]),
    sample(
        Operand((9, 4), sparse=True, gradient=False),
        Operand((3,), kind="sequence", gradient=False),
        expected=lambda x, like: x[: len(like)],
    ),
)
def to_sequence_like(x: TensorLike, dynamic_axes_like: TensorLike, name: str = "") -> Function:
    """Turn the first static axis into the sequence axis of another value.

    Args:
        x: operand of static shape ``(T, *S)`` with a batch axis and no sequence axis; may be sparse.
        dynamic_axes_like: sequence of any static shape, of at most ``T`` steps; what is left of *x* is not used.  No gradient flows to it.
        name: name of the function.

    Returns:
        sequences of static shape ``S`` on the dynamic axes of *dynamic_axes_like*.

    Raises:
        ValueError: *x* is a scalar, or has a sequence axis or no batch axis; *dynamic_axes_like* is not a sequence, or longer than ``T``.

    >>> x, like = C.input_variable((3, 2)), C.sequence.input_variable(1)
    >>> data = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    >>> C.to_sequence_like(x, like).eval({x: data, like: [np.ones((2, 1), np.float32), np.ones((1, 1), np.float32)]})
    [array([[0., 1.],
           [2., 3.]], dtype=float32), array([[6., 7.]], dtype=float32)]
    """
    return ToSequenceLike()(x, dynamic_axes_like, name=name)
