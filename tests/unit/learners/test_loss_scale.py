"""The loss scale: its rule, its state, and what learners do with scaled gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.types.sparse import RowSparse
from cntk.learners.loss_scale import LossScale

IGNORE = C.learners.IGNORE


def test_it_grows_after_an_interval_and_becomes_smaller_at_once() -> None:
    scale = LossScale(8.0, growth_interval=3)
    for overflows, value in [(0, 8), (0, 8), (0, 16), (0, 16), (1, 8), (0, 8), (0, 8), (0, 16), (1, 8), (1, 4)]:
        scale.overflowed = bool(overflows)
        assert scale.finish() is bool(overflows)
        assert scale.value == value
    assert scale.skipped == 3


def test_it_goes_on_from_its_state() -> None:
    scale, other = (LossScale(8.0, growth_interval=3) for _ in range(2))
    for _ in range(2):
        scale.finish()
    other.check_checkpoint(scale.create_checkpoint())
    other.restore_from_checkpoint(scale.create_checkpoint())
    other.finish()
    assert other.value == 16


@pytest.mark.parametrize(
    "state", [None, {}, {"value": 1.0}, {"value": "x", "finite": 0, "skipped": 0}, {"value": -1.0, "finite": 0, "skipped": 0}]
)
def test_another_state_is_refused(state: Any) -> None:
    with pytest.raises(RuntimeError, match="state of a loss scale"):
        LossScale().check_checkpoint(state)


def test_gradients_that_are_never_finite_end_training() -> None:
    scale = LossScale(1.0)
    for _ in range(20):
        scale.overflowed = True
        scale.finish()
    scale.overflowed = True
    with pytest.raises(RuntimeError, match="not finite even with a loss scale of 9"):
        scale.finish()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"init_scale": 0}, "above 0"),
        ({"init_scale": float("inf")}, "above 0"),
        ({"init_scale": float("nan")}, "above 0"),
        ({"growth_factor": 1}, "growth_factor"),
        ({"backoff_factor": 1}, "backoff_factor"),
        ({"growth_interval": 0}, "growth_interval"),
    ],
)
def test_numbers_out_of_range_are_refused(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        LossScale(**options)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_what_is_not_finite_is_found_in_dense_and_row_sparse_gradients(bad: float, dtype: Any) -> None:
    scale, largest = LossScale(), np.array([np.finfo(dtype).max, np.finfo(dtype).min, 0], dtype)
    sparse, empty = RowSparse((5, 1), dtype), RowSparse((5, 1), dtype)
    sparse.set(np.arange(3), largest[:, None])
    empty.set(np.zeros(0, np.intp), np.zeros((0, 1), dtype))
    assert scale.admits(np, [largest, sparse, empty])
    wrong = largest.copy()
    wrong[2] = bad
    sparse.set(np.arange(3), wrong[:, None])
    with np.errstate(invalid="ignore"):
        assert not scale.admits(np, [largest, wrong])
        assert not scale.admits(np, [largest, sparse])
    assert LossScale(2.0, growth_interval=None).admits(np, [wrong])


LEARNERS = {
    "sgd": lambda p: C.sgd(p, 0.1),
    "sgd of the mean": lambda p: C.sgd(p, 0.1, minibatch_size=IGNORE),
    "clipped": lambda p: C.sgd(p, 0.1, gradient_clipping_threshold_per_sample=0.3, l2_regularization_weight=0.1),
    "clipped norm": lambda p: C.sgd(p, 0.1, gradient_clipping_threshold_per_sample=0.3, gradient_clipping_with_truncation=False),
    "adam": lambda p: C.adam(p, 0.1, 0.9, minibatch_size=IGNORE),
    "adagrad": lambda p: C.adagrad(p, 0.1),
}


@pytest.mark.parametrize("size", [3, 40_000])
@pytest.mark.parametrize("name", LEARNERS)
def test_learners_divide_by_it_to_the_bit(name: str, size: int) -> None:
    """With and without a kernel."""
    random = np.random.default_rng(0)
    plain, scaled = (LEARNERS[name]([C.parameter(size, init=1)]) for _ in range(2))
    scale = LossScale(1024.0)
    for _ in range(3):
        gradient = random.normal(size=size).astype(np.float32)
        plain.update_arrays([gradient.copy()], 2)
        with scale.at_work([scaled]):
            assert scaled.update_arrays([gradient * 1024], 2)
    assert scaled.loss_scale is None
    assert np.array_equal(plain.updated_parameters[0].value, scaled.updated_parameters[0].value)


def test_a_learner_counts_a_minibatch_that_it_leaves_out() -> None:
    learner = C.adam([C.parameter(2, init=1)], 0.1, 0.9)
    scale = LossScale()
    with scale.at_work([learner]), np.errstate(invalid="ignore"):
        assert not learner.update_arrays([np.float32([1, np.inf])], 4, is_sweep_end=True)
    assert scale.overflowed
    assert np.array_equal(learner.parameters[0].value, [1, 1])
    assert learner.total_number_of_samples_seen() == 4
    assert learner.total_number_of_sweeps_seen() == 1
    assert learner.create_checkpoint()["counters"] == {"updates": 0}
