"""Kernels of pooling: what the operators compute on the CPU, to the bit, whatever the windows: ties, NaN and infinities included."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import pools
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.dtypes import limits_of
from cntk.core.common.windows import Windows
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout

pytestmark = pytest.mark.usefixtures("on_host")

TYPES = (C.bfloat16, np.float16, np.float32, np.float64)


class Geometry(NamedTuple):
    """Windows over planes, and the type of their elements."""

    dims: tuple[int, ...]
    window: tuple[int, ...]
    strides: tuple[int, ...]
    padding: tuple[bool, ...]
    ceil: bool
    dtype: Any

    def arrays(self, kind: int, made: Any, rows: int, include_pad: bool = False) -> tuple[Any, Any, Any, Windows]:
        """A pooling operator, an operand of two channels with such numbers, the result's array, and the windows."""
        x, padding = made((rows, 2, *self.dims), self.dtype), [False, *self.padding]
        y = C.pooling(C.input_variable(x.shape[1:]), kind, self.window, self.strides, padding, self.ceil, include_pad)
        op = y.root_function.op
        return op, x, np.empty((rows, *y.shape), self.dtype), op.windows(x.shape[1:]).moving


def geometries(count: int) -> list[Geometry]:
    """Windows of one to four axes, which overlap or leave out elements, reach over both edges, or fill the plane."""
    rng = np.random.default_rng(7)
    found = [
        Geometry((7,), (1,), (4,), (True,), False, np.float32),  # windows that leave out first elements
        Geometry((4, 5), (4, 5), (1, 1), (False, False), False, np.float16),  # one window
        Geometry((17, 18), (17, 16), (3, 3), (True, True), False, np.float32),  # taps of 16 bits
    ]
    for number in range(count):
        axes = range(1 + number % 4)
        dims = tuple(int(rng.integers(1, 9 - axes.stop)) for _ in axes)
        window = tuple(int(rng.integers(1, min(dim, 4) + 1)) for dim in dims)
        strides, padding = tuple(int(rng.integers(1, 5)) for _ in axes), tuple(bool(rng.integers(2)) for _ in axes)
        found.append(Geometry(dims, window, strides, padding, bool(rng.integers(2)), TYPES[number % 3]))
    return found


def context(rows: int) -> Context:
    made, layout = Context(NumpyBackend(), True), Layout(rows)
    made.layouts = [layout]
    return made


def numbers(shape: tuple[int, ...], dtype: Any) -> Any:
    """Numbers of which many are equal, some are infinite and some are not numbers."""
    rng = np.random.default_rng(0)
    x = rng.integers(-2, 3, shape).astype(dtype)
    x[rng.uniform(size=shape) < 0.1] = -np.inf
    x[rng.uniform(size=shape) < 0.03] = np.nan
    return x


def gradients(shape: tuple[int, ...], dtype: Any) -> Any:
    return np.random.default_rng(1).normal(size=shape).astype(dtype)


def same(found: Any, wanted: Any) -> None:
    """Compare to the bit, as float64: NumPy does not know that a bfloat16 is no number."""
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(np.float64))


@pytest.mark.parametrize("geometry", geometries(14), ids=str)
def test_maxima_and_their_gradients(geometry: Geometry) -> None:
    for rows in (3, 0):
        op, x, out, w = geometry.arrays(C.MAX_POOLING, numbers, rows)
        grad, dx, ctx = gradients(out.shape, x.dtype), np.empty_like(x), context(rows)
        op.forward(ctx, out, x)
        op.backward(ctx, grad, [dx], None, x)
        wanted = pools.taps_of(ctx, x, w)
        maxima, taps, sent = (HostBackend().empty(one.shape, one.dtype) for one in (out, wanted, dx))
        pools.maxima(array(x), w, maxima, taps)()
        pools.send_back(array(grad), taps, w, sent)()
        same(maxima, out)
        same(taps, wanted)
        same(sent, dx)


@pytest.mark.parametrize("geometry", geometries(3), ids=str)
def test_a_rectifier_after_maxima(geometry: Geometry) -> None:
    op, x, out, w = geometry.arrays(C.MAX_POOLING, numbers, 3)
    relu = C.relu(C.input_variable(out.shape[1:])).root_function.op
    grad, cut, dx, ctx = gradients(out.shape, x.dtype), np.empty_like(out), np.empty_like(x), context(3)
    grad.flat[0] = np.inf  # no number times 0
    op.forward(ctx, out, x)
    relu.forward(ctx, out, out)
    with np.errstate(invalid="ignore"):
        relu.backward(ctx, grad, [cut], out, None)
    op.backward(ctx, cut, [dx], None, x)
    wanted = pools.taps_of(ctx, x, w)
    maxima, taps, sent = (HostBackend().empty(one.shape, one.dtype) for one in (out, wanted, dx))
    pools.maxima(array(x), w, maxima, taps, rectify=True)()
    pools.send_back(array(grad), taps, w, sent, maxima)()
    same(maxima, out)
    same(taps, wanted)
    same(sent, dx)


@pytest.mark.parametrize("geometry", geometries(7), ids=str)
@pytest.mark.parametrize("include_pad", [False, True])
def test_averages_and_their_gradients(geometry: Geometry, include_pad: bool) -> None:
    op, x, out, w = geometry.arrays(C.AVG_POOLING, gradients, 3, include_pad)
    grad, dx, ctx = gradients(out.shape, x.dtype), np.empty_like(x), context(3)
    with np.errstate(invalid="ignore", divide="ignore"):  # windows may meet padding alone
        op.forward(ctx, out, x)
        op.backward(ctx, grad, [dx], None, x)
    averages, shares = (HostBackend().empty(one.shape, one.dtype) for one in (out, dx))
    pools.averages(array(x), w, include_pad, averages)()
    pools.spread(array(grad), w, include_pad, shares)()
    if w.kernel == w.padded:  # NumPy adds up a single window in pairs
        np.testing.assert_allclose(averages, out, rtol=0, atol=8 * float(limits_of(x.dtype).eps))
    else:
        same(averages, out)
    same(shares, dx)
