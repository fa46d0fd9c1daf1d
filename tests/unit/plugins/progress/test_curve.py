"""Curves: averages in little memory, gaps, and going on from what was kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cntk.plugins.progress.curve import Curve, smoothed


@pytest.mark.parametrize("count", [1, 7, 8, 9, 100, 1003])
@pytest.mark.parametrize("most", [2, 3, 8])
def test_points_are_averages_of_runs_of_values_and_are_never_too_many(count: int, most: int) -> None:
    curve, values = Curve(most), np.arange(count) ** 2.0
    for step, value in enumerate(values, 1):
        curve.add(step, 3 * value, 3)
        assert len(curve) <= most
    points, begin = curve.points(), 0
    assert points[-1][0] == count
    for place, average in points:
        end = int(place)
        assert average == pytest.approx(values[begin:end].mean())
        begin = end
    sizes = np.diff([0, *(place for place, _ in points)])
    assert len(set(sizes[:-1])) <= 1
    assert sizes[-1] <= sizes[0]


def test_weights_count() -> None:
    curve = Curve(1)
    curve.add(1, 10.0, 1)
    curve.add(2, 60.0, 3)
    assert curve.points() == [(2, 17.5)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_a_gap_that_stays(value: float) -> None:
    curve = Curve(4)
    for step in range(1, 17):
        curve.add(step, value if step == 6 else 1.0)
    assert [(place, math.isnan(average)) for place, average in curve.points()] == [(4, False), (8, True), (12, False), (16, False)]


def test_what_is_taken_away_comes_again() -> None:
    curve = Curve(10)
    for step in range(1, 6):
        curve.add(step, step)
    curve.forget_from(3)
    curve.add(3, 30.0)
    assert curve.points() == [(1, 1.0), (2, 2.0), (3, 30.0)]
    curve.forget_from(0)
    assert curve.points() == []


@pytest.mark.parametrize("at", range(1, 20))
def test_a_curve_goes_on_from_a_checkpoint(at: int) -> None:
    whole, other = Curve(4), Curve(4)
    for step in range(1, 40):
        if step == at:
            other.restore_from_checkpoint(whole.create_checkpoint())
        whole.add(step, step)
        if step >= at:
            other.add(step, step)
    assert other.points() == whole.points()


@pytest.mark.parametrize(
    "wrong",
    [
        {"stride": "1", "missing": 0, "columns": [[], [], []]},
        {"stride": 1, "missing": 0, "columns": [[1], [], []]},
        {"stride": 1, "missing": 0, "columns": [[True], [1], [1]]},
        {"stride": 1, "missing": 0, "columns": [[1], [1]]},
    ],
)
def test_other_things_are_no_checkpoints(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"numbers|unpack"):
        Curve().restore_from_checkpoint(wrong)


def test_smoothing_begins_with_the_first_value_and_keeps_gaps() -> None:
    points = smoothed([(1, 4.0), (2, 2.0), (3, math.nan), (4, 2.0)], 0.5)
    assert [y for _, y in points if math.isfinite(y)] == pytest.approx([4.0, 8 / 3, 16 / 7])
    assert math.isnan(points[2][1])
    assert smoothed([(1, 4.0), (2, 2.0)], 0.0) == [(1, 4.0), (2, 2.0)]
