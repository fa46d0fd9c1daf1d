"""Gain: an operator made by name and with a dictionary of attributes, as programs for CNTK ask for those of native libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cntk.core.operators.native import NativeOp
from cntk.extend import Context, Spec


class Gain(NativeOp):
    """``gain * x``, with the attribute ``gain``."""

    op_name = "Gain"

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0].but()

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        ctx.xp.multiply(inputs[0], self.given["gain"], out=out)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if grads[0] is not None:
            ctx.xp.multiply(grad, self.given["gain"], out=grads[0])
