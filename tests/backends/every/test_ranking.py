"""LambdaRank and the gain at the top, on the numbers of CNTK 2.7 and on a ranking written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.testing import assert_close

CASES = [
    ([1, 2, 3, 4], [7, 1, 3, 1], [1, 1, 2, 2], 98.69652, 95.2381, [-0.2121461, 0.2121461, -0.14861868, 0.14861868]),
    ([1, 1, 1], [3, 2, 1], [1, 1, 1], 63.000584, 100, [-0.11874875, -0.02500499, 0.14375375]),
    ([1, 2], [0, 0], [1, 1], 200, 0, [0, 0]),
    ([5], [2], [1], 0, 100, [0]),
    ([-100, 100], [3, 1], [1, 1], 40.658474, 66.66667, [-0.20329244, 0.20329244]),
]
TIES = [
    ([0.3, 2, 1, 0.5, 0.7], [3, 2, 1, 1, 0], [1] * 5, 93.43904, 333.33337),
    ([0.3, 2, 1, 0.5, 0.7], [3, 2, 1, 1, 0], [1, 1, 2, 2, 2], 41.719406, 416.6667),
    ([1, 2, 3, 4, 5, 6], [3, 3, 1, 0, 0, 0], [4] * 6, 304.06522, 0),
]
"""Scores, gains and groups; the loss, the metric and, where CNTK takes each pair for itself, the gradient."""


def pushes(scores: Any, gains: Any, groups: Any) -> Any:
    """LambdaRank's gradient, pair by pair, of scores that all differ."""
    gradient = [0.0] * len(scores)
    for group in set(groups):
        rows = [i for i in range(len(scores)) if groups[i] == group]
        place = {i: sum(scores[j] > scores[i] for j in rows) for i in rows}
        best = sum(gain / np.log(n + 2) for n, gain in enumerate(sorted((gains[i] for i in rows), reverse=True)))
        for i in rows:
            for j in rows:
                if gains[i] > gains[j]:
                    change = (gains[i] - gains[j]) * abs(1 / np.log(place[i] + 2) - 1 / np.log(place[j] + 2)) / best
                    gradient[i] -= change / (1 + np.exp(scores[i] - scores[j]))
                    gradient[j] += change / (1 + np.exp(scores[i] - scores[j]))
    return gradient


def graph(function: Any, shape: Any = (1,), dtype: Any = np.float64, sequence: bool = False) -> tuple[Any, list[Any]]:
    make = C.sequence.input_variable if sequence else C.input_variable
    variables = [make(shape, dtype, needs_gradient=i == 0) for i in range(3)]
    return function(*variables), variables


def column(values: Any, shape: Any = (1,), dtype: Any = np.float64) -> Any:
    return np.array(values, dtype).reshape(-1, *shape)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
@pytest.mark.parametrize(("scores", "gains", "groups", "loss", "ndcg", "gradient"), CASES)
def test_values_of_cntk(scores: Any, gains: Any, groups: Any, loss: float, ndcg: float, gradient: Any, shape: Any, dtype: Any) -> None:
    function, variables = graph(C.lambda_rank, shape, dtype)
    feed = {v: column(x, shape, dtype) for v, x in zip(variables, (scores, gains, groups), strict=True)}
    assert (function.shape, function.dynamic_axes) == ((), ())
    np.testing.assert_allclose(function.eval(feed), loss, rtol=1e-5)
    np.testing.assert_allclose(function.grad(feed, wrt=[variables[0]]), column(gradient, shape), rtol=1e-5, atol=1e-7)
    metric, variables = graph(C.ndcg_at_1, shape, dtype)
    feed = {v: column(x, shape, dtype) for v, x in zip(variables, (scores, gains, groups), strict=True)}
    np.testing.assert_allclose(metric.eval(feed), ndcg, rtol=1e-5)


@pytest.mark.parametrize(("scores", "gains", "groups", "loss", "ndcg"), TIES)
def test_samples_of_equal_gain_are_no_pair(scores: Any, gains: Any, groups: Any, loss: float, ndcg: float) -> None:
    function, variables = graph(C.lambda_rank)
    feed = {v: column(x) for v, x in zip(variables, (scores, gains, groups), strict=True)}
    np.testing.assert_allclose(function.eval(feed), loss, rtol=1e-6)
    np.testing.assert_allclose(function.grad(feed, wrt=[variables[0]]), column(pushes(scores, gains, groups)), rtol=1e-9, atol=1e-12)
    metric, variables = graph(C.ndcg_at_1)
    feed = {v: column(x) for v, x in zip(variables, (scores, gains, groups), strict=True)}
    np.testing.assert_allclose(metric.eval(feed), ndcg, rtol=1e-6)


def test_float16_ranks_as_well() -> None:
    function, variables = graph(C.lambda_rank, dtype=np.float16)
    feed = {v: column(x, dtype=np.float16) for v, x in zip(variables, CASES[0][:3], strict=True)}
    np.testing.assert_allclose(function.eval(feed), CASES[0][3], rtol=1e-2)


def test_rows_may_come_in_any_order() -> None:
    scores, gains, groups, loss, ndcg = (np.array(part) for part in TIES[1])
    gradient = np.array(pushes(scores, gains, groups))
    order = [3, 0, 4, 2, 1]
    function, variables = graph(C.lambda_rank)
    feed = {v: column(x[order]) for v, x in zip(variables, (scores, gains, groups), strict=True)}
    np.testing.assert_allclose(function.eval(feed), loss, rtol=1e-6)
    np.testing.assert_allclose(function.grad(feed, wrt=[variables[0]]), column(gradient[order]), rtol=1e-6)
    metric, variables = graph(C.ndcg_at_1)
    np.testing.assert_allclose(
        metric.eval({v: column(x[order]) for v, x in zip(variables, (scores, gains, groups), strict=True)}), ndcg, rtol=1e-6
    )


def test_steps_of_sequences_are_samples_and_groups_may_span_sequences() -> None:
    function, variables = graph(C.lambda_rank, sequence=True)
    feed = {v: np.split(column(x), [1]) for v, x in zip(variables, CASES[0][:3], strict=True)}
    np.testing.assert_allclose(function.eval(feed), CASES[0][3], rtol=1e-6)
    gradient = function.grad(feed, wrt=[variables[0]])
    np.testing.assert_allclose(np.concatenate(gradient), column(CASES[0][5]), rtol=1e-6)


def test_the_gradient_is_multiplied_with_what_arrives() -> None:
    function, variables = graph(C.lambda_rank)
    feed = {v: column(x) for v, x in zip(variables, CASES[0][:3], strict=True)}
    np.testing.assert_allclose((function * 3).grad(feed, wrt=[variables[0]]), 3 * column(CASES[0][5]), rtol=1e-6)


def test_training_puts_the_best_first() -> None:
    features, gain, group = C.input_variable(2), C.input_variable(1), C.input_variable(1)
    weights = C.parameter((2, 1), init=np.array([[1], [-1]], np.float32))
    scores = C.times(features, weights)
    loss, metric = C.lambda_rank(scores, gain, group), C.ndcg_at_1(scores, gain, group)
    data = {
        features: np.array([[0, 1], [0.5, 0.5], [1, 0], [0.1, 0.9], [0.9, 0.2]], np.float32),
        gain: column([3, 1, 0, 2, 0], dtype=np.float32),
        group: column([1, 1, 1, 2, 2], dtype=np.float32),
    }
    trainer = C.Trainer(scores, (loss, metric), [C.sgd([weights], C.learning_parameter_schedule_per_sample(0.5))])
    for _ in range(50):
        trainer.train_minibatch(data)
    assert_close(metric.eval(data), 500.0)
    assert_close(loss.eval(data), 0.0)


@pytest.mark.parametrize("function", [C.lambda_rank, C.ndcg_at_1])
def test_a_sample_has_one_score(function: Any) -> None:
    with pytest.raises(ValueError, match="one number for each sample"):
        function(C.input_variable(2), C.input_variable(1), C.input_variable(1))
    with pytest.raises(ValueError, match="batch axis"):
        function(C.parameter(1), C.input_variable(1), C.input_variable(1))
