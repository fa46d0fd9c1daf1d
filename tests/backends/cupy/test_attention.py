"""Kernels of attention as CUDA texts: the operators' numbers, whatever the tiles, and no matrix of scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attention_cases
import numpy as np
import pytest
from attention_cases import BIASES, attention
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import attention as kernels
from cntk.backends.cupy.attention import AttentionKernel, rows_of_tile
from cntk.core.run.evaluate import program_for
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.attention import Attention
from cntk.plugins.ops.attention_heads import AttentionHeads
from cntk.testing import assert_close
from cntk.testing.kernels import without_kernels
from cntk.testing.tolerances import VALUES

pytestmark = pytest.mark.usefixtures("host_gpu")

all_types = pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)


def results(by_kernel: bool, *case: Any, **options: Any) -> list[Any]:
    """Result and gradients by the kernel or by the operator's own methods."""
    return attention_cases.results(AttentionKernel if by_kernel else None, HostBackend(), array, *case, **options)


def heads(bias: str, scaling: str, dtype: Any, masked: bool = False) -> tuple[Attention, list[Any], list[bool]]:
    """An operator of three heads with 8 and 5 columns, operands, and which of these have rows; the bias is a mask if that is wanted."""
    one, inputs, rows = attention(2, 33, 70, 24, 15, bias, False, scaling, dtype)
    if scaling != "none":
        inputs[3:4], rows[3:4] = [np.array(scale, dtype) for scale in (0.7, 0.2, 1.5)], [False] * 3
    if bias != "none" and masked:
        inputs[-1] = (inputs[-1] > 0).astype(dtype)
        inputs[-1:-1], rows[-1:-1] = [np.array(score, dtype) for score in (-5, 0.5, -np.inf)], [False] * 3
    return AttentionHeads(turned=False, scaling=scaling, biased=one.biased and not masked, heads=3, masked=masked), inputs, rows


def assert_alike(found: Sequence[Any], expected: Sequence[Any], dtype: Any = np.float32) -> None:
    for ours, right in zip(found, expected, strict=True):
        ours, right = ours.astype(float), right.astype(float)
        size = np.abs(right[np.isfinite(right)]).max(initial=1)
        assert_close(ours / size, right / size, "", VALUES[dtype])


@pytest.mark.parametrize(
    ("sizes", "bias", "turned", "scaling"),
    [
        ((2, 7, 33, 3, 5), "none", False, "none"),
        ((3, 64, 64, 16, 16), "keys", True, "times"),
        ((1, 130, 70, 33, 20), "matrix", False, "divided"),
        ((2, 33, 130, 64, 100), "matrices", True, "times"),
        ((2, 20, 65, 100, 64), "queries", True, "none"),
        ((2, 1, 2, 1, 1), "number", False, "none"),
    ],
)
@all_types
def test_numbers_are_the_operators(sizes: Any, bias: str, turned: bool, scaling: str, dtype: Any, on_host: list[str]) -> None:
    op, inputs, rows = attention(*sizes, bias, turned, scaling, dtype)
    wanted = [0, 1, 2, *([len(inputs) - 1] if BIASES[bias] and BIASES[bias][2] else [])]
    found = results(True, op, inputs, rows, wanted)
    assert len(on_host) == 3
    wide = np.float64 if dtype is np.float64 else np.float32
    expected = results(False, op, [x.astype(wide) for x in inputs], rows, wanted)
    assert_alike(found, expected, dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("scaling", ["none", "times", "divided"])
@pytest.mark.parametrize("bias", ["none", "matrix", "matrices", "keys"])
def test_heads_side_by_side_are_one_launch(bias: str, scaling: str, dtype: Any, on_host: list[str]) -> None:
    op, inputs, rows = heads(bias, scaling, dtype)
    wanted = [0, 1, 2, *([len(inputs) - 1] if op.biased else [])]
    found = results(True, op, inputs, rows, wanted)
    assert len(on_host) == 3
    assert_alike(found, results(False, op, inputs, rows, wanted), dtype)
    alone = [
        results(False, Attention(turned=False, scaling=scaling, biased=op.biased), one, [True] * 3 + rows[-(len(one) - 3) :], [0, 1, 2])
        for one in op._operands(inputs)
    ]
    assert_alike(found[:1], [np.concatenate([head[0] for head in alone], axis=-1)], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("mask", ["keys", "matrix", "matrices"])
def test_a_mask_replaces_scores(mask: str, dtype: Any, on_host: list[str]) -> None:
    op, inputs, rows = heads(mask, "times", dtype, masked=True)
    inputs[-1][..., 0] = 1  # each query sees a key
    found = results(True, op, inputs, rows, [0, 1, 2])
    assert len(on_host) == 3
    assert_alike(found, results(False, op, inputs, rows, [0, 1, 2]), dtype)
    products = inputs[0][..., :8] @ inputs[1][..., :8].swapaxes(1, 2) * inputs[3]
    powers = np.exp(np.where(inputs[-1] != 0, products, -5))
    assert_close(found[0][..., :5], powers / powers.sum(axis=-1, keepdims=True) @ inputs[2][..., :5], "", VALUES[dtype])


@pytest.mark.parametrize("masked", [False, True], ids=["bias", "mask"])
def test_slices_attention_and_splice_of_a_program_are_one_operator(masked: bool) -> None:
    q, k, v = (C.input_variable(shape, needs_gradient=True) for shape in ((9, 12), (20, 12), (20, 6)))
    mask = C.input_variable((9, 20))

    def head(number: int) -> Any:
        a, b, c = (C.slice(x, -1, number * n, (number + 1) * n) for x, n in ((q, 4), (k, 4), (v, 2)))
        scores = C.times(a, C.transpose(b, (1, 0))) * 0.5
        return C.times(C.softmax(C.element_select(mask, scores, -9) if masked else scores + mask, axis=-1), c)

    random = np.random.default_rng(1)
    data = {x: random.normal(size=(3, *x.shape)).astype(np.float32) for x in (q, k, v)}
    data[mask] = random.integers(0, 2, (3, 9, 20)).astype(np.float32)
    for order, is_fused in (((0, 1, 2), True), ((1, 0, 2), False)):
        found = []
        for passes in (None, []):
            C.debugging.set_passes(passes)
            loss = C.reduce_sum(C.sin(C.splice(*map(head, order), axis=-1)))
            operators = [one.op for one in program_for(loss, loss.outputs).instructions]
            assert any(isinstance(op, AttentionHeads) and op.heads == 3 for op in operators) == (is_fused and passes is None)
            gradients = loss.grad(data, wrt=[q, k, v])
            found.append([gradients[x] for x in (q, k, v)])
        C.debugging.set_passes(None)
        for one, other in zip(*found, strict=True):
            assert_close(one, other)


@pytest.mark.parametrize("wanted", [[0], [1], [2], [0, 2], []])
def test_gradients_are_written_where_they_are_wanted(wanted: list[int]) -> None:
    op, inputs, rows = attention(2, 33, 70, 8, 5, "none", False, "none", np.float64)
    assert_alike(*(results(by_kernel, op, inputs, rows, wanted) for by_kernel in (True, False)))


def test_tiles_change_no_bit_and_neither_do_other_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [rows_of_tile(np.float32, 640, blocks) for blocks in (1, 20, 30)] == [16, 32, 64]
    op, inputs, rows = attention(3, 70, 130, 20, 9, "matrix", False, "times", np.float32)
    found = []
    for blocks in (0, 6, 10**6):
        monkeypatch.setattr(kernels, "BLOCKS_AT_WORK", blocks)
        found.append(results(True, op, inputs, rows, [0, 1, 2, 4]))
    alone = [[x[i : i + 1] if x.ndim == 3 else x for x in inputs] for i in range(3)]
    found.append([np.concatenate([results(True, op, one, rows, [], training=False)[0] for one in alone])])
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=False):
            np.testing.assert_array_equal(one, other)


def test_what_is_masked_counts_for_nothing_and_rows_without_a_key_are_nan() -> None:
    op, inputs, rows = attention(2, 9, 150, 8, 5, "matrix", False, "times", np.float32)
    bias = inputs[-1]
    bias[:, 75:] = -np.inf
    bias[1, :75] = -np.inf  # the second row sees nothing until the last key
    bias[1, -1] = 0
    bias[2] = -np.inf
    found, own = (results(by_kernel, op, inputs, rows, [0, 1, 2]) for by_kernel in (True, False))
    assert_alike(found, own)
    assert np.isnan(found[0][:, 2]).all()
    assert np.isfinite(np.delete(found[0], 2, axis=1)).all()
    assert_close(found[0][:, 1], inputs[2][:, -1])


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e30, -1e30])
@pytest.mark.parametrize("place", [0, 70, 149])
def test_extremes_are_the_operators(value: float, place: int) -> None:
    op, inputs, rows = attention(1, 3, 150, 4, 2, "matrix", False, "none", np.float32)
    inputs[-1][1, place] = value
    assert_alike(*(results(by_kernel, op, inputs, rows, [0, 1, 2]) for by_kernel in (True, False)))


def test_large_scores_do_not_overflow() -> None:
    op, inputs, rows = attention(1, 33, 150, 8, 5, "none", False, "none", np.float32)
    inputs[0] *= 1e4
    found = results(True, op, inputs, rows, [0, 1, 2])
    assert all(np.isfinite(one).all() for one in found)
    assert_alike(found[:1], results(False, op, inputs, rows, [0, 1, 2])[:1])


def test_gradients_are_differences_of_the_result() -> None:
    op, inputs, rows = attention(1, 3, 70, 4, 2, "matrix", False, "times", np.float64)
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


def test_what_lies_backwards_in_memory_is_left_to_the_operator(on_host: list[str]) -> None:
    op, inputs, rows = attention(2, 9, 20, 8, 5, "none", False, "none", np.float32)
    ctx = Context(HostBackend(), False)
    ctx.layout = Layout(2)
    ctx.layouts = [ctx.layout] * 3
    given = [array(x) for x in inputs]
    out = array(np.zeros((2, 9, 5), np.float32))
    assert AttentionKernel.declines(op, ctx, out, given[0][:, ::-1], *given[1:])
    AttentionKernel.forward(op, ctx, out, given[0][:, ::-1], *given[1:])
    assert not on_host
    assert_close(np.asarray(out), results(False, op, [inputs[0][:, ::-1], *inputs[1:]], rows, [], training=False)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("lengths", [[(3, 5), (1, 1), (7, 2)], [(70, 33), (1, 7), (33, 150), (2, 70)]])
def test_sequences_attend_as_by_the_operator(lengths: list[tuple[int, int]], dtype: Any, on_host: list[str]) -> None:
    words, question = C.Axis("words"), C.Axis("question")
    inputs = [
        C.sequence.input_variable(size, dtype=dtype, sequence_axis=axis, needs_gradient=True)
        for size, axis in ((33, question), (33, words), (20, words))
    ]
    loss = C.sequence.reduce_sum(C.reduce_sum(C.sin(C.sequence.attention(*inputs, scale=0.3))))
    random = np.random.default_rng(1)
    data = {x: [random.normal(size=(pair[i > 0], *x.shape)).astype(dtype) for pair in lengths] for i, x in enumerate(inputs)}

    def values() -> list[Any]:
        gradients, value = loss.grad(data, wrt=inputs, outputs=[loss.output])
        return [value, *(one for x in inputs for one in gradients[x])]

    found = values()
    assert any("attend_gradient_of_keys" in text for text in on_host)
    with without_kernels():
        assert_alike(found, values(), dtype)
