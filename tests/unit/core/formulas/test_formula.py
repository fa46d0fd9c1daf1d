"""Formulas: what is derived from them agrees with one another, and with what operators compute in their own way."""

from __future__ import annotations

import ctypes
import pickle
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.formulas import evaluation, formula
from cntk.core.formulas.c_source import EXPRESSIONS, to_c
from cntk.core.formulas.derivatives import RULES, differentiated, gradient_of
from cntk.core.formulas.formula import Primitive, Symbol, operands, states_formula, symbols_in, value_of
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.op import includes
from cntk.core.types.context import Context
from cntk.plugins.ops.activation import ReLU, Tanh
from cntk.plugins.ops.elementary import Log
from cntk.testing.samples import Trial

WITHOUT_FORMULA = {"BinaryCrossEntropy", "Dropout"}
UNITS = 8
"""Units in the last place by which two ways of computing the same may differ."""
SPECIAL = [0, -0.0, np.nan, np.inf, -np.inf, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 5, -5, 20, -20, 100, -100, 85.1, -85.1]
of_each_type = pytest.mark.parametrize("dtype", FLOAT_TYPES, ids=[np.dtype(dtype).name for dtype in FLOAT_TYPES])


def _operators() -> dict[str, tuple[Elementwise, int]]:
    """The element-wise operators of all samples, each with its number of operands."""
    found: dict[str, tuple[Elementwise, int]] = {}
    for name in plugins.ops.names():
        function = plugins.ops.get(name)
        for sample in getattr(function, "samples", ()):
            root = Trial(function, sample, np.float32).result.root_function
            if isinstance(root.op, Elementwise):
                found.setdefault(f"{type(root.op).__name__}{root.op.attributes or ''} of {len(root.inputs)}", (root.op, len(root.inputs)))
    return found


OPERATORS = _operators()
of_each_operator = pytest.mark.parametrize(
    ("op", "count"), [(op, count) for op, count in OPERATORS.values() if type(op).__name__ not in WITHOUT_FORMULA],
    ids=[name for name, (op, _) in OPERATORS.items() if type(op).__name__ not in WITHOUT_FORMULA],
)  # fmt: skip


def special(dtype: Any, count: int) -> list[Any]:
    """Operands in which every number of a list meets every other, among them the least ones of the type."""
    least = np.finfo(dtype).tiny
    numbers = np.array([*SPECIAL, least, -least, least / 8, -least / 8], dtype)
    drawn = np.random.default_rng(2).uniform(-3, 3, (count, 200)).astype(dtype)
    rolled = [np.concatenate([np.roll(numbers, i * k) for i in range(len(numbers))]) for k in range(count)]
    return [np.concatenate(pair) for pair in zip(rolled, drawn, strict=True)]


def context() -> Context:
    return Context(backend_named("numpy"), training=True)


def assert_same(found: Any, right: Any, message: str) -> None:
    """Require the same infinities and the same places without a number, and else numbers that are nearly the same."""
    info = np.finfo(right.dtype)
    with np.errstate(all="ignore"):
        is_near = np.abs(found - right) <= UNITS * np.maximum(info.eps * np.abs(right), info.smallest_subnormal)
    is_same = is_near | (found == right) | (np.isnan(found) & np.isnan(right))
    assert is_same.all(), f"{message}: {found[~is_same][:5]}, expected {right[~is_same][:5]}"


@pytest.mark.parametrize("name", sorted({type(op).__name__ for op, _ in OPERATORS.values()}))
def test_every_operator_states_its_formula(name: str) -> None:
    (op, _), *_ = [pair for pair in OPERATORS.values() if type(pair[0]).__name__ == name]
    assert states_formula(type(op)) is (name not in WITHOUT_FORMULA)


@of_each_type
@of_each_operator
def test_values_are_those_of_the_formula(op: Elementwise, count: int, dtype: Any) -> None:
    inputs = special(dtype, count)
    found, right = np.empty_like(inputs[0]), np.empty_like(inputs[0])
    with np.errstate(all="ignore"):
        op.forward(context(), found, *inputs)
        evaluation.forward(op, context(), right, inputs)
    assert_same(found, right, repr(value_of(op, operands(count))))


@of_each_type
@of_each_operator
def test_gradients_are_those_of_the_formula(op: Elementwise, count: int, dtype: Any) -> None:
    dy, *inputs = special(dtype, count + 1)[::-1]
    if isinstance(op, Log) and dtype is np.float16:  # which has no number as small as the least operand
        inputs = [np.abs(inputs[0]) + 1]
    y, found, right = np.empty_like(dy), np.empty_like(dy), np.empty_like(dy)
    with np.errstate(all="ignore"):
        op.forward(context(), y, *inputs)
        for i in range(count):
            if includes(op.gradient_inputs, i) and i not in op.passes_gradient:
                op.gradient(i, context(), found, dy, y, *inputs)
                evaluation.gradient(op, i, context(), right, (dy, y, *inputs))
                assert_same(found, right, f"gradient {i} of {value_of(op, operands(count))!r}")


@of_each_operator
def test_gradients_read_what_is_kept(op: Elementwise, count: int) -> None:
    dy, y, *inputs = operands(2 + count)
    for i in range(count):
        if includes(op.gradient_inputs, i):
            used = {id(symbol) for symbol in symbols_in(gradient_of(op, i, dy, y, tuple(inputs)))}
            assert op.keep_output or id(y) not in used
            assert all(includes(op.keep_inputs, place) or id(x) not in used for place, x in enumerate(inputs))


def test_every_primitive_has_a_place_in_every_table() -> None:
    assert set(Primitive) == set(RULES) == set(EXPRESSIONS) == set(evaluation.FUNCTIONS)
    assert {primitive.value for primitive in Primitive if hasattr(formula, primitive.value)} >= {"where", "exp", "quotient", "hypot"}


# ---- derivatives ---------------------------------------------------------------------------------

WHERE_IT_IS_SMOOTH = {
    "power": (0.5, 2),
    "log": (0.5, 2),
    "sqrt": (0.5, 2),
    "log1p": (-0.5, 2),
    "arcsin": (-0.8, 0.8),
    "arccos": (-0.8, 0.8),
}
PRIMITIVES: dict[str, Callable[..., Any]] = {
    primitive.value: getattr(formula, primitive.value) for primitive in Primitive if hasattr(formula, primitive.value)
} | {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y,
    "negate": lambda x: -x,
    "abs": abs,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
    "equal": lambda x, y: x == y,
}
TWO = {"power", "hypot", "maximum", "minimum", "quotient", "add", "subtract", "multiply", "divide", "greater", "greater_equal", "equal"}


def evaluated(term: Any, symbols: Sequence[Symbol], arrays: Sequence[Any]) -> Any:
    """A formula of arrays."""
    out = np.empty_like(arrays[0])
    with np.errstate(all="ignore"):
        evaluation.Steps(term, symbols).run(context(), out, arrays)
    return out


@pytest.mark.parametrize("name", PRIMITIVES)
def test_derivatives_of_primitives_are_differences(name: str) -> None:
    count = 3 if name == "where" else 2 if name in TWO else 1
    dy, y, *inputs = symbols = operands(2 + count)
    term = PRIMITIVES[name](*inputs)
    low, high = WHERE_IT_IS_SMOOTH.get(name, (0.1, 0.9))
    values = [np.random.default_rng(3 + i).uniform(low, high, 50) for i in range(count)]
    slopes = np.random.default_rng(2).uniform(-2, 2, 50)
    for i, x in enumerate(inputs):
        for whole in (term, term * term + x):
            gradient = differentiated(whole, x, dy, y)
            here = [slopes, evaluated(whole, inputs, values), *values]
            found = evaluated(gradient, symbols, here)
            up, down = (evaluated(whole, inputs, [v + step * (k == i) for k, v in enumerate(values)]) for step in (1e-6, -1e-6))
            np.testing.assert_allclose(found, slopes * (up - down) / 2e-6, rtol=1e-6, atol=1e-8)


def test_a_primitive_of_nothing_that_is_asked_for_has_no_gradient() -> None:
    x, z, dy, y = operands(4)
    assert differentiated(formula.exp(z), x, dy, y) == 0.0
    assert differentiated(2.0, x, dy, y) == 0.0
    assert differentiated(x, x, dy, y) is dy


# ---- C -------------------------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("real", ["float", "double"])
def test_c_computes_what_arrays_do(real: str, tmp_path: Path) -> None:
    dtype = np.dtype("float32" if real == "float" else "float64")
    symbols = operands(6)
    names = {symbol: f"{symbol.name}[i]" for symbol in symbols}
    terms = [value_of(op, symbols[2 : 2 + count]) for op, count in OPERATORS.values() if states_formula(type(op))]
    for op, count in OPERATORS.values():
        if states_formula(type(op)):
            wanted = [i for i in range(count) if includes(op.gradient_inputs, i)]
            terms += [gradient_of(op, i, symbols[0], symbols[1], symbols[2 : 2 + count]) for i in wanted]
    arguments = ", ".join(f"const {real} *{symbol.name}" for symbol in symbols)
    functions = [
        f"void f{number}({real} *out, {arguments}, long n) {{ for (long i = 0; i < n; i++) {{\n{to_c(term, names, 'out[i]', real)}\n}} }}"
        for number, term in enumerate(terms)
    ]
    (tmp_path / "formulas.c").write_text("\n".join(["#include <math.h>", *functions]))
    library = tmp_path / "formulas.so"
    command = ["cc", "-O1", "-ffp-contract=off", "-shared", "-fPIC", "-o", str(library), "formulas.c", "-lm"]
    compiled = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert compiled.returncode == 0, compiled.stderr
    loaded = ctypes.CDLL(str(library))
    arrays = special(dtype, len(symbols))
    for number, term in enumerate(terms):
        found = np.empty_like(arrays[0])
        pointers = [ctypes.c_void_p(array.ctypes.data) for array in (found, *arrays)]
        getattr(loaded, f"f{number}")(*pointers, ctypes.c_long(len(found)))
        assert_same(found, evaluated(term, symbols, arrays), repr(term))


def test_c_says_what_it_cannot_write() -> None:
    x, y = operands(2)
    with pytest.raises(ValueError, match="expected 'float' or 'double' for the element type in C, got 'half'"):
        to_c(x, {x: "x"}, "y", "half")
    with pytest.raises(KeyError, match=r"the operand x1 of add.x0, x1. has no name; there are names of .x0."):
        to_c(x + y, {x: "x"}, "y")
    assert to_c(formula.minimum(x, -np.inf), {x: "x"}, "y") == "y = x <= (-INFINITY) || x != x ? x : (-INFINITY);"
    assert to_c(2.0, {}, "y", "double") == "y = 2.0;"


# ---- symbols and classes -------------------------------------------------------------------------


def test_a_symbol_is_neither_true_nor_false() -> None:
    (x,) = operands(1)
    with pytest.raises(TypeError, match=r"a formula cannot ask whether a symbol is true.*where\(condition, a, b\)"):
        bool(x > 0)


def test_numbers_of_numpy_are_numbers() -> None:
    (x,) = operands(1)
    assert repr(np.float32(2) * x**2 + x**0.5) == "add(multiply(2.0, multiply(x0, x0)), power(x0, 0.5))"


class Strange(Elementwise):
    """An operator whose formula gives no formula."""

    def formula(self, x: Any) -> Any:
        return "x"


class Silent(Elementwise):
    """An operator that says nothing."""


def test_errors_name_the_operator() -> None:
    (x,) = operands(1)
    with pytest.raises(
        TypeError, match=r"a formula of Strange gives 'x'; expected what arithmetic and the functions of cntk.extend.formula"
    ):
        value_of(Strange(), (x,))
    with pytest.raises(NotImplementedError, match="Silent has no formula; write one, or the methods forward and gradient"):
        value_of(Silent(), (x,))


class Louder(ReLU):
    """A rectifier with another formula than its base, whose methods do not hold for it."""

    def formula(self, x: Any) -> Any:
        return 2 * formula.maximum(x, 0)


class Doubled(Tanh):
    """What no longer is its base's formula."""

    def forward(self, ctx: Context, y: Any, x: Any) -> None:
        ctx.xp.multiply(x, 2, out=y)


class Renamed(Tanh):
    """What still is."""

    op_name = "RenamedTanh"


def test_a_formula_holds_for_the_class_that_states_it() -> None:
    assert [states_formula(known) for known in (Louder, Renamed, Doubled, Elementwise)] == [True, True, False, False]
    data = np.float32([-1, 0, 2])
    out, dx = np.empty_like(data), np.empty_like(data)
    Louder().forward(context(), out, data)
    Louder().gradient(0, context(), dx, np.ones_like(data), out, data)
    np.testing.assert_array_equal(out, [0, 0, 4])
    np.testing.assert_array_equal(dx, [0, 0, 2])


def test_an_operator_keeps_what_its_derivative_reads() -> None:
    assert (Louder().keep_inputs, Louder().keep_output) == ((0,), False)

    class Powers(Elementwise):
        formula = lambda x, y: formula.exp(x + 1) + y  # noqa: E731

    class Growth(Elementwise):
        formula = lambda x: formula.exp(x)  # noqa: E731

    assert (Powers().keep_inputs, Powers().keep_output) == ((0,), False)
    assert (Growth().keep_inputs, Growth().keep_output) == ((), True)


class Steep(Elementwise):
    """An operator with an attribute."""

    op_name = "SteepOfTests"

    def formula(self, x: Any) -> Any:
        return x * self.steepness


def test_a_changed_attribute_counts_from_the_next_evaluation_on() -> None:
    one = Steep(steepness=2.0)
    data, out = np.float32([1, 2]), np.empty(2, np.float32)
    one.forward(context(), out, data)
    other = one.copy()
    third = pickle.loads(pickle.dumps(one))  # with what has been derived
    one.set_attribute("steepness", 3.0)
    for op, factor in ((one, 3), (other, 2), (third, 2), (one, 3)):
        op.forward(context(), out, data)
        np.testing.assert_array_equal(out, data * factor)
