"""Element-wise operators and chains of them as CUDA texts: the numbers of the operators' own methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import chains, compiler, elements
from cntk.core.extension import plugins
from cntk.core.formulas.formula import exp, operands
from cntk.core.operators.elementwise import Elementwise
from cntk.core.operators.samples import Sample
from cntk.plugins.ops.arithmetic import ElementDivide, ElementTimes, Minus, Plus
from cntk.plugins.ops.elementary import Sqrt
from cntk.testing import assert_close
from cntk.testing.kernels import _compare_gradients, _compare_values, without_kernels
from cntk.testing.ops import samples_of
from cntk.testing.tolerances import VALUES

Model = Callable[[Any], Any]

pytestmark = pytest.mark.usefixtures("host_gpu")


@pytest.fixture
def fused(note: Callable[..., list[Any]]) -> list[Any]:
    """The chains that have been put on arrays."""
    return note(chains, "Fused")


def gradients(model: Model, data: Any, dtype: Any) -> list[Any]:
    """The values of a model, and the gradients of a weighted sum of them."""
    C.cntk_py.set_fixed_random_seed(3)
    with C.default_options(dtype=dtype):
        x = C.input_variable(data.shape[1:], dtype=dtype, needs_gradient=True)
        y = model(x)
        weights = C.constant(np.random.default_rng(4).standard_normal(y.shape).astype(dtype))
        loss = C.reduce_sum(C.times(C.reshape(y, -1), C.reshape(weights, (-1, 1))))
    wrt = [x, *loss.parameters]
    found, value = loss.grad({x: data}, wrt=wrt, outputs=[y.output])
    return [value, *([found[v] for v in wrt] if len(wrt) > 1 else [found])]


def parameter(shape: Any) -> Any:
    return C.parameter(shape, init=C.uniform(0.9))


def rows(shape: Any, dtype: Any, count: int = 7) -> Any:
    return np.random.default_rng(1).uniform(-2, 2, (count, *shape)).astype(dtype)


def normalised(x: Any) -> Any:
    """A layer normalised as programs write it."""
    x = x - C.reduce_mean(x, axis=-1)
    return x / C.sqrt(C.reduce_mean(x * x, axis=-1) + 1e-5) * parameter((6,)) + parameter((6,))


MODELS: dict[str, tuple[Any, Model]] = {
    "one operator": ((9,), lambda x: C.softplus(x)),
    "a parameter for each sample": ((5, 8), lambda x: C.tanh(x * parameter((5, 8)) + 0.5) * parameter((5, 1))),
    "channels": ((3, 4, 5), lambda x: C.relu(x * parameter((3, 1, 1)) + parameter((3, 1, 1))) - parameter((5,))),
    "scalars": ((), lambda x: C.sigmoid(x * parameter(()) + 0.5) * 2),
    "numbers of a step": ((4, 6), lambda x: C.tanh(C.sqrt(C.reduce_sum(x * x, axis=-1)) + parameter((4, 1))) * x),
    "beside wider operators": ((2, 3), lambda x: parameter(()) + C.reduce_sum(x) + C.reduce_sum(C.sigmoid(x))),
    "a wider axis": ((2, 3), lambda x: parameter((2, 1)) + C.reduce_sum(x, axis=-1) + C.reduce_sum(C.sigmoid(x), axis=-1)),
    "layer normalisation": ((4, 6), lambda x: normalised(x) + x),
    "repeated along either axis": ((4, 6), lambda x: C.exp(C.reduce_mean(x, axis=0)) / C.exp(C.reduce_mean(x, axis=-1)) - x),
    "residual": ((50,), lambda x: C.relu(x + C.tanh(x * 0.5)) + x),
    "the same operand twice": ((4,), lambda x: C.exp(x * 0.5) * C.sigmoid(C.exp(x * 0.5)) / (x * x + 1)),
}


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        *((name, np.float32) for name in MODELS),
        ("residual", np.float64),
        ("layer normalisation", np.float64),
        ("layer normalisation", np.float16),
        ("channels", np.float16),
        ("scalars", np.float16),
        ("channels", C.bfloat16),
        ("scalars", C.bfloat16),
    ],
)
def test_numbers_are_those_of_the_operators(name: str, dtype: Any, fused: list[Any]) -> None:
    shape, model = MODELS[name]
    data = rows(shape, dtype)
    found = gradients(model, data, dtype)
    assert fused
    with without_kernels():
        expected = gradients(model, data, dtype)
    for number, (one, other) in enumerate(zip(found, expected, strict=True)):
        assert_close(one, other, f"gradient {number - 1}" if number else "value", VALUES[dtype])


def test_layer_normalisation_needs_no_method_of_its_operators(fused: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(op: Any, *arguments: Any) -> None:
        raise AssertionError(f"{op.op_name} computes by itself")

    for operator in (Plus, Minus, ElementTimes, ElementDivide, Sqrt):
        monkeypatch.setattr(operator, "forward", refuse)
    monkeypatch.setattr(Elementwise, "backward", refuse)
    shape, model = MODELS["layer normalisation"]
    gradients(model, rows(shape, np.float32), np.float32)
    assert fused


def test_sums_of_many_rows_are_those_of_parts(fused: list[Any]) -> None:
    data = rows((3,), np.float32, elements.AT_WORK)
    model = MODELS["residual"][1]
    found = gradients(lambda x: model(x + parameter((3,))), data, np.float32)
    with without_kernels():
        expected = gradients(lambda x: model(x + parameter((3,))), data.astype(np.float64), np.float64)
    np.testing.assert_allclose(found[2], expected[2], rtol=1e-6)
    assert elements.parts_of(elements.AT_WORK, 3) < elements.AT_WORK


def test_values_do_not_depend_on_company(fused: list[Any]) -> None:
    shape, model = MODELS["channels"]
    data = rows(shape, np.float32, 23)
    whole, part = gradients(model, data, np.float32), gradients(model, data[5:9], np.float32)
    np.testing.assert_array_equal(part[0], whole[0][5:9])
    np.testing.assert_array_equal(part[1], whole[1][5:9])


def test_attributes_are_those_of_the_time(fused: list[Any]) -> None:
    x = C.input_variable(3)
    y = C.leaky_relu(x, 0.5)
    data = np.float32([[-1, 2, -3]])
    np.testing.assert_array_equal(y.eval({x: data}), [[-0.5, 2, -1.5]])
    (of,) = [one.op for one in fused[0].plan.chain.members]
    of.alpha = 0.25
    np.testing.assert_array_equal(y.eval({x: data}), [[-0.25, 2, -0.75]])


def test_single_steps_run_the_chain_once(fused: list[Any]) -> None:
    x = C.input_variable(3)
    y = C.tanh(x * 2 + 1)
    y.eval({x: np.ones((2, 3), np.float32)})
    (one,) = fused
    ran: list[int] = []
    one._calls = [lambda: ran.append(1)]
    for member in range(len(one.plan.chain.members)):
        one.run_one(member, 0)
    assert len(one.plan.chain.members) == 3
    assert ran == [1]


ELEMENTWISE = ["clip", "element_divide", "element_max", "element_select", "floor", "greater", "log_add_exp", "pow", "round", "selu"]


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_operators_samples(name: str) -> None:
    function = plugins.ops.get(name)
    sample: Sample = samples_of(function)[0]
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)


@pytest.mark.parametrize("index", [np.uint32, np.uint64])
def test_operands_that_repeat_and_indices_of_both_sizes(index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elements, "index_type", lambda count: index)
    x, y = array([2.0], np.float32), array([[3.0, 4.0], [5.0, 6.0]], np.float32).T
    out = HostBackend().empty((5, 2, 2), np.float32)
    a, b = operands(2)
    read = [elements.Operand(symbol, one, elements.axes_of(one, out.shape, False)) for symbol, one in ((a, x), (b, y))]
    elements.bound(np.float32, out.shape, read, [elements.Store(a * b + exp(a - 2), out, elements.axes_of(out, out.shape, True))])()
    np.testing.assert_array_equal(out, [2 * y + 1] * 5)


def test_indices_have_64_bits_where_32_do_not_reach() -> None:
    assert compiler.index_type(2**31 - 1) is np.uint32
    assert compiler.index_type(2**31) is np.uint64


def test_samples_without_elements(fused: list[Any]) -> None:
    x, w, bias = C.input_variable((0, 3), needs_gradient=True), C.parameter((0, 3)), C.parameter(3)
    y = C.tanh(x * w + bias)
    gradients, value = y.grad({x: np.ones((2, 0, 3), np.float32)}, wrt=[x, w, bias], outputs=[y.output])
    assert value.shape == (2, 0, 3)
    np.testing.assert_array_equal(gradients[bias], [0, 0, 0])
