"""Kernels over rows of classes: softmax, its logarithm, cross entropy with softmax and classification errors.

A warp handles a row, or a block if there are many classes; the order of summation depends on the number of classes alone.
Exponentials are recomputed where they are needed again, which is faster than storing and loading them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.common.shape import size_of
from ...core.types.axis import Axis, static_axis_number
from ...core.types.context import Context
from ...core.types.sparse import SparseRows
from .calls import Work
from .compiler import BLOCKS, INDEX_NAMES, MOST_BLOCKS, THREADS, compile, index_type
from .prelude import prelude

MOST_OF_A_WARP = 1024
"""Maximum number of classes that a warp handles; rows with more are handled by a block."""

TEAM = """
#define WARPS (TEAM / 32)
#define LANE (threadIdx.x % TEAM)
#define EACH(i) for (size i = LANE; i < CLASSES; i += TEAM)
#define AT(i) (base + (i) * INNER)

__device__ __forceinline__ real greater_of(real x, real y) { return x == x && (y > x || y != y) ? y : x; }
__device__ __forceinline__ double sum_of(double x, double y) { return x + y; }
__device__ __forceinline__ size first_of(size x, size y) { return y < x ? y : x; }

/* Reduces the values of a team's threads; every thread gets the result. */
#define TEAMWORK(name, type, both) \\
    __device__ type name(type value) { \\
        for (int bit = 16; bit; bit /= 2) { \\
            const type other = __shfl_xor_sync(ALL, value, bit); \\
            value = threadIdx.x & bit ? both(other, value) : both(value, other); \\
        } \\
        if (WARPS > 1) { \\
            __shared__ type of_warps[8]; \\
            __syncthreads(); \\
            if (threadIdx.x % 32 == 0) \\
                of_warps[threadIdx.x / 32] = value; \\
            __syncthreads(); \\
            value = of_warps[0]; \\
            for (int warp = 1; warp < WARPS; ++warp) \\
                value = both(value, of_warps[warp]); \\
        } \\
        return value; \\
    }

TEAMWORK(greatest, real, greater_of)
TEAMWORK(total, double, sum_of)
TEAMWORK(first, size, first_of)

__device__ __forceinline__ void meet() {
    if (WARPS > 1)
        __syncthreads();
    else
        __syncwarp();
}

__device__ real edge_of(const stored *x, size base) {
    real edge = -INFINITY;
    EACH(i) edge = greater_of(edge, value_of(x[AT(i)]));
    return greatest(edge);
}

__device__ double powers_of(const stored *x, size base, real edge) {
    double sum = 0;
    EACH(i) sum += power_of_e(value_of(x[AT(i)]) - edge);
    return total(sum);
}

__device__ double products_of(const stored *x, const stored *y, size base) {
    double sum = 0;
    EACH(i) sum += value_of(x[AT(i)]) * value_of(y[AT(i)]);
    return total(sum);
}

/* The first class with the greatest value; NaN is greater than any number. */
__device__ size place_of_greatest(const stored *x, size base) {
    const real edge = edge_of(x, base);
    size found = CLASSES;
    EACH(i) {
        const real one = value_of(x[AT(i)]);
        if (i < found && (one == edge || edge != edge && one != one))
            found = i;
    }
    return first(found);
}
"""

BODIES = {
    "softmax": (
        "const stored *x, stored *y",
        """const real edge = edge_of(x, base), sum = (real)powers_of(x, base, edge);
        EACH(i) store(y[AT(i)], power_of_e(value_of(x[AT(i)]) - edge) / sum);""",
    ),
    "softmax_gradient": (
        "const stored *y, const stored *dy, stored *dx",
        """const real inner = (real)products_of(y, dy, base);
        EACH(i) store(dx[AT(i)], (value_of(dy[AT(i)]) - inner) * value_of(y[AT(i)]));""",
    ),
    "log_softmax": (
        "const stored *x, stored *y",
        """const real edge = edge_of(x, base), level = logarithm((real)powers_of(x, base, edge));
        EACH(i) store(y[AT(i)], (value_of(x[AT(i)]) - edge) - level);""",
    ),
    "log_softmax_gradient": (
        "const stored *y, const stored *dy, stored *dx",
        """double sum = 0;
        EACH(i) sum += value_of(dy[AT(i)]);
        const real inner = (real)total(sum);
        EACH(i) store(dx[AT(i)], value_of(dy[AT(i)]) - power_of_e(value_of(y[AT(i)])) * inner);""",
    ),
    "cross_entropy": (
        "const stored *z, const stored *y, real *edges, real *sums, stored *out",
        """const real edge = edge_of(z, base), sum = (real)powers_of(z, base, edge), picked = (real)products_of(z, y, base);
        if (LANE == 0) {
            edges[row] = edge;
            sums[row] = sum;
            store(out[row], (edge - picked) + logarithm(sum));
        }""",
    ),
    "cross_entropy_gradient": (
        "const stored *z, const stored *y, const real *edges, const real *sums, const stored *grad, stored *dz",
        """const real factor = value_of(grad[row]), share = factor / sums[row], edge = edges[row];
        EACH(i) store(dz[AT(i)], power_of_e(value_of(z[AT(i)]) - edge) * share - value_of(y[AT(i)]) * factor);""",
    ),
    "sparse_cross_entropy": (
        "const stored *z, const stored *data, const place *indices, const start *starts, real *edges, real *sums, stored *out",
        """const real edge = edge_of(z, base), sum = (real)powers_of(z, base, edge);
        if (LANE == 0) {
            double picked = 0;
            for (start k = starts[row]; k < starts[row + 1]; ++k)
                picked += value_of(z[AT(indices[k])]) * value_of(data[k]);
            edges[row] = edge;
            sums[row] = sum;
            store(out[row], (edge - (real)picked) + logarithm(sum));
        }""",
    ),
    "sparse_cross_entropy_gradient": (
        "const stored *z, const stored *data, const place *indices, const start *starts, const real *edges, const real *sums,"
        " const stored *grad, stored *dz",
        """const real factor = value_of(grad[row]), share = factor / sums[row], edge = edges[row];
        EACH(i) store(dz[AT(i)], power_of_e(value_of(z[AT(i)]) - edge) * share);
        meet();
        if (LANE == 0)
            for (start k = starts[row]; k < starts[row + 1]; ++k)
                store(dz[AT(indices[k])], value_of(dz[AT(indices[k])]) - value_of(data[k]) * factor);""",
    ),
    "target_gradient": (
        "const stored *z, const stored *grad, stored *dy",
        """const real factor = -value_of(grad[row]);
        EACH(i) store(dy[AT(i)], value_of(z[AT(i)]) * factor);""",
    ),
    "error": (
        "const stored *z, const stored *y, long long *guesses, stored *out",
        """const size guess = place_of_greatest(z, base);
        if (LANE == 0) {
            guesses[row] = guess;
            store(out[row], 1 - value_of(y[AT(guess)]));
        }""",
    ),
    "sparse_error": (
        "const stored *z, const stored *data, const place *indices, const start *starts, stored *out",
        """const size guess = place_of_greatest(z, base);
        if (LANE == 0) {
            real right = 0;
            for (start k = starts[row]; k < starts[row + 1]; ++k)
                right += indices[k] == guess ? value_of(data[k]) : 0;
            store(out[row], 1 - right);
        }""",
    ),
    "error_gradient": (
        "const stored *grad, const long long *guesses, stored *dy",
        """EACH(i) store(dy[AT(i)], i == guesses[row] ? -value_of(grad[row]) : 0);""",
    ),
}
"""Array parameters of each kernel, and its body for the row that begins at *base*."""


def text(name: str, dtype: Any, classes: int, inner: int, index: str, places: Sequence[str] = ("int", "int")) -> str:
    """Return the source of a kernel for classes *inner* elements apart; *places* are the C types of CSR indices and of row starts."""
    team = 32 if classes <= MOST_OF_A_WARP else THREADS
    arrays, body = BODIES[name]
    return f"""{prelude(dtype, index)}
typedef {places[0]} place;
typedef {places[1]} start;
#define CLASSES {classes}
#define INNER {inner}
#define TEAM {team}
{TEAM}
extern "C" __global__ void __launch_bounds__({THREADS}, {BLOCKS}) {name}({arrays}, size rows) {{
    for (size row = blockIdx.x * ({THREADS} / TEAM) + threadIdx.x / TEAM; row < rows; row += gridDim.x * ({THREADS} / TEAM)) {{
        const size base = row / INNER * (CLASSES * (size)INNER) + row % INNER;
        {body}
    }}
}}
"""


def bound(name: str, rows: int, classes: int, inner: int, *arrays: Any, places: Sequence[str] = ("int", "int")) -> Callable[[], None]:
    """Return a function that launches a kernel for all rows."""
    size = index_type(rows * classes)
    team = 32 if classes <= MOST_OF_A_WARP else THREADS
    made = compile(text(name, arrays[0].dtype, classes, inner, INDEX_NAMES[size], places), name)
    return made.bound(min(-(-rows * team // THREADS), MOST_BLOCKS), THREADS, *arrays, size(rows))


class SoftmaxKernel:
    """Softmax along one axis, or along all static axes."""

    recordable = True

    name = "softmax"

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, *inputs: Any) -> bool:
        """Whether to fall back to the operator: for empty and for strided arrays."""
        return not out.size or not all(array.flags.c_contiguous for array in (out, *inputs) if array is not None)

    @classmethod
    def bind(cls, op: Any, ctx: Context, out: Any, x: Any) -> Callable[[], None]:
        """Return a function that computes the softmax."""
        return Work([bound(cls.name, *_classes(op, ctx, out), x, out)])

    @classmethod
    def forward(cls, op: Any, ctx: Context, out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out, x):
            op.forward(ctx, out, x)
        else:
            cls.bind(op, ctx, out, x)()

    @classmethod
    def backward(cls, op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, x: Any) -> None:
        if cls.declines(op, ctx, out, grad, grads[0]):
            op.backward(ctx, grad, grads, out, x)
        else:
            bound(f"{cls.name}_gradient", *_classes(op, ctx, out), out, grad, grads[0])()


class LogSoftmaxKernel(SoftmaxKernel):
    """The logarithm of softmax along one axis, or along all static axes."""

    name = "log_softmax"


def _classes(op: Any, ctx: Context, x: Any) -> tuple[int, int, int]:
    """Return the number of rows, the number of classes, and the stride of the classes in elements."""
    static = x.shape if ctx.layouts[0] is None else x.shape[1:]
    if op.axis is None:
        return size_of(x.shape) // size_of(static), size_of(static), 1
    axis = static_axis_number(op.axis, len(static), op.op_name)
    return size_of(x.shape) // static[axis], static[axis], size_of(static[axis + 1 :])


class CrossEntropyKernel:
    """Cross entropy of logits with classes on the last axis and targets of the same shape, dense or sparse."""

    recordable = recordable_sparse = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> bool:
        """Whether to fall back to the operator, as for other axes and shapes."""
        axis = op.axis.static_axis_index() if isinstance(op.axis, Axis) else op.axis
        return axis not in (-1, z.ndim - (ctx.layouts[0] is not None) - 1) or not _are_alike(ctx, z, y)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> Callable[[], None] | None:
        """Return a function that computes the losses; None for sparse targets, whose arrays are different each time."""
        return None if isinstance(y, SparseRows) else Work([bound("cross_entropy", *_last(z), z, y, *_kept(ctx, z), out)])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.forward(ctx, out, z, y)
            return
        run = CrossEntropyKernel.bind(op, ctx, out, z, y)
        if run is None:
            run = bound("sparse_cross_entropy", *_last(z), z, *y.parts, *_kept(ctx, z), out, places=_places(y))
        run()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, z: Any, y: Any) -> None:
        if CrossEntropyKernel.declines(op, ctx, out, z, y):
            op.backward(ctx, grad, grads, out, z, y)
            return
        dz, dy = grads
        if dz is not None and isinstance(y, SparseRows):
            bound("sparse_cross_entropy_gradient", *_last(z), z, *y.parts, *_kept(ctx, z), grad, dz, places=_places(y))()
        elif dz is not None:
            bound("cross_entropy_gradient", *_last(z), z, y, *_kept(ctx, z), grad, dz)()
        if dy is not None:
            bound("target_gradient", *_last(z), z, grad, dy)()


class ErrorKernel:
    """Classification errors of outputs and targets of the same shape, dense or sparse."""

    recordable = recordable_sparse = True

    @staticmethod
    def declines(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> bool:
        """Whether to fall back to the operator, as for other shapes."""
        return not _are_alike(ctx, z, y)

    @staticmethod
    def bind(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> Callable[[], None] | None:
        """Return a function that computes the errors; None for sparse targets, whose arrays are different each time."""
        return None if isinstance(y, SparseRows) else Work([bound("error", *_last(z), z, y, _guesses(ctx, z), out)])

    @staticmethod
    def forward(op: Any, ctx: Context, out: Any, z: Any, y: Any) -> None:
        if ErrorKernel.declines(op, ctx, out, z, y):
            op.forward(ctx, out, z, y)
            return
        run = ErrorKernel.bind(op, ctx, out, z, y)
        if run is None:
            run = bound("sparse_error", *_last(z), z, *y.parts, out, places=_places(y))
        run()

    @staticmethod
    def backward(op: Any, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, z: Any, y: Any) -> None:
        if ctx.state is not None:  # the forward pass fell back to the operator
            op.backward(ctx, grad, grads, out, z, y)
            return
        dy = grads[1]
        bound("error_gradient", *_last(dy), grad, _guesses(ctx, dy), dy)()


def _are_alike(ctx: Context, z: Any, y: Any) -> bool:
    """Whether the operands have the same shape and contiguous rows."""
    alike = y.shape == z.shape and (ctx.layouts[0] is None) == (ctx.layouts[1] is None) and z.ndim and z.size
    return bool(alike and z.flags.c_contiguous and (z.ndim <= 2 if isinstance(y, SparseRows) else y.flags.c_contiguous))


def _last(z: Any) -> tuple[int, int, int]:
    return size_of(z.shape[:-1]), z.shape[-1], 1


def _kept(ctx: Context, z: Any) -> tuple[Any, Any]:
    """Return buffers for the largest logit of each row and for its sum of exponentials."""
    rows, wide = size_of(z.shape[:-1]), computing_type(z.dtype)
    return ctx.keep("edge", (rows,), wide), ctx.keep("total", (rows,), wide)


def _guesses(ctx: Context, z: Any) -> Any:
    """Return a buffer for the class with the largest output of each row."""
    return ctx.keep("guesses", (size_of(z.shape[:-1]),), np.int64)


def _places(y: Any) -> list[str]:
    """Return the C types of a CSR matrix's indices and of its row starts."""
    return ["int" if part.dtype == np.int32 else "long long" for part in y.parts[1:]]
