"""The kernel of dropout: numbers are drawn where they are needed, forward and again backward, and no mask is kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.types.context import Context
from .compiler import THREADS, blocks_for, compile
from .philox import PHILOX, key_of
from .places import Along, place_of
from .prelude import prelude

OF_BLOCK = 8
"""Numbers that are drawn together."""


class DropoutKernel:
    """One launch; the numbers are the operator's.  Outside of training the operator copies."""

    in_place = True

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None] | None:
        """A function that draws and drops; None outside of training."""
        if not ctx.training:
            return None
        return _Drop(op, ctx, out, x)

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        run = DropoutKernel.bind(op, ctx, out, x)
        if run is None:
            op.forward(ctx, out, x)
        else:
            run()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if ctx.training:
            _bound(grad, grads[0], op._stream.seed, ctx.keep("numbers", (3,), np.float64))()
        else:
            op.backward(ctx, grad, grads, out, x)


class _Drop:
    """Draws and drops; the numbers of the draw are in the memory of the device."""

    def __init__(self, op: Any, ctx: Context, out: Any, x: Any) -> None:
        self._op, self._x, self._out, self._load = op, x, out, ctx.backend.load
        self._numbers = ctx.keep("numbers", (3,), np.float64)
        self._bind()

    def _bind(self) -> None:
        self._seed = self._op._stream.seed
        self.work = _bound(self._x, self._out, self._seed, self._numbers)

    def __call__(self) -> None:
        if not self.holds():
            self._bind()
        self.prepare()
        self.work()

    def holds(self) -> bool:
        """Whether the operator still draws from the same stream."""
        return bool(self._op._stream.seed == self._seed)

    def prepare(self) -> None:
        """Take the next draw."""
        rate, _, draw = self._op.begin_draw()
        self._load(self._numbers, np.array([draw, np.float32(rate), self._x.dtype.type(1 / (1 - rate))]))


def _bound(x: Any, out: Any, seed: int, numbers: Any) -> Callable[[], None]:
    """What drops elements of *x*; the numbers are that of the draw, the rate and the factor of what is left."""
    size = size_of(x.shape)
    made = text(x.dtype, _axes(x), _axes(out))
    return compile(made, "drop").bound(blocks_for(-(-size // OF_BLOCK)), THREADS, x, out, np.uint64(size), *key_of(seed), numbers)


def _axes(array: Any) -> list[Along]:
    """The axes of an array; the first one's length is not in texts."""
    strides = [stride // array.dtype.itemsize for stride in array.strides]
    return [Along(*axis) for axis in zip(array.shape, strides, strict=True)] or [Along(1, 1)]


def text(dtype: Any, given: Sequence[Along], made: Sequence[Along]) -> str:
    """The text for arrays that lie so."""
    return f"""{prelude(dtype, "unsigned long long")}
{PHILOX}
extern "C" __global__ void __launch_bounds__({THREADS})
drop(const stored *x, stored *y, size count, unsigned long long key0, unsigned long long key1, const double *numbers) {{
    const float rate = (float)numbers[1];
    const real factor = (real)numbers[2];
    for (size block = blockIdx.x * (size)blockDim.x + threadIdx.x; block * {OF_BLOCK} < count; block += (size)gridDim.x * blockDim.x) {{
        const Words words = philox(key0, key1, block, numbers[0]);
        for (int number = 0; number < {OF_BLOCK}; ++number) {{
            const size at = block * {OF_BLOCK} + number;
            if (at < count)
                store(y[{place_of("at", made)}], value_of(x[{place_of("at", given)}]) * (single_of(words, number) >= rate ? factor : 0));
        }}
    }}
}}
"""
