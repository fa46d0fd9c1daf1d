"""Reductions, softmax and sorting at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import cntk as C
from cntk.testing import assert_close
from cntk.testing.tolerances import SINGLE

BATCH = C.Axis.default_batch_axis()
DATA = np.array([[[1, 2, 3], [4, 5, 6]], [[0, 1, 2], [3, 9, 9]]], dtype=np.float32)


@pytest.fixture
def x() -> Any:
    return C.input_variable((2, 3), needs_gradient=True)


@pytest.mark.parametrize(
    ("axis", "keepdims", "shape"),
    [
        (None, True, ()),
        (C.Axis.all_static_axes(), True, ()),
        (0, True, (1, 3)),
        (-1, False, (2,)),
        ((0, 1), True, (1, 1)),
        ([0, -1], False, ()),
        (C.Axis(1), True, (2, 1)),
        ((0, -2), True, (1, 3)),
    ],
)
def test_static_axes_leave_the_batch_alone(x: Any, axis: Any, keepdims: bool, shape: tuple[int, ...]) -> None:
    f = C.reduce_sum(x, axis=axis, keepdims=keepdims)
    assert f.shape == shape
    assert f.dynamic_axes == (BATCH,)


@pytest.mark.parametrize(("axis", "numpy_axis"), [(BATCH, 0), ((BATCH, 0), (0, 1)), ([1, BATCH], (0, 2)), ((BATCH, 0, 1), (0, 1, 2))])
@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "prod"])
def test_a_reduction_over_the_batch_has_no_dynamic_axes(x: Any, axis: Any, numpy_axis: Any, name: str) -> None:
    f = getattr(C, f"reduce_{name}")(x, axis=axis)
    expected = getattr(np, name)(DATA, axis=numpy_axis, keepdims=True)[0]
    assert f.dynamic_axes == ()
    assert f.shape == expected.shape
    assert_close(f.eval({x: DATA}), expected, tolerance=SINGLE)


def test_all_axes_count_every_element(x: Any) -> None:
    f = C.reduce_mean(x, axis=C.Axis.all_axes())
    assert (f.shape, f.dynamic_axes) == ((), ())
    assert_allclose(f.eval({x: DATA}), 3.75)
    assert_close(f.grad({x: DATA}), np.full(DATA.shape, 1 / 12), tolerance=SINGLE)


@pytest.mark.parametrize(
    ("axis", "keepdims"),
    [
        (None, False),
        (C.Axis.all_axes(), False),
        (C.Axis.default_dynamic_axis(), True),
        ((0, C.Axis("time")), True),
        (2, True),
        (-3, True),
        ((), True),
        ((0, C.Axis.all_axes()), True),
    ],
)
def test_axes_that_make_no_sense_are_refused(x: Any, axis: Any, keepdims: bool) -> None:
    with pytest.raises(ValueError, match=r"ax[ie]s"):
        C.reduce_sum(x, axis=axis, keepdims=keepdims)


def test_the_batch_axis_must_be_there() -> None:
    with pytest.raises(ValueError, match="batch axis"):
        C.reduce_sum(C.parameter((2, 3)), axis=BATCH)
    steps = C.input_variable(2, dynamic_axes=[BATCH, C.Axis.default_dynamic_axis()])
    with pytest.raises(ValueError, match="sequence"):
        C.reduce_sum(steps, axis=BATCH)


def test_every_tied_element_gets_the_gradient_of_an_extremum() -> None:
    x = C.input_variable(3, needs_gradient=True)
    data = np.array([[3, 2, 3], [0, 0, 0]], dtype=np.float32)
    assert_array_equal(C.reduce_max(x).grad({x: data}), [[1, 0, 1], [1, 1, 1]])
    assert_array_equal(C.reduce_min(x).grad({x: data}), [[0, 1, 0], [1, 1, 1]])


def test_the_gradient_of_a_product_survives_zeros() -> None:
    x = C.input_variable(3, needs_gradient=True)
    data = np.array([[0, 2, 3], [1, 2, 3], [0, 0, 5]], dtype=np.float32)
    assert_array_equal(C.reduce_prod(x).grad({x: data}), [[6, 0, 0], [6, 3, 2], [0, 0, 0]])


def test_log_sum_exp_neither_overflows_nor_loses_infinity() -> None:
    x = C.input_variable(2)
    data = np.array([[1000, 1000], [-1000, -1001], [-np.inf, 2], [-np.inf, -np.inf]], dtype=np.float32)
    assert_close(C.reduce_log_sum_exp(x).eval({x: data}), np.logaddexp.reduce(data, axis=1), tolerance=SINGLE)


def test_log_sum_exp_of_large_and_infinite_numbers() -> None:
    x = C.input_variable(3, needs_gradient=True)
    f = C.reduce_log_sum_exp(x)
    data = np.array([[np.inf, 0, 1], [-np.inf, -np.inf, -np.inf], [1e30, 1e30, 1e30]], dtype=np.float32)
    assert_array_equal(f.eval({x: data}), [np.inf, -np.inf, np.float32(1e30)])
    assert_allclose(f.grad({x: data[2:]}), np.full((1, 3), 1 / 3), rtol=1e-6)


def test_means_of_half_precision_do_not_overflow() -> None:
    x = C.input_variable((2, 900), np.float16)
    data = np.array([[[100] * 450 + [102] * 450] * 2], dtype=np.float16)
    assert_array_equal(C.reduce_mean(x).eval({x: data}), np.float16([101]))
    assert_allclose(C.mean_variance_normalization(x, epsilon=0).eval({x: data}), data - 101)


def test_the_euclidean_norm_has_no_gradient_at_the_origin() -> None:
    x = C.input_variable(2, needs_gradient=True)
    assert_close(C.reduce_l2(x).grad({x: np.array([[3, 4], [0, 0]], dtype=np.float32)}), [[0.6, 0.8], [0.0, 0.0]], tolerance=SINGLE)


def test_places_are_those_of_the_first_extremum(x: Any) -> None:
    assert_array_equal(C.argmax(x).eval({x: DATA}), [5, 4])
    assert_array_equal(C.argmin(x, axis=0).eval({x: DATA}), [[[0, 0, 0]], [[0, 0, 0]]])
    assert_array_equal(C.argmax(x, axis=1).eval({x: DATA}), [[[2], [2]], [[2], [1]]])
    with pytest.raises(ValueError, match="one static axis"):
        C.argmax(x, axis=BATCH)
    with pytest.raises(TypeError, match="axis must be a whole number, an Axis or None, got tuple"):
        C.argmax(x, axis=(0, 1))


@pytest.mark.parametrize("name", ["argmax", "hardmax"])
def test_choices_pass_no_gradient(x: Any, name: str) -> None:
    assert_array_equal(C.reduce_sum(getattr(C, name)(x) * 2 + 0 * x).grad({x: DATA}), np.zeros_like(DATA))


def test_softmax_is_joint_but_its_logarithm_takes_the_last_axis(x: Any) -> None:
    joint = np.exp(DATA - DATA.max(axis=(1, 2), keepdims=True))
    assert_close(C.softmax(x).eval({x: DATA}), joint / joint.sum(axis=(1, 2), keepdims=True))
    assert_close(C.log_softmax(x).eval({x: DATA}), np.log(C.softmax(x, axis=-1).eval({x: DATA})))
    with pytest.raises(ValueError, match="axis 2"):
        C.softmax(x, axis=2)


def test_softmax_takes_markers_of_axes(x: Any) -> None:
    assert_array_equal(C.softmax(x, axis=C.Axis.all_static_axes()).eval({x: DATA}), C.softmax(x).eval({x: DATA}))
    over_batch = C.log_softmax(x, axis=BATCH)
    assert over_batch.dynamic_axes == (BATCH,)
    assert_allclose(over_batch.eval({x: DATA}), DATA - np.logaddexp.reduce(DATA, axis=0), rtol=1e-6)


def test_the_first_maximum_is_the_hard_one(x: Any) -> None:
    assert_array_equal(C.hardmax(x).eval({x: DATA})[1], [[0, 0, 0], [0, 1, 0]])


def test_top_k_keeps_the_order_of_equal_elements_and_sends_gradients_back() -> None:
    x = C.input_variable(4, needs_gradient=True)
    data = np.array([[2, 3, 2, 3]], dtype=np.float32)
    top = C.top_k(x, 3)
    values, places = (top.eval({x: data})[output] for output in top.outputs)
    assert_array_equal(values, [[3, 3, 2]])
    assert_array_equal(places, [[1, 3, 0]])
    weighted = C.reduce_sum(top.outputs[0] * np.array([1, 2, 3], dtype=np.float32))
    assert_array_equal(weighted.grad({x: data}), [[3, 1, 0, 2]])


@pytest.mark.parametrize(("k", "axis"), [(0, -1), (5, -1), (1, 1)])
def test_top_k_refuses_what_is_not_there(k: int, axis: int) -> None:
    with pytest.raises(ValueError, match=r"top|k|axis"):
        C.top_k(C.input_variable(4), k, axis=axis)
