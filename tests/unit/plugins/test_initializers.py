"""Initialisers: ranges and spreads of what they draw, fans, seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import cntk.initializer as init
from cntk.core.common import random
from cntk.plugins.initializers import DISTRIBUTIONS, Initializer, constant

RANDOM = ["uniform", "normal", "truncated_normal", "xavier", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal"]
RANKED = ["normal", "xavier", "glorot_uniform", "glorot_normal", "he_uniform", "he_normal"]


def make(name: str, scale: float = 1, **options: Any) -> Initializer:
    return getattr(init, name)(scale, **options)


def fill(initializer: Initializer, *shape: int) -> Any:
    return initializer.fill(shape, np.float32)


def test_every_kind_is_tested() -> None:
    assert set(RANDOM) == set(DISTRIBUTIONS)


@pytest.mark.parametrize(
    ("initializer", "shape", "limit"),
    [
        (init.uniform(0.3), (200, 300), 0.3),
        (init.xavier(), (200, 300), 0.1225),
        (init.glorot_uniform(), (200, 300), 0.1095),
        (init.he_uniform(), (200, 300), 0.1732),
        (init.glorot_uniform(2), (200, 300), 0.2191),
        (init.glorot_uniform(), (50, 40, 3, 3), 0.0316),
        (init.glorot_uniform(filter_rank=2, output_rank=-1), (50, 40, 3, 3), 0.0861),
        (init.he_uniform(output_rank=2), (40, 50, 60), math.sqrt(6 / 40)),
        (init.he_uniform(), (10000,), math.sqrt(6)),
        (init.he_uniform(output_rank=0), (50, 60), math.sqrt(6 / 3000)),
    ],
    ids=repr,
)
def test_uniform_kinds_fill_their_interval(initializer: Initializer, shape: tuple[int, ...], limit: float) -> None:
    values = fill(initializer, *shape)
    assert values.dtype == np.float32
    assert values.max() == pytest.approx(limit, rel=2e-3)
    assert values.min() == pytest.approx(-limit, rel=2e-3)
    assert values.std() == pytest.approx(limit / math.sqrt(3), rel=2e-2)


@pytest.mark.parametrize(
    ("initializer", "shape", "deviation"),
    [
        (init.normal(2), (200, 300), 2),
        (init.glorot_normal(), (200, 300), math.sqrt(2 / 500)),
        (init.he_normal(), (200, 300), 0.1003),
        (init.he_normal(3, filter_rank=2), (30, 20, 9, 9), 3 * math.sqrt(2 / (30 * 81))),
    ],
    ids=repr,
)
def test_normal_kinds_have_their_deviation(initializer: Initializer, shape: tuple[int, ...], deviation: float) -> None:
    values = fill(initializer, *shape)
    assert values.std() == pytest.approx(deviation, rel=2e-2)
    assert abs(values.mean()) < deviation / 50


def test_truncated_normal_is_cut_at_two_deviations() -> None:
    values = fill(init.truncated_normal(0.5), 300, 300)
    assert abs(values).max() <= 1
    assert abs(values).max() > 0.99
    assert values.std() == pytest.approx(0.88 * 0.5, rel=2e-2)


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_equal_seeds_give_equal_values_in_every_type(name: str, dtype: Any) -> None:
    values = make(name, seed=7).fill((20, 30), dtype)
    assert values.dtype == dtype
    exact = make(name, seed=7).fill((20, 30), np.float64)
    np.testing.assert_allclose(values, exact, rtol=2 * np.finfo(dtype).eps)
    assert not np.allclose(values, make(name, seed=8).fill((20, 30), dtype))


@pytest.mark.parametrize(
    ("initializer", "shape", "right"),
    [
        (init.uniform(0.3, seed=9), (50000,), [0.011111461132587097, -0.00023576180659184987, 0.036090960604999944]),
        (init.glorot_uniform(seed=9), (500, 70), [0.0038000395273566495, -8.06288366039104e-05, 0.0123428480955627]),
        (init.normal(0.3, seed=9), (50000,), [0.28570383747559286, -0.41384991671785337, 0.1042383891976749]),
        (init.he_normal(seed=9), (500, 70), [0.06023165751156298, -0.08724722308662747, 0.021975381966116283]),
        (init.truncated_normal(0.3, seed=9), (50000,), [0.28570383747559286, -0.41384991671785337, -0.2036003318653043]),
    ],
    ids=repr,
)
def test_values_are_those_of_cntk(initializer: Initializer, shape: tuple[int, ...], right: list[float]) -> None:
    """Measured on CNTK 2.7, to the last bit."""
    np.testing.assert_array_equal(initializer.fill(shape, np.float64).reshape(-1)[[0, 1, 30000]], right)


def test_float32_values_are_those_of_cntk() -> None:
    """Where the rounding of float32 begins: the width is rounded first."""
    found = init.uniform(0.3, seed=9).fill((50000,), np.float32)[[0, 1, 30000]]
    np.testing.assert_array_equal(found, np.array([0.01111146155744791, -0.00023576182138640434, 0.03609096258878708], np.float32))


def test_seed_is_chosen_anew_for_every_array() -> None:
    initializer = init.uniform(1)
    assert not np.allclose(fill(initializer, 5), fill(initializer, 5))


def test_seeded_initialiser_repeats_itself() -> None:
    initializer = init.uniform(1).seeded()
    np.testing.assert_array_equal(fill(initializer, 5), fill(initializer, 5))
    assert fill(init.uniform(1, seed=3).seeded(), 5)[0] == fill(init.uniform(1, seed=3), 5)[0]


def test_fixed_seed_makes_arrays_equal() -> None:
    random.set_fixed_random_seed(1)
    assert random.is_random_seed_fixed()
    np.testing.assert_array_equal(fill(init.he_normal(), 5, 4), fill(init.he_normal(), 5, 4))


def test_reset_seed_repeats_what_is_drawn() -> None:
    random.reset_random_seed(5)
    first = [fill(init.uniform(1), 3) for _ in range(2)]
    assert random.get_random_seed() == 7
    random.reset_random_seed(5)
    second = [fill(init.uniform(1), 3) for _ in range(2)]
    np.testing.assert_array_equal(first, second)
    assert not random.is_random_seed_fixed()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5])
def test_bilinear_weights_interpolate(size: int) -> None:
    values = fill(init.bilinear(size, size), 2, 2, size, size)
    factor = (size + 1) // 2
    assert values[0, 0].sum() == pytest.approx(factor**2)
    np.testing.assert_array_equal(values[0, 0], values[1, 1])
    np.testing.assert_array_equal(values[0, 0], values[0, 0].T)
    np.testing.assert_array_equal(values[0, 1], 0)


def test_bilinear_row() -> None:
    np.testing.assert_allclose(fill(init.bilinear(4, 4), 1, 1, 4, 4)[0, 0, 0], [0.0625, 0.1875, 0.1875, 0.0625])


@pytest.mark.parametrize(("width", "shape"), [(3, (1, 1, 4, 4)), (3, (3, 3)), (3, (1, 2, 3, 3))])
def test_bilinear_refuses_other_shapes(width: int, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="bilinear"):
        fill(init.bilinear(width, 3), *shape)


def test_bilinear_filter_must_be_square() -> None:
    with pytest.raises(ValueError, match="square"):
        fill(init.bilinear(3, 4), 1, 1, 4, 3)


def test_constant_fills() -> None:
    np.testing.assert_array_equal(constant(2).fill((2,), np.float64), [2.0, 2.0])


@pytest.mark.parametrize("name", RANDOM)
@pytest.mark.parametrize("scale", [0, -1, float("nan")])
def test_scale_must_be_positive(name: str, scale: float) -> None:
    with pytest.raises(ValueError, match=name):
        make(name, scale)


def test_seed_must_not_be_negative() -> None:
    with pytest.raises(ValueError, match="seed"):
        init.uniform(1, seed=-1)


@pytest.mark.parametrize("name", RANKED)
def test_ranks_must_fit_the_shape(name: str) -> None:
    with pytest.raises(ValueError, match="output_rank"):
        fill(make(name, output_rank=2), 3)
    with pytest.raises(ValueError, match="filter"):
        fill(make(name, filter_rank=2), 3, 4)
    with pytest.raises(ValueError, match=name):
        fill(make(name))


@pytest.mark.parametrize("name", RANDOM)
def test_empty_arrays_can_be_filled(name: str) -> None:
    assert fill(make(name), 0, 3).shape == (0, 3)


def test_rank_is_given_once() -> None:
    ranked = init.initializer_with_rank(init.he_normal(), output_rank=-1, filter_rank=2)
    assert repr(ranked) == "he_normal(1, output_rank=-1, filter_rank=2)"
    assert init.initializer_with_rank(ranked) == ranked
    with pytest.raises(ValueError, match="already"):
        init.initializer_with_rank(ranked, output_rank=1)


@pytest.mark.parametrize("initializer", [init.uniform(1), init.truncated_normal(1), init.bilinear(3, 3)], ids=repr)
def test_rank_does_not_matter_to_kinds_without_one(initializer: Initializer) -> None:
    assert init.initializer_with_rank(initializer, output_rank=1, filter_rank=2) == initializer


@pytest.mark.parametrize("given", [3, None, np.ones(3)])
def test_only_initialisers_have_ranks(given: Any) -> None:
    with pytest.raises(TypeError, match="initializer_with_rank"):
        init.initializer_with_rank(given, output_rank=1)


@pytest.mark.parametrize(
    ("initializer", "text"),
    [
        (init.glorot_uniform(), "glorot_uniform(1)"),
        (init.uniform(0.5, seed=3), "uniform(0.5, seed=3)"),
        (init.bilinear(3, 3), "bilinear(3, 3)"),
        (constant(1), "constant(1)"),
    ],
)
def test_prints_as_it_is_made(initializer: Initializer, text: str) -> None:
    assert repr(initializer) == text
