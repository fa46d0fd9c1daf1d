"""The kernel of batch normalisation in training, with the sum and the rectifier that follow.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ...core.common.dtypes import is_half
from ...core.common.thresholds import thresholds
from ...core.machine.self_check import are_usable
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from .followers import Follower, followers


class BatchNormalizationKernel:
    """Loops for float32 and float64.  Small operands, and running statistics, are left to the operator."""

    in_place = True

    @staticmethod
    def takes(op: Any, steps: Sequence[Step]) -> int:
        """A rectifier, or a sum with a value of the same shape and a rectifier."""
        kinds = followers(steps)
        if kinds[0] is Follower.RECTIFIER:
            return 1
        return 2 if kinds == [Follower.SUM, Follower.RECTIFIER] and steps[0].others[0].axes else 0

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, *inputs: Any, epilogue: Epilogue | None = None) -> None:
        if _is_for_loops(op, ctx, inputs):
            addend = epilogue.others[0] if epilogue is not None and epilogue.others else None
            op.forward(ctx, out, *inputs, loops=_Loops(op, ctx, epilogue is not None, addend))
            return
        op.forward(ctx, out, *inputs)
        if epilogue is not None:
            epilogue.forward(ctx, out)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any, epilogue: Epilogue | None = None) -> None:
        if _is_for_loops(op, ctx, inputs):
            addend = epilogue.grads[0] if epilogue is not None and epilogue.grads else None
            op.backward(ctx, grad, grads, out, *inputs, loops=_Loops(op, ctx, epilogue is not None, addend, out))
            return
        if epilogue is not None:
            grad = epilogue.backward(ctx, grad, out)
        if any(dx is not None for dx in grads):
            op.backward(ctx, grad, grads, out, *inputs)


class _Loops(NamedTuple):
    """The loops, with their own arguments.

    Attributes:
        rectify: whether a rectifier follows.
        addend: what is added before it, or the array of that gradient; None for nothing.
        out: the result, in a backward step.
    """

    op: Any
    ctx: Context
    rectify: bool
    addend: Any
    out: Any = None

    def normalise(self, x: Any, y: Any, scale: Any, bias: Any, *statistics_and_epsilon: Any) -> None:
        """Write the statistics of each feature of x, and the result to y."""
        least = x.dtype.type(0 if self.rectify else -np.inf)
        addend = y if self.addend is None else self._by_feature(self.addend, scale)
        adds = self.addend is not None
        loops, shared, part = _module(), x.size >= thresholds.batch_normalization_shared, self._part(x)
        loops.measure.run(shared, x, part)
        loops.normalise.run(shared, x, y, addend, adds, least, scale, bias, *statistics_and_epsilon, part)

    def differentiate(self, x: Any, dy: Any, scale: Any, mean: Any, inverse: Any, slope: Any, offset: Any, dx: Any) -> None:
        """Write the gradients of scale, bias, operand and addend."""
        y = self._by_feature(self.out, scale) if self.rectify else dy
        da = dy if self.addend is None else self._by_feature(self.addend, scale)
        vectors = scale, mean, inverse, slope, offset
        targets = dy if dx is None else dx, dx is not None, da, self.addend is not None
        loops, shared, part = _module(), x.size >= thresholds.batch_normalization_shared, self._part(x)
        loops.add_up.run(shared, x, dy, y, self.rectify, mean, part)
        loops.differentiate.run(shared, x, dy, y, self.rectify, *vectors, *targets, part)

    def _by_feature(self, array: Any, scale: Any) -> Any:
        return self.op.by_feature(self.ctx, array, scale.size)

    def _part(self, x: Any) -> Any:
        """Space for the sums of each part of the rows."""
        return self.ctx.scratch("part", (2, min(_module().PARTS, len(x)), x.shape[1]), np.float64)


def _is_for_loops(op: Any, ctx: Context, inputs: Sequence[Any]) -> bool:
    x, scale = inputs[:2]
    is_large = ctx.training and not is_half(x.dtype) and x.size >= thresholds.batch_normalization_compiled
    return is_large and op.by_feature(ctx, x, scale.size).shape[2] >= thresholds.batch_normalization_places and are_usable()


@lru_cache(maxsize=1)
def _module() -> Any:
    from . import features

    return features
