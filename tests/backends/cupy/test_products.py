"""The kernel of products: whole networks compute with it what they do without, and how much of them is one launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from standin.cublaslt import Cublaslt as StandIn
from standin.host_backend import ROUNDING, HostArray, HostBackend, compare, host_device, results, with_libraries

import cntk as C
from cntk.backends.cupy import cublaslt
from cntk.backends.cupy.products import Products
from cntk.core.extension import compiled
from cntk.core.extension.device import cpu, default_device
from cntk.core.types.context import Context
from cntk.testing import check_op

pytestmark = pytest.mark.usefixtures("on_host")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cublasLt=made):
        yield made


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype)


def dense(activation: Any, *sizes: int) -> Callable[[Any], Any]:
    """A network of dense layers."""

    def build(dtype: Any) -> Any:
        h = C.input_variable(sizes[0], dtype=dtype, needs_gradient=True)
        for seed, (rows, columns) in enumerate(pairwise(sizes)):
            W = C.parameter(init=numbers(rows, columns, seed=seed).astype(dtype))
            h = C.times(h, W) + C.parameter(init=numbers(columns, seed=9).astype(dtype))
            h = activation(h)
        return C.reduce_sum(h * h)

    return build


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("activation", [lambda x: x, C.relu, C.tanh])
@pytest.mark.parametrize("samples", [1, 7])
def test_networks(standin: StandIn, activation: Any, dtype: Any, samples: int) -> None:
    compare(dense(activation, 6, 5, 3), dtype, [numbers(samples, 6, dtype=dtype, seed=3)])
    assert standin.named("cublasLtMatmul")


def test_a_layer_is_one_launch_and_its_weights_gradient_one_with_that_of_the_bias(standin: StandIn, on_host: list[str]) -> None:
    with host_device():
        results(dense(C.relu, 6, 5), np.float32, [numbers(8, 6)])
    assert standin.launched == [cublaslt.EPILOGUE_RELU_BIAS, cublaslt.EPILOGUE_BGRADA, cublaslt.EPILOGUE_DEFAULT]
    assert len(on_host) == 1  # the rectifier's gradient


def test_a_step_that_comes_again_binds_nothing(standin: StandIn) -> None:
    with host_device() as device:
        f = dense(C.relu, 6, 5, 3)(np.float32)
        trainer = C.Trainer(f, (f, None), [C.sgd(f.parameters, 0.01)])
        data = {f.arguments[0]: numbers(8, 6)}
        trainer.train_minibatch(data, device=device)
        standin.calls.clear()
        for _ in range(3):
            trainer.train_minibatch(data, device=device)
    assert {name for name, _ in standin.calls} == {"cublasLtMatmul"}
    assert len(standin.calls) == 3 * 6


@pytest.mark.parametrize("dtype", ROUNDING)
def test_what_follows_is_computed_apart_where_no_algorithm_does_it_beside(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    standin = StandIn(refuses=(cublaslt.EPILOGUE_RELU_BIAS, cublaslt.EPILOGUE_BIAS, cublaslt.EPILOGUE_BGRADA))
    with with_libraries(monkeypatch, cublasLt=standin):
        compare(dense(C.relu, 6, 5, 3), dtype, [numbers(7, 6, dtype=dtype)])
        assert set(standin.launched) == {cublaslt.EPILOGUE_DEFAULT}


@pytest.mark.parametrize("function", [C.times, C.times_transpose])
def test_all_kinds_of_operands(standin: StandIn, function: Any) -> None:
    with host_device():
        check_op(function)
    assert standin.named("cublasLtMatmul")


def _attention(dtype: Any) -> Any:
    """Products of matrices of each sample, one of which lies transposed."""
    x = C.input_variable((4, 6), dtype=dtype, needs_gradient=True)
    keys = C.times(x, C.parameter(init=numbers(6, 5).astype(dtype)))
    scores = C.times_transpose(keys, keys)
    return C.reduce_sum(C.times(C.softmax(scores), C.times(C.transpose(C.transpose(x, (1, 0)), (1, 0)), numbers(6, 3).astype(dtype))))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_of_each_sample(standin: StandIn, dtype: Any) -> None:
    compare(_attention, dtype, [numbers(5, 4, 6, dtype=dtype)])
    assert len(standin.launched) == 4 + 7


def _recurrent(dtype: Any) -> Any:
    x = C.sequence.input_variable(3, dtype=dtype, needs_gradient=True)
    before = C.placeholder()
    W, R = (C.parameter(init=numbers(*shape, seed=4).astype(dtype)) for shape in ((3, 4), (4, 4)))
    h = C.tanh(C.times(x, W) + C.times(C.sequence.past_value(before), R) + C.parameter(init=numbers(4).astype(dtype)))
    h = h.replace_placeholders({before: h.output})
    return C.sequence.reduce_sum(C.reduce_sum(h))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_recurrences_over_sequences_of_unequal_lengths(standin: StandIn, dtype: Any) -> None:
    sequences = [numbers(length, 3, dtype=dtype, seed=length) for length in (2, 5, 1)]
    compare(_recurrent, dtype, [sequences])
    assert standin.named("cublasLtMatmul")


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4)])
@pytest.mark.parametrize("depth", [8200, 9216, 10000])
def test_deep_products_are_added_up_from_pieces(standin: StandIn, shape: tuple[int, ...], depth: int) -> None:
    *stack, m, n = shape
    left, right, out = (np.full(dims, 0.1, np.float32).view(HostArray) for dims in ((*stack, m, depth), (*stack, depth, n), shape))
    ctx = Context(HostBackend(), True)
    call = Products.bound(ctx, left, right, out)
    assert call is not None
    call()
    np.testing.assert_allclose(out, depth * np.float32(0.1) * np.float32(0.1), rtol=6e-6)
    deepest = max(max(standin.objects[at].rows, standin.objects[at].columns) for *_, at in [a[:5] for a in standin.named("cublasLtMatmul")])
    assert deepest <= 1100 < depth


def test_products_that_other_kernels_want(standin: StandIn) -> None:
    ctx = Context(HostBackend(), True)
    left, right, out = numbers(3, 4).view(HostArray), numbers(4, 5).view(HostArray), numbers(3, 5).view(HostArray)
    Products.multiply(ctx, left, right, out)
    np.testing.assert_allclose(out, left @ right, rtol=1e-5)
    scattered = numbers(4, 10).view(HostArray)[:, ::2]
    Products.multiply(ctx, left, scattered, out)
    np.testing.assert_allclose(out, left @ scattered, rtol=1e-5)
    assert len(standin.named("cublasLtMatmul")) == 1


def test_without_the_library_operators_compute_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "switched_off", {})
    with with_libraries(monkeypatch), pytest.warns(RuntimeWarning, match="products by cuBLASLt are switched off: there is no cublasLt"):
        compare(dense(C.relu, 6, 5, 3), np.float32, [numbers(7, 6)])


def test_sparse_operands_are_left_to_the_operator(standin: StandIn) -> None:
    def build(dtype: Any) -> Any:
        x = C.input_variable(6, dtype=dtype, is_sparse=True)
        h = C.relu(C.times(x, C.parameter(init=numbers(6, 5).astype(dtype))) + C.parameter(init=numbers(5).astype(dtype)))
        return C.reduce_sum(h * h)

    data = C.Value.one_hot([1, 4, 0], 6)
    with default_device(cpu()):
        f = build(np.float32)
        wanted = f.grad({f.arguments[0]: data}, wrt=f.parameters)
    with host_device():
        g = build(np.float32)
        found = g.grad({g.arguments[0]: data}, wrt=g.parameters)
    for one, other in zip(f.parameters, g.parameters, strict=True):
        np.testing.assert_allclose(wanted[one], found[other], rtol=1e-5)
