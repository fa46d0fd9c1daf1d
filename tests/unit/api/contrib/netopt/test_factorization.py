"""Dense layers whose weights are factorised; the numbers are what CNTK 2.7 gave."""

from __future__ import annotations

import numpy as np
import pytest

import cntk as C
from cntk.contrib.netopt.factorization import dense_factored, factor_dense, svd_subprojection

ONES = np.ones((1, 6), np.float32)
W = np.float32(np.arange(48).reshape(6, 8) % 7)


def test_a_layer_of_lower_rank() -> None:
    model = C.layers.Dense(8, name="d")(C.input_variable(6)) + 1
    model.d.W.value, model.d.b.value = W, np.arange(8, dtype=np.float32)
    small = factor_dense(model, projection_function=lambda weights: 2)
    expected = [[16.043, 23.037, 23.101, 23.177, 23.074, 22.804, 22.647, 23.043]]
    np.testing.assert_allclose(small.eval(ONES), expected, atol=1e-3)
    assert sorted((p.name, p.shape) for p in small.parameters) == [("W1", (6, 2)), ("W2", (2, 8)), ("b", (8,))]


def test_activations_are_left_out_as_in_cntk() -> None:
    model = C.layers.Dense(8, activation=C.relu)(C.input_variable(6))
    model.W.value, model.b.value = W, np.full(8, -30, np.float32)
    small = factor_dense(model, projection_function=lambda weights: 6)
    np.testing.assert_allclose(small.eval(ONES), [[-15, -9, -10, -11, -12, -13, -14, -15]], atol=1e-4)


def test_layers_can_be_chosen_and_factors_given() -> None:
    model = C.layers.Sequential([C.layers.Dense(4, name="first"), C.layers.Dense(3, name="second")])(C.input_variable(6))
    small = factor_dense(
        model, filter_function=lambda layer: layer.name == "first", factor_function=lambda weights, k: (weights, np.eye(4))
    )
    assert sorted(parameter.shape for parameter in small.parameters) == [(3,), (4,), (4, 3), (4, 4), (6, 4)]
    np.testing.assert_allclose(small.eval(ONES), model.eval(ONES), rtol=1e-5)


def test_a_layer_of_two_factors() -> None:
    init = {"W1": np.ones((6, 2), np.float32), "W2": np.ones((2, 3), np.float32)}
    assert dense_factored((2, 3), init=init)(C.input_variable(6)).eval(ONES).tolist() == [[12, 12, 12]]


def test_the_nearest_matrix_of_a_rank() -> None:
    left, right = svd_subprojection(W, 8)
    np.testing.assert_allclose(left @ right, W, atol=1e-4)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(ValueError, match="factor_dense: give a projection_function that tells the rank"):
        factor_dense(C.layers.Dense(2)(C.input_variable(3)))
    with pytest.raises(ValueError, match="init gives both factors"):
        dense_factored((2, 3))
    with pytest.raises(ValueError, match="shapes are the numbers of columns of two factors"):
        dense_factored((2,), init={"W1": 0, "W2": 0})
    with pytest.raises(ValueError, match="input_rank and map_rank must be None"):
        dense_factored((2, 3), init={"W1": 0, "W2": 0}, map_rank=1)


def test_other_contributions_are_not_here() -> None:
    import cntk.contrib

    with pytest.raises(AttributeError, match=r"cntk\.contrib\.deeprl is not part of this package"):
        _ = cntk.contrib.deeprl
    assert not cntk.contrib.netopt.native_convolve_function_registered
