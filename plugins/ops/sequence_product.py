"""Matrix product that sums over the steps of sequences as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.common.shape import Shape, format_shape, size_of
from ...core.operators.op import ALL, Op, Traits
from ...core.types.axis import format_axes
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.spec import Spec
from .contraction import contract, fill
from .dense_product import multiply
from .sequence_rows import sequence_axes, sequences, without_steps

REDUCE_SEQUENCE_AXIS = -2


class TimesOverSteps(Op):
    """Tensor product of each step of two sequences, summed over the steps.

    The steps of a sequence stand side by side in one matrix of each operand, so that the sum over them is a single matrix product.
    """

    op_name = "Times"
    keep_inputs = ALL
    traits = Traits(reversed_operands=True)
    by_rows = False
    output_rank: int
    infer_input_rank_to_map: int

    # ---- types ----

    def infer(self, *inputs: Spec) -> Spec:
        left, right = inputs
        if self.output_rank > right.rank:
            raise ValueError(f"output_rank is {self.output_rank}, but the right operand {format_shape(right.shape)} has fewer axes")
        for spec, which in zip(inputs, ("left", "right"), strict=True):
            if spec.axes == ():
                raise ValueError(
                    f"the sum over the steps takes two sequences, but the {which} operand is on the dynamic axes {format_axes(spec.axes)}; "
                    "use sequence.reduce_sum of the product, or sequence.broadcast_as"
                )
        both = self.common(left, right)
        axes = sequence_axes(both, "the product")
        a, b = self.resolve(left, right)
        return both.but(shape=contract(a, b, self.output_rank), axes=without_steps(axes))

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        left, right = inputs
        return fill(left.dims, right.dims, self.output_rank)

    # ---- values ----

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """A multiplication and an addition for each element of a step's product and each that is summed over."""
        layout, m, k, n = self._sizes(ctx, *inputs)
        return 2 * layout.rows * m * k * n

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        left, right = inputs
        layout, m, _, n = self._sizes(ctx, left, right)
        a, b = self._side_by_side(ctx, left, right, layout)
        for sequence, of_left, of_right in _sequences(a, b, layout):
            multiply(ctx, of_left, of_right, out[sequence].reshape(m, n))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        xp, (left, right), (dleft, dright) = ctx.xp, inputs, grads
        layout, m, k, n = self._sizes(ctx, left, right)
        a, b = self._side_by_side(ctx, left, right, layout)
        da = ctx.scratch("gradients side by side", a.shape, a.dtype)
        db = ctx.scratch("gradients one above the other", b.shape, b.dtype)
        for (sequence, of_left, of_right), (_, to_left, to_right) in zip(_sequences(a, b, layout), _sequences(da, db, layout), strict=True):
            dy = grad[sequence].reshape(m, n)
            if dleft is not None:
                xp.matmul(dy, of_right.T, out=to_left)
            if dright is not None:
                xp.matmul(of_left.T, dy, out=to_right)
        if dleft is not None:
            dleft.reshape(-1, m, k)[ctx.index(layout, "unpack_index")] = da.swapaxes(0, 1)
        if dright is not None:
            xp.take(db, ctx.index(layout, "pack_index"), axis=0, out=dright.reshape(-1, k, n), mode="clip")

    def _sizes(self, ctx: Context, left: Any, right: Any) -> tuple[Layout, int, int, int]:
        """The layout of both operands, and the sizes of a product of matrices ``(m, k)`` and ``(k, n)``."""
        layout, _ = sequences(ctx.layouts[0])
        static = right.shape[1:]
        split = len(static) - self.output_rank
        k, n = size_of(static[:split]), size_of(static[split:])
        return layout, size_of(left.shape[1:]) // k, k, n

    def _side_by_side(self, ctx: Context, left: Any, right: Any, layout: Layout) -> tuple[Any, Any]:
        """The steps of all sequences, one sequence after another: beside each other, ``(m, rows, k)``, and above, ``(rows, k, n)``."""
        _, m, k, n = self._sizes(ctx, left, right)
        a = ctx.scratch("side by side", (m, layout.rows, k), left.dtype)
        b = ctx.scratch("one above the other", (layout.rows, k, n), right.dtype)
        ctx.xp.copyto(a, left.reshape(-1, m, k)[ctx.index(layout, "unpack_index")].swapaxes(0, 1))
        ctx.xp.take(right.reshape(-1, k, n), ctx.index(layout, "unpack_index"), axis=0, out=b, mode="clip")
        return a, b


def _sequences(a: Any, b: Any, layout: Layout) -> Iterator[tuple[int, Any, Any]]:
    """Each sequence with its two matrices, as views."""
    m, _, k = a.shape
    first = 0
    for sequence, steps in enumerate(sequences(layout)[1].tolist()):
        last = first + steps
        yield sequence, a[:, first:last].reshape(m, steps * k), b[first:last].reshape(steps * k, -1)
        first = last
