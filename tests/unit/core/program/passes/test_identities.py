"""Identities: operators that do nothing are left out, where nobody asks for their results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.run.evaluate import program_for


def names(f: Any, training: bool = False) -> list[str]:
    return [instruction.op.op_name for instruction in program_for(f, f.outputs, training=training).instructions]


def test_dropout_is_gone_outside_training() -> None:
    x = C.input_variable(2)
    f = C.exp(C.dropout(C.sin(x), 0.5))
    assert names(f) == ["Sin", "Exp"]
    assert names(f, training=True) == ["Sin", "Dropout", "Exp"]
    np.testing.assert_allclose(f.eval([[1, 2]]), np.exp(np.sin([[1, 2]])), rtol=1e-6)


def test_a_result_that_is_asked_for_stays() -> None:
    x = C.input_variable(2)
    kept = C.dropout(C.sin(x), 0.5)
    f = C.combine([kept, C.exp(kept)])
    assert names(f) == ["Sin", "Dropout", "Exp"]
    np.testing.assert_allclose(f.eval([[1, 2]])[kept.output], np.sin([[1, 2]]), rtol=1e-6)


@pytest.mark.parametrize("seed", [1, C.SentinelValueForAutoSelectRandomSeed])
def test_draws_are_the_same_whether_one_evaluates_between_them(seed: int) -> None:
    x = C.input_variable(50, needs_gradient=True)
    f = C.dropout(x, 0.5, seed=seed)
    rows = np.ones((1, 50), np.float32)
    other = f.clone("clone")
    for _ in range(3):
        assert (C.exp(other).eval(rows) == np.exp(rows)).all()
        np.testing.assert_array_equal(f.grad(rows) > 0, other.grad(rows) > 0)
