"""What loops are written in: what is noted of it for compilers, and what Python makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cntk.core.machine import language


def test_every_compiler_sees_all_that_is_noted_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "overloads", [])
    first, second = language.Unread(), language.Unread()

    @language.jittable(inline="always")
    def twice(x: Any) -> Any:
        return 2 * x

    assert [(noted.function, noted.options) for noted in first] == [(twice, {"inline": "always"})]

    @language.jittable
    def thrice(x: Any) -> Any:
        return 3 * x

    assert [noted.function for noted in first] == [thrice]
    assert [(noted.function, noted.options) for noted in second] == [(twice, {"inline": "always"}), (thrice, {})]
    assert not [*first, *second]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_python_runs_what_is_chosen_by_type(dtype: Any) -> None:
    exponential = pytest.importorskip("cntk.backends.fused.exponential")
    lanes = pytest.importorskip("cntk.backends.fused.lanes")
    for number in dtype([-3.5, 0.0, 0.25, 9.0]):
        assert type(exponential.exp(number)) is dtype
        np.testing.assert_allclose(exponential.exp(number), np.exp(number), rtol=4 * np.finfo(dtype).eps)
        assert lanes.from_ordered(lanes.ordered(number)) == number
    assert lanes.ordered(dtype(-1)) < lanes.ordered(dtype(-0.5)) < lanes.ordered(dtype(2))
