"""Chains in one compiled call: the same numbers as operator by operator, whatever the number of threads and what else is in a minibatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core import threads
from cntk.testing import assert_close

pytest.importorskip("numba", reason="chains are run by what Numba compiles")
chains = pytest.importorskip("cntk.backends.fused.chains")
recipe = pytest.importorskip("cntk.backends.fused.recipe")
pytestmark = pytest.mark.usefixtures("three_threads")

Model = Callable[[Any], Any]
NEVER = 2**62
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes for small chains too, and small groups."""
    monkeypatch.setattr(chains, "WORTHWHILE", 0)
    monkeypatch.setattr(recipe, "FEWEST", 1)
    monkeypatch.setattr(recipe, "AT_ONCE", 40)
    monkeypatch.setattr("cntk.backends.fused.loops.SHARED_FROM", 1)


@pytest.fixture
def taped(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What has been put on tapes."""
    made: list[Any] = []

    class Noted(chains.Taped):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(chains, "Taped", Noted)
    return made


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


def both_ways(model: Model, data: Any, dtype: Any) -> list[Any]:
    """Values and gradients on tapes, and without passes; they must agree."""
    value, found = gradients(model, data, dtype)
    C.debugging.set_passes([])
    try:
        right, expected = gradients(model, data, dtype)
    finally:
        C.debugging.set_passes()
    assert_close(value, right, "value")
    for number, (gradient, other) in enumerate(zip(found, expected, strict=True)):
        assert_close(gradient, other, f"gradient {number}")
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
