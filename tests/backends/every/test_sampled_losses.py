"""Noise contrastive estimation: on numbers of CNTK 2.7 where sampling leaves no choice, and on average over samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.testing import assert_close


def wave(shape: tuple[int, ...], step: float, dtype: Any = np.float32) -> Any:
    return np.sin(step * np.arange(1, np.prod(shape) + 1)).astype(dtype).reshape(shape)


def softplus(x: Any) -> Any:
    return np.logaddexp(0, x)


def model(classes: int, noise: Any, dtype: Any = np.float32, sparse: bool = True, **options: Any) -> tuple[Any, Any, Any, Any, Any]:
    """The loss and weights, biases, inputs and labels of three features."""
    weights = C.parameter((classes, 3), init=wave((classes, 3), 1.3), dtype=dtype)
    biases = C.parameter((classes, 1), init=wave((classes, 1), 2.6), dtype=dtype)
    x, y = C.input_variable(3, dtype, needs_gradient=True), C.input_variable(classes, dtype, is_sparse=sparse)
    return C.nce_loss(weights, biases, x, y, noise, **options), weights, biases, x, y


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_value_and_gradients_are_those_of_cntk(sparse: bool, dtype: Any) -> None:
    loss, weights, biases, x, y = model(2, [1, 1e-30], dtype, sparse, num_samples=4)
    labels = np.eye(2, dtype=dtype)
    feed = {x: wave((2, 3), 0.91, dtype), y: csr_matrix(labels) if sparse else labels}
    assert (loss.shape, len(loss.dynamic_axes)) == ((), 1)
    np.testing.assert_allclose(loss.eval(feed), [3.6454506, 0.9338188], rtol=1e-6)
    gradients = loss.grad(feed, wrt=[weights, biases, x])
    np.testing.assert_allclose(gradients[x], [[1.5829313, 0.8468646, -1.1298606], [0.8024764, 0.429323, -0.57278955]], rtol=1e-5)
    np.testing.assert_allclose(gradients[weights], [[0.8988815, 0.77018094, 0.04650921], [0, 0, 0]], rtol=1e-5, atol=1e-12)
    np.testing.assert_allclose(gradients[biases], [[2.475624], [0]], rtol=1e-5, atol=1e-12)


def test_float16_gives_float16() -> None:
    loss, _, _, x, y = model(2, [1, 0], np.float16, sparse=False, num_samples=4)
    found = loss.eval({x: wave((2, 3), 0.91, np.float16), y: np.eye(2, dtype=np.float16)})
    assert found.dtype == np.float16
    np.testing.assert_allclose(found, [3.6454506, 0.9338188], rtol=1e-2)


def test_gradients_have_the_rows_of_labels_and_samples_alone() -> None:
    noise = np.zeros(1000)
    noise[[3, 7, 500]] = 1, 1e-3, 1
    loss, weights, biases, x, y = model(1000, noise, num_samples=50)
    labels = csr_matrix((np.ones(2, np.float32), [7, 3], [0, 1, 2]), shape=(2, 1000))
    gradients = loss.grad({x: wave((2, 3), 0.91), y: labels}, wrt=[weights, biases], as_numpy=False)
    for parameter in (weights, biases):
        assert gradients[parameter].is_sparse
    dense = loss.grad({x: wave((2, 3), 0.91), y: labels}, wrt=[weights, biases])
    for parameter in (weights, biases):
        assert set(np.nonzero(dense[parameter])[0]) == {3, 7, 500}


@pytest.mark.parametrize("duplicates", [True, False])
def test_the_mean_over_samples_is_what_the_formula_says(duplicates: bool) -> None:
    noise, count = np.array([4.0, 3, 2, 1]), 2
    loss, weights, biases, x, y = model(4, noise, np.float64, num_samples=count, allow_duplicates=duplicates, seed=5)
    features, classes = wave((3, 3), 0.91, np.float64), [0, 2, 3]
    feed = {x: features, y: csr_matrix(np.eye(4)[classes])}
    found = np.mean([loss.eval(feed) for _ in range(1500)], axis=0)
    logits = features @ weights.value.T + biases.value[:, 0]
    p = noise / noise.sum()
    share = count * p
    if duplicates:
        drawn = assumed = share
    else:  # chances of a class to be drawn first or second; the loss knows them by an approximation
        drawn = p + np.array([sum(p[j] * p[i] / (1 - p[j]) for j in range(4) if j != i) for i in range(4)])
        assumed = np.asarray(C.random_sample_inclusion_frequency(noise, count, False).eval())
    right = softplus(-(logits - np.log(share))[range(3), classes]) + np.log(np.exp(logits) + share) @ (share / assumed * drawn)
    np.testing.assert_allclose(found, right - share @ np.log(share), rtol=0.02)


def test_values_and_gradients_of_draws_are_those_of_cntk() -> None:
    """Measured on CNTK 2.7; five classes of different frequency, evaluation by evaluation."""
    loss, _, biases, x, y = model(5, [1, 2, 3, 4, 5], num_samples=6, seed=9)
    feed = {x: wave((2, 3), 0.91), y: csr_matrix(np.eye(5, dtype=np.float32)[[1, 4]])}
    measured = [
        ([5.9739957, 5.661875], [1.6425947, -0.67914397, 1.3751353, 1.1612976, 1.1524932]),
        ([4.9578395, 5.1610055], [1.6425947, -0.12369078, 1.3751353, 0.5806488, 1.1524932]),
        ([4.8529477, 10.214706], [0, -0.67914397, 5.500541, 0.5806488, 0.36639482]),
    ]
    for value, gradient in measured:
        gradients, found = loss.grad(feed, wrt=[biases], outputs=[loss.output])
        np.testing.assert_allclose(found, value, rtol=1e-6)
        np.testing.assert_allclose(gradients[:, 0], gradient, rtol=1e-5, atol=1e-7)


def test_without_duplicates_classes_count_by_how_likely_they_are() -> None:
    """All but one of three classes are drawn: with weights and biases of 0 the loss tells which, as worked out by hand."""
    noise = np.array([1.0, 2.0, 5.0])
    loss, weights, biases, x, y = model(3, noise, np.float64, num_samples=2, allow_duplicates=False, seed=5)
    weights.value, biases.value = np.zeros((3, 3)), np.zeros((3, 1))
    share = 2 * noise / 8
    terms = share / np.asarray(C.random_sample_inclusion_frequency(C.constant(noise, dtype=np.float64), 2, False).eval()) * np.log1p(share)
    allowed = np.log1p(share[0]) - share @ np.log(share) + terms.sum() - terms
    for _ in range(5):
        found = loss.eval({x: np.ones((1, 3)), y: csr_matrix([[1.0, 0, 0]])})
        assert np.abs(found - allowed).min() < 1e-12


def test_equal_seeds_draw_as_random_sample_does() -> None:
    noise = np.arange(1.0, 101)
    loss, weights, _, x, y = model(100, noise, seed=9)
    drawn = C.times(C.random_sample(noise, 32, True, seed=9), np.eye(100))
    for _ in range(3):
        feed = {x: wave((1, 3), 0.91), y: csr_matrix(np.eye(100, dtype=np.float32)[[0]])}
        rows = np.nonzero(loss.grad(feed, wrt=[weights]).any(axis=1))[0]
        assert set(rows) == {0, *np.nonzero(drawn.eval().any(axis=0))[0]}


def test_steps_of_sequences_are_samples() -> None:
    steps = [wave((2, 3), 0.91), wave((3, 3), 0.7)]
    loss, weights, biases, x, y = model(2, [1, 0], num_samples=4)
    alone = [loss.eval({x: s, y: csr_matrix(np.eye(2, dtype=np.float32)[np.arange(len(s)) % 2])}) for s in steps]
    sx, sy = C.sequence.input_variable(3), C.sequence.input_variable(2, is_sparse=True)
    loss = C.nce_loss(weights, biases, sx, sy, [1, 0], num_samples=4)
    found = loss.eval({sx: steps, sy: [csr_matrix(np.eye(2, dtype=np.float32)[np.arange(len(s)) % 2]) for s in steps]})
    for one, right in zip(found, alone, strict=True):
        assert_close(one, right)


def test_it_learns() -> None:
    """Log-probabilities come out right: after training, logits are those of the classes' frequencies."""
    generator = np.random.default_rng(1)
    frequency = np.array([0.5, 0.3, 0.15, 0.05])
    classes = generator.choice(4, size=4000, p=frequency)
    x, y = C.input_variable(1), C.input_variable(4, is_sparse=True)
    weights, biases = C.parameter((4, C.InferredDimension), init=0), C.parameter((4, 1), init=0)
    loss = C.nce_loss(weights, biases, x, y, [1, 1, 1, 1], num_samples=40, seed=3)
    assert weights.shape == (4, 1)
    trainer = C.Trainer(None, (loss, None), [C.sgd([weights, biases], C.learning_parameter_schedule_per_sample([2e-3, 2e-4], 20000))])
    for start in range(0, 4000 * 10, 100):
        batch = classes[start % 4000 : start % 4000 + 100]
        trainer.train_minibatch({x: np.zeros((100, 1), np.float32), y: csr_matrix(np.eye(4, dtype=np.float32)[batch])})
    np.testing.assert_allclose(np.exp(biases.value[:, 0]), frequency, rtol=0.2)


@pytest.mark.parametrize(
    ("weights", "biases", "inputs", "labels", "what"),
    [
        ((5, 3), (5, 1), 3, 4, "labels"),
        ((4, 3), (5, 1), 3, 5, "weights"),
        ((5, 2), (5, 1), 3, 5, "weights"),
        ((5, 3), (5,), 3, 5, "biases"),
    ],
)
def test_shapes_are_checked(weights: Any, biases: Any, inputs: int, labels: int, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        C.nce_loss(C.parameter(weights), C.parameter(biases), C.input_variable(inputs), C.input_variable(labels), np.ones(5))


@pytest.mark.parametrize("labels", [[[0, 0]], [[1, 1]], [[0, 2]], [[0.5, 0]]])
@pytest.mark.parametrize("sparse", [True, False])
def test_labels_must_be_one_hot(labels: Any, sparse: bool) -> None:
    loss, _, _, x, y = model(2, [1, 1], sparse=sparse)
    rows = np.array(labels, np.float32)
    with pytest.raises(ValueError, match="one-hot"):
        loss.eval({x: np.zeros((1, 3), np.float32), y: csr_matrix(rows) if sparse else rows})
