"""Loops of attention: the operators' numbers, the same bits whatever the threads, and no matrix of scores."""

from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from typing import Any

import attention_cases
import numpy as np
import pytest
from attention_cases import BIASES, attention
from hypothesis import example, given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.backends.fused.attention import AttentionKernel
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, overridden, thresholds
from cntk.core.extension.device import backend_named
from cntk.core.run.evaluate import program_for
from cntk.plugins.ops.attention import Attention
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
pytestmark = pytest.mark.usefixtures("three_threads", "always_loops")

SIZES = [1, 2, 7, 33, 64, 130]


@pytest.fixture
def always_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "attention_compiled", 1)


def results(by_kernel: bool, *case: Any, **options: Any) -> list[Any]:
    """Result and gradients by the kernel or by the operator's own methods."""
    return attention_cases.results(AttentionKernel if by_kernel else None, backend_named("numpy"), np.asarray, *case, **options)


def assert_alike(fused: Sequence[Any], own: Sequence[Any]) -> None:
    for ours, right in zip(fused, own, strict=True):
        size = np.abs(right[np.isfinite(right)]).max(initial=1)
        assert_close(ours / size, right / size)


quick = settings(max_examples=60, deadline=None)
dtypes = st.sampled_from([np.float32, np.float64])


@quick
@given(
    stack=st.integers(1, 3),
    sizes=st.tuples(*[st.sampled_from(SIZES)] * 2),
    widths=st.tuples(*[st.sampled_from([1, 3, 16, 33])] * 2),
    bias=st.sampled_from(list(BIASES)),
    turned=st.booleans(),
    scaling=st.sampled_from(["none", "times", "divided"]),
    dtype=dtypes,
)
@example(stack=1, sizes=(700, 600), widths=(16, 33), bias="matrix", turned=False, scaling="times", dtype=np.float32)
@example(stack=1, sizes=(33, 1100), widths=(33, 16), bias="none", turned=True, scaling="divided", dtype=np.float64)
@example(stack=9, sizes=(1, 300), widths=(1, 1), bias="keys", turned=True, scaling="times", dtype=np.float64)
def test_numbers_are_the_operators(stack: int, sizes: Any, widths: Any, bias: str, turned: bool, scaling: str, dtype: Any) -> None:
    op, inputs, rows = attention(stack, *sizes, *widths, bias, turned, scaling, dtype)
    alike = [2] if sizes[1] == 1 else [0, 1, 2]  # one weight is 1 whatever the score: its gradient is 0, but for rounding
    wanted = [*alike, *([len(inputs) - 1] if BIASES[bias] and BIASES[bias][2] and sizes[1] > 1 else [])]
    fused, own = (results(by_kernel, op, inputs, rows, wanted) for by_kernel in (True, False))
    assert_alike(fused, own)


def test_gradients_of_what_does_not_matter_are_zero_but_for_rounding() -> None:
    for bias, keys in (("matrix", 1), ("queries", 300), ("number", 33)):
        op, inputs, rows = attention(2, 7, keys, 8, 5, bias, False, "none", np.float64)
        assert np.abs(results(True, op, inputs, rows, [3])[1]).max() < 1e-14


@pytest.mark.parametrize("wanted", [[0], [1], [2], [0, 2]])
def test_gradients_are_written_where_they_are_wanted(wanted: list[int]) -> None:
    op, inputs, rows = attention(2, 33, 300, 8, 5, "none", False, "none", np.float64)
    assert_alike(*(results(by_kernel, op, inputs, rows, wanted) for by_kernel in (True, False)))


@pytest.mark.parametrize("keys", [33, 600], ids=["one block of keys", "several"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_what_is_masked_counts_for_nothing_and_rows_without_a_key_are_nan(keys: int, dtype: Any) -> None:
    op, inputs, rows = attention(2, 9, keys, 8, 5, "matrix", False, "times", dtype)
    bias = inputs[-1]
    bias[:, keys // 2 :] = -np.inf
    bias[1, : keys // 2] = -np.inf  # the second row sees nothing until the second half
    bias[1, -1] = 0
    bias[2] = -np.inf
    fused, own = (results(by_kernel, op, inputs, rows, [0, 1, 2]) for by_kernel in (True, False))
    assert_alike(fused, own)
    assert np.isnan(fused[0][:, 2]).all()
    assert np.isfinite(np.delete(fused[0], 2, axis=1)).all()
    assert_close(fused[0][:, 1], inputs[2][:, -1])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -1e30])
@pytest.mark.parametrize("place", [0, 299, 599])
def test_extremes_are_the_operators(value: float, place: int) -> None:
    op, inputs, rows = attention(1, 3, 600, 4, 2, "matrix", False, "none", np.float32)
    inputs[-1][1, place] = value
    with np.errstate(invalid="ignore", over="ignore"):
        assert_alike(*(results(by_kernel, op, inputs, rows, [0, 1, 2]) for by_kernel in (True, False)))


def test_large_scores_do_not_overflow() -> None:
    op, inputs, rows = attention(1, 33, 600, 8, 5, "none", False, "none", np.float32)
    inputs[0] *= 1e4
    found = results(True, op, inputs, rows, [0, 1, 2])
    assert all(np.isfinite(array).all() for array in found)
    assert_alike(found[:1], results(False, op, inputs, rows, [0, 1, 2])[:1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("sizes", [(16, 64, 64), (1, 300, 1100), (3, 130, 600)])
def test_threads_change_no_bit(sizes: tuple[int, int, int], dtype: Any) -> None:
    op, inputs, rows = attention(*sizes, 16, 9, "matrix", False, "times", dtype)
    found = []
    for count in (1, 2, 3):
        threads.set_max_threads(count)
        found.append(results(True, op, inputs, rows, [0, 1, 2, 4]))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_other_samples_change_no_bit() -> None:
    op, inputs, rows = attention(5, 33, 130, 16, 9, "keys", False, "times", np.float32)
    together = results(True, op, inputs, rows, [], training=False)[0]
    alone = results(True, op, [x[2:3] if x.ndim else x for x in inputs], rows, [], training=False)[0]
    np.testing.assert_array_equal(together[2:3], alone)


@pytest.mark.parametrize("keys", [7, 300])
def test_gradients_are_differences_of_the_result(keys: int) -> None:
    op, inputs, rows = attention(1, 3, keys, 4, 2, "matrix", False, "times", np.float64)
    random, wanted = np.random.default_rng(4), [0, 1, 2, 4]
    grad = np.random.default_rng(2).normal(size=(1, 3, 2))
    gradients = results(True, op, inputs, rows, wanted)[1:]
    for i, slope in zip(wanted, gradients, strict=True):
        direction = random.normal(size=inputs[i].shape)
        sides = []
        for step in (1e-6, -1e-6):
            moved = [x + step * direction if j == i else x for j, x in enumerate(inputs)]
            sides.append((results(True, op, moved, rows, [], training=False)[0] * grad).sum())
        np.testing.assert_allclose((slope * direction).sum(), (sides[0] - sides[1]) / 2e-6, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("masked", [False, True], ids=["all", "earlier steps"])
def test_numbers_are_those_of_torch(masked: bool) -> None:
    torch = pytest.importorskip("torch")
    op, inputs, rows = attention(3, 130, 130, 16, 16, "matrix", False, "none", np.float64)
    inputs[-1] = np.triu(np.full((130, 130), -np.inf), 1) if masked else np.zeros((130, 130))
    op = Attention(turned=False, scaling="divided", biased=True)
    inputs.insert(3, np.array(4.0))
    fused = results(True, op, inputs, [*rows[:3], False, False], [0, 1, 2])
    leaves = [torch.tensor(x, requires_grad=True) for x in inputs[:3]]
    right = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=masked)
    right.backward(torch.tensor(np.random.default_rng(2).normal(size=right.shape)))
    assert_alike(fused, [right.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves)])


def test_strided_operands_and_gradients() -> None:
    def model(x: Any) -> Any:
        q, k, v = (C.slice(x, -1, 8 * i, 8 * (i + 1)) for i in range(3))
        return C.times(C.softmax(C.times(q, C.transpose(k, (1, 0))) * 0.3, axis=-1), v)

    x = C.input_variable((33, 24), needs_gradient=True)
    data, found = np.random.default_rng(1).normal(size=(4, 33, 24)).astype(np.float32), []
    for passes in (None, []):
        C.debugging.set_passes(passes)
        loss = C.reduce_sum(C.sin(model(x)))
        assert ("Attention" in [i.op.op_name for i in program_for(loss, loss.outputs).instructions]) == (passes is None)
        found.append(loss.grad({x: data}, wrt=[x]))
    assert_close(*found)


def test_no_matrix_of_scores_is_stored() -> None:
    steps, width = 2048, 8
    x = C.input_variable((steps, width), needs_gradient=True)
    loss = C.reduce_sum(C.times(C.softmax(C.times(x, C.transpose(x, (1, 0))) * 0.3, axis=-1), x))
    loss.grad({x: np.zeros((1, 1, width), np.float32).repeat(steps, axis=1)}, wrt=[x])  # loops are compiled
    peaks = {}
    for passes in (None, []):
        C.debugging.set_passes(passes)
        again = loss.clone("share")
        tracemalloc.start()
        again.grad({again.arguments[0]: np.zeros((1, steps, width), np.float32)}, wrt=again.arguments)
        peaks[passes is None] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    matrix = 4 * steps**2
    assert peaks[True] < matrix / 4
    assert peaks[False] > 2 * matrix


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("lengths", [[(3, 5), (1, 1), (7, 2)], [(130, 33), (1, 7), (33, 300), (2, 130)], [(300, 1100)]])
def test_sequences_attend_as_by_the_operator(lengths: list[tuple[int, int]], dtype: Any) -> None:
    words, question = C.Axis("words"), C.Axis("question")
    inputs = [
        C.sequence.input_variable(size, dtype=dtype, sequence_axis=axis, needs_gradient=True)
        for size, axis in ((33, question), (33, words), (20, words))
    ]
    loss = C.sequence.reduce_sum(C.reduce_sum(C.sin(C.sequence.attention(*inputs, scale=0.3))))
    random = np.random.default_rng(1)
    data = {x: [random.normal(size=(pair[i > 0], *x.shape)).astype(dtype) for pair in lengths] for i, x in enumerate(inputs)}
    found = []
    for size, count in ((1, 1), (1, 3), (NEVER, 3)):
        threads.set_max_threads(count)
        with overridden(attention_compiled=size):
            gradients, value = loss.grad(data, wrt=inputs, outputs=[loss.output])
        found.append([value, *(array for x in inputs for array in gradients[x])])
    one, three, own = found
    for array, same in zip(one, three, strict=True):
        np.testing.assert_array_equal(array, same)
    assert_alike(one, own)
