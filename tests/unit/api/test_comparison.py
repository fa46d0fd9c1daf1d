"""Comparing arrays and graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.cntk_py import are_equal, are_equivalent


def view(*numbers: float, dtype: Any = np.float32) -> Any:
    return C.NDArrayView.from_dense(np.array(numbers, dtype))


@pytest.mark.parametrize(
    ("left", "right", "tolerances", "expected"),
    [
        (view(1, 2), view(1, 2), (), True),
        (view(1, 2), view(1, 2.00001), (), False),
        (view(1, 2), view(1, 2.00001), (1e-3,), True),
        (view(1, 2), view(1, 2.00001), (1e-6,), False),
        (view(1, 2), view(1, 2.00001), (0, 1e-3), True),
        (view(1, 2), view(1, 2.00001), (0, 1e-6), False),
        (view(1, 2), view(1, 2, 3), (1,), False),
        (view(1, 2), view(1, 2, dtype=np.float64), (1,), False),
        (view(1, np.nan), view(1, np.nan), (), True),
        (view(1, np.nan), view(1, 1), (1,), False),
        (view(np.inf), view(np.inf), (), True),
    ],
)
def test_equal(left: Any, right: Any, tolerances: Any, expected: bool) -> None:
    assert are_equal(left, right, *tolerances) is expected


def test_equal_values() -> None:
    one, two = C.Value(np.ones((1, 2), np.float32)), C.Value(np.ones((2, 2), np.float32))
    assert are_equal(one, C.Value(np.ones((1, 2), np.float32)))
    assert not are_equal(one, two)


x, y = C.input_variable(2), C.input_variable(2)
w = C.parameter((2, 2))
GRAPHS: dict[str, tuple[Any, Any, bool]] = {
    "values": (C.times(x, C.parameter((2, 2), init=1)), C.times(x, C.parameter((2, 2), init=0)), True),
    "inputs": (C.times(x, w), C.times(y, w), True),
    "attributes": (C.dropout(x, 0.1), C.dropout(x, 0.2), True),
    "constants": (x * 2.0, x * 3.0, True),
    "layers": (C.layers.Dense(2)(x), C.layers.Dense(2)(x), True),
    "names of parameters": (C.times(x, C.parameter((2, 2), name="a")), C.times(x, C.parameter((2, 2), name="b")), False),
    "names of operators": (C.times(x, w, name="f"), C.times(x, w, name="g"), False),
    "shapes": (C.times(x, w), C.times(x, C.parameter((2, 3))), False),
    "kinds of leaves": (x * C.constant(2.0), x * C.parameter((), init=2), False),
    "sharing": (x + x, x + y, False),
    "sharing, the other way": (x + y, x + x, False),
    "sizes of layers": (C.layers.Dense(2)(x), C.layers.Dense(3)(x), False),
    "axes": (C.relu(x), C.relu(C.sequence.input_variable(2)), False),
    "operators": (C.relu(x), C.tanh(x), False),
    "recurrence": (C.layers.Recurrence(C.layers.GRU(2))(C.sequence.input_variable(2)),) * 2 + (True,),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_equivalent(name: str) -> None:
    left, right, expected = GRAPHS[name]
    assert are_equivalent(left, right) is expected
    assert are_equivalent(left, left)
    assert are_equivalent(left, left.clone("clone"))
