"""Windows along the sequence axis, on which a convolution over sequences works as on an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import Shape
from ...core.common.windows import along_axes
from ...core.operators.sequence_op import SequenceOp
from ...core.types.axis import Axis
from ...core.types.context import Context
from ...core.types.layout import Index, Layout
from ...core.types.spec import Spec


class SequenceWindows(SequenceOp):
    """Puts what the taps of filters meet on the sequence axis side by side, on a static axis behind the channels.

    Operands are the filters, (..., *I, k, ...), whose length k in time is the length of the windows, and the sequences, (*I, ...);
    the result, (*I, k, ...), has a step for each window.  Windows meet zeros outside the sequence.
    """

    op_name = "SequenceWindows"
    whole_sequences = True
    gradient_inputs = (1,)

    def __init__(self, strides: Shape, dilation: Shape, auto_padding: tuple[bool, ...], reduction_rank: int) -> None:
        super().__init__(strides=strides, dilation=dilation, auto_padding=auto_padding, reduction_rank=reduction_rank)
        self._axis = Axis.new_unique_dynamic_axis("ConvOverSequenceAxis")

    def infer(self, filters: Spec, operand: Spec) -> Spec:
        dims, at = operand.dims, self.reduction_rank
        kernel, stride, _, padded = self.in_time(filters.dims, operand.rank)
        axes = operand.axes
        if axes is not None and len(axes) < 2:
            raise ValueError("the operand has no sequence axis; sequential=True is for operands such as sequence.input_variable gives")
        if axes is not None and not (padded and stride == 1):
            axes = (axes[0], self._axis)
        return self.common(filters, operand).but(shape=(*dims[:at], kernel, *dims[at:]), axes=axes)

    def make_layout(self, layouts: Sequence[Layout | None], shapes: Sequence[Shape]) -> Layout:
        """Layout of the result: as many steps for each sequence as there are windows in it."""
        operand, lengths = _sequences(layouts[1])
        kernel, stride, dilation, padded = self.in_time(shapes[0], len(shapes[1]) - 1)
        if padded and stride == 1:
            return operand
        room = lengths - (1 if padded else (kernel - 1) * dilation + 1)
        if room.min(initial=0) < 0:
            first = int(np.argmax(room < 0))
            apart = f", {dilation} apart," if dilation > 1 else ""
            raise ValueError(
                f"sequence {first} of the minibatch has {lengths[first]} steps, and no window of {kernel} steps{apart} fits it; "
                "leave such sequences out, or set auto_padding along the sequence"
            )
        return Layout(operand.samples, room // stride + 1)

    def forward(self, ctx: Context, out: Any, filters: Any, operand: Any) -> None:
        ctx.state = self._rows_met(filters.shape, operand.ndim - 1, ctx.layouts[1], ctx.layout)
        for tap, rows in zip(self.taps(ctx, out), ctx.state, strict=True):
            ctx.xp.copyto(tap, _taken(ctx, operand, rows))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, filters: Any, operand: Any) -> None:
        total = grads[1]
        total.fill(0)
        for tap, rows in zip(self.taps(ctx, grad), ctx.state, strict=True):
            contiguous = ctx.scratch("gradient of a tap", tap.shape, tap.dtype)
            ctx.xp.copyto(contiguous, tap)
            ctx.xp.add(total, _taken(ctx, contiguous, _inverse(rows, len(total))), out=total)

    def in_time(self, filters: Shape, rank: int) -> tuple[int, int, int, bool]:
        """Length, stride, dilation and padding of the windows, for an operand of so many static axes."""
        rank += 2 - self.reduction_rank
        if rank < 2:
            raise ValueError("the operand is a scalar and has no axis of channels; give it one, or set reduction_rank=0")
        if len(filters) < rank - 1 + self.reduction_rank:
            raise ValueError(f"filters of shape {filters} have too few axes; expected (maps, *channels, time, *kernel)")
        strides, dilation, padding = along_axes(self.strides, self.dilation, self.auto_padding, rank, self.reduction_rank)
        if strides[1] < 1 or dilation[1] < 1:
            raise ValueError(f"strides {strides} and dilation {dilation} must be positive")
        return filters[1 - rank], strides[1], dilation[1], padding[1]

    def taps(self, ctx: Context, windows: Any) -> Any:
        """The windows with their own axis first."""
        return ctx.xp.moveaxis(windows, 1 + self.reduction_rank, 0)

    def rows_met(self, ctx: Context) -> Index:
        """As :meth:`_rows_met`, for filters of the shape and an operand of the rank that are the context's state."""
        filters, rank = ctx.state
        return self._rows_met(filters, rank, ctx.layouts[1], ctx.layout)

    def rows_that_meet(self, ctx: Context) -> Index:
        """For each tap, in each row of the operand: the result's row that meets it, -1 where there is none."""
        operand, _ = _sequences(ctx.layouts[1])
        return _inverses(self.rows_met(ctx), operand.rows)

    def _rows_met(self, filters: Shape, rank: int, before: Layout | None, after: Layout | None) -> Index:
        """For each tap of the windows, in each row of the result: the operand's row that it meets, -1 outside the sequence."""
        kernel, stride, dilation, padded = self.in_time(filters, rank)
        operand, lengths = _sequences(before)
        result, places = _sequences(after)
        sequence = result.sequence_of_row
        beside = lengths - 1 - (places - 1) * stride
        padding = (kernel - 1) * dilation // 2 - beside // 2 if padded else np.zeros_like(lengths)
        step = result.step_of_row * stride - padding[sequence] + dilation * np.arange(kernel)[:, np.newaxis]
        inside = (step >= 0) & (step < lengths[sequence])
        first_row = np.argsort(operand.order)[sequence]
        return np.where(inside, operand.offsets[np.where(inside, step, 0)] + first_row, -1)


def _taken(ctx: Context, source: Any, rows: Index) -> Any:
    """The rows of *source* with these numbers, zeros for -1."""
    taken = ctx.scratch("rows of a tap", (len(rows), *source.shape[1:]), source.dtype)
    ctx.xp.take(source, ctx.brought(rows), axis=0, out=taken, mode="clip")
    (outside,) = (rows < 0).nonzero()
    taken[ctx.brought(outside)] = 0
    return taken


def _inverse(rows: Index, count: int) -> Index:
    """Where each of *count* rows stands among *rows*, which are distinct apart from -1; -1 for those that do not."""
    inverse = np.full(count, -1, dtype=np.intp)
    met = np.flatnonzero(rows >= 0)
    inverse[rows[met]] = met
    return inverse


def _inverses(rows: Index, count: int) -> Index:
    return np.array([_inverse(of_tap, count) for of_tap in rows])


def _sequences(layout: Layout | None) -> tuple[Layout, Index]:
    """The layout of a value that is known to have a sequence axis, with the lengths of the sequences."""
    assert layout is not None and layout.lengths is not None
    return layout, layout.lengths
