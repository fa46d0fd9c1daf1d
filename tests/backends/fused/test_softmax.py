"""Loops for softmax, its logarithm and cross entropy: the same as the operators' own methods, and the same bits whatever the threads."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.backends.fused import cross_entropy, softmax
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import SparseRows
from cntk.plugins.ops.loss import CrossEntropyWithSoftmax
from cntk.plugins.ops.softmax import LogSoftmax, Softmax
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("three_threads", "always_loops")

KERNELS = {Softmax: softmax.SoftmaxKernel, LogSoftmax: softmax.LogSoftmaxKernel, CrossEntropyWithSoftmax: cross_entropy.CrossEntropyKernel}
EXTREMES = [np.nan, np.inf, -np.inf, 1e30, -1e30, 90.0, -90.0, 0.0]


@pytest.fixture
def always_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("softmax_compiled", "cross_entropy_compiled"):
        monkeypatch.setattr(thresholds, name, 1)


def results(op: Any, methods: Any, inputs: Sequence[Any], shape: tuple[int, ...], grad: Any, wanted: Sequence[int]) -> list[Any]:
    """Result and gradients by an operator's own methods or by a kernel's, for operands that all have rows."""
    rows = shape[0]
    ctx = Context(backend_named("numpy"), True)
    ctx.layout = Layout(rows)
    ctx.layouts = [ctx.layout] * len(inputs)
    leading = () if methods is op else (op,)
    out = np.empty(shape, grad.dtype)
    grads = [np.empty(x.shape, x.dtype) if i in wanted else None for i, x in enumerate(inputs)]
    with ctx.backend.guard():
        methods.forward(*leading, ctx, out, *inputs)
        methods.backward(*leading, ctx, grad, grads, out, *inputs)
    return [out, *(grads[i] for i in wanted)]


def both(op: Any, inputs: Sequence[Any], shape: tuple[int, ...], wanted: Sequence[int] = (0,)) -> tuple[list[Any], list[Any]]:
    """The same by the kernel and by the operator."""
    grad = np.random.default_rng(2).normal(size=shape).astype(inputs[0].dtype)
    kernel = KERNELS[type(op)]
    return results(op, kernel, inputs, shape, grad, wanted), results(op, op, inputs, shape, grad, wanted)


def assert_alike(fused: Sequence[Any], own: Sequence[Any]) -> None:
    for ours, right in zip(fused, own, strict=True):
        size = np.abs(right[np.isfinite(right)]).max(initial=1)
        assert_close(ours / size, right / size)


def logits(shape: tuple[int, ...], dtype: Any, extremes: Sequence[tuple[int, float]] = ()) -> Any:
    values = np.random.default_rng(1).normal(0, 4, shape).astype(dtype)
    for place, value in extremes:
        values.flat[place % values.size] = value
    return values


shapes = st.one_of(
    st.tuples(st.integers(1, 40), st.integers(1, 140)),
    st.tuples(st.integers(1, 5), st.integers(1, 4), st.integers(1, 40)),
    st.sampled_from([(1, 9000), (3, 4097), (2, 3, 1), (65, 64)]),
)
extremes = st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(EXTREMES)), max_size=4)
dtypes = st.sampled_from([np.float32, np.float64])
quick = settings(max_examples=60, deadline=None)


@quick
@given(shape=shapes, dtype=dtypes, extremes=extremes, axis=st.sampled_from([None, -1, 0]), of=st.sampled_from([Softmax, LogSoftmax]))
@example(shape=(2, 3), dtype=np.float32, extremes=[(i, -np.inf) for i in range(3)], axis=None, of=Softmax)
@example(shape=(2, 3), dtype=np.float32, extremes=[(0, np.inf), (4, np.nan)], axis=-1, of=LogSoftmax)
def test_softmax_is_the_operators(shape: Any, dtype: Any, extremes: Any, axis: int | None, of: Any) -> None:
    assert_alike(*both(of(axis=axis), [logits(shape, dtype, extremes)], shape))


@quick
@given(shape=shapes, dtype=dtypes, extremes=extremes, wanted=st.sampled_from([(0,), (0, 1), (1,)]))
def test_cross_entropy_is_the_operators(shape: Any, dtype: Any, extremes: Any, wanted: Any) -> None:
    target = np.random.default_rng(3).dirichlet(np.ones(shape[-1]), shape[:-1]).astype(dtype)
    assert_alike(*both(CrossEntropyWithSoftmax(axis=-1), [logits(shape, dtype, extremes), target], (*shape[:-1], 1), wanted))


@quick
@given(shape=shapes, dtype=dtypes, counts=st.integers(0, 4), index=st.sampled_from([np.int32, np.int64]))
def test_cross_entropy_of_sparse_targets_is_the_operators(shape: Any, dtype: Any, counts: int, index: Any) -> None:
    random, lines = np.random.default_rng(3), int(np.prod(shape[:-1]))
    lengths = random.integers(0, counts + 1, lines) if counts else np.ones(lines, np.int64)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    target = SparseRows(shape, dtype)
    target.set(random.normal(size=indptr[-1]).astype(dtype), random.integers(0, shape[-1], indptr[-1]).astype(index), indptr)
    assert_alike(*both(CrossEntropyWithSoftmax(axis=len(shape) - 2), [logits(shape, dtype), target], (*shape[:-1], 1)))


def test_an_impossible_class_has_the_probability_zero() -> None:
    x = np.array([[0, -np.inf, 1, -1e4]], np.float32)
    (probability, slope), _ = both(Softmax(), [x], x.shape)
    assert probability[0, 1] == probability[0, 3] == slope[0, 1] == 0


def test_other_axes_targets_and_types_are_the_operators_own() -> None:
    x = logits((4, 3, 5), np.float32)
    narrow = logits((4, 5), np.float16)
    for op, inputs, shape in (
        (Softmax(axis=0), [x], x.shape),
        (Softmax(), [narrow], narrow.shape),
        (CrossEntropyWithSoftmax(axis=0), [x, x], (4, 1, 5)),
        (CrossEntropyWithSoftmax(axis=-1), [x, x[:, 0]], (4, 3, 1)),
        (CrossEntropyWithSoftmax(axis=-1), [narrow, narrow], (4, 1)),
    ):
        for ours, own in zip(*both(op, inputs, shape), strict=True):
            np.testing.assert_array_equal(ours, own)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_threads_change_no_bit(dtype: Any) -> None:
    x, found = logits((700, 129), dtype), []
    target = SparseRows(x.shape, dtype)
    target.set(np.ones(700, dtype), np.arange(700, dtype=np.int32) % 129, np.arange(701, dtype=np.int32))
    loss = CrossEntropyWithSoftmax(axis=-1)
    cases: list[tuple[Any, list[Any]]] = [(Softmax(), [x]), (LogSoftmax(), [x]), (loss, [x, abs(x)]), (loss, [x, target])]
    for count in (1, 2, 3):
        threads.set_max_threads(count)
        found.append([array for op, inputs in cases for array in both(op, inputs, (700, 1) if op is loss else x.shape)[0]])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_small_minibatches_load_no_loops() -> None:
    program = """
import sys, numpy as np, cntk as C
x, y = C.input_variable(10, needs_gradient=True), C.input_variable(10)
loss = C.cross_entropy_with_softmax(x, y) + C.reduce_sum(C.softmax(x) + C.log_softmax(x))
loss.grad({x: np.ones((256, 10), np.float32), y: np.ones((256, 10), np.float32)}, wrt=[x])
print('llvmlite' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"


def test_what_a_kernel_declines_never_comes_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(thresholds, "softmax_compiled", 100)
    for name in ("forward", "backward"):
        monkeypatch.setattr(softmax.SoftmaxKernel, name, lambda *_, name=name: called.append(name))
    x = C.input_variable(10, needs_gradient=True)
    y = C.softmax(x) * x
    y.grad({x: np.ones((9, 10), np.float32)})
    assert called == []
    y.grad({x: np.ones((10, 10), np.float32)})
    assert called == ["forward", "backward"]
