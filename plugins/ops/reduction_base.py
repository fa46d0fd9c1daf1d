"""What all reductions share: which axes there are to reduce, and how they are written."""

from __future__ import annotations

import operator as operators
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from ...core.common.shape import Shape, size_of
from ...core.graph.function import Function
from ...core.operators.op import Op
from ...core.operators.samples import Operand, Sample, sample
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.spec import Spec
from .axes import kept_shape

Axes = int | Axis | Sequence[int | Axis] | None

ALL_STATIC = (Axis.all_static_axes(),)
ALL_AXES = (Axis.all_axes(),)


class _Reduced(NamedTuple):
    """The operand and the result of a reduction.

    Attributes:
        x, out: their arrays.
        y: the result with the reduced axes as 1.
        axes: the operand's axes to reduce.
    """

    x: Any
    out: Any
    y: Any
    axes: tuple[int, ...]


class Reduction(Op):
    """Base of reductions.  Subclasses write :meth:`reduce` and :meth:`gradient`, whose arrays keep the reduced axes as 1."""

    op_name = "ReduceElements"
    reduction_op_name: ClassVar[str]

    def __init__(self, *, axis_vec: tuple[Axis, ...] = ALL_STATIC, reduction_keep_dimensions: bool = True) -> None:
        super().__init__(axis_vec=axis_vec, reduction_keep_dimensions=reduction_keep_dimensions)

    @property
    def attributes(self) -> dict[str, Any]:
        return {"reductionOpName": self.reduction_op_name, **super().attributes}

    def infer(self, x: Spec) -> Spec:
        if self.axis_vec == ALL_AXES:
            return self.common(x).but(axes=())
        if self.axis_vec == ALL_STATIC:
            return self.common(x)
        reduced = {static_axis_number(axis, x.rank, self.reduction_op_name) for axis in self.axis_vec if axis.is_static_axis}
        if self.reduction_keep_dimensions:
            shape = kept_shape(x.dims, tuple(reduced))
        else:
            shape = tuple(dim for axis, dim in enumerate(x.dims) if axis not in reduced)
        over_batch = Axis.default_batch_axis() in self.axis_vec
        if over_batch and x.axes is not None and len(x.axes) != 1:
            found = "is a sequence; reduce its steps first, with C.sequence.reduce_sum for one" if x.axes else "has none"
            raise ValueError(f"cannot reduce over the batch axis: the operand {found}")
        return self.common(x).but(shape=shape, **({"axes": ()} if over_batch else {}))

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """One for each element of the operand."""
        return size_of(inputs[0].shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x,) = inputs
        known = ctx.state  # most calls are with the same arrays
        if known is None or known.x is not x or known.out is not out:
            axes = self.array_axes(ctx, x)
            known = ctx.state = _Reduced(x, out, out.reshape(kept_shape(x.shape, axes)), axes)
        self.reduce(ctx, known.y, x, known.axes)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        dx = grads[0]
        axes = self.array_axes(ctx, dx)
        shape = kept_shape(dx.shape, axes)
        self.gradient(ctx, dx, grad.reshape(shape), None if out is None else out.reshape(shape), inputs[0], axes)

    def array_axes(self, ctx: Context, x: Any) -> tuple[int, ...]:
        """The axes of the operand's array to reduce."""
        rows = 0 if ctx.layouts[0] is None else 1
        if self.axis_vec == ALL_STATIC:
            return tuple(range(rows, x.ndim))
        if self.axis_vec == ALL_AXES:
            return tuple(range(x.ndim))
        rank = x.ndim - rows
        numbers = {rows + static_axis_number(a, rank, self.reduction_op_name) if a.is_static_axis else 0 for a in self.axis_vec}
        return tuple(sorted(numbers))

    def reduce(self, ctx: Context, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        """Reduce *axes* of *x* into *y*."""
        raise NotImplementedError(f"{type(self).__name__}.reduce")

    def gradient(self, ctx: Context, dx: Any, dy: Any, y: Any, x: Any, axes: tuple[int, ...]) -> None:
        """Write the operand's gradient into *dx*."""
        raise NotImplementedError(f"{type(self).__name__}.gradient")


def axis_vector(op: str, axis: Axes, keepdims: bool = True) -> tuple[Axis, ...]:
    """The axes to reduce in one form, from an axis argument as users write it.

    Raises:
        ValueError: no axis, a sequence axis, or axes that cannot be reduced together or without keeping them.
    """
    given = tuple(axis) if isinstance(axis, (tuple, list)) else (Axis.all_static_axes() if axis is None else axis,)
    axes = tuple(one if isinstance(one, Axis) else Axis(operators.index(one)) for one in given)
    if axes in (ALL_STATIC, ALL_AXES):
        if not keepdims:
            raise ValueError(f"{op}: a reduction over all axes has no axes left to keep or drop; leave out keepdims=False")
        return axes
    for one in axes:
        if one.is_sequence_axis:
            raise ValueError(
                f"{op}: {one!r} is a sequence axis; reduce over it with C.sequence.reduce_sum or C.sequence.reduce_max; the mean over the "
                "steps is C.sequence.reduce_sum(x) / C.sequence.reduce_sum(C.sequence.broadcast_as(1, x))"
            )
    if not axes or not all(one.is_static_axis or one.is_batch_axis for one in axes):
        raise ValueError(f"{op}: expected static axes, the batch axis or one marker for all axes, got axis={axis!r}")
    return axes


def reduce_over(op: str, reduction: type[Reduction], x: Any, axis: Axes, keepdims: bool, name: str) -> Function:
    """Apply *reduction*, for the public function called *op*."""
    axes = axis_vector(op, axis, keepdims)
    return reduction(axis_vec=axes, reduction_keep_dimensions=bool(keepdims))(x, name=name)


def samples(expected: Callable[..., Any], low: float = -1.0, high: float = 1.0) -> tuple[Sample, ...]:
    """Samples of a reduction: all axes, one, several, dropped ones, the batch, and operands of every rank and kind."""

    def of(shape: Shape, kind: str = "batch") -> Operand:
        return Operand(shape, low, high, kind=kind)

    def over(axes: Any, keepdims: bool = True) -> Any:
        return lambda x: expected(x, axis=axes, keepdims=keepdims)

    batch = Axis.default_batch_axis()
    return (
        sample(of((2, 3)), expected=over((0, 1), False)),
        sample(of(()), expected=over((), False)),
        sample(of((2, 3)), axis=0, expected=over(0)),
        sample(of((4, 2, 3)), axis=-2, keepdims=False, expected=over(1, False)),
        sample(of((4, 2, 3)), axis=(0, Axis(2)), expected=over((0, 2))),
        sample(of((2, 3), "parameter"), axis=[1, -1], expected=over(1)),
        sample(of((2, 3)), axis=batch, sequences="none"),
        sample(of((2, 3)), axis=(batch, 0), sequences="none"),
        sample(of((2, 3)), axis=Axis.all_axes()),
    )
