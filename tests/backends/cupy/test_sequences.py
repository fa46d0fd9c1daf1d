"""Kernels over the steps of sequences as CUDA texts: the numbers of the operators' own methods."""

from __future__ import annotations

from collections.abc import Callable
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

NAMES = ("sequence.reduce_sum", "sequence.reduce_max", "sequence.softmax", "sequence.broadcast_as", "reconcile_dynamic_axes")
SAMPLES = [(name, sample) for name in NAMES for sample in samples_of(plugins.ops.get(name))]
all_types = pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)

LENGTHS = (3, 1, 700, 3, 40)
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "sum": C.sequence.reduce_sum,
    "maximum": C.sequence.reduce_max,
    "softmax": C.sequence.softmax,
    "repeated": lambda x: C.sequence.broadcast_as(C.sequence.first(x), x),
    "expanded": lambda x: C.sequence.last(x) - x,
}


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_samples(name: str, sample: Any) -> None:
    function = plugins.ops.get(name)
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)


def values_and_gradients(function: Callable[[Any], Any], data: list[Any], dtype: Any) -> list[Any]:
    x = C.sequence.input_variable(data[0].shape[1:], dtype=dtype, needs_gradient=True)
    y = function(x)
    state, value = y.forward({x: data}, [y.output], {y.output})
    found = value[y.output]
    weights = [np.cos(np.arange(np.size(one))).reshape(np.shape(one)).astype(dtype) for one in found]
    return [*found, *y.backward(state, {y.output: np.array(weights) if isinstance(found, np.ndarray) else weights}, {x})[x]]


@all_types
@pytest.mark.parametrize("shape", [(), (3,), (5, 7)], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sequences_of_many_lengths(name: str, shape: Any, dtype: Any, on_host: list[str]) -> None:
    random = np.random.default_rng(0)
    data = [random.uniform(0.1, 1, (length, *shape)).astype(dtype) for length in LENGTHS]
    found = values_and_gradients(FUNCTIONS[name], data, dtype)
    assert on_host
    with without_kernels():
        expected = values_and_gradients(FUNCTIONS[name], data, dtype)
    for one, other in zip(found, expected, strict=True):
        assert_close(np.asarray(one), np.asarray(other), name, VALUES[dtype])


@pytest.mark.parametrize("name", ["sum", "maximum", "softmax"])
def test_values_that_are_no_numbers_stay_in_their_sequence_and_column(name: str) -> None:
    x = C.sequence.input_variable(2)
    data = [np.ones((3, 2), np.float32), np.ones((2, 2), np.float32)]
    data[0][1, 1] = np.nan
    found = [np.isnan(one).any(axis=tuple(range(np.ndim(one) - 1))) for one in FUNCTIONS[name](x).eval({x: data})]
    assert [one.tolist() for one in found] == [[False, True], [False, False]]


@all_types
def test_large_exponents_do_not_overflow(dtype: Any) -> None:
    x = C.sequence.input_variable((), dtype=dtype)
    (found,) = C.sequence.softmax(x).eval({x: [np.array([5000, 5000, -5000], dtype)]})
    assert found.tolist() == [0.5, 0.5, 0]


def test_the_gradient_of_a_maximum_goes_to_all_steps_that_have_it() -> None:
    x = C.sequence.input_variable((), needs_gradient=True)
    (found,) = C.sequence.reduce_max(x).grad({x: [np.float32([2, 1, 2])]}, wrt=[x])
    assert found.tolist() == [1, 0, 1]
