"""Ops that select or join elements along static axes: slice, splice, gather, one_hot."""

from __future__ import annotations

import builtins
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...core.common.shape import InferredDimension, Shape, broadcast, format_shape
from ...core.graph.arguments import TensorLike
from ...core.graph.block import combine
from ...core.graph.function import Function
from ...core.operators.abilities import Expression
from ...core.operators.elementwise import Broadcasting
from ...core.operators.op import ALL, Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.view import View
from ...core.program.slots import Instruction
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec
from . import csr
from .product import times
from .shaping import AxisLike, index_of

Cut = tuple[AxisLike, int, int, int]


class Slice(View):
    """Selects a range of elements along one or several static axes."""

    op_name = "Slice"
    traits = Traits(recordable=True)
    is_slice = True
    _rank: int | None = None

    @property
    def cuts(self) -> list[Cut]:
        """Axis, begin, end and stride of each range."""
        if "axis" in self._attribute_names:
            return [(self.axis, self.begin_index, self.end_index, self.slice_strides)]
        return list(zip(self.axis_vec, self.begin_index_vec, self.end_index_vec, self.slice_strides_vec, strict=True))

    def infer(self, x: Spec) -> Spec:
        dims, self._rank = list(x.dims), x.rank
        for axis, begin, end, stride in self.cuts:
            number = static_axis_number(axis, x.rank, self.op_name)
            if dims[number] >= 0 or (begin >= 0 and end > 0):
                picked = positions(dims[number], begin, end, stride)
                dims[number] = len(range(*picked))
        return x.but(shape=tuple(dims))

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.copyto(out, x[self._index(ctx, x.shape)])

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        dx = grads[0]
        dx.fill(0)
        ctx.xp.copyto(dx[self._index(ctx, dx.shape)], grad)

    def view(self, x: Any, out_shape: Shape) -> Any:
        """The range itself, in the operand's memory."""
        return x[self._range(x.shape, x.ndim - (self._rank or 0))]

    def _index(self, ctx: Context, shape: Shape) -> tuple[Any, ...]:
        return self._range(shape, 0 if ctx.layout is None else 1)

    def _range(self, shape: Shape, offset: int) -> tuple[Any, ...]:
        index = [builtins.slice(None)] * len(shape)
        for axis, *cut in self.cuts:
            number = offset + static_axis_number(axis, len(shape) - offset, self.op_name)
            start, stop, step = positions(shape[number], *cut)
            index[number] = builtins.slice(start, None if stop < 0 else stop, step)
        return tuple(index)


def positions(dim: int, begin: int, end: int, stride: int) -> tuple[int, int, int]:
    """First element, end and step of a slice of an axis of size *dim*; a negative stride runs through the same range backwards.

    Raises:
        RuntimeError: the range is empty or outside the axis, or the stride is 0.
    """
    first = begin + dim if begin < 0 else begin
    last = end + dim if end <= 0 else end
    if not 0 <= first < last or 0 <= dim < last:
        raise RuntimeError(f"the range from {begin} to {end} is empty or outside an axis of {dim} elements")
    if stride == 0:
        raise RuntimeError("the stride of a slice must not be 0")
    return (first, last, stride) if stride > 0 else (last - 1, first - 1, stride)


class Splice(Broadcasting):
    """Joins operands along a static axis."""

    op_name = "Splice"
    keep_inputs = ALL
    traits = Traits(array_types=(), recordable=True)
    axis: AxisLike

    def infer(self, *inputs: Spec) -> Spec:
        common = self.common(*inputs)
        if any(spec.axes and spec.axes != common.axes for spec in inputs if common.axes is not None):
            raise RuntimeError("operands with a batch axis do not join those with a sequence axis; use sequence.broadcast_as on them")
        at, shapes = self._aligned(inputs)
        others = broadcast(*((*dims[:at], 1, *dims[at + 1 :]) for dims in shapes))
        if others is None:
            raise ValueError(f"all dimensions but that of axis {at} must be equal or 1, got {', '.join(map(format_shape, shapes))}")
        joined = [dims[at] for dims in shapes]
        unknown = [dim for dim in joined if dim < 0]
        return common.but(shape=(*others[:at], max(unknown) if unknown else sum(joined), *others[at + 1 :]))

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        at, shapes = self._aligned(inputs)
        target = broadcast(*((*dims[:at], InferredDimension, *dims[at + 1 :]) for dims in shapes))
        if target is None:
            return [spec.dims for spec in inputs]
        filled = (tuple(new if dim == InferredDimension else dim for dim, new in zip(dims, target, strict=True)) for dims in shapes)
        return [dims[len(dims) - spec.rank :] for dims, spec in zip(filled, inputs, strict=True)]

    def _aligned(self, inputs: Sequence[Spec]) -> tuple[int, list[Shape]]:
        """Number of the joining axis, and the operands' shapes brought to one rank by leading ones."""
        rank = max(spec.rank for spec in inputs)
        index = -rank - 1 if self.axis == Axis.new_leading_axis() else index_of(self.axis)
        if index >= rank:
            raise ValueError(f"axis {index} is outside shapes of {rank} axes")
        rank = max(rank, -index)
        return index % rank, [(1,) * (rank - spec.rank) + spec.dims for spec in inputs]

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        for part, x in zip(self._parts(ctx, out, inputs), inputs, strict=True):
            ctx.xp.copyto(part, x)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        for part, dx in zip(self._parts(ctx, grad, inputs), grads, strict=True):
            if dx is None:
                continue
            if dx.shape == part.shape:
                ctx.xp.copyto(dx, part)
            else:
                ctx.sum_to(part, dx)

    def whole(self, own: Instruction, expression: Expression) -> tuple[Op, tuple[int, ...]] | None:
        from .attention_pattern import heads_at  # which needs what this module has

        rank = expression.slots[own.outputs[0]].spec.rank
        is_of_columns = rank == 2 and self.axis != Axis.new_leading_axis() and static_axis_number(self.axis, rank, self.op_name) == 1
        return heads_at(own, expression) if is_of_columns else None

    def _parts(self, ctx: Context, joined: Any, inputs: Sequence[Any]) -> Iterator[Any]:
        """The place of each operand in the result or its gradient."""
        offset = 0 if ctx.layout is None else 1
        rank = joined.ndim - offset
        at = 0 if self.axis == Axis.new_leading_axis() else static_axis_number(self.axis, rank, self.op_name)
        start = 0
        for x in inputs:
            stop = start + (x.shape[at - rank] if x.ndim >= rank - at else 1)
            yield joined[(builtins.slice(None),) * (offset + at) + (builtins.slice(start, stop),)]
            start = stop


class Gather(Op):
    """Takes elements of a tensor without dynamic axes by their numbers."""

    op_name = "Gather"
    keep_inputs = (1,)
    gradient_inputs = (0,)
    axis: AxisLike = 0

    def infer(self, reference: Spec, indices: Spec) -> Spec:
        if reference.axes:
            raise RuntimeError("the operand to gather from must have no dynamic axes; unpack_batch or sequence.unpack take them away")
        if not reference.dims:
            raise ValueError("a scalar has no axis to gather from")
        at = static_axis_number(self.axis, reference.rank, self.op_name)
        return self.common(reference, indices).but(shape=reference.dims[:at] + indices.dims + reference.dims[at + 1 :])

    def forward(self, ctx: Context, out: Any, reference: Any, indices: Any) -> None:
        at = static_axis_number(self.axis, reference.ndim, self.op_name)
        numbers = self._numbers(ctx, indices, reference.shape[at])
        ctx.xp.take(reference, numbers, axis=at, out=self._rows_at(ctx, out, at))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, reference: Any, indices: Any) -> None:
        xp = ctx.xp
        dx = grads[0]
        at = static_axis_number(self.axis, dx.ndim, self.op_name)
        numbers = self._numbers(ctx, indices, dx.shape[at]).reshape(-1)
        picked = range(at, at + indices.ndim)
        dy = xp.moveaxis(self._rows_at(ctx, grad, at), picked, range(indices.ndim)).reshape(len(numbers), dx.size // dx.shape[at])
        sums = ctx.scratch("sums", (dx.shape[at], dy.shape[1]), dx.dtype)
        csr.sum_rows(xp, numbers, dy, sums)
        target = xp.moveaxis(dx, at, 0)
        xp.copyto(target, sums.reshape(target.shape))

    def _numbers(self, ctx: Context, indices: Any, size: int) -> Any:
        numbers = ctx.scratch("numbers", indices.shape, np.intp)
        ctx.xp.copyto(numbers, indices, casting="unsafe")
        if numbers.size and (numbers.min() < 0 or numbers.max() >= size):
            raise ValueError(f"Gather: an index is outside 0 … {size - 1}; the indices run from {numbers.min()} to {numbers.max()}")
        return numbers

    def _rows_at(self, ctx: Context, array: Any, at: int) -> Any:
        """View the result, or its gradient, with its rows next to the axes that the indices give it."""
        return array if ctx.layout is None or at == 0 else ctx.xp.moveaxis(array, 0, at)


class OneHot(Op):
    """Turns class numbers into vectors with a single 1."""

    op_name = "OneHotOp"
    gradient_inputs = ()
    num_class: int
    one_hot_output_sparse: bool
    onehot_axis: AxisLike

    def infer(self, x: Spec) -> Spec:
        at = static_axis_number(self.onehot_axis, x.rank + 1, self.op_name)
        return x.but(shape=(*x.dims[:at], self.num_class, *x.dims[at:]), sparse=self.one_hot_output_sparse and at == x.rank)

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        xp = ctx.xp
        if isinstance(out, SparseRows):
            numbers = xp.trunc(x).reshape(x.size)
            real = (numbers >= 0) & (numbers < self.num_class)
            starts = xp.concatenate((xp.zeros(1, np.intp), xp.cumsum(real)))
            out.set(xp.ones(int(starts[-1]), out.dtype), numbers[real].astype(np.intp), starts)
            return
        offset = 0 if ctx.layout is None else 1
        at = offset + static_axis_number(self.onehot_axis, out.ndim - offset, self.op_name)
        numbers = ctx.scratch("numbers", x.shape, x.dtype)
        xp.trunc(x, out=numbers)
        classes = xp.arange(self.num_class).reshape(-1, *(1,) * (out.ndim - 1 - at))
        xp.equal(xp.expand_dims(numbers, at), classes, out=out)


# ---- public functions ----------------------------------------------------------------------------


@operator(
    sample((3, 4), axis=0, begin_index=1, end_index=3, expected=lambda x: x[1:3]),
    sample((3, 4), axis=-1, begin_index=-3, end_index=0, expected=lambda x: x[:, 1:]),
    sample((2, 5), axis=1, begin_index=0, end_index=5, strides=2, expected=lambda x: x[:, ::2]),
    sample((2, 5), axis=1, begin_index=1, end_index=5, strides=-3, expected=lambda x: x[:, [4, 1]]),
    sample((2, 5), axis=1, begin_index=0, end_index=0, strides=-1, expected=lambda x: x[:, ::-1]),
    sample((3, 4), axis=[0, 1], begin_index=[1, 0], end_index=[3, 2], expected=lambda x: x[1:3, 0:2]),
)
def slice(
    x: TensorLike,
    axis: AxisLike | Sequence[AxisLike],
    begin_index: int | Sequence[int],
    end_index: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    name: str = "",
) -> Function:
    """Select a range of elements along one or several static axes.

    Args:
        x: operand of any static shape and dynamic axes.
        axis: the axis, or a list of them.
        begin_index: first element of the range; a negative one counts from the end.
        end_index: the element behind the range; a negative one counts from the end, 0 *is* the end.
        strides: take every so-many-th element; a negative stride runs through the range from its last element backwards.
        name: name of the function.

    Returns:
        Function with the rank of the operand and the length of the range as dimension.

    Raises:
        RuntimeError: a range is empty or outside the shape, or an axis is dynamic.
        ValueError: an axis is outside the shape or given twice, or the lists differ in length.

    >>> x = C.constant(np.float32([[1, 2, 3], [4, 5, 6]]))
    >>> C.slice(x, 1, 0, 2).eval()
    array([[1., 2.],
           [4., 5.]], dtype=float32)
    >>> C.slice(x, 1, 0, 0, -1).eval()
    array([[3., 2., 1.],
           [6., 5., 4.]], dtype=float32)
    """
    axes = [axis] if isinstance(axis, (int, Axis)) else list(axis)
    steps = [1] * len(axes) if strides is None else _listed(strides)
    begins, ends = _listed(begin_index), _listed(end_index)
    if not len(axes) == len(begins) == len(ends) == len(steps):
        counts = f"{len(axes)} axes, {len(begins)} begins, {len(ends)} ends and {len(steps)} strides"
        raise ValueError(f"slice: got {counts}; expected as many of each")
    if any(isinstance(a, Axis) and not a.is_static_axis for a in axes):
        raise RuntimeError(f"slice: expected static axes, got {axes}; sequence.slice selects along a sequence axis")
    if len(set(map(index_of, axes))) < len(axes):
        raise ValueError(f"slice: got an axis twice in {axes}; expected one range for each axis")
    if len(axes) == 1:
        return Slice(axis=axes[0], begin_index=begins[0], end_index=ends[0], slice_strides=steps[0])(x, name=name)
    return Slice(axis_vec=axes, begin_index_vec=begins, end_index_vec=ends, slice_strides_vec=steps)(x, name=name)


def _listed(value: int | Sequence[int]) -> list[int]:
    return [int(value)] if isinstance(value, (int, np.integer)) else [int(item) for item in value]


@operator(
    sample((2,), (3,), sequences="all", expected=lambda x, y: np.concatenate((x, y))),
    sample((2, 3), (4, 3), axis=0, sequences="all", expected=lambda x, y: np.concatenate((x, y))),
    sample((2, 3), (1, 2), sequences="all", expected=lambda x, y: np.concatenate((x, y.repeat(2, axis=0)), axis=1)),
    sample((2, 3), Operand((2, 4), kind="parameter"), sequences="all", expected=lambda x, y: np.concatenate((x, y), axis=1)),
    sample(Operand((3,), kind="parameter"), (2, 3), axis=0, sequences="all", expected=lambda x, y: np.concatenate((x[None], y))),
    sample((2,), (2,), (2,), axis=-2, sequences="all", expected=lambda *xs: np.stack(xs)),
    sample((), (), axis=Axis.new_leading_axis(), sequences="all", expected=lambda x, y: np.stack((x, y))),
)
def splice(*inputs: TensorLike, axis: AxisLike = -1, name: str = "") -> Function:
    """Join operands along a static axis.

    Args:
        inputs: operands whose static shapes, aligned on the last axis, are equal but for *axis*; dimensions of 1 and missing
            leading axes are stretched.  Operands without dynamic axes are repeated for every sample and step.
        axis: the axis to join along; one before the first (``-rank - 1`` or ``Axis.new_leading_axis()``) stacks the operands.
        name: name of the function.

    Returns:
        Function on the operands' dynamic axes whose dimension along *axis* is the sum of theirs.

    Raises:
        ValueError: the other dimensions differ, *axis* is outside the shapes, or there is nothing to join.
        RuntimeError: some operands have a sequence axis and others only a batch axis.

    >>> x, y = np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]])
    >>> C.splice(x, y, axis=0).eval()
    array([[1., 2.],
           [3., 4.],
           [5., 6.]], dtype=float32)
    """
    if not inputs:
        raise ValueError("splice: expected at least one operand")
    if len(inputs) == 1:
        return combine(inputs[0], name=name)
    return Splice(axis=axis)(*inputs, name=name)


@operator(
    sample(Operand((4, 2), kind="parameter"), Operand((2, 3), low=0, high=3.9, gradient=False), expected=lambda r, i: r[i.astype(int)]),
    sample(Operand((4,), kind="parameter"), Operand((), low=0, high=3.9, gradient=False), expected=lambda r, i: r[int(i)]),
    sample(
        Operand((2, 4, 3), kind="parameter"),
        Operand((5,), low=0, high=3.9, gradient=False),
        axis=1,
        expected=lambda r, i: r[:, i.astype(int)],
    ),
    sample(
        Operand((4, 2), kind="parameter"),
        Operand((3,), low=0, high=3.9, kind="static", gradient=False),
        expected=lambda r, i: r[i.astype(int)],
    ),
)
def gather(reference: TensorLike, indices: TensorLike, axis: AxisLike | None = None, name: str = "") -> Function:
    """Take elements of a tensor by their numbers along an axis.

    Args:
        reference: operand of static shape ``R`` without dynamic axes, such as a parameter.
        indices: operand of static shape ``I`` on any dynamic axes; its values, cut to integers, number the elements.
        axis: the axis of *reference* to take from; by default the first.
        name: name of the function.

    Returns:
        Function whose static shape is ``R`` with ``I`` in the place of *axis*.  The gradient of *reference* is the sum over
        all places an element was taken to; *indices* get none.

    Raises:
        ValueError: *axis* is outside the shape, or, when evaluated, an index is outside *reference*.
        RuntimeError: *reference* has dynamic axes.

    >>> table = np.float32([[0, 1], [2, 3], [4, 5]])
    >>> C.gather(table, np.float32([2, 0])).eval()
    array([[4., 5.],
           [0., 1.]], dtype=float32)
    """
    op = Gather() if axis is None else Gather(axis=axis)
    return op(reference, indices, name=name)


@operator(
    sample(
        Operand((3,), low=-1.5, high=4.5, gradient=False), num_classes=4, expected=lambda x: 1.0 * (np.trunc(x)[:, None] == np.arange(4))
    ),
    sample(Operand((), low=0, high=4, gradient=False), num_classes=4, expected=lambda x: 1.0 * (np.trunc(x) == np.arange(4))),
    sample(
        Operand((2, 3), low=0, high=4, gradient=False),
        num_classes=4,
        axis=0,
        expected=lambda x: 1.0 * (np.trunc(x) == np.arange(4)[:, None, None]),
    ),
    sample(
        Operand((2, 3), low=0, high=4, gradient=False),
        num_classes=4,
        axis=1,
        expected=lambda x: 1.0 * (np.trunc(x)[:, None] == np.arange(4)[:, None]),
    ),
    sample(
        Operand((2,), low=-1.5, high=4.5, gradient=False),
        Operand((4, 3), kind="parameter"),
        call=lambda f, x, w: times(f(x, 4, sparse_output=True), w),
        expected=lambda x, w: (np.trunc(x)[:, None] == np.arange(4)) @ w,
    ),
)
def one_hot(x: TensorLike, num_classes: int, sparse_output: bool = False, axis: AxisLike = -1, name: str = "") -> Function:
    """Turn class numbers into vectors that are 1 at the number's place and 0 elsewhere.

    Args:
        x: operand of any static shape and dynamic axes; fractions are cut off.
        num_classes: length of the vectors; a number outside gives a vector of zeros.
        sparse_output: whether the result is sparse, if the new axis is the last; evaluated it comes as CSR matrix.
        axis: where the new axis goes: -1 behind the last, 0 before the first.
        name: name of the function.

    Returns:
        Function with one more static axis.  No gradient flows through it.

    Raises:
        ValueError: *axis* is outside the shape, or *num_classes* is not positive.

    >>> C.one_hot(np.float32([2, 0]), 3).eval()
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    if num_classes < 1:
        raise ValueError(f"one_hot: num_classes must be positive, got {num_classes}")
    return OneHot(num_class=int(num_classes), one_hot_output_sparse=sparse_output, onehot_axis=axis)(x, name=name)
