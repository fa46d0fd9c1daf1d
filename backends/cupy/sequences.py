"""Kernels over the steps of sequences: sums, maxima and softmax, and gradients of values that are repeated along the steps.

A warp handles a sequence: its lanes are assigned to columns and, if these are few, to steps in turn.  The steps of a sequence are not
adjacent in memory, so their rows are looked up in an index array.  Between minibatches of the same size only the contents of two index
arrays differ, so that launches can be recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.types.context import Context
from ...core.types.layout import Layout
from .compiler import BLOCKS, MOST_BLOCKS, THREADS, compile
from .prelude import prelude
from .segments import columns_of

LANES = """
__device__ __forceinline__ double greater(double x, double y) { return y > x || y != y ? y : x; }
__device__ __forceinline__ double sum_of(double x) {
    for (int bit = 16; bit >= COLUMNS; bit /= 2)
        x += __shfl_xor_sync(ALL, x, bit);
    return x;
}
__device__ __forceinline__ double greatest_of(double x) {
    for (int bit = 16; bit >= COLUMNS; bit /= 2)
        x = greater(x, __shfl_xor_sync(ALL, x, bit));
    return x;
}
"""

BODIES = {
    "sum": (
        "const stored *x, stored *y",
        """double sum = 0;
        EACH(at) sum += value_of(x[at]);
        sum = sum_of(sum);
        if (IS_FIRST) store(y[OWN], (real)sum);""",
    ),
    "greatest": (
        "const stored *x, stored *y",
        """double most = -INFINITY;
        EACH(at) most = greater(most, value_of(x[at]));
        most = greatest_of(most);
        if (IS_FIRST) store(y[OWN], (real)most);""",
    ),
    "greatest_gradient": (
        "const stored *x, const stored *y, const stored *grad, stored *dx",
        "EACH(at) store(dx[at], (real)(value_of(x[at]) == value_of(y[OWN])) * value_of(grad[OWN]));",
    ),
    "softmax": (
        "const stored *x, stored *y",
        """double most = -INFINITY, sum = 0;
        EACH(at) most = greater(most, value_of(x[at]));
        const real edge = (real)greatest_of(most);
        EACH(at) sum += power_of_e(value_of(x[at]) - edge);
        const real total = (real)sum_of(sum);
        EACH(at) store(y[at], power_of_e(value_of(x[at]) - edge) / total);""",
    ),
    "softmax_gradient": (
        "const stored *grad, const stored *y, stored *dx",
        """double sum = 0;
        EACH(at) sum += value_of(grad[at]) * value_of(y[at]);
        const real inner = (real)sum_of(sum);
        EACH(at) store(dx[at], (value_of(grad[at]) - inner) * value_of(y[at]));""",
    ),
}
"""Array parameters of each kernel, and its body for a column of a sequence: *at* is the element of a step, ``OWN`` that of the sequence."""


def text(name: str, dtype: Any, columns: int) -> str:
    """Return the source of a kernel whose warps handle *columns* columns at a time."""
    arrays, body = BODIES[name]
    return f"""#define COLUMNS {columns}
{prelude(dtype, "unsigned long long")}
{LANES}
#define EACH(at) for (size at, step = begin; step < end && (at = rows[step] * width + column, true); step += {32 // columns})
#define OWN (sequence * width + column)
#define IS_FIRST (column < width && threadIdx.x % 32 < COLUMNS)

extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS})
{name}({arrays}, const long long *rows, const long long *starts, size sequences, size width) {{
    const size tiles = (width + COLUMNS - 1) / COLUMNS;
    const size warps = sequences * tiles, step_of_warps = gridDim.x * (size){THREADS // 32};
    for (size warp = (blockIdx.x * (size)blockDim.x + threadIdx.x) / 32; warp < warps; warp += step_of_warps) {{
        const size sequence = warp / tiles, column = warp % tiles * COLUMNS + threadIdx.x % COLUMNS;
        const size begin = starts[sequence] + threadIdx.x % 32 / COLUMNS, end = column < width ? starts[sequence + 1] : 0;
        {body}
    }}
}}
"""


def run(name: str, ctx: Context, layout: Layout | None, *arrays: Any) -> None:
    """Launch a kernel on arrays with one row per step or one per sequence."""
    assert layout is not None
    width = size_of(arrays[-1].shape[1:])
    columns = columns_of(width)
    warps = layout.samples * -(-width // columns)
    made = compile(text(name, arrays[0].dtype, columns), name)
    indices = ctx.index(layout, "unpack_index"), ctx.index(layout, "starts")
    made.bound(min(-(-warps * 32 // THREADS), MOST_BLOCKS), THREADS, *arrays, *indices, np.uint64(layout.samples), np.uint64(width))()


def are_plain(*arrays: Any) -> bool:
    """Whether arrays are contiguous, not empty, and of the same element type."""
    return all(array.size and array.flags.c_contiguous and array.dtype == arrays[0].dtype for array in arrays)


class SumKernel:
    """``sequence.reduce_sum``."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if are_plain(x, out):
            run("sum", ctx, ctx.layouts[0], x, out)
        else:
            op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        op.backward(ctx, grad, grads, out, x)


class MaxKernel:
    """``sequence.reduce_max``."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if are_plain(x, out):
            run("greatest", ctx, ctx.layouts[0], x, out)
        else:
            op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if are_plain(x, out, grad, grads[0]):
            run("greatest_gradient", ctx, ctx.layouts[0], x, out, grad, grads[0])
        else:
            op.backward(ctx, grad, grads, out, x)


class SoftmaxKernel:
    """``sequence.softmax``."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        if are_plain(x, out):
            run("softmax", ctx, ctx.layouts[0], x, out)
        else:
            op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if are_plain(grad, out, grads[0]):
            run("softmax_gradient", ctx, ctx.layouts[0], grad, out, grads[0])
        else:
            op.backward(ctx, grad, grads, out, x)


class ExpandKernel:
    """Values that are repeated along the steps of a sequence."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any) -> None:
        op.forward(ctx, out, x)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if are_plain(grad, grads[0]):
            run("sum", ctx, ctx.layout, grad, grads[0])
        else:
            op.backward(ctx, grad, grads, out, x)


class BroadcastKernel:
    """The same, and values that are taken as they are."""

    recordable = True

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, x: Any, like: Any) -> None:
        op.forward(ctx, out, x, like)

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any, like: Any) -> None:
        before, after = ctx.layouts
        if before is not None and after is not None and before.rows != after.rows and are_plain(grad, grads[0]):
            run("sum", ctx, after, grad, grads[0])
        else:
            op.backward(ctx, grad, grads, out, x, like)
