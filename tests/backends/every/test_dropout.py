"""Dropout: what it drops, when, and that seeds decide it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor

SHAPE = (50, 40)
ONES = np.ones((3, *SHAPE), np.float32)


def train(function: Any, device: DeviceDescriptor, data: Any = ONES) -> tuple[Any, Any]:
    """Value and gradient of one training pass."""
    (x,) = function.arguments
    gradient, value = function.grad({x: data}, wrt=[x], outputs=[function.output], device=device)
    return value, gradient


def dropped(rate: float, **arguments: Any) -> Any:
    return C.dropout(C.input_variable(SHAPE, needs_gradient=True), rate, **arguments)


def test_evaluation_changes_nothing(device: DeviceDescriptor) -> None:
    np.testing.assert_array_equal(dropped(0.5).eval(ONES, device=device), ONES)


@pytest.mark.parametrize("rate", [0.0, 0.2, 0.5, 0.9])
def test_training_drops_the_given_part_and_keeps_the_mean(rate: float, device: DeviceDescriptor) -> None:
    value, _ = train(dropped(rate), device)
    np.testing.assert_allclose(np.unique(value[value != 0]), 1 / (1 - rate), rtol=1e-6)
    assert np.mean(value == 0) == pytest.approx(rate, abs=0.03)


def test_the_gradient_has_the_mask_of_the_value(device: DeviceDescriptor) -> None:
    value, gradient = train(dropped(0.5), device)
    np.testing.assert_array_equal(value, gradient)


def test_every_pass_draws_a_new_mask(device: DeviceDescriptor) -> None:
    function = dropped(0.5)
    first, second = train(function, device)[0], train(function, device)[0]
    assert 0.4 < np.mean(first != second) < 0.6


def test_equal_seeds_give_equal_masks(device: DeviceDescriptor) -> None:
    first, second, other = (train(dropped(0.5, seed=seed), device)[0] for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()


def test_all_element_types_have_the_same_mask(device: DeviceDescriptor) -> None:
    masks = []
    for dtype in (np.float16, np.float32, np.float64):
        x = C.input_variable(SHAPE, dtype, needs_gradient=True)
        value, _ = train(C.dropout(x, 0.3, seed=7), device, ONES.astype(dtype))
        assert value.dtype == dtype
        masks.append(value != 0)
    np.testing.assert_array_equal(masks[0], masks[1])
    np.testing.assert_array_equal(masks[0], masks[2])


def test_a_clone_begins_with_the_seed_again(device: DeviceDescriptor) -> None:
    function = dropped(0.5)
    first = train(function, device)[0]
    np.testing.assert_array_equal(train(function.clone("clone"), device)[0], first)


def test_attributes_can_be_changed(device: DeviceDescriptor) -> None:
    function = dropped(0.5, seed=7)
    first = train(function, device)[0]
    function.set_attribute("rngSeed", 7)
    np.testing.assert_array_equal(train(function, device)[0], first)
    function.set_attribute("dropoutRate", 0.0)
    np.testing.assert_array_equal(train(function, device)[0], ONES)
    assert function.root_function.attributes == {"dropoutRate": 0.0, "rngSeed": 7, "rngOffset": 2}


@pytest.mark.parametrize("rate", [-0.1, 1.0, 100])
def test_a_rate_outside_its_range_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="dropout rate"):
        dropped(rate)


@pytest.mark.parametrize("rate", [-0.1, 1.0, 100])
def test_a_rate_that_was_set_outside_its_range_is_refused_in_training(device: DeviceDescriptor, rate: float) -> None:
    function = dropped(0.5)
    function.set_attribute("dropoutRate", rate)
    assert function.root_function.attributes["dropoutRate"] == rate
    np.testing.assert_array_equal(function.eval(ONES, device=device), ONES)
    with pytest.raises(ValueError, match="dropout rate"):
        train(function, device)
