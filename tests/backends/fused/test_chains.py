"""Chains in one compiled call: the same numbers as operator by operator, whatever the number of threads and what else is in a minibatch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.extension import plugins
from cntk.core.extension.device import backend_named
from cntk.core.formulas import formula as f
from cntk.core.operators.elementwise import Elementwise
from cntk.core.program.program import Program
from cntk.core.run import profiling
from cntk.core.run.evaluate import feeds_for, program_for
from cntk.core.run.workspace import start
from cntk.testing import assert_close
from cntk.testing.tolerances import VALUES, Tolerance

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
chains = pytest.importorskip("cntk.backends.fused.chains")
formulas = pytest.importorskip("cntk.backends.fused.formulas")
recipe = pytest.importorskip("cntk.backends.fused.recipe")
chain_tape = pytest.importorskip("cntk.backends.fused.chain_tape")
op = pytest.importorskip("cntk.backends.fused.opcodes")
pytestmark = pytest.mark.usefixtures("three_threads")

Model = Callable[[Any], Any]
NEVER = 2**62
BOUND = 3.0
"""Units in the last place of 1, times the value, by which functions may differ from the true ones."""
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes for small chains too, and small groups."""
    monkeypatch.setattr(thresholds, "chain_compiled", 0)
    monkeypatch.setattr(thresholds, "chain_group", 1)
    monkeypatch.setattr(recipe, "AT_ONCE", 40)
    monkeypatch.setattr(thresholds, "elements_shared", 1)


@pytest.fixture
def taped(note: Callable[..., list[Any]]) -> list[Any]:
    """What has been put on tapes."""
    return note(chains, "Taped")


def gradients(model: Model, data: Any, dtype: Any) -> tuple[Any, list[Any]]:
    """The values of a model, and the gradients of a weighted sum of them."""
    C.cntk_py.set_fixed_random_seed(3)
    with C.default_options(dtype=dtype):
        x = C.input_variable(data.shape[1:], dtype=dtype, needs_gradient=True)
        y = model(x)
        weights = C.constant(np.random.default_rng(4).standard_normal(y.shape).astype(dtype))
        loss = C.reduce_sum(C.times(C.reshape(y, -1), C.reshape(weights, (-1, 1))))
    wrt = [x, *loss.parameters]
    found, value = loss.grad({x: data}, wrt=wrt, outputs=[y.output])
    return value, [found[v] for v in wrt] if len(wrt) > 1 else [found]


def both_ways(model: Model, data: Any, dtype: Any, cancels: bool = False) -> list[Any]:
    """Values and gradients on tapes, and without passes; they must agree, small numbers as well as large ones unless these *cancel*."""
    value, found = gradients(model, data, dtype)
    C.debugging.set_passes([])
    try:
        right, expected = gradients(model, data, dtype)
    finally:
        C.debugging.set_passes()
    for number, (one, other) in enumerate(zip([value, *found], [right, *expected], strict=True)):
        relative, absolute = VALUES[dtype]
        scale = max(1, np.abs(other).max()) if cancels else 1
        assert_close(one, other, f"gradient {number - 1}" if number else "value", Tolerance(relative, absolute * scale))
    return [value, *found]


def parameter(shape: Any, dtype: Any = None) -> Any:
    return C.parameter(shape, init=C.uniform(0.9))


def layer_norm(x: Any) -> Any:
    x = x - C.reduce_mean(x, axis=-1)
    return x / C.sqrt(C.reduce_mean(x * x, axis=-1) + 1e-5) * parameter(x.shape[-1:]) + parameter(x.shape[-1:])


def rows(shape: Any, dtype: Any, count: int = 7) -> Any:
    return np.random.default_rng(1).uniform(-2, 2, (count, *shape)).astype(dtype)


MODELS: dict[str, tuple[Any, Model]] = {
    "layer normalisation": ((9,), layer_norm),
    "layer normalisation of steps": ((5, 8), layer_norm),
    "positions": ((5, 8), lambda x: C.tanh(x + parameter((5, 8))) * parameter((5, 1))),
    "channels": ((3, 4, 5), lambda x: C.relu(x * parameter((3, 1, 1)) + parameter((3, 1, 1))) - parameter((5,))),
    "scalars": ((), lambda x: C.sigmoid(x * parameter(()) + 0.5) * 2),
    "one number for a sample": ((6,), lambda x: C.exp(C.reduce_sum(x) * 0.1) * x + parameter(())),
    "numbers of a step": ((4, 6), lambda x: C.tanh(C.sqrt(C.reduce_sum(x * x, axis=-1)) + parameter((4, 1))) * x),
    "residual": ((50,), lambda x: C.relu(x + C.tanh(x * 0.5)) + x),
}


@both_types
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_operators(name: str, dtype: Any, taped: list[Any]) -> None:
    shape, model = MODELS[name]
    both_ways(model, rows(shape, dtype), dtype)
    assert len(taped) >= 2


@both_types
@pytest.mark.parametrize("name", ["layer normalisation of steps", "channels"])
def test_numbers_do_not_depend_on_threads_or_company(name: str, dtype: Any) -> None:
    shape, model = MODELS[name]
    data = rows(shape, dtype, 23)
    results = []
    for number in (1, 2, 3):
        threads.set_max_threads(number)
        results.append(gradients(model, data, dtype))
    for value, found in results[1:]:
        np.testing.assert_equal((value, found), results[0])
    part, found = gradients(model, data[5:9], dtype)
    np.testing.assert_array_equal(part, results[0][0][5:9])
    np.testing.assert_array_equal(found[0], results[0][1][0][5:9])


def test_values_are_the_same_with_and_without_a_backward_pass() -> None:
    x = C.input_variable((5, 8), needs_gradient=True)
    y = layer_norm(x)
    data = rows((5, 8), np.float32)
    np.testing.assert_array_equal(y.eval({x: data}), y.grad({x: data}, wrt=[x], outputs=[y.output])[1])


def operators_of(taped: list[Any]) -> list[list[str]]:
    """The operators on each tape."""
    return [[instruction.op.op_name for instruction in one.plan.chain.members] for one in taped]


class SoftStep(Elementwise):
    """An operator that is no more than its formula."""

    op_name = "SoftStepOfTests"

    def formula(self, x: Any) -> Any:
        return f.where(x > 1, f.sqrt(x), x / (self.width + abs(x)))


class Wave(Elementwise):
    """An operator whose formula no tape computes."""

    op_name = "WaveOfTests"

    def formula(self, x: Any) -> Any:
        return f.sin(x) * self.height if self.height else x


@both_types
def test_an_operator_that_is_a_formula_is_on_tapes(dtype: Any, taped: list[Any]) -> None:
    both_ways(lambda x: C.tanh(SoftStep(width=2.0)(x * 2)), rows((9,), dtype), dtype)
    assert operators_of(taped) == [["ElementTimes", "SoftStepOfTests", "Tanh"], ["Tanh", "SoftStepOfTests", "ElementTimes"]]


def test_a_formula_that_no_tape_computes_is_on_none(taped: list[Any]) -> None:
    both_ways(lambda x: C.tanh(Wave(height=3.0)(x) * 2) + 1, rows((9,), np.float32), np.float32)
    assert not any("WaveOfTests" in members for members in operators_of(taped))
    flat = Wave(height=0.0)  # another formula than that by which the class was judged
    both_ways(lambda x: C.tanh(flat(x) * 2) + 1, rows((9,), np.float32), np.float32)


def test_a_formula_that_becomes_another_leaves_its_tape(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formulas, "_known", {})
    both_ways(lambda x: C.tanh(Wave(height=0.0)(x) * 2) + 1, rows((9,), np.float32), np.float32)
    both_ways(lambda x: C.tanh(Wave(height=3.0)(x) * 2) + 1, rows((9,), np.float32), np.float32)


def test_layer_normalisation_is_one_call_forward_and_one_back(taped: list[Any]) -> None:
    seeded(layer_norm, rows((5, 8), np.float32))
    mean = ["ReduceElements", "Minus", "ElementTimes", "ReduceElements", "Plus", "Sqrt", "ElementDivide", "ElementTimes", "Plus"]
    assert operators_of(taped) == [mean, mean[::-1]]


def test_what_tapes_cannot_do_stays_between_them(taped: list[Any]) -> None:
    x = C.input_variable(9)
    f = C.tanh(C.sin(C.exp(x) + 1)) * 2
    data = rows((9,), np.float32)
    assert_close(f.eval({x: data}), np.tanh(np.sin(np.exp(data) + 1)) * 2)
    assert operators_of(taped) == [["Exp", "Plus"], ["Tanh", "ElementTimes"]]


def test_other_shapes_begin_another_chain(taped: list[Any]) -> None:
    x, y = C.input_variable(9), C.input_variable(4)
    f = C.combine(C.exp(x) + 1, C.tanh(y) * 2)
    f.eval({x: rows((9,), np.float32), y: rows((4,), np.float32)})
    assert operators_of(taped) == [["Exp", "Plus"], ["Tanh", "ElementTimes"]]


def test_slices_and_their_gradients_are_left_to_the_operators() -> None:
    both_ways(lambda x: C.tanh(x[:4]) * C.sigmoid(x[4:]) + x[:4], rows((8,), np.float32), np.float32)


def test_a_subclass_computes_itself(taped: list[Any]) -> None:
    class Twice(type(C.tanh(C.placeholder()).root_function.op)):  # type: ignore[misc]
        def forward(self, ctx: Any, y: Any, x: Any) -> None:
            super().forward(ctx, y, x)
            y *= 2

    x = C.input_variable(3)
    data = rows((3,), np.float32)
    assert_close((Twice()(x) * x + 1).eval({x: data}), 2 * np.tanh(data) * data + 1)
    assert operators_of(taped) == [["ElementTimes", "Plus"]]


def test_attributes_may_change() -> None:
    x = C.input_variable(3)
    f = C.elu(x) + 1
    data = rows((3,), np.float32)
    f.eval({x: data})
    f.root_function.inputs[0].owner.op.set_attribute("alpha", 0.5)
    assert_close(f.eval({x: data}), np.where(data < 0, 0.5 * np.expm1(data), data) + 1)


def test_values_that_only_a_chain_needs_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    x = C.input_variable(1000)
    f = C.tanh(x) * C.exp(x) - C.sigmoid(x) / C.abs(x)
    program = program_for(f, f.outputs)

    def arena() -> int:
        run = start(program, feeds_for(program, {x: rows((1000,), np.float32, 50)}))
        run.close()
        return int(run.binding.placement.arena.nbytes)

    chained = arena()
    monkeypatch.setattr(thresholds, "chain_compiled", NEVER)
    program = Program(f.outputs, backend_named("numpy"))
    assert chained == 2 * 50 * 1000 * 4 < arena()


def test_taking_the_time_names_operators_and_changes_no_number() -> None:
    data = rows((5, 8), np.float32)
    value, found = gradients(layer_norm, data, np.float32)
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        timed, same = gradients(layer_norm, data, np.float32)
    finally:
        profiling.end(recorder)
    np.testing.assert_equal((timed, same), (value, found))
    for direction in (profiling.FORWARD, profiling.BACKWARD):
        named = {uid.rstrip("0123456789"): tally for (uid, of), tally in recorder.tallies.items() if of == direction}
        assert {"ElementDivide", "Sqrt", "Minus", "ReduceElements"} <= set(named)
        assert named["ElementDivide"].flop >= data.size


def test_operators_with_a_kernel_of_others_are_left_to_it(taped: list[Any]) -> None:
    class Kernel:
        @staticmethod
        def forward(of: Any, ctx: Any, out: Any, x: Any) -> None:
            out[...] = 7

        backward = forward

    plugins.kernels.add(("cntk.plugins.ops.activation:Tanh", "numpy"), Kernel, "test")
    try:
        x = C.input_variable(3)
        np.testing.assert_array_equal((C.tanh(x) * 2 + 1).eval({x: rows((3,), np.float32)}), np.full((7, 3), 15))
    finally:
        plugins.kernels.remove_all_of("test")
    assert operators_of(taped) == [["ElementTimes", "Plus"]]


def test_half_precision_is_left_to_the_operators(taped: list[Any]) -> None:
    x = C.input_variable(3, dtype=np.float16)
    (C.tanh(x) * x).eval({x: rows((3,), np.float16)})
    assert not taped


def test_without_loops_operators_compute(monkeypatch: pytest.MonkeyPatch, taped: list[Any]) -> None:
    monkeypatch.setattr(chains, "are_usable", lambda: False)
    gradients(layer_norm, rows((8,), np.float32), np.float32)
    assert not taped


def test_small_chains_do_without_numba() -> None:
    program = (
        "import sys, numpy as np, cntk as C\n"
        "x = C.input_variable(400)\n"
        "C.tanh(C.exp(x) * 2 + 1).eval({x: np.ones((64, 400), np.float32)})\n"
        "assert 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_error_bounds_of_functions() -> None:
    for dtype in (np.float32, np.float64):
        x = np.concatenate([np.linspace(-86, 88, 20001), np.linspace(-1, 1, 20001), 10.0 ** np.linspace(-30, 1.9, 3001)]).astype(dtype)
        wide = x.astype(np.longdouble)
        positive = np.abs(x[x != 0])
        for kind, numbers, true in (
            (op.EXP, x, np.exp(wide)),
            (op.EXPM1, x, np.expm1(wide)),
            (op.LOG, positive, np.log(positive.astype(np.longdouble))),
            (op.LOG1P, positive[positive <= 1], np.log1p(positive[positive <= 1].astype(np.longdouble))),
        ):
            error = np.abs(computed(kind, numbers) - true) / np.abs(true, where=true != 0, out=np.ones_like(true))
            assert error.max() < BOUND * np.finfo(dtype).eps


def computed(kind: int, x: Any) -> Any:
    """What an operation makes of numbers."""
    found = np.empty_like(x)
    line = [kind, len(x), 0]
    for array in (found, x, x):
        line += [array.ctypes.data, 0, 0, 0, 0, 0, 0]
    chain_tape.run(0, 1, (1, 1, 1, 1), (0, 1), (0, 1), np.array([line], np.intp), x[:0])
    return found


UNARY: dict[str, Model] = {
    "abs": C.abs, "ceil": C.ceil, "clip": lambda x: C.clip(x, -0.5, 0.7), "elu": C.elu, "exp": C.exp, "floor": C.floor,
    "hard sigmoid": lambda x: C.hard_sigmoid(x, 0.4, 0.3), "leaky relu": C.leaky_relu, "log": C.log, "negate": C.negate,
    "reciprocal": C.reciprocal, "relu": C.relu, "round": C.round, "selu": C.selu, "sigmoid": C.sigmoid, "softplus": C.softplus,
    "softplus of steepness": lambda x: C.softplus(x, 4), "softsign": C.softsign, "sqrt": C.sqrt, "square": C.square, "tanh": C.tanh,
    "steep relu": lambda x: C.leaky_relu(x, 2.5),
}  # fmt: skip

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "plus": C.plus, "minus": C.minus, "times": C.element_times, "divide": C.element_divide, "max": C.element_max, "min": C.element_min,
    "log_add_exp": C.log_add_exp, "param_relu": C.param_relu, "less": C.less, "less_equal": C.less_equal, "equal": C.equal,
    "not_equal": C.not_equal, "greater": C.greater, "greater_equal": C.greater_equal, "select": lambda x, y: C.element_select(x, y, x),
    "mean": lambda x, y: C.mean([x, y, x]), "sum": lambda x, y: C.sum([y, x, y]),
}  # fmt: skip

SPECIAL = [0, -0.0, 1, -1, 0.5, -0.5, 1e-30, -1e-30, 3e38, -3e38, np.inf, -np.inf, np.nan, 88.5, 89, -87.5, -103, -200, 10, 1e-9]


def seeded(function: Callable[..., Any], *data: Any) -> list[Any]:
    """The values of a function of inputs, and their gradients for a gradient of 2 everywhere."""
    inputs = [C.input_variable(given.shape[1:], dtype=given.dtype.type, needs_gradient=True) for given in data]
    y = function(*inputs)
    with np.errstate(all="ignore"):
        state, values = y.forward(dict(zip(inputs, data, strict=True)), [y.output], [y.output])
        found = y.backward(state, {y.output: np.full_like(values[y.output], 2)}, inputs)
    return [values[y.output], *(found[x] for x in inputs)]


def assert_same_with_tapes(operator: Callable[..., Any], *data: Any) -> None:
    """Require that tapes find the numbers that an operator does; those too small to be normal are 0."""

    def function(*inputs: Any) -> Any:
        return operator(*(-x for x in inputs)) * 1

    found = seeded(function, *data)
    C.debugging.set_passes([])
    try:
        expected = seeded(function, *data)
    finally:
        C.debugging.set_passes()
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=8 * np.finfo(one.dtype).eps, atol=8 * np.finfo(np.float32).tiny)


@both_types
@pytest.mark.parametrize("name", UNARY)
def test_special_numbers_are_those_of_the_operators(name: str, dtype: Any, taped: list[Any]) -> None:
    assert_same_with_tapes(UNARY[name], np.array([SPECIAL] * 2, dtype))
    assert taped


@both_types
@pytest.mark.parametrize("name", BINARY)
def test_special_pairs_are_those_of_the_operators(name: str, dtype: Any, taped: list[Any]) -> None:
    left, right = np.meshgrid(np.array(SPECIAL, dtype), np.array(SPECIAL, dtype))
    assert_same_with_tapes(BINARY[name], left, right)
    assert taped


SHAPES = st.sampled_from([(), (1,), (6,), (1, 6), (4, 1), (4, 6), (1, 1), (3, 4, 6), (3, 1, 6), (3, 4, 1), (3, 1, 1), (1, 4, 6)])


@st.composite
def models(draw: st.DrawFn) -> tuple[Any, Model]:
    """The shape of an input, and a chain of operators on it, parameters that broadcast with it, and what has been computed before."""
    shape = draw(SHAPES)
    steps = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30), st.integers(0, 30), SHAPES), min_size=2, max_size=9))

    def model(x: Any) -> Any:
        known = [x]
        for kind, first, second, of in steps:
            one, other = known[first % len(known)], known[second % len(known)]
            weights = C.parameter(of, init=C.uniform(0.9, seed=1 + len(known)))
            known.append(CHOICES[kind](one, other, weights))
        return C.plus(*(C.reduce_sum(y) for y in known)) + known[-1] if draw_all else known[-1] * 1

    draw_all = draw(st.booleans())
    return shape, model


CHOICES: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, y, w: C.tanh(x) + y,
    lambda x, y, w: x * y,
    lambda x, y, w: x + w,
    lambda x, y, w: C.sigmoid(x - w) * y,
    lambda x, y, w: w / (1 + C.abs(x)),
    lambda x, y, w: C.relu(x) - C.softplus(y) * w,
    lambda x, y, w: x - C.reduce_mean(x, axis=-1) if x.shape else x * w,
    lambda x, y, w: C.exp(-x * x) + C.reduce_sum(y) * 0.1,
    lambda x, y, w: C.element_max(x, y) + C.clip(x, -0.3, 0.4),
]


@settings(max_examples=60, deadline=None)
@given(models(), st.sampled_from([np.float32, np.float64]), st.integers(1, 9), st.integers(1, 3))
def test_chains_of_any_kind_and_shape(drawn: tuple[Any, Model], dtype: Any, count: int, number: int) -> None:
    shape, model = drawn
    threads.set_max_threads(number)
    both_ways(model, rows(shape, dtype, count), dtype, cancels=True)
