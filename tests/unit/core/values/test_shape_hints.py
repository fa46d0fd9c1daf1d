"""Advice on data of a shape that an input does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.values.shape_hints import hint_of_shape


@pytest.mark.parametrize(
    ("array", "wanted", "advice"),
    [
        (np.array([1, 2, 0]), (3,), "np.eye(3, dtype=np.float32)[y] or C.Value.one_hot(y.tolist(), 3), or in the graph"),
        (np.array([[1], [2], [0]]), (3,), "np.eye(3, dtype=np.float32)[y.astype(int).ravel()] or"),
        (np.array([1.0, 2.0]), (3,), "np.eye(3"),
        (np.array([1.5, 2.0]), (3,), "give samples of 3 numbers, or declare the input as C.input_variable(())"),
        (np.array([3, 1]), (3,), "declare the input"),
        (np.ones((4, 9)), (4,), ".T"),
        (np.ones((9, 5)), (4,), "give samples of 4 numbers, or declare the input as C.input_variable(5)"),
        (np.ones((9, 8, 8, 3)), (3, 8, 8), "np.moveaxis(data, -1, 1)"),
        (np.ones((9, 8, 8)), (64,), ".reshape(-1, 64)"),
        (np.ones((9, 8, 8)), (1, 8, 8), ".reshape(-1, 1, 8, 8)"),
        (np.ones(9), (1,), ".reshape(-1, 1)"),
        (np.ones((8, 8)), (1, 8, 8), ".reshape(1, 1, 8, 8)"),
        (np.ones((9, 5, 4)), (4,), "C.sequence.input_variable"),
        (np.ones((9, 5)), (C.FreeDimension, 5, 2), ""),
        (np.array(3.0), (3,), ""),
    ],
)
def test_advice_fits_the_data(array: Any, wanted: tuple[int, ...], advice: str) -> None:
    hint = hint_of_shape(C.input_variable(wanted), array)
    assert (advice in hint) if advice else hint == ""


def test_who_follows_the_advice_is_served() -> None:
    picture = C.input_variable((3, 4, 5))
    data = np.ones((2, 4, 5, 3), np.float32)
    with pytest.raises(ValueError, match="moveaxis"):
        (picture * 1).eval({picture: data})
    assert (picture * 1).eval({picture: np.moveaxis(data, -1, 1)}).shape == (2, 3, 4, 5)


def test_there_is_no_warning_of_a_conversion_before_the_error() -> None:
    label = C.input_variable(3)
    with pytest.raises(ValueError, match="class numbers"):  # a warning would be an error here
        (label * 1).eval({label: np.array([1, 2])})


def test_sequences_of_an_input_without_a_sequence_axis_are_told_so() -> None:
    x = C.input_variable(3)
    for lengths in ((2, 4), (2, 2)):
        steps = [np.ones((length, 3), np.float32) for length in lengths]
        with pytest.raises(ValueError, match=r"got \(2, 3\) at position 0; .*declare the input with C.sequence.input_variable"):
            (x * 1).eval({x: steps})
        s = C.sequence.input_variable(3)
        assert [len(result) for result in (s * 1).eval({s: steps})] == list(lengths)


def test_samples_of_several_shapes_get_no_wrong_advice() -> None:
    x = C.input_variable(3)
    with pytest.raises(ValueError, match=r"has one step a sample$"):
        (x * 1).eval({x: [np.float32(1), np.ones(3, np.float32)]})
