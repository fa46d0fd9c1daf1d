"""Random values: their distributions, and that seeds decide them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import cntk as C
from cntk.core.common.dtypes import FLOAT_TYPES
from cntk.core.extension.device import DeviceDescriptor

NAMES = ["uniform", "normal", "gumbel", "bernoulli"]
DISTRIBUTIONS = {
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "normal": ((0.5, 2.0), stats.norm(0.5, 2)),
    "gumbel": ((0.5, 2.0), stats.gumbel_r(0.5, 2)),
}


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_numbers_are_distributed_as_told(name: str, dtype: Any, device: DeviceDescriptor) -> None:
    arguments, right = DISTRIBUTIONS[name]
    numbers = getattr(C.random, name)((40, 500), dtype, *arguments, seed=3).eval(device=device)
    assert numbers.dtype == dtype
    assert numbers.shape == (40, 500)
    assert stats.kstest(numbers.ravel().astype(np.float64), right.cdf).pvalue > 0.01


@pytest.mark.parametrize("mean", [0.0, 0.1, 0.5, 1.0])
def test_bernoulli_numbers_are_0_and_1(mean: float, device: DeviceDescriptor) -> None:
    numbers = C.random.bernoulli((40, 500), mean=mean, seed=3).eval(device=device)
    assert set(np.unique(numbers)) <= {0, 1}
    assert numbers.mean() == pytest.approx(mean, abs=0.01)


@pytest.mark.parametrize("name", ["normal", "gumbel"])
def test_a_distribution_without_width_is_one_number(name: str, device: DeviceDescriptor) -> None:
    np.testing.assert_array_equal(getattr(C.random, name)(3, np.float32, 1.5, 0).eval(device=device), np.full(3, 1.5, np.float32))


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
def test_the_upper_bound_is_not_reached(dtype: Any, device: DeviceDescriptor) -> None:
    above = np.nextafter(dtype(1), dtype(2))
    np.testing.assert_array_equal(C.random.uniform(1000, dtype, 1, float(above)).eval(device=device), np.ones(1000, dtype))


MEASURED = {
    "uniform": ((2, 5.3), [3.711113214492798, 3.6487033367156982, 3.8485004901885986]),
    "normal": ((0.7, 0.3), [0.9857038259506226, 0.2861500680446625, 0.8042383790016174]),
    "gumbel": ((0.7, 0.3), [0.7940481901168823, 0.8102940320968628, 0.7590508460998535]),
}


@pytest.mark.parametrize("name", MEASURED)
def test_numbers_are_those_of_cntk(name: str, device: DeviceDescriptor) -> None:
    """Measured on CNTK 2.7."""
    arguments, right = MEASURED[name]
    found = getattr(C.random, name)(50000, np.float32, *arguments, seed=9).eval(device=device)[[0, 1, 30000]]
    np.testing.assert_allclose(found, right, rtol=2e-7)


def test_bernoulli_numbers_are_those_of_cntk(device: DeviceDescriptor) -> None:
    """Measured on CNTK 2.7: large numbers of the stream make ones."""
    np.testing.assert_array_equal(C.random.bernoulli(10, mean=0.3, seed=9).eval(device=device), [0, 0, 1, 1, 0, 0, 1, 0, 1, 0])


# ---- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("name", NAMES)
def test_evaluations_go_on_in_one_stream(name: str, dtype: Any, device: DeviceDescriptor) -> None:
    """Also where a pair of normal numbers, or a block of the generator, falls to two of them."""
    parts = getattr(C.random, name)(5, dtype, seed=7)
    whole = getattr(C.random, name)(25, dtype, seed=7).eval(device=device)
    np.testing.assert_array_equal(np.concatenate([parts.eval(device=device) for _ in range(5)]), whole)


@pytest.mark.parametrize("name", NAMES)
def test_nodes_of_one_seed_agree(name: str, device: DeviceDescriptor) -> None:
    one, same, other = (getattr(C.random, name)(100, seed=seed) for seed in (7, 7, 8))
    for _ in range(2):
        value = one.eval(device=device)
        np.testing.assert_array_equal(value, same.eval(device=device))
        assert (value != other.eval(device=device)).any()


def test_a_seed_is_chosen_for_each_node() -> None:
    one, other = C.random.normal(100), C.random.normal(100)
    assert one.root_function.attributes["rngSeed"] != other.root_function.attributes["rngSeed"]
    assert (one.eval() != other.eval()).any()


def test_the_seed_can_be_fixed_for_all_nodes() -> None:
    C.cntk_py.set_fixed_random_seed(11)
    one, other = C.random.normal(100), C.random.normal(100)
    np.testing.assert_array_equal(one.eval(), other.eval())
    C.cntk_py.reset_random_seed(11)
    assert [C.random.normal(1).root_function.attributes["rngSeed"] for _ in range(2)] == [11, 12]
    C.cntk_py.force_deterministic_algorithms()
    np.testing.assert_array_equal(C.random.normal(100, seed=11).eval(), C.random.normal(100, seed=11).eval())


def test_a_value_used_twice_is_drawn_once(device: DeviceDescriptor) -> None:
    value = C.random.normal(100)
    np.testing.assert_array_equal((value - value).eval(device=device), np.zeros(100))


def test_clones_begin_their_stream_anew(device: DeviceDescriptor) -> None:
    value = C.random.normal(100, seed=7)
    first, second = value.eval(device=device), value.eval(device=device)
    clone = value.clone("share")
    np.testing.assert_array_equal(clone.eval(device=device), first)
    np.testing.assert_array_equal(clone.eval(device=device), second)


def test_setting_the_seed_begins_the_stream_anew(device: DeviceDescriptor) -> None:
    value = C.random.normal(100, seed=7)
    first = value.eval(device=device)
    value.set_attribute("rngSeed", 7)
    np.testing.assert_array_equal(value.eval(device=device), first)
    with pytest.raises(RuntimeError, match="'rngOffset' cannot be changed"):
        value.set_attribute("rngOffset", 0)


def test_a_distribution_says_its_arguments_and_state() -> None:
    value = C.random.normal((2, 3), mean=1, scale=2, seed=5)
    value.eval()
    assert value.root_function.op_name == "RandomDistribution"
    attributes = value.root_function.attributes
    assert attributes.pop("newDataType") == C.cntk_py.DataType_Float
    assert attributes == {
        "newShape": (2, 3),
        "rngSeed": 5,
        "rngOffset": 6,
        "randomDistributionType": "normal",
        "randomDistributionArgs": [1.0, 2.0],
    }


# ---- types and rows --------------------------------------------------------------------------------


def test_the_element_type_is_an_option() -> None:
    with C.default_options(dtype=np.float64):
        assert C.random.uniform(2).dtype == np.float64
        assert C.random.uniform(2, np.float16).dtype == np.float16
    assert C.random.uniform(2).dtype == np.float32


@pytest.mark.parametrize("name", NAMES)
def test_values_like_others_have_their_rows(name: str, device: DeviceDescriptor) -> None:
    x = C.sequence.input_variable((2, 3), dtype=np.float64)
    value = getattr(C.random, f"{name}_like")(x, seed=1)
    found = value.eval({x: [np.zeros((steps, 2, 3)) for steps in (2, 5, 1)]}, device=device)
    assert [part.shape for part in found] == [(2, 2, 3), (5, 2, 3), (1, 2, 3)]
    assert found[0].dtype == np.float64
    assert len(np.unique(np.concatenate(found))) == (2 if name == "bernoulli" else 48)


def test_values_like_a_sparse_one_are_dense(device: DeviceDescriptor) -> None:
    from scipy.sparse import csr_matrix

    x = C.input_variable(4, is_sparse=True)
    found = C.random.uniform_like(x).eval({x: csr_matrix(np.eye(4, dtype=np.float32))}, device=device)
    assert found.shape == (4, 4)
    assert (found > 0).all()


def test_values_like_a_placeholder() -> None:
    p = C.placeholder()
    value = C.random.uniform_like(p, low=1, high=2) * p
    x = C.input_variable(3)
    found = value.replace_placeholders({p: x}).eval({x: np.ones((2, 3), np.float32)})
    assert found.shape == (2, 3)
    assert found.min() >= 1
    assert found.max() < 2


def test_gradients_see_the_numbers_of_their_pass(device: DeviceDescriptor) -> None:
    x = C.input_variable(50, needs_gradient=True)
    noisy = x * C.random.normal_like(x, seed=1)
    ones = np.ones((2, 50), np.float32)
    seen = []
    for _ in range(2):
        gradient, value = noisy.grad({x: ones}, wrt=[x], outputs=[noisy.output], device=device)
        np.testing.assert_array_equal(gradient, value)
        seen.append(value)
    assert (seen[0] != seen[1]).all()


def test_no_gradient_flows_to_what_they_are_like(device: DeviceDescriptor) -> None:
    x = C.input_variable(3, needs_gradient=True)
    np.testing.assert_array_equal(C.random.normal_like(x).grad({x: np.ones((2, 3), np.float32)}, device=device), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda r: r.uniform(2, low=3, high=1), RuntimeError, "got low=3 and high=1"),
        (lambda r: r.uniform_like(C.constant(1), low=1, high=1), RuntimeError, "the lower bound must be below"),
        (lambda r: r.normal(2, scale=-1), RuntimeError, "the scale must not be negative, got -1"),
        (lambda r: r.gumbel_like(C.constant(1), scale=-1), RuntimeError, "gumbel_like: the scale must not be negative"),
        (lambda r: r.bernoulli(2, mean=1.5), RuntimeError, r"probability in \[0, 1\], got 1.5"),
        (lambda r: r.normal((-1, 2)), ValueError, "a dimension that is not known"),
        (lambda r: r.normal(2, dtype=np.int32), ValueError, "is not supported"),
    ],
)
def test_wrong_arguments_are_refused_by_name(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make(C.random)
