"""The kernel of batch normalisation: values, gradients and running statistics are the operator's, however features lie and are divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin.host_backend import ROUNDING

import cntk as C
from cntk.backends.cupy import features
from cntk.core.common.dtypes import is_half
from cntk.core.extension.device import cpu, default_device
from cntk.testing import check_op

pytestmark = pytest.mark.usefixtures("host_gpu")

all_types = pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def trained(shape: tuple[int, ...], spatial: bool, time_constant: float, dtype: Any, samples: Any, statistics: Any = None) -> list[Any]:
    """Parameters and running statistics after some steps of training, and what is computed with these."""
    count_of_features = shape[0] if spatial else int(np.prod(shape))
    with C.default_options(dtype=dtype):
        x = C.input_variable(shape)
        scale, bias = (C.parameter(init=numbers(count_of_features, seed=seed).astype(statistics or dtype)) for seed in (1, 2))
        mean, variance = (C.constant(0, shape=(count_of_features,), dtype=statistics or dtype) for _ in range(2))
        count = C.constant(0, dtype=np.float32)
        y = C.batch_normalization(x * 2, scale, bias, mean, variance, spatial, time_constant, epsilon=1e-3, running_count=count)
        loss = C.reduce_sum(y * y * y)
    trainer = C.Trainer(y, (loss, None), [C.sgd(loss.parameters, 0.01)])
    for number in samples:
        trainer.train_minibatch({x: (1 + number * numbers(number, *shape, seed=number)).astype(dtype)})
    return [scale.value, bias.value, mean.value, variance.value, count.value, y.eval({x: numbers(3, *shape).astype(dtype)})]


def agree(on_host: list[str], rounding: float, *arguments: Any) -> None:
    """Compare kernels with the operator on the CPU."""
    found = trained(*arguments)
    assert any("\nnormalise(" in text for text in on_host)
    with default_device(cpu()):
        wanted = trained(*arguments)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=rounding, atol=rounding)


@all_types
@pytest.mark.parametrize("time_constant", [0, -1, 50])
@pytest.mark.parametrize(("shape", "spatial"), [((3,), True), ((3, 4, 2), True), ((3, 2), False), ((2, 3, 2, 2), True)])
def test_training(on_host: list[str], shape: tuple[int, ...], spatial: bool, time_constant: float, dtype: Any) -> None:
    agree(on_host, ROUNDING[dtype], shape, spatial, time_constant, dtype, (4, 2, 7), np.float32 if is_half(dtype) else None)


@pytest.mark.parametrize("rows", [(100, 40), (1, 2)])
@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 7, 7), (70,), (3,)])
def test_features_of_several_pieces(on_host: list[str], shape: tuple[int, ...], rows: tuple[int, ...]) -> None:
    agree(on_host, 1e-8, shape, True, 50, np.float64, rows)


def test_scale_and_bias_may_be_of_float16(on_host: list[str]) -> None:
    agree(on_host, 3e-2, (3, 4), True, 50, np.float16, (4, 3))


def test_values_and_gradients_of_all_kinds() -> None:
    check_op(C.batch_normalization)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_mean_that_is_far_from_zero_costs_no_digits(dtype: Any) -> None:
    mean, variance = (C.constant(0, shape=(2,), dtype=dtype) for _ in range(2))
    x = C.input_variable((2, 3), dtype=dtype)
    scale, bias = (C.constant(value, shape=(2,), dtype=dtype) for value in (1, 0))
    y = C.batch_normalization(x, scale, bias, mean, variance, True, 0, epsilon=0, running_count=C.constant(0))
    data = (2**20 + np.round(numbers(50, 2, 3) * 16) / 8).astype(dtype)
    _, found = y.forward({x: data}, [y.output], {y.output})
    wide = data.astype(np.longdouble)
    normal = (wide - wide.mean((0, 2), keepdims=True)) / wide.std((0, 2), keepdims=True)
    np.testing.assert_allclose(found[y.output], normal.astype(dtype), atol=0.1 if dtype is np.float32 else 1e-8)
    np.testing.assert_allclose(variance.value, wide.var((0, 2), ddof=1).astype(dtype), rtol=1e-6 if dtype is np.float32 else 1e-13)


def test_a_time_constant_may_be_infinite_or_change() -> None:
    mean, variance, count = C.constant(0, shape=(2,)), C.constant(1, shape=(2,)), C.constant(0.0)
    x = C.input_variable(2)
    scale, bias = (C.constant(value, shape=(2,)) for value in (1, 0))
    y = C.batch_normalization(x, scale, bias, mean, variance, True, np.inf, running_count=count)
    found = []
    for number, time_constant in enumerate([np.inf] * 3 + [-1] * 2 + [0] * 2 + [2] * 2):
        y.root_function.op.normalization_time_constant = time_constant
        y.forward({x: np.full((2, 2), number, np.float32)}, [y.output], {y.output})
        found.append(float(mean.value[0]))
    assert found[:5] == pytest.approx([0, 0, 0, 3 / 4, 3 / 4 + (4 - 3 / 4) / 5])
    share = 1 - np.exp(-1)
    assert found[5:] == pytest.approx([5, 6, 6 + share, 6 + share + share * (2 - share)])
    assert count.value == 18


@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 2)])
def test_any_of_the_gradients_may_be_wanted(wanted: tuple[int, ...]) -> None:
    def gradients() -> list[Any]:
        x = C.input_variable((3, 4), needs_gradient=True)
        scale, bias = (C.parameter(init=numbers(3, seed=seed).astype(np.float32)) for seed in (1, 2))
        statistics = [C.constant(0, shape=(3,)) for _ in range(2)]
        y = C.batch_normalization(x, scale, bias, *statistics, True, running_count=C.constant(0))
        of = [(x, scale, bias)[number] for number in wanted]
        found = C.reduce_sum(y * y * y).grad({x: numbers(5, 3, 4).astype(np.float32)}, wrt=of)
        return [found] if len(of) == 1 else [found[one] for one in of]

    found = gradients()
    with default_device(cpu()):
        expected = gradients()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_thread_loads_several_numbers_where_they_are_aligned() -> None:
    class Array:
        def __init__(self, address: int, dtype: Any) -> None:
            self.dtype, self.data = np.dtype(dtype), type("Pointer", (), {"ptr": address})

    assert features.width_of(8, Array(64, np.float32), Array(32, np.float32)) == 4
    assert features.width_of(8, Array(64, np.float16)) == 8
    assert features.width_of(4, Array(64, np.float16)) == features.width_of(8, Array(64, np.float32), Array(8, np.float32)) == 1


@pytest.mark.parametrize("rows", [1, 7, 64, 5000])
@pytest.mark.parametrize("count", [1, 3, 16, 400, 70000])
@pytest.mark.parametrize("places", [1, 4, 49, 1024])
def test_pieces_cover_all_packs_of_all_features(rows: int, count: int, places: int) -> None:
    width = 4 if places % 4 == 0 else 1
    shape = features.shape_of(rows, count, places, width)
    packs = rows * places // width
    assert (shape.pieces - 1) * shape.length < packs <= shape.pieces * shape.length
    assert shape.tiles * shape.columns >= count > (shape.tiles - 1) * shape.columns
    assert shape.pieces == 1 or shape.tiles * shape.pieces <= features.AT_WORK
