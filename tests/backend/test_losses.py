"""Losses and metrics at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy.sparse import csr_matrix

import cntk as C
from cntk.testing import assert_close
from cntk.testing.tolerances import SINGLE

LOGITS = np.array([[1, 2, 3], [3, 3, 0], [0, -1, 2]], dtype=np.float32)
CLASSES = [2, 1, 0]


def one_hot(classes: list[int], weight: float = 1.0) -> Any:
    return csr_matrix(weight * np.eye(3, dtype=np.float32)[classes])


def loss_and_gradient(target: Any, sparse: bool) -> tuple[Any, Any]:
    z = C.input_variable(3, needs_gradient=True)
    y = C.input_variable(3, is_sparse=sparse)
    loss = C.cross_entropy_with_softmax(z, y)
    feed = {z: LOGITS, y: target}
    return loss.eval(feed), loss.grad(feed, wrt=[z])


@pytest.mark.parametrize(
    "target",
    [
        one_hot(CLASSES),
        one_hot(CLASSES, weight=2.5),
        csr_matrix(np.array([[0, 0, 0], [0.5, 0.5, 0], [0, 0, 1]], dtype=np.float32)),
    ],
    ids=["one class", "weighted", "none and several"],
)
def test_a_sparse_target_gives_what_a_dense_one_gives(target: Any) -> None:
    sparse, dense = loss_and_gradient(target, True), loss_and_gradient(target.toarray(), False)
    assert_close(sparse[0], dense[0], tolerance=SINGLE)
    assert_close(sparse[1], dense[1])


def test_the_logarithm_is_not_weighted_by_the_target() -> None:
    target = np.array([[0.1, 0.1, 2.1]] * 3, dtype=np.float32)
    loss, gradient = loss_and_gradient(target, False)
    powers = np.exp(LOGITS)
    assert_close(loss[:, 0], np.log(powers.sum(axis=1)) - (LOGITS * target).sum(axis=1))
    assert_close(gradient, powers / powers.sum(axis=1, keepdims=True) - target)


def test_cross_entropy_has_a_gradient_for_the_target() -> None:
    z, y = C.input_variable(3), C.input_variable(3, needs_gradient=True)
    target = np.eye(3, dtype=np.float32)[CLASSES]
    assert_array_equal(C.cross_entropy_with_softmax(z, y).grad({z: LOGITS, y: target}, wrt=[y]), -LOGITS)


@pytest.mark.parametrize(("axis", "shape"), [(-1, (2, 1)), (1, (2, 1)), (0, (1, 3)), (-2, (1, 3))])
def test_cross_entropy_of_matrices_reduces_one_axis(axis: int, shape: tuple[int, ...]) -> None:
    z, y = C.input_variable((2, 3)), C.input_variable((2, 3))
    loss = C.cross_entropy_with_softmax(z, y, axis=axis)
    assert loss.shape == shape
    logits, target = LOGITS[None, :2], np.array([[[0, 0, 1], [0, 1, 0]]], dtype=np.float32)
    numpy_axis = axis % 2 + 1
    expected = np.log(np.exp(logits).sum(axis=numpy_axis, keepdims=True)) - (logits * target).sum(axis=numpy_axis, keepdims=True)
    assert_close(loss.eval({z: logits, y: target}), expected)


def test_huge_logits_do_not_overflow() -> None:
    z, y = C.input_variable(2), C.input_variable(2)
    loss = C.cross_entropy_with_softmax(z, y).eval({z: np.array([[1000, 0]], dtype=np.float32), y: np.array([[0, 1]], dtype=np.float32)})
    assert_array_equal(loss, [[1000]])


def test_cross_entropy_of_large_logits_keeps_its_precision() -> None:
    z, y = C.input_variable(3), C.input_variable(3)
    target = np.array([[0, 1, 0]], dtype=np.float32)
    loss = C.cross_entropy_with_softmax(z, y).eval({z: np.array([[1e8, 1e8, -1e8]], dtype=np.float32), y: target})
    np.testing.assert_allclose(loss, [[np.log(2)]], rtol=1e-6)


@pytest.mark.parametrize("function", [C.cross_entropy_with_softmax, C.classification_error])
def test_shapes_must_agree(function: Any) -> None:
    with pytest.raises(ValueError, match="same static shape"):
        function(C.input_variable(3), C.input_variable(4))
    with pytest.raises(ValueError, match="axis 3"):
        function(C.input_variable(3), C.input_variable(3), axis=3)


def test_squared_error_is_summed_and_not_halved() -> None:
    a, b = C.input_variable(2, needs_gradient=True), C.parameter(init=np.array([1, 1], dtype=np.float32))
    loss = C.squared_error(a, b)
    data = np.array([[2, 4], [1, 0]], dtype=np.float32)
    assert_array_equal(loss.eval({a: data}), [10, 1])
    gradients = loss.grad({a: data}, wrt=[a, b])
    assert_array_equal(gradients[a], [[2, 6], [0, -2]])
    assert_array_equal(gradients[b], [-2, -4])


def test_binary_cross_entropy_of_certain_answers_is_finite() -> None:
    p, y = C.input_variable(2, needs_gradient=True), C.input_variable(2)
    feed = {p: np.array([[0, 1]], dtype=np.float32), y: np.array([[1, 0]], dtype=np.float32)}
    loss = C.binary_cross_entropy(p, y)
    assert_close(loss.eval(feed), np.full((1, 2), -np.log(1e-6)))
    assert np.isfinite(loss.grad(feed, wrt=[p])).all()


@pytest.mark.parametrize("sparse", [False, True])
def test_classification_error_takes_the_first_of_equal_outputs(sparse: bool) -> None:
    z, y = C.input_variable(3), C.input_variable(3, is_sparse=sparse)
    target = one_hot(CLASSES) if sparse else one_hot(CLASSES).toarray()
    assert_array_equal(C.classification_error(z, y).eval({z: LOGITS, y: target}), [[0], [1], [1]])


@pytest.mark.parametrize(("n", "wrong"), [(1, None), (2, 2), (3, 1), (4, 0), (5, 0)])
@pytest.mark.parametrize("sparse", [False, True])
def test_top_n_counts_over_the_minibatch(n: int, wrong: float | None, sparse: bool) -> None:
    z, y = C.input_variable(5), C.input_variable(5, is_sparse=sparse)
    outputs = np.array([[1, 2, 3, 4, 5], [5, 5, 5, 5, 1], [0, 1, 0, 0, 0]], dtype=np.float32)
    target = np.eye(5, dtype=np.float32)[[2, 3, 0]]
    error = C.classification_error(z, y, topN=n)
    if wrong is None:
        assert error.shape == (1,)
        return
    assert (error.shape, error.dynamic_axes) == ((), ())
    assert error.eval({z: outputs, y: csr_matrix(target) if sparse else target}) == wrong


@pytest.mark.parametrize(("axis", "expected"), [(0, 1 / 3), (1, 0.5)])
def test_classification_error_along_a_named_axis_is_a_share(axis: int, expected: float) -> None:
    z, y = C.input_variable((2, 3)), C.input_variable((2, 3))
    error = C.classification_error(z, y, axis=axis)
    target = np.array([[[0, 0, 1], [0, 1, 0]]], dtype=np.float32)
    assert_close(error.eval({z: LOGITS[None, :2], y: target}), [expected], tolerance=SINGLE)


@pytest.mark.parametrize("arguments", [{"topN": 0}, {"topN": 4}, {"topN": 2, "axis": 0}])
def test_classification_error_refuses_impossible_ranks(arguments: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="topN"):
        C.classification_error(C.input_variable(3), C.input_variable(3), **arguments)
