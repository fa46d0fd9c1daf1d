"""Gradients through epilogues: the steps' own, whatever follows the result, in as few launches as there can be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import epilogues
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.operators.epilogue import Epilogue, Step
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout

pytestmark = pytest.mark.usefixtures("on_host")

TYPES = {C.bfloat16: 8 * 2e-3, np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-14}


def steps(bias: tuple[int, ...] | None, rectifies: bool, shape: tuple[int, ...], dtype: Any) -> list[Step]:
    """A sum with a bias, a rectifier, or both."""
    x = C.input_variable(shape, dtype=dtype)
    found = []
    if bias is not None:
        parameter = C.parameter(bias, dtype=dtype)
        found.append(Step((x + parameter).root_function.op, 0, (parameter.spec,)))
    if rectifies:
        found.append(Step(C.relu(x).root_function.op, 0, ()))
    return found


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rectifies", [True, False])
@pytest.mark.parametrize(("static", "bias"), [((5,), (5,)), ((3, 4, 2), (3, 1, 1)), ((3, 4), None), ((6,), (1,))])
@pytest.mark.parametrize("rows", [300, 1, 0, None])
def test_gradients_are_those_of_the_steps(static: Any, bias: Any, rectifies: bool, rows: int | None, dtype: Any) -> None:
    made = steps(bias, rectifies, static, dtype)
    shape = static if rows is None else (rows, *static)
    rng = np.random.default_rng(0)
    grad, out = rng.normal(size=shape).astype(dtype), rng.normal(size=shape).astype(dtype)
    results = []
    for backend in (NumpyBackend(), HostBackend()):
        ctx = Context(backend, True)
        ctx.layout = None if rows is None else Layout(rows)
        bias_grad = None if bias is None else backend.empty(bias, dtype)
        epilogue = Epilogue(made, [], [] if bias is None else [bias_grad])
        given = backend.asarray(grad, dtype), backend.asarray(out, dtype)
        if backend.name == "numpy":
            before = epilogue.backward(ctx, *given)
        else:
            before = epilogues.before_steps(ctx, epilogue, given[0])
            assert (before is given[0]) is not rectifies
            for call in epilogues.backward(ctx, epilogue, *given, before):
                call()
        results.append((before, bias_grad))
    (wanted, wanted_bias), (found, found_bias) = results
    np.testing.assert_array_equal(found, wanted)
    if bias is not None:
        np.testing.assert_allclose(found_bias, wanted_bias, rtol=TYPES[dtype], atol=300 * TYPES[dtype])


def test_sums_that_are_computed_elsewhere_are_left_alone() -> None:
    made = steps((4,), False, (4,), np.float32)
    ctx = Context(HostBackend(), True)
    ctx.layout = Layout(3)
    grad, bias_grad = array(np.ones((3, 4), np.float32)), array(np.zeros(4, np.float32))
    epilogue = Epilogue(made, [], [bias_grad])
    assert epilogues.backward(ctx, epilogue, grad, None, grad, with_sums=False) == []
    assert epilogues.backward(ctx, Epilogue(made, [], [None]), grad, None, grad) == []
    rectified = Epilogue([*made, *steps(None, True, (4,), np.float32)], [], [bias_grad])
    before = epilogues.before_steps(ctx, rectified, grad)
    (launch,) = epilogues.backward(ctx, rectified, grad, array(np.float32([[1, -1, 0, 2]] * 3)), before, with_sums=False)
    launch()
    np.testing.assert_array_equal(before, [[1, 0, 0, 1]] * 3)
    np.testing.assert_array_equal(bias_grad, 0)
