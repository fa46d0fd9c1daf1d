"""Formulas as source: parts in common are computed once."""

from __future__ import annotations

import pytest

from cntk.core.formulas.formula import exp, operands
from cntk.core.formulas.source import Language, values_in

CALLS = Language(lambda of, parts: f"{of.value}({', '.join(parts)})", "<{}>".format, lambda name, value: f"{name} := {value}")


def test_what_formulas_share_has_a_name() -> None:
    x, y = operands(2)
    shared = exp(x)
    assert values_in(CALLS, (shared + y, shared * 2.0), {x: "a", y: "b"}) == (["t0 := exp(a)"], ["add(t0, b)", "multiply(t0, <2.0>)"])
    assert values_in(CALLS, (shared, shared), {x: "a"}) == (["t0 := exp(a)"], ["t0", "t0"])
    assert values_in(CALLS, (x, 3.0), {x: "a"}) == ([], ["a", "<3.0>"])


def test_operands_have_names() -> None:
    x, y = operands(2)
    with pytest.raises(KeyError, match=r"the operand x1 of add.x0, x1. has no name; there are names of .x0."):
        values_in(CALLS, (x + y,), {x: "a"})
