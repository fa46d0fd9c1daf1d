"""Formulas in Python: what arrays of NumPy's compute, in the simulator's functions and in those of a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from simulated import on_the_simulator

from cntk.core.extension.device import backend_named
from cntk.core.formulas import evaluation, formula
from cntk.core.formulas.formula import Primitive, Symbol, Term, operands
from cntk.core.formulas.source import values_in
from cntk.core.types.context import Context

NUMBERS = [0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.75, -0.5, 2.5, -2.5, 5, -20, 80.5, 100, -100]
x, y, z = SYMBOLS = operands(3)
TERMS: dict[Primitive, Term] = {
    Primitive.ADD: x + y,
    Primitive.SUBTRACT: x - 0.25,
    Primitive.MULTIPLY: x * y,
    Primitive.DIVIDE: x / y,
    Primitive.QUOTIENT: formula.quotient(x, y),
    Primitive.POWER: formula.power(x, y),
    Primitive.HYPOT: formula.hypot(x, y),
    Primitive.MAXIMUM: formula.maximum(x, -np.inf),
    Primitive.MINIMUM: formula.minimum(x, np.nan),
    Primitive.GREATER: x > y,
    Primitive.GREATER_EQUAL: x >= y,
    Primitive.EQUAL: x == y,
    Primitive.WHERE: formula.where(x, y, z),
    Primitive.NEGATE: -x,
    Primitive.ABS: abs(x),
    **{
        one: getattr(formula, one.value)(x)
        for one in Primitive
        if one.value in {"sign", "floor", "exp", "expm1", "log", "log1p", "sqrt", "sigmoid", "tanh", "sin", "cos", "tan"}
        or one.value in {"arcsin", "arccos", "arctan", "sinh", "cosh", "arcsinh", "arctanh"}
    },
}


def test_every_primitive_is_tried() -> None:
    formulas = pytest.importorskip("cntk.backends.numba_cuda.formulas", reason="compiled loops are switched off", exc_type=ImportError)
    assert set(TERMS) == set(Primitive) == set(formulas.EXPRESSIONS)


def evaluated(term: Term, arrays: Sequence[Any]) -> Any:
    out = np.empty_like(arrays[0])
    with np.errstate(all="ignore"):
        evaluation.Steps(term, SYMBOLS).run(Context(backend_named("numpy"), training=True), out, arrays)
    return out


def function_of(term: Term, dtype: Any) -> Any:
    from cntk.backends.numba_cuda.formulas import LANGUAGE, names_for

    statements, (value,) = values_in(LANGUAGE, (term,), {symbol: symbol.name for symbol in SYMBOLS})
    names = names_for(dtype)
    exec("\n    ".join(["def function(x0, x1, x2):", *statements, f"return {value}"]), names)
    return names["function"]


@on_the_simulator
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("of", TERMS, ids=lambda of: of.value)
def test_numbers_are_those_of_arrays(of: Primitive, dtype: Any) -> None:
    numbers = np.array(NUMBERS, dtype)
    arrays = [np.concatenate([np.roll(numbers, i * k) for i in range(len(numbers))]) for k in range(3)]
    for term in (TERMS[of], (TERMS[of] + x) * 0.5 if isinstance(TERMS[of], Symbol) else 0.5):
        function = function_of(term, dtype)
        with np.errstate(all="ignore"):
            found = [function(*elements) for elements in zip(*arrays, strict=True)]
        assert all(isinstance(one, dtype) for one in found)
        eps = float(np.finfo(dtype).eps)
        np.testing.assert_allclose(found, evaluated(term, arrays), rtol=8 * eps, atol=8 * eps)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda dtype: np.dtype(dtype).name)
def test_every_expression_becomes_code_for_a_gpu(no_driver: None, dtype: Any) -> None:
    import numba
    from numba import cuda

    from cntk.backends.numba_cuda.formulas import LANGUAGE, names_for

    lines, values = values_in(LANGUAGE, [*TERMS.values()], {symbol: f"{symbol.name}[0]" for symbol in SYMBOLS})
    names = names_for(dtype)
    results = [f"out[{i}] = {value}" for i, value in enumerate(values)]
    exec("\n    ".join(["def every(x0, x1, x2, out):", *lines, *results]), names)
    array = numba.types.Array(numba.from_dtype(np.dtype(dtype)), 1, "C")
    text, _ = cuda.compile_ptx(names["every"], (array,) * 4, cc=(9, 0))
    assert text.count("st.global") >= len(TERMS)
