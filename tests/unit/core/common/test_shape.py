"""Shapes may be whole floats, as programs get them that divide sizes with ``/``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C


@pytest.mark.parametrize("shape", [4.0, (4.0,), np.float32(4), (8 / 2,), [np.float64(4)]])
def test_whole_floats_are_sizes(shape: Any) -> None:
    assert C.parameter(shape).shape == C.input_variable(shape).shape == (4,)


@pytest.mark.parametrize("shape", [2.5, (2.5, 3), float("nan"), float("inf"), "12", (None,)])
def test_other_numbers_are_not(shape: Any) -> None:
    with pytest.raises(TypeError, match=r"whole numbers|an int or a tuple of ints"):
        C.input_variable(shape)
