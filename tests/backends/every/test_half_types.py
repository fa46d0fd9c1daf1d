"""float16 and bfloat16: gradients of all operators, sums in float32, masters, mixed types."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.operators.samples import Sample
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial, describe

ROUNDING = {C.bfloat16: 2.0**-8, np.float16: 2.0**-11}
"""Half a unit in the last place, relative to the number: bfloat16 has 8 bits, float16 11."""
STEPS = 10
"""Roundings that the gradient of an operator makes at most, its result's among them."""
SMALL = 1e-3
"""Gradients that may be as far off as this one."""

of_each_type = pytest.mark.parametrize("dtype", ROUNDING, ids=["bfloat16", "float16"])


def _wanted(sample: Sample) -> list[int]:
    return [i for i, operand in enumerate(sample.operands) if operand.gradient and not operand.sparse]


SAMPLES = [(name, sample) for name in plugins.ops for sample in samples_of(plugins.ops.get(name)) if _wanted(sample)]


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_gradients_are_those_of_float64_but_for_roundings(name: str, sample: Sample, device: DeviceDescriptor) -> None:
    for dtype, rounding in ROUNDING.items():
        values, found = _gradients(name, sample, dtype, dtype, None, device)
        _, expected = _gradients(name, sample, np.float64, dtype, values, device)
        for one, right in zip(found, expected, strict=True):
            assert np.abs(one - right).max(initial=0) <= STEPS * rounding * np.abs(right).max(initial=SMALL), dtype


def _gradients(name: str, sample: Sample, dtype: Any, rounded: Any, values: Any, device: DeviceDescriptor) -> Any:
    """The operands' values, and gradients of the results' sum with random weights, in double precision."""
    trial = Trial(plugins.ops.get(name), sample, dtype, device)
    if values is not None:
        trial.assign(values)
    generator, feed, terms = np.random.default_rng(3), trial.feed(), []
    for output, value in zip(trial.result.outputs, trial.evaluate(), strict=True):
        weight = C.input_variable(output.shape, dtype, dynamic_axes=list(output.dynamic_axes))
        parts = [generator.uniform(0.5, 1.5, np.shape(part)).astype(rounded).astype(dtype) for part in _parts(value)]
        feed[weight] = parts if isinstance(value, list) else parts[0]
        terms.append(C.element_times(output, weight))
    total = terms[0] if len(terms) == 1 else C.plus(*(C.reduce_sum(term) for term in terms))
    variables = [trial.variables[i] for i in _wanted(sample)]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).* is given as .*")
        found = total.grad(feed, wrt=variables, device=device)
    found = found if isinstance(found, dict) else {variables[0]: found}
    return trial.values, [np.concatenate([np.ravel(part).astype(np.float64) for part in _parts(found[v])]) for v in variables]


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@of_each_type
def test_results_and_gradients_have_the_type(dtype: Any, device: DeviceDescriptor) -> None:
    x, w = C.input_variable(3, dtype, needs_gradient=True), C.parameter((3, 2), init=0.5, dtype=dtype)
    y = C.relu(C.times(x, w) * 2.5 - 1)
    data = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    assert y.dtype is dtype
    assert y.eval({x: data}, device=device).dtype == dtype
    assert [found.dtype for found in y.grad({x: data}, [x, w], device=device).values()] == [dtype, dtype]
    np.testing.assert_array_equal(y.eval({x: data}, device=device), np.array([[6.5, 6.5], [17.75, 17.75]], dtype))


def test_a_value_is_rounded_to_the_nearest_bfloat16(device: DeviceDescriptor) -> None:
    x = C.input_variable(4)
    found = C.cast(C.cast(x, "bfloat16"), np.float32).eval({x: [[1 + 2**-8, 1 + 3 * 2**-8, 1e38, 1e-40]]}, device=device)
    np.testing.assert_array_equal(found, np.float32([[1, 1 + 2**-6, float(C.bfloat16(1e38)), float(C.bfloat16(1e-40))]]))


@of_each_type
def test_sums_means_and_products_are_accumulated_in_float32(dtype: Any, device: DeviceDescriptor) -> None:
    x, w = C.input_variable(4096, dtype), C.parameter((4096, 1), init=1, dtype=dtype)
    feed = {x: np.ones((1, 4096), dtype)}
    for f in (C.reduce_sum(x), C.times(x, w), C.reduce_mean(x) * 4096, C.reduce_sum_square(x)):
        assert float(f.eval(feed, device=device).item()) == 4096
    assert float(C.softmax(x).eval(feed, device=device)[0, 0]) == 1 / 4096


@of_each_type
def test_mixed_types_are_refused_with_what_to_do(dtype: Any) -> None:
    with pytest.raises(ValueError, match=f"{np.dtype(dtype).name} and float32; use cast"):
        C.input_variable(2, dtype) + C.input_variable(2)
    other = next(one for one in ROUNDING if one is not dtype)
    with pytest.raises(ValueError, match=f"{np.dtype(dtype).name} and {np.dtype(other).name}; use cast"):
        C.input_variable(2, dtype) + C.input_variable(2, other)
    with pytest.raises(ValueError, match="bfloat16 and float16; bring them to one type"):
        C.plus(np.ones(2, dtype), np.ones(2, other))


def test_data_of_other_types_is_converted_with_advice(device: DeviceDescriptor) -> None:
    x = C.input_variable(1, C.bfloat16)
    with pytest.warns(UserWarning, match=r"float64 data, which is converted to bfloat16 on every call.*\.astype\(cntk\.bfloat16\)"):
        assert (x + 1).eval({x: np.ones((1, 1))}, device=device) == 2


@of_each_type
def test_arrays_of_the_type_are_operands_and_initial_values(dtype: Any) -> None:
    array = np.array([1, 2], dtype)
    assert C.constant(array).dtype is C.constant(array, dtype).dtype is C.parameter(init=array, dtype=dtype).dtype is dtype
    assert (C.input_variable(2, dtype) * array).dtype is dtype
    assert C.plus(array, array).dtype is dtype


@of_each_type
def test_programs_that_compute_in_it_by_default(dtype: Any, device: DeviceDescriptor) -> None:
    with C.default_options(dtype=dtype):
        model = C.layers.Sequential([C.layers.Dense(4, activation=C.tanh), C.layers.BatchNormalization(), C.layers.Dense(1)])
        x = C.input_variable(3)
    y = model(x)
    assert y.dtype is dtype
    assert {str(np.dtype(p.dtype)) for p in y.parameters} == {np.dtype(dtype).name, "float32"}
    assert y.eval({x: np.ones((2, 3), dtype)}, device=device).dtype == dtype
