"""Drawing classes at random: how often, which of them, and what sampled losses are told of it."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

import cntk as C
from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension.device import DeviceDescriptor

WEIGHTS = [1.0, 2.0, 5.0, 3.0, 0.0, 1.0]


def drawn(weights: Any, *arguments: Any, dtype: Any = np.float32, **named: Any) -> Any:
    """A Function that gives the numbers of the classes drawn."""
    weights = np.asarray(weights, dtype)
    return C.times(C.random_sample(weights, *arguments, **named), np.arange(weights.size, dtype=dtype)[:, None])


def test_the_result_is_sparse_rows() -> None:
    found = C.random_sample([1, 2, 3], 5, True)
    assert found.shape == (5, 3)
    assert found.dynamic_axes == ()
    rows = found.root_function.outputs[0]
    assert rows.is_sparse


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_with_duplicates_classes_come_as_often_as_weights_say(dtype: Any, device: DeviceDescriptor) -> None:
    numbers = drawn(WEIGHTS, 2000, True, seed=2, dtype=dtype).eval(device=device).ravel().astype(int)
    counts = np.bincount(numbers, minlength=6)
    assert counts[4] == 0
    expected = np.delete(np.array(WEIGHTS) / 12 * 2000, 4)
    assert stats.chisquare(np.delete(counts, 4), expected).pvalue > 0.01


def test_without_duplicates_each_is_drawn_from_those_left(device: DeviceDescriptor) -> None:
    """All ordered samples of two classes come as often as drawing one after the other makes them."""
    p = np.array([1.0, 2.0, 5.0, 3.0]) / 11
    function = drawn(p, 2, False, seed=2)
    pairs = [tuple(function.eval(device=device).ravel().astype(int)) for _ in range(3000)]
    outcomes = list(permutations(range(4), 2))
    right = [p[i] * p[j] / (1 - p[i]) for i, j in outcomes]
    assert stats.chisquare([pairs.count(pair) for pair in outcomes], np.array(right) * 3000).pvalue > 0.01


@pytest.mark.parametrize("allow_duplicates", [True, False])
def test_every_evaluation_draws_anew_and_seeds_decide(allow_duplicates: bool, device: DeviceDescriptor) -> None:
    weights = np.arange(1, 101)
    one, same, other = (drawn(weights, 20, allow_duplicates, seed=seed) for seed in (5, 5, 6))
    first, second = one.eval(device=device), one.eval(device=device)
    assert (first != second).any()
    np.testing.assert_array_equal(same.eval(device=device), first)
    np.testing.assert_array_equal(same.clone("share").eval(device=device), first)
    assert (other.eval(device=device) != first).any()


def test_samples_with_duplicates_are_cntks(device: DeviceDescriptor) -> None:
    function = drawn(np.ones(5), 4, True, seed=1)
    found = [function.eval(device=device).ravel().tolist() for _ in range(2)]
    assert found == [[0, 0, 2, 0], [1, 4, 2, 0]]


def test_the_seed_can_be_set_later(device: DeviceDescriptor) -> None:
    found = C.random_sample(np.arange(1, 101, dtype=np.float32), 20, True, seed=5)
    numbers = C.times(found, np.arange(100, dtype=np.float32)[:, None])
    first = numbers.eval(device=device)
    found.set_attribute("rngSeed", 5)
    np.testing.assert_array_equal(numbers.eval(device=device), first)
    assert found.root_function.attributes["rngSeed"] == 5


def test_no_gradient_flows_to_the_weights(device: DeviceDescriptor) -> None:
    weights = C.parameter(3, init=1)
    picked = C.times(C.random_sample(weights, 4, True), np.ones((3, 1), np.float32))
    np.testing.assert_array_equal(picked.grad({}, wrt=[weights], device=device), np.zeros(3))


# ---- expected counts -------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 7])
def test_counts_with_duplicates_are_in_proportion_to_weights(count: int, device: DeviceDescriptor) -> None:
    found = C.random_sample_inclusion_frequency(WEIGHTS, count, True).eval(device=device)
    np.testing.assert_allclose(found, np.array(WEIGHTS) / 12 * count, rtol=1e-6)


@pytest.mark.parametrize("count", [10, 50, 150])
def test_counts_without_duplicates_are_how_often_classes_are_drawn(count: int, device: DeviceDescriptor) -> None:
    p = np.arange(1, 201) ** -0.7
    p /= p.sum()
    generator = np.random.default_rng(1)
    draws = 4000
    seen = sum(np.bincount(generator.choice(200, count, replace=False, p=p), minlength=200) for _ in range(draws)) / draws
    found = C.random_sample_inclusion_frequency(p, count, False).eval(device=device)
    np.testing.assert_allclose(found, seen, atol=0.035)
    assert found.sum() == pytest.approx(count, rel=1e-9)


def test_counts_without_duplicates_are_those_of_some_number_of_draws_with_them(device: DeviceDescriptor) -> None:
    """1 - (1 - p)^t with one t for all classes; CNTK estimates t from ten trials, whose results for two seeds are given here."""
    p = np.array([1, 2, 5, 3, 1]) / 12
    found = C.random_sample_inclusion_frequency(C.constant(p), 2, False).eval(device=device)
    times = np.log1p(-found) / np.log1p(-p)
    np.testing.assert_allclose(times, times[0])
    seeds = [0.19549528, 0.36606187, 0.74010855, 0.5128607, 0.19549528], [0.18846463, 0.35439777, 0.7257161, 0.49864307, 0.18846463]
    for measured in seeds:
        np.testing.assert_allclose(found, measured, atol=0.015)


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_counts_of_very_different_weights(dtype: Any, device: DeviceDescriptor) -> None:
    weights = np.repeat([100, 10, 0.1], 100).astype(dtype)
    found = C.random_sample_inclusion_frequency(C.constant(weights), 200, False).eval(device=device)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, np.repeat([1, 1, 0], 100), atol=0.1)


def test_a_class_with_all_the_weight_is_certain(device: DeviceDescriptor) -> None:
    np.testing.assert_allclose(C.random_sample_inclusion_frequency([0, 4, 0], 1, False).eval(device=device), [0, 1, 0])
    np.testing.assert_allclose(C.random_sample_inclusion_frequency([1e-30, 1, 1e-30], 1, False).eval(device=device), [0, 1, 0], atol=1e-6)


# ---- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [C.random_sample, C.random_sample_inclusion_frequency])
@pytest.mark.parametrize(
    ("weights", "arguments", "message"),
    [
        ([1, 2, 3], (0, True), "must be positive, got 0"),
        ([1, 2, 3], (3, False), "3 samples without duplicates need more than 3 classes"),
        ([1, -2, 3], (1, True), "weights must not be negative, got -2"),
        ([1, float("nan"), 3], (1, True), "weights must not be negative"),
        ([0, 0, 0], (1, True), "1 samples need 1 classes with positive weights, there are 0"),
        ([1, 0, 0, 0], (2, False), "2 samples need 2 classes with positive weights, there are 1"),
        ([[1, 2], [3, 4]], (1, True), "the weights must be one vector"),
    ],
)
def test_wrong_weights_and_numbers(function: Any, weights: Any, arguments: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        C.times(function(weights, *arguments), np.ones((len(weights), 1), np.float32)).eval()


def test_weights_of_a_minibatch_are_refused() -> None:
    x = C.input_variable(3)
    found = C.random_sample_inclusion_frequency(x, 2, True)
    np.testing.assert_allclose(found.eval({x: [[1, 2, 1]]}), [0.5, 1, 0.5])
    with pytest.raises(RuntimeError, match="there are 2 rows of weights"):
        found.eval({x: np.ones((2, 3), np.float32)})
