"""The kernel of pooling: what it hands to cuDNN, and what it computes with kernels of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standin.cudnn import Cudnn as StandIn
from standin.host_backend import HostArray, HostBackend, compare, host_device, with_libraries

import cntk as C
from cntk.backends.cupy.pooling import PoolingKernel
from cntk.core.extension.device import cpu, default_device
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.testing import check_op

MAX, AVERAGE = C.MAX_POOLING, C.AVG_POOLING


pytestmark = pytest.mark.usefixtures("on_host")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cudnn=made):
        yield made


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)


def network(shape: tuple[int, ...], *arguments: Any, **options: Any) -> Callable[[Any], Any]:
    def build(dtype: Any) -> Any:
        y = C.pooling(C.input_variable(shape, dtype=dtype, needs_gradient=True), *arguments, **options)
        return C.reduce_sum(y * y)

    return build


def test_all_kinds_of_pooling(standin: StandIn) -> None:
    with host_device():
        check_op(C.pooling)
    assert set(standin.called) == {"forward", "backward"}


axes = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(1, 3), st.booleans()), min_size=1, max_size=3)


@settings(max_examples=20, deadline=None)
@given(
    axes=axes,
    kind=st.sampled_from([MAX, AVERAGE]),
    ceil=st.booleans(),
    include=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_windows_of_any_geometry(axes: Any, kind: int, ceil: bool, include: bool, dtype: Any) -> None:
    axes = [(max(dim, size), size, stride, pad) for dim, size, stride, pad in axes]
    dims, window, strides, padding = zip(*axes, strict=True)
    options = {"strides": strides, "auto_padding": [False, *padding], "ceil_out_dim": ceil, "include_pad": include}
    with pytest.MonkeyPatch.context() as monkeypatch, with_libraries(monkeypatch, cudnn=StandIn()):
        compare(network((2, *dims), kind, window, **options), dtype, [numbers(3, 2, *dims, dtype=dtype)])


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
def test_averages_and_their_gradients_are_cudnns(standin: StandIn, dtype: Any) -> None:
    compare(network((2, 6, 6), AVERAGE, (2, 2), auto_padding=[False, True, True]), dtype, [numbers(3, 2, 6, 6, dtype=dtype)])
    assert standin.called == []  # as much as cuDNN pads on both sides makes other windows
    compare(network((2, 7, 7), AVERAGE, (3, 3), strides=2, auto_padding=[False, True, True]), dtype, [numbers(3, 2, 7, 7, dtype=dtype)])
    assert standin.called == ["forward", "backward"]


def test_maxima_are_cudnns_where_no_gradient_is_wanted(standin: StandIn, on_host: list[str]) -> None:
    x = np.ones((3, 2, 4, 4), np.float32)
    with host_device():
        y = C.pooling(C.input_variable((2, 4, 4), needs_gradient=True), MAX, (2, 2), strides=2)
        np.testing.assert_array_equal(y.eval(x), np.ones((3, 2, 2, 2)))
        assert standin.called == ["forward"]
        assert on_host == []
        gradient = y.grad(x, wrt=[y.arguments[0]])
    assert standin.called == ["forward"]
    assert len(on_host) == 2  # one launch in each direction
    np.testing.assert_array_equal(gradient[:, :, ::2, ::2], np.ones((3, 2, 2, 2)))  # that of equal elements is the first one's
    assert gradient.sum() == 24


@pytest.mark.usefixtures("standin")
@pytest.mark.parametrize("training", [False, True])
def test_gradients_of_maxima_are_the_operators_to_the_bit(training: bool) -> None:
    op = C.pooling(C.input_variable((2, 5, 6)), MAX, (3, 3), 2, auto_padding=[False, True, True]).root_function.op
    x = np.random.default_rng(0).integers(-1, 2, (3, 2, 5, 6)).astype(np.float32).view(HostArray)
    grad, results = numbers(3, 2, 3, 3).view(HostArray), []
    for forward, backward in ((op.forward, op.backward), (partial(PoolingKernel.forward, op), partial(PoolingKernel.backward, op))):
        ctx, layout = Context(HostBackend(), training), Layout(3)
        ctx.layouts, ctx.layout = [layout], layout
        out, dx = (np.full_like(like, np.nan) for like in (grad, x))
        forward(ctx, out, x)
        backward(ctx, grad, [dx], None, x)
        results.append((out, dx))
    for wanted, found in zip(*results, strict=True):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_rectifier_is_part_of_the_launches_for_maxima(standin: StandIn, on_host: list[str], dtype: Any) -> None:
    def build(dtype: Any) -> Any:
        return C.pooling(C.relu(C.input_variable((2, 6, 6), dtype=dtype, needs_gradient=True)), MAX, (3, 3), strides=2)

    compare(build, dtype, [numbers(3, 2, 6, 6, dtype=dtype)])
    with host_device():
        build(dtype).eval(numbers(3, 2, 6, 6, dtype=dtype))
    assert len(on_host) == 2  # the same one forward, with gradients and without
    assert standin.called == []


def test_arrays_with_gaps_are_left_to_the_operator(standin: StandIn, on_host: list[str]) -> None:
    op = C.pooling(C.input_variable((4,)), MAX, (2,)).root_function.op
    ctx, layout = Context(HostBackend(), True), Layout(3)
    ctx.layouts, ctx.layout = [layout], layout
    x, out, dx = (np.ones((3, size), np.float32).view(HostArray) for size in (8, 3, 4))
    assert PoolingKernel.declines(op, ctx, out, x[:, ::2])
    PoolingKernel.forward(op, ctx, out, x[:, ::2])
    PoolingKernel.backward(op, ctx, out, [dx], None, x[:, ::2])
    np.testing.assert_array_equal(dx, [[1, 1, 1, 0]] * 3)
    assert standin.called == on_host == []


def test_a_network_without_samples_to_pool_is_evaluated(standin: StandIn) -> None:
    with default_device(cpu()):
        wanted = C.pooling(numbers(2, 5, 5), AVERAGE, (2, 2)).eval()
    with host_device():
        np.testing.assert_allclose(C.pooling(numbers(2, 5, 5), AVERAGE, (2, 2)).eval(), wanted, rtol=1e-6)
    assert standin.called == ["forward"]


def test_places_that_no_window_meets_have_no_gradient(standin: StandIn) -> None:
    op = C.pooling(C.input_variable((7,)), AVERAGE, (1,), strides=4, auto_padding=[True]).root_function.op
    ctx, layout = Context(HostBackend(), True), Layout(2)
    ctx.layouts, ctx.layout = [layout], layout
    x, grad, found = (np.full(shape, value, np.float32).view(HostArray) for shape, value in (((2, 7), 1), ((2, 2), 1), ((2, 7), np.nan)))
    wanted = np.empty_like(found)
    op.backward(ctx, grad, [wanted], None, x)
    PoolingKernel.backward(op, ctx, grad, [found], None, x)
    np.testing.assert_array_equal(found, wanted)
    assert standin.called == ["backward"]
