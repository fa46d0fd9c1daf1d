"""The kernel of stacks of recurrent layers: how cuDNN is told of sequences and weights, and what it keeps for gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from standin.cudnn import Cudnn as StandIn
from standin.host_backend import compare, host_device, results, with_libraries

import cntk as C
from cntk.backends.cupy import rnnstack
from cntk.testing import check_op


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cudnn=made):
        yield made


def sequences(*lengths: int, dtype: Any = np.float32) -> list[Any]:
    return [np.random.default_rng(length).uniform(-1, 1, (length, 3)).astype(dtype) for length in lengths]


def network(cell: str = "lstm", layers: int = 1, both: bool = False, gradient: bool = True) -> Callable[[Any], Any]:
    def build(dtype: Any) -> Any:
        x = C.sequence.input_variable(3, dtype=dtype, needs_gradient=gradient)
        W = C.parameter((C.InferredDimension, 4), dtype=dtype, init=C.uniform(0.5, seed=3))
        h = C.optimized_rnnstack(x, W, 4, layers, both, cell)
        return C.sequence.reduce_sum(C.reduce_sum(h * h))

    return build


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("cell", rnnstack.CELLS)
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_sequences_of_unequal_lengths(standin: StandIn, cell: str, layers: int, both: bool, dtype: Any) -> None:
    compare(network(cell, layers, both), dtype, [sequences(2, 5, 1, 3, dtype=dtype)])
    assert standin.called[-2:] == ["operand", "weights"]


def test_all_kinds_of_stacks(standin: StandIn) -> None:
    with host_device():
        check_op(C.optimized_rnnstack)
    assert "learn" in standin.called


def test_nothing_is_kept_where_no_gradient_is_wanted(standin: StandIn) -> None:
    with host_device():
        f = network()(np.float32)
        f.eval({f.arguments[0]: sequences(2, 5)})
    assert standin.called == ["predict"]


def test_training_with_other_sequences_each_time(standin: StandIn) -> None:
    minibatches = [sequences(2, 5, 1), sequences(3, 4, 1), sequences(4, 4), sequences(6), sequences(2, 5, 1)]

    def train() -> Any:
        f = network("gru", 2, True, gradient=False)(np.float32)
        trainer = C.Trainer(f, (f, None), [C.sgd(f.parameters, 0.05)])
        for minibatch in minibatches:
            trainer.train_minibatch({f.arguments[0]: minibatch})
        return f.parameters[0].value

    wanted = train()
    with host_device():
        found = train()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert standin.called == ["learn", "operand", "weights"] * len(minibatches)


@pytest.mark.parametrize(
    ("math", "dtype", "wanted"),
    [
        ("ieee", np.float32, rnnstack.FMA_ALONE),
        ("tf32", np.float32, rnnstack.DEFAULT_MATH),
        ("ieee", np.float16, rnnstack.TENSOR_CORES),
        ("ieee", np.float64, rnnstack.DEFAULT_MATH),
    ],
)
def test_how_numbers_are_multiplied(standin: StandIn, math: str, dtype: Any, wanted: int) -> None:
    C.device.set_math(math)
    with host_device():
        results(network(), dtype, [sequences(2, 5, dtype=dtype)])
    assert {arguments[8] for arguments in standin.named("cudnnSetRNNDescriptor_v8")} == {wanted}


def test_weights_that_would_lie_otherwise_are_left_to_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    standin = StandIn(gap=64)
    with with_libraries(monkeypatch, cudnn=standin):
        compare(network(), np.float32, [sequences(2, 5, 1)])
    assert standin.called == []
