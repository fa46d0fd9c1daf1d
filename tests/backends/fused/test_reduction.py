"""Loops for reductions: the same as the operators' own methods, and the same bits whatever the number of threads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cntk.backends.fused import reduction
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.operators.op import includes
from cntk.core.types.axis import Axis
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.extremum import ArgMax, ReduceMax, ReduceMin
from cntk.plugins.ops.reduction import ReduceLogSum, ReduceMean, ReduceProd, ReduceSum
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("three_threads", "always_loops")

REDUCTIONS = [ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceLogSum]
AXES = [(Axis.all_static_axes(),), (Axis.all_axes(),), (Axis(-1),), (Axis(0),), (Axis.default_batch_axis(), Axis(0))]
EXTREMES = [np.nan, np.inf, -np.inf, 1e30, -1e30, 90.0, -0.0]


@pytest.fixture
def always_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "reduction_compiled", 1)


def values(shape: tuple[int, ...], dtype: Any, extremes: Sequence[tuple[int, float]] = ()) -> Any:
    x = np.random.default_rng(1).integers(-9, 9, shape).astype(dtype) / 4
    for place, value in extremes:
        x.flat[place % x.size] = value
    return x


def results(op: Any, methods: Any, x: Any) -> list[Any]:
    """Result and gradient by an operator's own methods or by the kernel's."""
    ctx = Context(backend_named("numpy"), True)
    ctx.layout = Layout(len(x))
    ctx.layouts = [ctx.layout]
    kept = op.array_axes(ctx, x)
    out = np.empty([dim for axis, dim in enumerate(x.shape) if axis not in kept], x.dtype)
    grad, dx = np.random.default_rng(2).normal(size=out.shape).astype(x.dtype), np.empty_like(x)
    leading = () if methods is op else (op,)
    with ctx.backend.guard():
        methods.forward(*leading, ctx, out, x)
        if op.gradient_inputs:
            known = out if op.keep_output else None, x if includes(op.keep_inputs, 0) else None
            methods.backward(*leading, ctx, grad, [dx], *known)
    return [out, dx] if op.gradient_inputs else [out]


shapes = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 140)),
    st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 40)),
    st.sampled_from([(1, 9000), (3, 4097), (2, 3, 1), (65, 64)]),
)


@settings(max_examples=120, deadline=None)
@given(
    shape=shapes,
    dtype=st.sampled_from([np.float32, np.float64]),
    extremes=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(EXTREMES)), max_size=4),
    axes=st.sampled_from(AXES),
    of=st.sampled_from(REDUCTIONS),
)
@example(shape=(2, 3), dtype=np.float32, extremes=[(i, -np.inf) for i in range(3)], axes=AXES[0], of=ReduceLogSum)
@example(shape=(2, 3), dtype=np.float32, extremes=[(0, np.inf), (4, np.nan)], axes=AXES[2], of=ReduceMax)
def test_reductions_are_the_operators(shape: Any, dtype: Any, extremes: Any, axes: Any, of: Any) -> None:
    op, x = of(axis_vec=axes), values(shape, dtype, extremes)
    terms = x  # large ones may cancel in a result, not in a gradient
    for ours, own in zip(results(op, reduction.ReductionKernel, x), results(op, op, x), strict=True):
        size = max(np.abs(of[np.isfinite(of)]).max(initial=1) for of in (own, terms))
        assert_close(ours / size, own / size)
        terms = own


def test_other_reductions_are_the_operators_own() -> None:
    assert all(plugins.kernel_place(of, "numpy") is None for of in (ReduceProd, ArgMax))
    op, x = ReduceSum(axis_vec=(Axis(0),)), values((4, 3, 5), np.float32)
    for ours, own in zip(results(op, reduction.ReductionKernel, x), results(op, op, x), strict=True):
        np.testing.assert_array_equal(ours, own)


def test_float16_is_the_operators_own() -> None:
    op, x = ReduceMean(), np.full((4, 3000), 60, np.float16)
    np.testing.assert_array_equal(results(op, reduction.ReductionKernel, x)[0], np.full(4, 60, np.float16))


def test_long_sums_of_float32_lose_little() -> None:
    x = np.random.default_rng(1).random((2, 10**6), np.float32)
    (ours, _) = results(ReduceSum(), reduction.ReductionKernel, x)
    np.testing.assert_allclose(ours, x.sum(axis=1, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("of", REDUCTIONS, ids=lambda of: str(of.reduction_op_name))
def test_threads_change_no_bit(of: Any) -> None:
    x, found = np.random.default_rng(1).normal(size=(2050, 129)).astype(np.float32), []
    for count in (1, 2, 3):
        threads.set_max_threads(count)
        found.append(results(of(), reduction.ReductionKernel, x))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)
