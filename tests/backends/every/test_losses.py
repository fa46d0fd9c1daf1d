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


def test_targets_of_one_program_may_be_weighted_or_not() -> None:
    z, y = C.input_variable(3, needs_gradient=True), C.input_variable(3, is_sparse=True)
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    for weight in 1, 0.5, 1, 2:
        target = one_hot(CLASSES, weight)
        expected = loss_and_gradient(target.toarray(), False)
        assert_close(loss.eval({z: LOGITS, y: target}), expected[0], tolerance=SINGLE)
        assert_close(loss.grad({z: LOGITS, y: target}, wrt=[z]), expected[1])
        assert_array_equal(error.eval({z: LOGITS, y: target}), [[1 - weight], [1], [1]])


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


def wave(shape: tuple[int, ...], step: float) -> Any:
    return np.sin(step * np.arange(1, np.prod(shape) + 1)).astype(np.float32).reshape(shape)


@pytest.mark.parametrize("rank", [1, 2])
def test_a_target_of_another_rank_gives_the_loss_the_shape_of_the_output(rank: int) -> None:
    """Numbers of CNTK for [1 x 2] against [2] and for [2] against [1 x 2]."""
    shapes = [(2,), (1, 2)]
    z, y = (C.input_variable(shape, needs_gradient=True) for shape in (shapes if rank == 1 else shapes[::-1]))
    feed = {z: wave((2, *z.shape), 1.3), y: np.abs(wave((2, *y.shape), 2.6))}
    loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    assert loss.shape == error.shape == (1,) * rank
    assert_close(loss.eval(feed).ravel(), [0.5054265, 1.3304274])
    gradients = loss.grad(feed, wrt=[z, y])
    assert gradients[z].shape == (2, *z.shape)
    assert gradients[y].shape == (2, *y.shape)
    assert_close(gradients[z].reshape(2, 2), [[0.09467572, -0.4936318], [-0.4497767, -0.37659305]])
    assert_close(gradients[y].reshape(2, 2), [[-0.9635582, -0.5155014], [0.68776613, 0.8834547]])
    assert_close(error.eval(feed).ravel(), [0.48449862, 0.00145668])
    gradients = error.grad(feed, wrt=[z, y])
    assert_array_equal(gradients[z], np.zeros((2, *z.shape)))
    assert_array_equal(gradients[y].reshape(2, 2), [[-1, 0], [-1, 0]])


def test_one_target_serves_all_rows_of_a_matrix() -> None:
    """Numbers of CNTK for [2 x 2] against [2]."""
    z, y = C.input_variable((2, 2), needs_gradient=True), C.input_variable(2, needs_gradient=True)
    feed = {z: wave((2, 2, 2), 1.3), y: np.abs(wave((2, 2), 2.6))}
    loss = C.cross_entropy_with_softmax(z, y)
    assert_close(loss.eval(feed), [[[0.5054265], [1.0473526]], [[0.33338535], [0.9615824]]])
    gradients = loss.grad(feed, wrt=[z, y])
    right = [[[0.09467572, -0.4936318], [0.03326523, -0.4322213]], [[-0.6849608, -0.14140898], [-0.23959458, -0.5867752]]]
    assert_close(gradients[z], right)
    assert_close(gradients[y], [[-0.27579206, 0.3679533], [-0.5342183, -0.17071688]])
    assert_close(C.squared_error(z, y).eval(feed), [4.9059663, 3.8457282])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_target_of_the_batch_serves_every_step(sparse: bool) -> None:
    z, y = C.sequence.input_variable(3, needs_gradient=True), C.input_variable(3, is_sparse=sparse)
    steps = [LOGITS[:2], LOGITS]
    feed = {z: steps, y: one_hot([1, 2]) if sparse else one_hot([1, 2]).toarray()}
    with pytest.warns(UserWarning, match="compared with every step"):
        loss, error = C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)
    gradients = loss.grad(feed, wrt=[z])
    for found, wrong, slope, logits, label in zip(loss.eval(feed), error.eval(feed), gradients, steps, [1, 2], strict=True):
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert_close(found, -np.log(chances[:, [label]]))
        assert_close(slope, chances - np.eye(3)[label])
        assert_array_equal(wrong[:, 0], logits.argmax(1) != label)


def test_class_numbers_are_no_targets() -> None:
    for function in (C.cross_entropy_with_softmax, C.classification_error):
        with pytest.raises(ValueError, match="classes"):
            function(C.input_variable(3), C.input_variable(1))


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_weighted_binary_cross_entropy_is_that_of_cntk(shape: tuple[int, ...]) -> None:
    p, y, w = (C.input_variable(shape, np.float64, needs_gradient=True) for _ in range(3))
    places = np.arange(1, 5).reshape(4, *shape)
    feed = {p: np.abs(np.sin(1.3 * places)), y: 1.0 * (np.sin(2.6 * places) > 0), w: 0.5 + np.abs(np.sin(3.9 * places))}
    loss = C.weighted_binary_cross_entropy(p, y, w)
    assert (loss.shape, loss.dynamic_axes) == ((), ())
    assert_close(loss.eval(feed), 2.5537208688814435)
    unscaled = np.array([-1.23268753, 3.092977479, -1.834902121, 5.21473986]).reshape(4, *shape)
    np.testing.assert_allclose(loss.grad(feed, wrt=[p]), unscaled / feed[w].mean(), rtol=1e-7)


def test_weights_of_samples_count_for_all_their_answers() -> None:
    p, y, w = C.input_variable((2, 3), np.float64), C.input_variable((2, 3), np.float64), C.input_variable(1, np.float64)
    generator = np.random.default_rng(4)
    chances, answers, weights = generator.uniform(0.1, 0.9, (4, 2, 3)), generator.integers(0, 2, (4, 2, 3)), generator.uniform(1, 2, (4, 1))
    losses = -np.log(np.where(answers == 1, chances, 1 - chances))
    right = losses.size * np.average(losses.mean((1, 2)), weights=weights[:, 0])
    assert_close(C.weighted_binary_cross_entropy(p, y, w).eval({p: chances, y: answers.astype(np.float64), w: weights}), right)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_weighted_binary_cross_entropy_at_its_edges(dtype: Any) -> None:
    p, y, w = C.input_variable(1, dtype, needs_gradient=True), C.input_variable(1, dtype), C.input_variable(1, dtype)
    loss = C.weighted_binary_cross_entropy(p, y, w)
    certain = {p: np.array([[0], [1]], dtype), y: np.array([[1], [0]], dtype), w: np.ones((2, 1), dtype)}
    least = max(1e-37, float(np.finfo(dtype).tiny))
    np.testing.assert_allclose(loss.eval(certain), -2 * np.log(least), rtol=1e-3)
    assert np.isfinite(loss.grad(certain, wrt=[p])).all()
    assert loss.eval({**certain, w: np.zeros((2, 1), dtype)}) == 0


def test_weighted_binary_cross_entropy_of_sequences() -> None:
    p, y, w = (C.sequence.input_variable(1) for _ in range(3))
    chances, answers, weights = ([np.abs(wave((n, 1), step)) for n in (2, 3)] for step in (1.3, 0.4, 2.1))
    found = C.weighted_binary_cross_entropy(p, y, w).eval({p: chances, y: answers, w: weights})
    chance, answer, weight = (np.concatenate(part) for part in (chances, answers, weights))
    losses = -answer * np.log(chance) - (1 - answer) * np.log(1 - chance)
    np.testing.assert_allclose(found, 5 * np.average(losses, weights=weight), rtol=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_cross_entropy_and_error_follow_targets_from_minibatch_to_minibatch(sparse: bool) -> None:
    """A target that is one-hot in one minibatch need not be in the next of the same size."""
    z, y = C.input_variable(3), C.input_variable(3, is_sparse=sparse)
    both = C.combine([C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)])
    several = csr_matrix(np.array([[0.5, 0.5, 0], [0, 0, 0], [0, 0, 1]], dtype=np.float32))
    empty_then_two = csr_matrix(np.array([[0, 0, 0], [1, 0, 1], [0, 1, 0]], dtype=np.float32))
    logarithms = np.log(np.exp(LOGITS).sum(axis=1))
    for target in (one_hot([2, 1, 0]), several, one_hot([0, 0, 1]), empty_then_two, one_hot([1, 2, 2])):
        dense = target.toarray()
        loss, error = both.eval({z: LOGITS, y: target if sparse else dense}).values()
        assert_close(loss[:, 0], logarithms - (LOGITS * dense).sum(axis=1))
        assert_array_equal(error[:, 0], 1 - dense[np.arange(3), LOGITS.argmax(axis=1)])


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_cross_entropy_of_logits_that_are_no_numbers(shape: tuple[int, ...]) -> None:
    z, y = C.input_variable(shape), C.input_variable(shape)
    loss = C.cross_entropy_with_softmax(z, y)
    logits = np.zeros((2, *shape), np.float32)
    logits[1, ..., 1] = np.nan
    found = loss.eval({z: logits, y: np.full((2, *shape), 1 / 3, np.float32)})
    assert_close(found[0], np.full_like(found[0], np.log(3)))
    assert np.isnan(found[1]).all()


def test_the_shape_of_targets_and_weights_is_inferred() -> None:
    x, weight, other = C.input_variable(4), C.parameter((-1,), init=1), C.parameter((-1,), init=1)
    C.weighted_binary_cross_entropy(x, x, weight)
    C.cosine_distance(x, other)
    assert weight.shape == other.shape == (4,)
