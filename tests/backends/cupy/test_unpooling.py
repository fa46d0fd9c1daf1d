"""The kernel of unpooling: what the operator computes on the CPU, to the bit, with values that meet and maxima in the padding."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend

import cntk as C
from cntk.backends.cupy.unpooling import UnpoolingKernel
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.testing import check_op


@pytest.mark.usefixtures("host_gpu")
def test_all_kinds_of_unpooling(on_host: list[str]) -> None:
    check_op(C.unpooling)
    assert on_host


@pytest.mark.usefixtures("on_host")
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize(
    ("dims", "window", "strides", "padded"),
    [((9,), 3, 2, True), ((9,), 3, 1, False), ((6, 7), 3, 2, True), ((5, 4), 2, 3, False), ((3, 4, 5), 2, 1, True), ((7,), 1, 4, True)],
)
@pytest.mark.parametrize("rows", [4, 0])
def test_any_windows(dims: tuple[int, ...], window: int, strides: int, padded: bool, dtype: Any, rows: int) -> None:
    windows = (window,) * len(dims), strides, [False] + [padded] * len(dims)
    x = C.input_variable((2, *dims))
    y = C.pooling(x, C.MAX_POOLING, *windows)
    op = C.unpooling(C.input_variable(y.shape), x, C.MAX_UNPOOLING, *windows).root_function.op
    rng = np.random.default_rng(0)
    pooled, values = rng.integers(-1, 2, (rows, 2, *dims)).astype(dtype), rng.normal(size=(rows, *y.shape)).astype(dtype)
    pooled[rng.uniform(size=pooled.shape) < 0.3] = -np.inf
    grad = rng.normal(size=pooled.shape).astype(dtype)
    kernel: Any = UnpoolingKernel
    results = []
    for backend, forward, backward in (
        (NumpyBackend(), op.forward, op.backward),
        (HostBackend(), partial(kernel.forward, op), partial(kernel.backward, op)),
    ):
        ctx = Context(backend, True)
        ctx.layouts, ctx.layout = [Layout(rows)] * 2, Layout(rows)
        out, back = (backend.empty(like.shape, dtype) for like in (pooled, values))
        forward(ctx, out, backend.asarray(values, dtype), backend.asarray(pooled, dtype))
        backward(ctx, backend.asarray(grad, dtype), [back], None, None, backend.asarray(pooled, dtype))
        results.append((out, back))
    for wanted, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, wanted)
