"""Loops compute with nothing that lay in scratch space before: it would not change results, but numbers too small to be normal cost a
processor many times the time.  Scratch space is filled with signalling NaN, which a processor reports when it computes with it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from cntk.core.common import threads
from cntk.core.common.thresholds import overridden
from cntk.core.common.windows import correlation as geometry
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.attention import Attention

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
products = pytest.importorskip("cntk.backends.fused.products")
winograd = pytest.importorskip("cntk.backends.fused.winograd")
correlation = pytest.importorskip("cntk.backends.fused.correlation")
attention = pytest.importorskip("cntk.backends.fused.attention")

SIGNALLING = {4: 0x7FA00000, 8: 0x7FF4000000000000}
"""The bits of a signalling NaN of so many bytes."""

INVALID = 1
"""The floating-point exception of signalling NaN, as C's ``fenv.h`` numbers them on x86 and ARM."""


class Filled(Context):
    """A context whose scratch space is full of signalling NaN."""

    def scratch(self, key: str, shape: Sequence[int], dtype: Any) -> Any:
        array = super().scratch(key, shape, dtype)
        if array.dtype.kind == "f":
            array.reshape(-1).view(f"u{array.itemsize}")[:] = SIGNALLING[array.itemsize]
        return array


@pytest.fixture
def computes_with_scratch(switches: None) -> Callable[..., bool]:
    """Whether a function, called with a context, computes with what scratch space held."""
    library = ctypes.CDLL(None)  # the process, which has C's functions
    threads.set_max_threads(1)  # each thread has flags of its own

    def computes(function: Callable[..., None], *arguments: Any) -> bool:
        context = Filled(backend_named("numpy"), training=True)
        library.feclearexcept(INVALID)
        function(context, *arguments)
        return bool(library.fetestexcept(INVALID))

    return computes


def test_a_read_of_scratch_space_is_seen(computes_with_scratch: Callable[..., bool]) -> None:
    def reads(context: Context) -> None:
        a, b, c = (context.scratch(name, (8, 8), np.float32) for name in "abc")
        b[:], c[:] = 1, 0
        products.bound(context, a, b, c)()

    assert computes_with_scratch(reads)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("columns", [1, 7, 31, 32, 33, 129])
def test_products(computes_with_scratch: Callable[..., bool], columns: int, turned: bool, dtype: Any) -> None:
    random = np.random.default_rng(1)
    left = random.normal(size=(13, 45)).astype(dtype)
    right = random.normal(size=(columns, 45) if turned else (45, columns)).astype(dtype)
    out = np.empty((13, columns), dtype)

    def multiplies(context: Context) -> None:
        products.bound(context, left, right.T if turned else right, out)()

    assert not computes_with_scratch(multiplies)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("channels", "maps"), [(20, 24), (17, 33), (32, 32)])
@pytest.mark.parametrize("by", [winograd, correlation])
def test_convolutions(computes_with_scratch: Callable[..., bool], by: Any, channels: int, maps: int, dtype: Any) -> None:
    random = np.random.default_rng(1)
    g = geometry(maps, (channels, 3, 3), (channels, 9, 11), (1, 1, 1), (1, 1, 1), (False, True, True), 1)
    images, filters = random.normal(size=(3, channels, 9, 11)).astype(dtype), random.normal(size=(maps, channels, 3, 3)).astype(dtype)
    grad = random.normal(size=(3, maps, *g.windows.out)).astype(dtype)
    out, filters_grad, images_grad = (np.empty_like(array) for array in (grad, filters, images))
    assert not computes_with_scratch(by.correlate, out, filters, images, g)
    assert not computes_with_scratch(by.correlate_backward, grad, filters_grad, images_grad, filters, images, g)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("queries", "keys", "depth", "width"), [(1, 1, 1, 1), (13, 21, 20, 5), (200, 300, 7, 40)])
def test_attention(computes_with_scratch: Callable[..., bool], queries: int, keys: int, depth: int, width: int, dtype: Any) -> None:
    random = np.random.default_rng(1)
    shapes = (2, queries, depth), (2, keys, depth), (2, keys, width), (queries, keys)
    inputs = [random.normal(size=shape).astype(dtype) for shape in shapes]
    out, op = np.empty((2, queries, width), dtype), Attention(turned=False, scaling="none", biased=True)
    grad, grads = random.normal(size=out.shape).astype(dtype), [np.empty_like(x) for x in inputs[:3]]

    def attends(ctx: Context) -> None:
        ctx.layouts = [*[Layout(2)] * 3, None]
        attention.AttentionKernel.forward(op, ctx, out, *inputs)
        attention.AttentionKernel.backward(op, ctx, grad, [*grads, None], out, *inputs)

    with overridden(attention_compiled=0):
        assert not computes_with_scratch(attends)
