"""Kernel for dropout: random numbers are drawn in the forward pass and redrawn in the backward pass, so that no mask is stored."""

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
"""Number of random numbers in a Philox block."""


class DropoutKernel:
    """Dropout with one launch per pass, both of which draw the same numbers; outside training the operator copies."""

    in_place = True
    recordable = True

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None] | None:
        """Return a function that applies dropout with a new draw each time; None outside training."""
        return _Drop(op, ctx, out, x) if ctx.training else None

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
            bound(grad, grads[0], _place(ctx))()
        else:
            op.backward(ctx, grad, grads, out, x)


class _Drop:
    """The launch; :class:`~cntk.core.extension.kernel.Repeatable`, as everything that differs between draws is in device memory."""

    def __init__(self, op: Any, ctx: Context, out: Any, x: Any) -> None:
        self._op, self._load, self._dtype = op, ctx.backend.load, x.dtype
        self._numbers = _place(ctx)
        self.work = bound(x, out, self._numbers)

    def __call__(self) -> None:
        self.prepare()
        self.work()

    def holds(self) -> bool:
        """Always true: rate and seed are among the numbers in device memory."""
        return True

    def prepare(self) -> None:
        """Take the next draw."""
        self._load(self._numbers, numbers_of(self._dtype, *self._op.begin_draw()))


def _place(ctx: Context) -> Any:
    """Return the device memory for the :func:`numbers_of` a draw."""
    return ctx.keep("numbers", (5,), np.float64)


def numbers_of(dtype: Any, rate: float, seed: int, draw: int) -> Any:
    """Return a kernel's parameters for a draw: its number, the rate, the scale of kept elements, and the bits of the generator's two keys.

    Args:
        dtype: element type.
        rate, seed, draw: as :meth:`~cntk.plugins.ops.dropout.Dropout.begin_draw` returns them.
    """
    numbers = np.array([draw, np.float32(rate), np.dtype(dtype).type(1 / (1 - rate)), 0, 0], np.float64)
    numbers[3:].view(np.uint64)[:] = key_of(seed)
    return numbers


def bound(x: Any, out: Any, numbers: Any) -> Callable[[], None]:
    """Return a function that writes *x* with dropout applied to *out*.

    Args:
        x, out: arrays of the same shape and type.
        numbers: :func:`numbers_of` the draw, in device memory.
    """
    size = size_of(x.shape)
    made = text(x.dtype, _axes(x), _axes(out))
    return compile(made, "drop").bound(blocks_for(-(-size // OF_BLOCK)), THREADS, x, out, np.uint64(size), numbers)


def _axes(array: Any) -> list[Along]:
    """Return the axes of an array; the length of the first does not appear in kernel sources."""
    strides = [stride // array.dtype.itemsize for stride in array.strides]
    return [Along(*axis) for axis in zip(array.shape, strides, strict=True)] or [Along(1, 1)]


def text(dtype: Any, given: Sequence[Along], made: Sequence[Along]) -> str:
    """Return the kernel source for an element type and the axes of operand and result."""
    return f"""{prelude(dtype, "unsigned long long")}
{PHILOX}
extern "C" __global__ void __launch_bounds__({THREADS})
drop(const stored *x, stored *y, size count, const double *numbers) {{
    const unsigned long long *keys = (const unsigned long long *)(numbers + 3);
    const float rate = (float)numbers[1];
    const real factor = (real)numbers[2];
    for (size block = blockIdx.x * (size)blockDim.x + threadIdx.x; block * {OF_BLOCK} < count; block += (size)gridDim.x * blockDim.x) {{
        const Words words = philox(keys[0], keys[1], block, numbers[0]);
        for (int number = 0; number < {OF_BLOCK}; ++number) {{
            const size at = block * {OF_BLOCK} + number;
            if (at < count)
                store(y[{place_of("at", made)}], value_of(x[{place_of("at", given)}]) * (single_of(words, number) >= rate ? factor : 0));
        }}
    }}
}}
"""
