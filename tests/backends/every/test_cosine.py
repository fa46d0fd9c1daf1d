"""Cosine similarities, alone and with negative samples.  Numbers are CNTK 2.7's where a test says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.testing import assert_close
from cntk.testing.tolerances import VALUES


def wave(shape: tuple[int, ...], step: float) -> Any:
    return np.sin(step * np.arange(1, np.prod(shape) + 1)).astype(np.float32).reshape(shape)


def cosines(x: Any, y: Any) -> Any:
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def inputs(sequence: bool = False) -> tuple[Any, Any]:
    make = C.sequence.input_variable if sequence else C.input_variable
    return make(3, needs_gradient=True), make(3, needs_gradient=True)


def test_value_and_gradients_are_those_of_cntk() -> None:
    x, y = inputs()
    feed = {x: wave((2, 3), 1.3), y: wave((2, 3), 2.6)}
    function = C.cosine_distance(x, y)
    assert function.shape == ()
    assert_close(function.eval(feed), [-0.34971416, 0.7363022])
    gradients = function.grad(feed, wrt=[x, y])
    assert_close(gradients[x], [[0.48141336, -0.37052134, 0.3967417], [-0.29922554, 0.24605036, -0.3177454]])
    assert_close(gradients[y], [[0.6102809, 0.12809405, -0.2017292], [-0.0021112, -0.1837558, 0.70030475]])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("scale", [1e-4, 1, 1e4])
def test_the_length_of_vectors_does_not_matter(dtype: Any, scale: float) -> None:
    x, y = (C.input_variable(3, dtype) for _ in range(2))
    feed = {x: (scale * wave((2, 3), 1.3)).astype(dtype), y: (scale * wave((2, 3), 2.6)).astype(dtype)}
    assert_close(C.cosine_distance(x, y).eval(feed), [-0.34971416, 0.7363022], tolerance=max(VALUES[dtype], VALUES[np.float32]))


def test_a_vector_of_zeros_has_no_direction() -> None:
    x, y = inputs()
    feed = {x: np.zeros((1, 3), np.float32), y: np.ones((1, 3), np.float32)}
    function = C.cosine_distance(x, y)
    assert_close(function.eval(feed), [0.0])
    gradients = function.grad(feed, wrt=[x, y])
    assert np.isfinite(gradients[x]).all()
    assert_close(gradients[y], np.zeros((1, 3)))


def test_a_batch_is_compared_with_every_step() -> None:
    x, y = C.sequence.input_variable(3, needs_gradient=True), C.input_variable(3, needs_gradient=True)
    steps = [wave((2, 3), 1.3), wave((3, 3), 1.7)]
    feed = {x: steps, y: wave((2, 3), 2.6)}
    for function in (C.cosine_distance(x, y), C.cosine_distance(y, x)):
        for found, sequence, one in zip(function.eval(feed), steps, feed[y], strict=True):
            assert_close(found, cosines(sequence, one))
    change = 1e-2 * wave((2, 3), 0.9)
    gradient = C.cosine_distance(x, y).grad(feed, wrt=[y])
    right = sum((cosines(s, u + d) - cosines(s, u - d)).sum() for s, u, d in zip(steps, feed[y], change, strict=True)) / 2
    np.testing.assert_allclose((gradient * change).sum(), right, rtol=1e-3)


def test_shapes_must_be_the_same() -> None:
    with pytest.raises(ValueError, match="same shape"):
        C.cosine_distance(C.input_variable((2, 3)), C.input_variable(3))


def test_negative_samples_lie_further_along_the_minibatch() -> None:
    """Values and gradients of CNTK."""
    x, y = inputs()
    feed = {x: wave((4, 3), 1.3), y: wave((4, 3), 2.6)}
    function = C.cosine_distance_with_negative_samples(x, y, shift=1, num_negative_samples=2)
    assert function.shape == (3,)
    right = [
        [-0.34971416, -0.54292727, 0.29994604],
        [0.7363022, -0.12540005, -0.8290433],
        [-0.12091773, 0.6720739, 0.08073547],
        [-0.01997412, -0.3553827, 0.0778195],
    ]
    assert_close(function.eval(feed), right)
    gradients = function.grad(feed, wrt=[x, y])
    right_x = [
        [-0.37979317, 0.53748727, -0.12922624],
        [-0.40234303, 0.54471666, -0.47332078],
        [0.5757344, 0.0688833, 0.16626656],
        [0.44855106, -0.25104588, 0.5499452],
    ]
    assert_close(gradients[x], right_x)


@pytest.mark.parametrize(("shift", "count"), [(1, 2), (2, 1), (3, 3), (5, 2), (0, 1), (1, 0)])
def test_negative_samples_of_any_shift(shift: int, count: int) -> None:
    x, y = inputs()
    a, b = wave((4, 3), 1.3), wave((4, 3), 2.6)
    found = C.cosine_distance_with_negative_samples(x, y, shift, count).eval({x: a, y: b})
    shifts = [0, *range(shift, shift + count)]
    assert_close(found, np.stack([cosines(a, np.roll(b, -by, axis=0)) for by in shifts], axis=1))


def test_gradients_with_negative_samples() -> None:
    x, y = inputs()
    a, b = wave((4, 3), 1.3), wave((4, 3), 2.6)

    def total(a: Any, b: Any) -> Any:
        return sum(cosines(a, np.roll(b, -by, axis=0)).sum() for by in (0, 1, 2))

    gradients = C.cosine_distance_with_negative_samples(x, y, 1, 2).grad({x: a, y: b}, wrt=[x, y])
    for i in np.ndindex(4, 3):
        step = np.zeros((4, 3))
        step[i] = 1e-5
        np.testing.assert_allclose(gradients[x][i], (total(a + step, b) - total(a - step, b)) / 2e-5, atol=1e-5)
        np.testing.assert_allclose(gradients[y][i], (total(a, b + step) - total(a, b - step)) / 2e-5, atol=1e-5)


def test_negative_samples_of_sequences_are_steps_in_the_users_order() -> None:
    """Values of CNTK."""
    x, y = inputs(sequence=True)
    a, b = wave((2, 3, 3), 1.3), wave((2, 3, 3), 2.6)
    found = C.cosine_distance_with_negative_samples(x, y, 1, 1).eval({x: list(a), y: list(b)})
    assert_close(found[0], [[-0.34971416, 0.650208], [0.7363022, 0.07186808], [-0.12091773, -0.6950226]])
    assert_close(found[1], [[-0.01997412, 0.0778195], [0.27379957, -0.3186663], [-0.91122264, -0.21132858]])


def test_negative_samples_of_sequences_of_several_lengths() -> None:
    x, y = inputs(sequence=True)
    lengths = [1, 3, 2]
    a, b = ([wave((n, 3), step + n) for n in lengths] for step in (1.3, 2.6))
    found = C.cosine_distance_with_negative_samples(x, y, 1, 2).eval({x: a, y: b})
    places = [(s, t) for t in range(3) for s, n in enumerate(lengths) if t < n]
    for i, (s, t) in enumerate(places):
        others = [places[i], *(places[(i + by) % len(places)] for by in (1, 2))]
        assert_close(found[s][t], np.array([cosines(a[s][t], b[u][v]) for u, v in others]))


def test_the_numbers_of_negative_samples_are_checked() -> None:
    x, y = inputs()
    with pytest.raises(ValueError, match="0 or more"):
        C.cosine_distance_with_negative_samples(x, y, -1, 2)
    with pytest.raises(ValueError, match="batch axis"):
        C.cosine_distance_with_negative_samples(x, C.constant(np.ones(3, np.float32)), 1, 2)


def test_a_recurrence_may_compare_steps() -> None:
    x = C.sequence.input_variable(3, np.float64, needs_gradient=True)
    state = C.placeholder()
    before = C.sequence.past_value(state, initial_state=0.5)
    step = C.tanh(x + before * C.cosine_distance(before, x))
    loop = step.replace_placeholders({state: step.output})
    sequences = [wave((2, 3), 1.3).astype(np.float64), wave((4, 3), 0.7).astype(np.float64)]

    def run(sequence: Any) -> Any:
        state, states = np.full(3, 0.5), []
        for row in sequence:
            state = np.tanh(row + state * cosines(state, row))
            states.append(state)
        return np.array(states)

    for found, sequence in zip(loop.eval({x: sequences}), sequences, strict=True):
        assert_close(found, run(sequence))
    gradients = loop.grad({x: sequences}, wrt=[x])
    for gradient, sequence in zip(gradients, sequences, strict=True):
        for place in np.ndindex(*sequence.shape):
            step_size = np.zeros(sequence.shape)
            step_size[place] = 1e-6
            slope = (run(sequence + step_size).sum() - run(sequence - step_size).sum()) / 2e-6
            np.testing.assert_allclose(gradient[place], slope, rtol=1e-6, atol=1e-8)
