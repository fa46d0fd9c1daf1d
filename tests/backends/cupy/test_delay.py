"""Delays outside of recurrences as CUDA texts: the numbers of the operators' own methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.testing import assert_close
from cntk.testing.kernels import _compare_gradients, _compare_values, without_kernels
from cntk.testing.ops import samples_of
from cntk.testing.samples import describe
from cntk.testing.tolerances import VALUES

pytestmark = pytest.mark.usefixtures("host_gpu")

NAMES = ("sequence.past_value", "sequence.future_value", "sequence.delay")
SAMPLES = [(name, sample) for name in NAMES for sample in samples_of(plugins.ops.get(name))]
LENGTHS = (3, 1, 70, 2)


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_samples(name: str, sample: Any) -> None:
    function = plugins.ops.get(name)
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("state", ["a number", "one for all", "one for each", "steps before"])
@pytest.mark.parametrize("steps", [1, 2, -1, -3])
@pytest.mark.parametrize("shape", [(), (1,), (3, 5)], ids=str)
def test_delays(shape: Any, steps: int, state: str, dtype: Any, on_host: list[str]) -> None:
    random = np.random.default_rng(0)

    def rows(*lengths: int) -> list[Any]:
        return [random.standard_normal((length, *shape)).astype(dtype) for length in lengths]

    x = C.sequence.input_variable(shape, dtype=dtype, needs_gradient=True)
    given = {x: rows(*LENGTHS)}
    initial: Any = 0.5
    if state == "one for all":
        initial = C.parameter(init=random.standard_normal(shape).astype(dtype))
    elif state == "one for each":
        initial = C.input_variable(shape, dtype=dtype, needs_gradient=True)
        given[initial] = np.array(rows(*[1] * len(LENGTHS))).reshape(len(LENGTHS), *shape)
    elif state == "steps before":
        initial = C.sequence.input_variable(shape, dtype=dtype, sequence_axis=C.Axis("before"))
        given[initial] = rows(*[abs(steps)] * len(LENGTHS))
    f = C.sequence.delay(x, initial, steps)

    wrt = [x, *([initial] if state in ("one for all", "one for each") else [])]

    def computed() -> tuple[list[Any], list[Any]]:
        gradients, value = f.grad(given, wrt=wrt, outputs=[f.output])
        return [*(gradients[x] if len(wrt) > 1 else gradients), *value], [np.asarray(gradients[one]) for one in wrt[1:]]

    picked, summed = computed()
    assert any("pick(" in text for text in on_host)
    with without_kernels():
        expected, sums = computed()
    for one, other in zip(picked, expected, strict=True):
        np.testing.assert_array_equal(one, other)
    for one, other in zip(summed, sums, strict=True):
        assert_close(one, other, state, VALUES[dtype])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("state", ["a number", "one for all", "one for each", "one number for each", "steps before"])
@pytest.mark.parametrize("steps", [1, 3, -2])
def test_initial_states_of_recurrences(steps: int, state: str, dtype: Any, on_host: list[str]) -> None:
    random = np.random.default_rng(0)

    def rows(*shape: int) -> Any:
        return random.standard_normal(shape).astype(dtype)

    x, before = C.sequence.input_variable((3, 5), dtype=dtype), C.placeholder()
    given, initial = {x: [rows(length, 3, 5) for length in LENGTHS]}, C.constant(0.5, dtype=dtype)
    if state == "one for all":
        initial = C.parameter(init=rows(3, 5))
    elif state.endswith("for each"):
        static = (3, 5) if state == "one for each" else (1,)
        initial = C.input_variable(static, dtype=dtype)
        given[initial] = rows(len(LENGTHS), *static)
    elif state == "steps before":
        initial = C.sequence.input_variable((3, 5), dtype=dtype, sequence_axis=C.Axis("before"))
        given[initial] = [rows(abs(steps), 3, 5) for _ in LENGTHS]
    step = C.sequence.delay(before, initial, steps) - x
    f = step.replace_placeholders({before: step.output})
    found = f.eval(given)
    assert any("put(" in text for text in on_host)
    with without_kernels():
        expected = f.eval(given)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_sequences_that_continue_others_are_the_operators_own() -> None:
    x = C.sequence.input_variable(2)
    f = C.sequence.past_value(x, time_step=2)
    data = [np.arange(8, dtype=np.float32).reshape(4, 2)]

    def computed() -> Any:
        given: list[Any] = [data, (data, [True]), (data, [False]), data, data]
        return [f.eval({x: one})[0].tolist() for one in given]

    found = computed()
    assert found[2][:2] == data[0][2:].tolist()
    assert found[0] == found[1] == found[3] == found[4]
    with without_kernels():
        assert computed() == found
