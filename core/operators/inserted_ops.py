"""Operators that programs insert; users do not call them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..common.shape import Shape
from ..common.sums import add_up_runs
from ..types.axis import Axes
from ..types.context import Context
from ..types.spec import Spec
from .op import Op
from .view import GradientView


class Expand(Op):
    """Repeat the value of each sequence along the steps of other operands, which have these dynamic axes."""

    op_name = "Expand"

    def __init__(self, axes: Axes) -> None:
        super().__init__()
        self.axes = axes

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0].but(axes=self.axes)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        assert ctx.layout is not None
        ctx.xp.take(inputs[0], ctx.index(ctx.layout, "sequence_of_row"), axis=0, out=out, mode="clip")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        layout = ctx.layout
        assert layout is not None and layout.lengths is not None
        add_up_runs(ctx.xp, grad[ctx.index(layout, "unpack_index")], layout.starts, grads[0], ctx.brought)


class Densify(GradientView):
    """Make a sparse value dense, for an operator that takes no sparse operand there."""

    op_name = "Densify"
    sparse_inputs = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0].but(sparse=False)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        inputs[0].to_dense(ctx.xp, out)

    def grad_view(self, grad: Any, in_shape: Shape) -> Any:
        return grad
