"""Native user functions: operators of plugins and packages, registered under an id and made with attributes."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators import native
from cntk.core.operators.native import NativeOp
from cntk.ops.functions import native_user_function, register_native_user_function

EXAMPLES = "Cntk.ExtensibilityExamples-2.7"
ATTRIBUTES = {"param_rank": 2, "padding": True, "none": None, "nested lists": [[1, 2], [3]], "some data": np.arange(3.0)}


class Scale(NativeOp):
    """The operand times the attribute ``factor``."""

    op_name = "Scale"

    def infer(self, *inputs: Any) -> Any:
        return inputs[0].but()

    def forward(self, ctx: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.multiply(inputs[0], self.given["factor"], out=out)


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_factories", {})


def test_the_example_that_comes_with_cntk() -> None:
    register_native_user_function("product", EXAMPLES, "CreateUserTimesFunction")
    x, w = C.input_variable((3, 2), needs_gradient=True), C.parameter(init=np.float32([[0.5, 2, 1], [-0.5, 1.5, 0]]))
    f = native_user_function("product", [w, x], ATTRIBUTES, "mine")
    data = np.random.default_rng(0).normal(size=(4, 3, 2)).astype(np.float32)
    np.testing.assert_allclose(f.eval(data), data @ w.value, rtol=1e-6)
    gradients = f.grad({x: data}, [x, w])
    np.testing.assert_allclose(gradients[x], np.broadcast_to(w.value.sum(1), data.shape), rtol=1e-6)
    np.testing.assert_allclose(gradients[w], np.repeat(data.sum((0, 1))[:, None], 3, 1), rtol=1e-5)
    assert (f.root_function.op_name, f.root_function.name) == ("NativeUserTimesOp", "mine")


def test_attributes_keep_their_names_and_go_with_clones() -> None:
    register_native_user_function("product", EXAMPLES, "CreateUserTimesFunction")
    given = dict(ATTRIBUTES)
    f = native_user_function("product", [C.parameter((2, 2)), C.input_variable(2)], given)
    given["param_rank"] = 3
    for function in (f, f.clone("share")):
        assert function.root_function.attributes == ATTRIBUTES


def test_a_factory_in_a_python_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("made_for_this_test")
    module.Scale = Scale  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "made_for_this_test", module)
    register_native_user_function("scale", "made_for_this_test", "Scale")
    np.testing.assert_array_equal(native_user_function("scale", [np.float32([1, 2])], {"factor": 3}).eval(), [3, 6])


def test_a_factory_of_a_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins.native_functions.add(("Lib-1.0", "CreateScale"), Scale, "of this test")
    try:
        register_native_user_function("scale", "Lib-1.0", "CreateScale")
        np.testing.assert_array_equal(native_user_function("scale", [np.float32([1, 2])], {"factor": 3}).eval(), [3, 6])
    finally:
        plugins.native_functions.remove_all_of("of this test")


def test_whether_an_id_is_taken() -> None:
    assert not C.cntk_py.is_native_user_function_registered("product")
    register_native_user_function("product", EXAMPLES, "CreateUserTimesFunction")
    assert C.cntk_py.is_native_user_function_registered("product")
    with pytest.raises(ValueError, match="'product' is registered already"):
        register_native_user_function("product", EXAMPLES, "CreateUserTimesFunction")


@pytest.mark.parametrize(("module", "factory"), [(EXAMPLES, "Other"), ("no.such.module", "Other"), ("numpy", "Other")])
def test_a_factory_that_is_not_there(module: str, factory: str) -> None:
    with pytest.raises(RuntimeError, match=f"no plugin provides 'Other' under '{module}', nor does a Python module of that name"):
        register_native_user_function("other", module, factory)
    assert not C.cntk_py.is_native_user_function_registered("other")


def test_an_id_that_is_not_registered() -> None:
    with pytest.raises(ValueError, match=r"nothing is registered as 'other'.*Registered: none"):
        native_user_function("other", [C.input_variable(2)])


def test_a_factory_must_make_an_operator() -> None:
    register_native_user_function("dict", "builtins", "dict")
    with pytest.raises(TypeError, match="the factory registered as 'dict' must return a NativeOp, got dict"):
        native_user_function("dict", [C.input_variable(2)], {"a": 1})


@pytest.mark.parametrize(
    ("shapes", "why"),
    [([(2, 2)], "expected two operands"), ([(2,), (2,)], "must be a matrix"), ([(2, 3), (3,)], "last dimension of the second operand")],
)
def test_operands_that_do_not_go_together(shapes: Any, why: str) -> None:
    register_native_user_function("product", EXAMPLES, "CreateUserTimesFunction")
    with pytest.raises(ValueError, match=f"NativeUserTimesOp.*{why}"):
        native_user_function("product", [C.parameter(shape) for shape in shapes])
