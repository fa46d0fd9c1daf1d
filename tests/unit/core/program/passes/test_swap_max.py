"""Maxima of windows are taken before activations that keep the order of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.compiled import is_wanted
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program

NUMPY = backend_named("numpy")


def pooled(x: Any, **options: Any) -> Any:
    return C.pooling(C.relu(x), C.MAX_POOLING, (3, 3), 2, **options)


def operators(root: Any) -> list[str]:
    return [instruction.op.op_name for instruction in Program(root.outputs, NUMPY).instructions]


def test_pooling_comes_first() -> None:
    x = C.input_variable((2, 7, 7))
    C.debugging.set_passes(["swap_max"])
    assert operators(pooled(x)) == ["Pooling", "ReLU"]
    assert operators(C.tanh(pooled(x * 2))) == ["ElementTimes", "Pooling", "ReLU", "Tanh"]
    C.debugging.set_passes([])
    assert operators(pooled(x)) == ["ReLU", "Pooling"]


@pytest.mark.skipif(not is_wanted(), reason="compiled loops are switched off")
def test_loops_pool_and_rectify_in_one() -> None:
    assert operators(pooled(C.input_variable((2, 7, 7)))) == ["Pooling"]


def averaged(x: Any) -> Any:
    return C.pooling(C.relu(x), C.AVG_POOLING, (3, 3))


def with_another_reader(x: Any) -> Any:
    y = C.relu(x)
    return C.combine([C.pooling(y, C.MAX_POOLING, (3, 3)), C.sin(y)])


def with_another_root(x: Any) -> Any:
    y = C.relu(x)
    return C.combine([C.pooling(y, C.MAX_POOLING, (3, 3)), y])


def of_another_activation(x: Any) -> Any:
    return C.pooling(C.tanh(x), C.MAX_POOLING, (3, 3))


def with_windows_beside_the_array(x: Any) -> Any:
    return C.pooling(C.relu(x), C.MAX_POOLING, (1, 1), 4, ceil_out_dim=True)


@pytest.mark.parametrize("model", [averaged, with_another_reader, with_another_root, of_another_activation, with_windows_beside_the_array])
def test_pooling_stays_where_it_is(model: Any) -> None:
    assert operators(model(C.input_variable((2, 7, 7)))).index("Pooling") == 1


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
def test_neither_results_nor_gradients_change_by_a_bit(dtype: Any, padded: bool) -> None:
    random = np.random.default_rng(1)
    data = np.round(random.normal(size=(5, 2, 7, 7))).astype(dtype)  # many are equal, many windows have nothing above 0
    x = C.input_variable((2, 7, 7), dtype, needs_gradient=True)
    weighted = pooled(x, auto_padding=[padded]) * C.constant(random.normal(size=(1,)), dtype=dtype)
    found = []
    for names in (None, []):
        C.debugging.set_passes(names)
        gradient, result = weighted.grad({x: data}, wrt=[x], outputs=[weighted])
        found.append((gradient, result))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
