"""Steps of sequences picked by the values of another sequence: where, gather and scatter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar
from weakref import WeakValueDictionary

import numpy as np

from ...core.common.shape import Shape, format_shape, size_of
from ...core.graph.arguments import TensorLike
from ...core.graph.block import as_composite
from ...core.graph.function import Function
from ...core.graph.inference import as_variable
from ...core.graph.nodes import Primitive
from ...core.operators.op import Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.sequence_op import SequenceOp
from ...core.types.axis import Axes, Axis
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.spec import Spec
from .arithmetic import plus
from .identity import alias
from .sequence_ends import is_first, is_last
from .sequence_rows import derived_axes, put_rows, require_same_lengths, require_steps, sequence_axes, sequences, steps, take_rows

TypeInfo = tuple[int, int]


class Where(SequenceOp):
    """The numbers of the steps that a condition picks, each as often as its value says; its layout tells the rows they come from."""

    op_name = "Where"
    gradient_inputs = ()
    by_rows = False

    def __init__(self, prefix: str, typeinfo: TypeInfo | None) -> None:
        super().__init__()
        self._prefix, self._typeinfo = prefix, typeinfo
        self._axis = Axis.new_unique_dynamic_axis(prefix)

    def copy(self) -> Where:
        return Where(self._prefix, self._typeinfo)

    def infer(self, *inputs: Spec) -> Spec:
        (condition,) = inputs
        axes = sequence_axes(condition, "the condition")
        if size_of(condition.dims) != 1 and condition.is_concrete:
            raise ValueError(f"the condition must be one number a step, but has the shape {format_shape(condition.shape)}; reduce it first")
        return condition.but(shape=(), axes=self._new_axes(axes))

    def _new_axes(self, axes: Axes | None) -> Axes | None:
        if self._typeinfo is not None:
            return derived_axes(axes, *self._typeinfo)
        return axes and (axes[0], self._axis)

    def decide_layout(self, ctx: Context, condition: Any) -> Layout:
        """Layout of the result: as many steps for each sequence as its condition adds up to."""
        before, _ = sequences(ctx.layouts[0])
        counts = _counts(ctx.backend.to_numpy(condition).reshape(-1), before)[before.unpack_index]
        starts = np.concatenate([[0], before.splits])
        lengths = np.add.reduceat(counts, starts)
        require_steps(lengths, "the condition")
        chosen = np.repeat(before.unpack_index, counts)
        if self._typeinfo == (0, 1):
            if lengths.max() > 1:
                which = int(np.argmax(lengths))
                raise ValueError(
                    f"the condition picks {lengths[which]} steps of sequence {which} of the minibatch, but "
                    "new_sequence_axis_typeinfo=(0, 1) says that it picks one of each; leave it out for sequences of any length"
                )
            return Layout(before.samples, None, chosen)
        after = Layout(before.samples, lengths)
        after.source = chosen[after.pack_index]
        return after

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        before, _ = sequences(ctx.layouts[0])
        ctx.backend.load(out, before.step_of_row[_picked(ctx.layout).source])


def _counts(condition: Any, layout: Layout) -> Index:
    """How often each row is taken: fractions add up along a sequence, and a step is taken as often as the sum passes a whole number."""
    rounding = np.finfo(np.promote_types(condition.dtype, np.float32)).eps
    total = np.zeros(layout.samples)
    taken = np.zeros(layout.samples, dtype=np.intp)
    counts = np.empty(layout.rows, dtype=np.intp)
    for rows, alive in steps(layout):
        total[:alive] += condition[rows]
        wanted = np.maximum(np.ceil(np.nan_to_num(total[:alive]) * (1 - rounding)), taken[:alive])
        counts[rows] = wanted - taken[:alive]
        taken[:alive] = wanted
    return counts


def _picked(layout: Layout | None) -> Layout:
    """The layout of steps that are picked, which says where they are."""
    assert layout is not None and layout.source is not None
    return layout


class Gather(SequenceOp):
    """The steps of a sequence, the first operand, that a condition, the second, picks as :class:`Where`, the third, has found out."""

    op_name = "Sequence::Gather"
    gradient_inputs = (0,)
    sparse_inputs: ClassVar[tuple[int, ...]] = (0,)
    traits = Traits(layout_inputs=(1, 2), uniform_inputs=(), expands_operands=False)
    by_rows = False
    whole_sequences = True

    def infer(self, *inputs: Spec) -> Spec:
        seq, condition, positions = inputs
        sequence_axes(seq)
        sequence_axes(condition, "the condition")
        return seq.but(axes=positions.axes, sparse=seq.sparse)

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: that of the positions."""
        require_same_lengths(layouts[0], layouts[1], "the operand and the condition")
        assert layouts[2] is not None
        return layouts[2]

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        take_rows(ctx, out, inputs[0], _picked(ctx.layouts[2]), "source")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        put_rows(ctx, grads[0], grad, _picked(ctx.layouts[2]), "source")


class Scatter(SequenceOp):
    """Puts the steps of a sequence where a condition says, with zeros between; the inverse of :class:`Gather`."""

    op_name = "Sequence::Scatter"
    gradient_inputs = (0,)
    sparse_inputs: ClassVar[tuple[int, ...]] = (0,)
    traits = Traits(layout_inputs=(1, 2), uniform_inputs=(), expands_operands=False)
    by_rows = False
    whole_sequences = True

    def infer(self, *inputs: Spec) -> Spec:
        seq, condition, _ = inputs
        axes = sequence_axes(condition, "the condition")
        if seq.axes == ():
            raise ValueError("the operand has no dynamic axes; bring it onto those of the steps to fill with sequence.broadcast_as")
        return seq.but(axes=axes, sparse=seq.sparse)

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: that of the condition."""
        seq, condition, positions = layouts
        assert seq is not None and condition is not None and positions is not None
        steps_given = np.ones(seq.samples, dtype=np.intp) if seq.lengths is None else seq.lengths
        steps_wanted = np.ones(positions.samples, dtype=np.intp) if positions.lengths is None else positions.lengths
        if not np.array_equal(steps_given, steps_wanted):
            raise ValueError(
                f"the operand must have as many steps as the condition picks, but has {Layout(seq.samples, steps_given)}, "
                f"and the condition picks {Layout(positions.samples, steps_wanted)}"
            )
        return condition

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        put_rows(ctx, out, inputs[0], _picked(ctx.layouts[2]), "source")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        take_rows(ctx, grads[0], grad, _picked(ctx.layouts[2]), "source")


_made: WeakValueDictionary[tuple[str, TypeInfo | None], Primitive] = WeakValueDictionary()


def _positions(condition: Any, typeinfo: TypeInfo | None = None) -> Function:
    """Where a condition holds; the same function for the same condition, so that all that it picks is on one sequence axis."""
    variable = as_variable(condition, op_name="sequence.where")
    if typeinfo is not None:
        typeinfo = _checked(typeinfo)
    key = (variable.uid, typeinfo)
    known = _made.get(key)
    if known is None or known.inputs[0] is not variable:
        known = _made[key] = Where(f"whereNodeDynamicAxis_conditionVar_{variable.uid}", typeinfo)(variable).root_function
    return as_composite(known)


def _checked(typeinfo: Any) -> TypeInfo:
    try:
        factor, addend = (int(number) for number in typeinfo)
    except (TypeError, ValueError):
        factor, addend = -1, 0
    if factor < 0 or (factor, addend) != tuple(typeinfo):
        raise ValueError(f"new_sequence_axis_typeinfo must be two whole numbers, the factor not below 0, got {typeinfo!r}")
    if factor == 0 and addend < 1:
        raise RuntimeError(f"new_sequence_axis_typeinfo={typeinfo!r} stands for sequences of {addend} steps; there must be at least one")
    return factor, addend


# ---- public functions ----------------------------------------------------------------------------


def _ends(x: Any) -> Any:
    """A condition of 0 and 1, and 2 for a sequence of a single step."""
    return plus(is_first(x), is_last(x))


def _end_steps(x: Any) -> Any:
    return x[[0, -1]]


def _only_ends(x: Any) -> Any:
    kept = np.zeros_like(x)
    np.add.at(kept, [0, len(x) - 1], x[[0, -1]])
    return kept


@operator(
    sample(
        Operand((3,), kind="sequence", gradient=False),
        call=lambda f, x: f(_ends(x)),
        expected=lambda x: np.array([0.0, len(x) - 1]),
    ),
    sample(Operand(np.array([2.0]), kind="sequence", gradient=False), expected=lambda x: np.repeat(np.arange(len(x)), 2)),
    sample(Operand(np.array(0.5), kind="sequence", gradient=False), expected=lambda x: np.arange(0.0, len(x), 2)),
)
def where(condition: TensorLike, name: str = "") -> Function:
    """Numbers of the steps that a condition picks.  No gradient flows through it.

    Args:
        condition: sequence of numbers, shape () or (1,): 1 picks a step, 0 leaves it out, n repeats it n times.  Fractions add up: of
            steps with 0.5 every second is picked, of steps with 1.5 every second is repeated.
        name: name of the function.

    Returns:
        scalars, counted from 0, on a new sequence axis; all that one condition picks is on the same one.

    Raises:
        ValueError: *condition* is not a sequence, or more than one number a step.
        RuntimeError: nothing is picked of a sequence.

    >>> x = C.sequence.input_variable(())
    >>> C.sequence.where(x).eval([np.float32([0, 1, 1])])
    [array([1., 2.], dtype=float32)]
    >>> C.sequence.where(x).eval([np.float32([2.5, 0, 1])])
    [array([0., 0., 0., 2.], dtype=float32)]
    """
    positions = _positions(condition)
    return alias(positions, name=name) if name else positions


@operator(
    sample(Operand((2, 3), kind="sequence"), call=lambda f, x: f(x, _ends(x)), expected=_end_steps),
    sample(
        Operand((2,), kind="sequence"),
        Operand(np.array(2.0), kind="sequence", gradient=False),
        expected=lambda x, condition: np.repeat(x, 2, axis=0),
    ),
    sample(Operand((), kind="sequence"), Operand(np.array(1.0), kind="sequence", gradient=False), expected=lambda x, condition: x),
    sample(
        Operand((2,), kind="sequence"),
        call=lambda f, x: f(x, _ends(x), new_sequence_axis_typeinfo=(0, 2)),
        expected=_end_steps,
    ),
    sample(Operand((4,), kind="sequence", sparse=True, gradient=False), call=lambda f, x: f(x, _ends(x)), expected=_end_steps),
)
def gather(seq: TensorLike, condition: TensorLike, new_sequence_axis_typeinfo: TypeInfo | None = None, name: str = "") -> Function:
    """The steps of a sequence that a condition picks.  No gradient flows to the condition.

    Args:
        seq: sequence of any static shape; may be sparse.
        condition: sequence of the same lengths; see :func:`where`.
        new_sequence_axis_typeinfo: ``(factor, addend)`` if the result has ``factor * steps + addend`` steps, where the condition has so
            many *steps*; results of equal typeinfo combine.  (0, 1) is one step, without a sequence axis.  By default the result is on an
            axis that belongs to the condition.
        name: name of the function.

    Returns:
        sequences of the operand's static shape.

    Raises:
        ValueError: an operand is not a sequence, or they have different lengths.
        RuntimeError: nothing is left of a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> large = C.greater(C.reduce_sum(x), 4)
    >>> C.sequence.gather(x, large).eval([np.float32([[1, 2], [3, 4], [5, 6]])])
    [array([[3., 4.],
           [5., 6.]], dtype=float32)]
    """
    return Gather()(seq, condition, _positions(condition, new_sequence_axis_typeinfo), name=name)


@operator(
    sample(Operand((2, 3), kind="sequence"), call=lambda f, x: f(gather(x, _ends(x)), _ends(x)), expected=_only_ends),
    sample(
        Operand((2,), kind="sequence"),
        call=lambda f, x: f(gather(x, _ends(x), (0, 2)), _ends(x), new_sequence_axis_typeinfo=(0, 2)),
        expected=_only_ends,
    ),
    sample(
        Operand((4,), kind="sequence", sparse=True, gradient=False),
        call=lambda f, x: f(gather(x, _ends(x)), _ends(x)),
        expected=_only_ends,
    ),
)
def scatter(seq: TensorLike, condition: TensorLike, new_sequence_axis_typeinfo: TypeInfo | None = None, name: str = "") -> Function:
    """Put the steps of a sequence where a condition holds, with zeros between: the inverse of :func:`gather`.

    Args:
        seq: sequence with as many steps as the condition picks, or a value on the batch axis alone where it picks one; may be sparse.
        condition: sequence; see :func:`where`.  Steps that it picks several times are the sum of so many of *seq*.
        new_sequence_axis_typeinfo: ``(factor, addend)`` if the condition picks ``factor * steps + addend`` of so many *steps*.
        name: name of the function.

    Returns:
        sequences of the static shape of *seq* on the dynamic axes of the condition.  No gradient flows to the condition.

    Raises:
        ValueError: *condition* is not a sequence, or *seq* has not as many steps as it picks.
        RuntimeError: nothing is picked of a sequence.

    >>> x = C.sequence.input_variable(2)
    >>> C.sequence.scatter(C.sequence.last(x), C.sequence.is_first(x)).eval([np.float32([[1, 2], [3, 4], [5, 6]])])
    [array([[5., 6.],
           [0., 0.],
           [0., 0.]], dtype=float32)]
    """
    return Scatter()(seq, condition, _positions(condition, new_sequence_axis_typeinfo), name=name)
