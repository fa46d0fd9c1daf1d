"""Ops that give the same elements another shape: views, and permutations of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape, as_shape, reshaped
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.operators.samples import operator, sample
from ...core.operators.view import GradientView, View
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.spec import Spec

AxisLike = int | Axis


class Reshaping(View, GradientView):
    """Base of ops whose result is the operand's memory under another shape."""

    traits = Traits(recordable=True)

    def view(self, x: Any, out_shape: Shape) -> Any:
        return x.reshape(out_shape)

    def grad_view(self, grad: Any, in_shape: Shape) -> Any:
        return grad.reshape(in_shape)


class Reshape(Reshaping):
    """Replaces a range of axes by others with as many elements."""

    op_name = "Reshape"
    new_shape: Shape
    begin_axis: AxisLike
    end_axis: AxisLike

    def infer(self, x: Spec) -> Spec:
        begin, end = self._place(self.begin_axis, x.rank), self._place(self.end_axis, x.rank)
        if begin > end:
            raise ValueError(f"begin_axis is {begin}, behind end_axis, which is {end}")
        return x.but(shape=x.dims[:begin] + reshaped(x.dims[begin:end], self.new_shape) + x.dims[end:])

    @staticmethod
    def _place(axis: AxisLike, rank: int) -> int:
        if axis == Axis.new_leading_axis():
            return rank
        index = index_of(axis)
        return boundary(index if index >= 0 else index + rank, rank)


class Squeeze(Reshaping):
    """Takes axes of size 1 away."""

    op_name = "Squeeze"
    axis_vec: tuple[AxisLike, ...] | None = None

    def infer(self, x: Spec) -> Spec:
        if self.axis_vec is None:
            return x.but(shape=tuple(dim for dim in x.dims if dim != 1))
        gone = {static_axis_number(axis, x.rank, self.op_name) for axis in self.axis_vec}
        for axis in gone:
            if x.dims[axis] > 1:
                raise RuntimeError(f"axis {axis} has {x.dims[axis]} elements; only an axis of size 1 can be taken away")
        return x.but(shape=tuple(dim for axis, dim in enumerate(x.dims) if axis not in gone))


class ExpandDims(Reshaping):
    """Puts in an axis of size 1."""

    op_name = "ExpandDims"
    axis: AxisLike

    def infer(self, x: Spec) -> Spec:
        at = self._place(x.rank)
        return x.but(shape=(*x.dims[:at], 1, *x.dims[at:]))

    def _place(self, rank: int) -> int:
        if self.axis == Axis.new_leading_axis():
            return 0
        index = index_of(self.axis)
        return boundary(index + 1 if index >= 0 else index + 1 + rank, rank)


class Flatten(Reshaping):
    """Makes a matrix: the axes before one, by that axis and those behind it."""

    op_name = "Flatten"
    axis: AxisLike

    def infer(self, x: Spec) -> Spec:
        index = index_of(self.axis)
        at = boundary(index if index >= 0 else index + x.rank + 1, x.rank)
        return x.but(shape=reshaped(x.dims[:at], (-1,)) + reshaped(x.dims[at:], (-1,)))


class TransposeAxes(Op):
    """Permutes the static axes."""

    op_name = "TransposeAxes"
    traits = Traits(recordable=True)
    axis_vec: tuple[AxisLike, ...]

    def infer(self, x: Spec) -> Spec:
        return x.but(shape=tuple(x.dims[axis] for axis in self.order(x.rank)))

    def order(self, rank: int) -> tuple[int, ...]:
        """The operand's axis that each axis of the result comes from."""
        if len(self.axis_vec) != rank:
            raise ValueError(f"the permutation {self.axis_vec} must name each of the {rank} axes")
        return tuple(static_axis_number(axis, rank, self.op_name) for axis in self.axis_vec)

    def accepts_strided(self, *inputs: Spec) -> bool:
        return True

    def forward(self, ctx: Context, out: Any, x: Any) -> None:
        ctx.xp.copyto(out, x.transpose(self._all_axes(ctx, x)))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        ctx.xp.copyto(grads[0].transpose(self._all_axes(ctx, grad)), grad)

    def _all_axes(self, ctx: Context, array: Any) -> tuple[int, ...]:
        if ctx.layout is None:
            return self.order(array.ndim)
        return (0, *(axis + 1 for axis in self.order(array.ndim - 1)))


class SwapAxes(TransposeAxes):
    """Exchanges two static axes."""

    axis1: AxisLike
    axis2: AxisLike

    def order(self, rank: int) -> tuple[int, ...]:
        first, second = (static_axis_number(axis, rank, self.op_name) for axis in (self.axis1, self.axis2))
        order = list(range(rank))
        order[first], order[second] = second, first
        return tuple(order)


def index_of(axis: AxisLike) -> int:
    """Number of a static axis, negative when it counts from the end."""
    return axis.static_axis_index() if isinstance(axis, Axis) else axis


def boundary(place: int, rank: int) -> int:
    """Check that *place*, in front of an axis or behind the last, is one of a shape of *rank* axes.

    Raises:
        ValueError: it is not.
    """
    if not 0 <= place <= rank:
        raise ValueError(f"the axis is outside a shape of {rank} axes")
    return place


# ---- public functions ----------------------------------------------------------------------------


@operator(
    sample((2, 3), shape=(3, 2), expected=lambda x: x.reshape(3, 2)),
    sample((2, 3, 4), shape=(-1, 4), expected=lambda x: x.reshape(6, 4)),
    sample((2, 3, 4), shape=(-1,), begin_axis=1, end_axis=3, expected=lambda x: x.reshape(2, 12)),
    sample((2, 3, 4), shape=-1, begin_axis=-3, end_axis=-1, expected=lambda x: x.reshape(6, 4)),
    sample((1, 1), shape=(), expected=lambda x: x.reshape(())),
)
def reshape(
    x: TensorLike, shape: int | Sequence[int], begin_axis: AxisLike | None = None, end_axis: AxisLike | None = None, name: str = ""
) -> Function:
    """Give the elements another static shape, in the same (row-major) order.

    Args:
        x: operand of any static shape and dynamic axes.
        shape: the new dimensions; one may be -1 and is computed from the others.
        begin_axis, end_axis: replace only the axes from *begin_axis* up to, not including, *end_axis*; by default all.
            Negative ones count from the end, ``Axis.new_leading_axis()`` stands for the end itself.
        name: name of the function.

    Returns:
        Function with the new static shape and the operand's dynamic axes.

    Raises:
        ValueError: the number of elements would change, or an axis is outside the shape.

    >>> C.reshape(np.float32([[1, 2, 3], [4, 5, 6]]), (3, 2)).eval()
    array([[1., 2.],
           [3., 4.],
           [5., 6.]], dtype=float32)
    >>> C.reshape(C.input_variable((2, 3, 4)), -1, begin_axis=1).shape
    (2, 12)
    """
    begin = 0 if begin_axis is None else begin_axis
    end = Axis.new_leading_axis() if end_axis is None else end_axis
    return Reshape(new_shape=as_shape(shape), begin_axis=begin, end_axis=end)(x, name=name)


@operator(
    sample((1, 3, 1), expected=np.squeeze),
    sample((1, 3, 1), axes=0, expected=lambda x: x[0]),
    sample((1, 3, 1), axes=(0, -1), expected=np.squeeze),
    sample((2, 3), expected=np.copy),
)
def squeeze(x: TensorLike, axes: AxisLike | Sequence[AxisLike] | None = None, name: str = "") -> Function:
    """Take away static axes of size 1.

    Args:
        x: operand of any static shape and dynamic axes.
        axes: the axes to take away; by default every one of size 1.
        name: name of the function.

    Returns:
        Function with the remaining static axes.

    Raises:
        RuntimeError: an axis in *axes* has another size than 1.
        ValueError: an axis is outside the shape.

    >>> C.squeeze(C.input_variable((1, 3, 1))).shape
    (3,)
    """
    if axes is None:
        return Squeeze()(x, name=name)
    listed = (axes,) if isinstance(axes, (int, Axis)) else tuple(axes)
    return Squeeze(axis_vec=listed)(x, name=name)


@operator(
    sample((2, 3), axis=-1, expected=lambda x: x[..., None]),
    sample((2, 3), axis=0, expected=lambda x: x[:, None]),
    sample((2, 3), axis=-3, expected=lambda x: x[None]),
    sample((), axis=Axis.new_leading_axis(), expected=lambda x: x[None]),
)
def expand_dims(x: TensorLike, axis: AxisLike, name: str = "") -> Function:
    """Put in a static axis of size 1.

    Args:
        x: operand of any static shape and dynamic axes.
        axis: the axis *behind* which the new one goes, if 0 or positive; -1 puts it last, -2 before the last, and so on;
            ``Axis.new_leading_axis()`` first.
        name: name of the function.

    Returns:
        Function with one more static axis.

    Raises:
        ValueError: *axis* is outside the shape.

    >>> x = C.input_variable((2, 3))
    >>> C.expand_dims(x, 0).shape, C.expand_dims(x, -1).shape, C.expand_dims(x, C.Axis.new_leading_axis()).shape
    ((2, 1, 3), (2, 3, 1), (1, 2, 3))
    """
    return ExpandDims(axis=axis)(x, name=name)


@operator(
    sample((2, 3, 4), expected=lambda x: x.reshape(1, 24)),
    sample((2, 3, 4), axis=1, expected=lambda x: x.reshape(2, 12)),
    sample((2, 3, 4), axis=-1, expected=lambda x: x.reshape(24, 1)),
    sample((2, 3, 4), axis=-2, expected=lambda x: x.reshape(6, 4)),
)
def flatten(x: TensorLike, axis: AxisLike | None = None, name: str = "") -> Function:
    """Reshape to a matrix.

    Args:
        x: operand of any static shape and dynamic axes.
        axis: the axes before it become the rows, the axis and those behind it the columns.  Negative ones count from the
            end, -1 behind the last axis; by default all axes become columns.
        name: name of the function.

    Returns:
        Function with two static axes.

    Raises:
        ValueError: *axis* is outside the shape.

    >>> C.flatten(C.input_variable((2, 3, 4)), 1).shape
    (2, 12)
    """
    return Flatten(axis=0 if axis is None else axis)(x, name=name)


@operator(
    sample((2, 3), perm=(1, 0), expected=np.transpose),
    sample((2, 3, 4), perm=(2, 0, 1), expected=lambda x: x.transpose(2, 0, 1)),
    sample((2, 3, 4), perm=(-1, 0, 1), expected=lambda x: x.transpose(2, 0, 1)),
)
def transpose(x: TensorLike, perm: AxisLike | Sequence[AxisLike], name: str = "") -> Function:
    """Permute the static axes.

    Args:
        x: operand of any static shape and dynamic axes.
        perm: for each axis of the result, the axis of *x* it comes from; negative ones count from the end.
        name: name of the function.

    Returns:
        Function with permuted static axes.

    Raises:
        TypeError: *perm* is a single axis.
        ValueError: *perm* names an axis twice, or not every axis.

    >>> C.transpose(C.input_variable((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    if isinstance(perm, (int, Axis)):
        raise TypeError(f"transpose: perm must name every axis in its new order, got {perm!r}; swapaxes exchanges two axes")
    order = tuple(axis if isinstance(axis, Axis) else int(axis) for axis in perm)
    indices = [axis.static_axis_index() if isinstance(axis, Axis) else axis for axis in order]
    if len({index % len(indices) for index in indices}) != len(indices):
        raise ValueError(f"transpose: the permutation {tuple(indices)} names an axis twice")
    return TransposeAxes(axis_vec=order)(x, name=name)


@operator(
    sample((2, 3), expected=np.transpose),
    sample((2, 3, 4), axis1=0, axis2=-1, expected=lambda x: x.swapaxes(0, 2)),
)
def swapaxes(x: TensorLike, axis1: AxisLike = 0, axis2: AxisLike = 1, name: str = "") -> Function:
    """Exchange two static axes.

    Args:
        x: operand of at least two static axes, on any dynamic axes.
        axis1, axis2: the axes to exchange; negative ones count from the end.
        name: name of the function.

    Returns:
        Function with the two static axes exchanged.

    Raises:
        ValueError: an axis is outside the shape or dynamic.

    >>> C.swapaxes(C.input_variable((2, 3, 4)), 0, 2).shape
    (4, 3, 2)
    """
    return SwapAxes(axis1=axis1, axis2=axis2)(x, name=name)
