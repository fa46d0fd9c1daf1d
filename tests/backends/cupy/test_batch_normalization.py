"""The kernel of batch normalisation: values, gradients and running statistics are the operator's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from standin.cudnn import Cudnn as StandIn
from standin.host_backend import ROUNDING, host_device, with_libraries

import cntk as C
from cntk.core.common.dtypes import is_half
from cntk.core.extension.device import cpu, default_device
from cntk.testing import check_op


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cudnn=made):
        yield made


def numbers(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape)


def trained(shape: tuple[int, ...], spatial: bool, time_constant: float, dtype: Any, samples: Any, statistics: Any = None) -> list[Any]:
    """Parameters and running statistics after some steps of training, and what is computed with these."""
    features = shape[0] if spatial else int(np.prod(shape))
    with C.default_options(dtype=dtype):
        x = C.input_variable(shape)
        scale, bias = (C.parameter(init=numbers(features, seed=seed).astype(statistics or dtype)) for seed in (1, 2))
        mean, variance = (C.constant(0, shape=(features,), dtype=statistics or dtype) for _ in range(2))
        count = C.constant(0, dtype=np.float32)
        y = C.batch_normalization(x * 2, scale, bias, mean, variance, spatial, time_constant, epsilon=1e-3, running_count=count)
        loss = C.reduce_sum(y * y * y)
    trainer = C.Trainer(y, (loss, None), [C.sgd(loss.parameters, 0.01)])
    for number in samples:
        trainer.train_minibatch({x: (1 + number * numbers(number, *shape, seed=number)).astype(dtype)})
    return [scale.value, bias.value, mean.value, variance.value, count.value, y.eval({x: numbers(3, *shape).astype(dtype)})]


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("time_constant", [0, -1, 50])
@pytest.mark.parametrize(("shape", "spatial"), [((3,), True), ((3, 4, 2), True), ((3, 2), False), ((2, 3, 2, 2), True)])
def test_training(standin: StandIn, shape: tuple[int, ...], spatial: bool, time_constant: float, dtype: Any) -> None:
    statistics = np.float32 if is_half(dtype) else None
    arguments = shape, spatial, time_constant, dtype, (4, 2, 7), statistics
    with default_device(cpu()):
        wanted = trained(*arguments)
    with host_device():
        found = trained(*arguments)
    assert standin.called == ["normalise", "differentiate"] * 3
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=ROUNDING[dtype], atol=ROUNDING[dtype])


def test_scale_and_bias_may_be_of_float16(standin: StandIn) -> None:
    arguments = (3, 4), True, 50, np.float16, (4, 3)
    with default_device(cpu()):
        wanted = trained(*arguments)
    with host_device():
        found = trained(*arguments)
    assert standin.called
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one, float), np.asarray(other, float), rtol=3e-2, atol=3e-2)


def test_values_and_gradients_of_all_kinds(standin: StandIn) -> None:
    with host_device():
        check_op(C.batch_normalization)
    assert "normalise" in standin.called


def test_steps_that_come_again_make_nothing(standin: StandIn) -> None:
    with host_device():
        x = C.input_variable((3, 4))
        vectors = [C.parameter(init=numbers(3, seed=seed).astype(np.float32)) for seed in (1, 2)]
        statistics = [C.constant(0, shape=(3,)) for _ in range(2)]
        y = C.batch_normalization(x, *vectors, *statistics, True, running_count=C.constant(0))
        trainer = C.Trainer(y, (C.reduce_sum(y * y), None), [C.sgd(y.parameters, 0.01)])
        data = numbers(5, 3, 4).astype(np.float32)
        trainer.train_minibatch({x: data})
        standin.calls.clear()
        trainer.train_minibatch({x: data})
    assert [name for name, _ in standin.calls if name != "cudnnSetStream"] == [
        "cudnnBatchNormalizationForwardTraining",
        "cudnnBatchNormalizationBackward",
    ]
