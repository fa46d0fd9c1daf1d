"""The engine's operators take their arguments as CNTK's engine does; the numbers are what CNTK 2.7 gave."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk import cntk_py
from cntk.cntk_py.operators import OPERATORS
from cntk.internal import sanitize_axis, sanitize_permutation

A, B = (C.constant(np.arange(6).reshape(shape)) for shape in ((2, 3), (3, 2)))
T, U = (C.constant(np.arange(12).reshape(shape)) for shape in ((2, 2, 3), (2, 3, 2)))
FIRST, LAST = sanitize_axis(0), sanitize_axis(-1)

X = C.sequence.input_variable(2)
STEPS = [np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[7, 8]])]
CHOICE = C.sequence.input_variable(1)
CHOSEN = [np.float32([[1], [0], [1]]), np.float32([[1]])]


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: cntk_py.plus(A, A), [[0, 2, 4], [6, 8, 10]]),
        (lambda: cntk_py.plus(A, A, ""), [[0, 2, 4], [6, 8, 10]]),
        (lambda: cntk_py.times(B, A, 1, -1, ""), [[10, 13], [28, 40]]),
        (lambda: cntk_py.times_transpose(A, A, 1, ""), [[5, 14], [14, 50]]),
        (lambda: cntk_py.mat_mul(B, A, ""), [[3, 4, 5], [9, 14, 19], [15, 24, 33]]),
        (lambda: cntk_py.mat_mul(T, U, ""), [[[10, 13], [28, 40]], [[172, 193], [244, 274]]]),
        (lambda: cntk_py.gemm(B, A, C.constant(np.eye(2, dtype=np.float32)), 2.0, 3.0, False, False, ""), [[23, 26], [56, 83]]),
        (lambda: cntk_py.gemm(A, A, C.constant(np.eye(2, dtype=np.float32)), 1.0, 1.0, True, False, ""), [[6, 14], [14, 51]]),
        (lambda: cntk_py.unsqueeze(A, [C.Axis(-1)], ""), [[[0, 1, 2], [3, 4, 5]]]),
        (lambda: cntk_py.unsqueeze(A, [C.Axis(0)], ""), [[[0], [1], [2]], [[3], [4], [5]]]),
        (lambda: cntk_py.squeeze(C.constant(np.ones((1, 2, 1))), [FIRST], ""), [[1], [1]]),
        (lambda: cntk_py.transpose(A, ""), [[0, 3], [1, 4], [2, 5]]),
        (lambda: cntk_py.transpose_axes(A, FIRST, LAST, ""), [[0, 3], [1, 4], [2, 5]]),
        (lambda: cntk_py.constant_like(A, 3.5, ""), [[3.5] * 3] * 2),
        (lambda: cntk_py.reduce_elements(A, "Sum", FIRST, ""), [[3, 5, 7]]),
        (lambda: cntk_py.reduce_elements(A, "Max", [FIRST, LAST], True, "n"), [[5]]),
        (lambda: cntk_py.reduce_sum(A, [FIRST], True, ""), [[3, 5, 7]]),
        (lambda: cntk_py.reduce_sum(A, LAST, ""), [[3], [12]]),
        (lambda: cntk_py.argmax(A, LAST, ""), [[2], [2]]),
        (lambda: cntk_py.softmax(A, FIRST, ""), [[0.04742587] * 3, [0.95257413] * 3]),
        (lambda: cntk_py.slice(A, [FIRST], [0], [1], ""), [[0, 1, 2]]),
        (lambda: cntk_py.slice(A, [LAST], [0], [3], [2], ""), [[0, 2], [3, 5]]),
        (lambda: cntk_py.splice([A, A], FIRST, "n"), [[0, 1, 2], [3, 4, 5], [0, 1, 2], [3, 4, 5]]),
        (lambda: cntk_py.sum([A, A], ""), [[0, 2, 4], [6, 8, 10]]),
        (lambda: cntk_py.mean([A, A], ""), [[0, 1, 2], [3, 4, 5]]),
        (lambda: cntk_py.combine([A], "n"), [[0, 1, 2], [3, 4, 5]]),
        (lambda: cntk_py.one_hot_op(C.constant([1.0, 2.0]), 4, False, LAST, ""), [[0, 1, 0, 0], [0, 0, 1, 0]]),
        (lambda: cntk_py.pad(A, 0, [1, 0], [0, 2], 0.0, ""), [[0, 0, 1, 2], [0, 3, 4, 5], [0] * 4, [0] * 4]),
        (lambda: cntk_py.reshape(A, (3, 2), ""), [[0, 1], [2, 3], [4, 5]]),
        (lambda: cntk_py.gather_op(C.constant([1.0]), A, ""), [[3, 4, 5]]),
        (lambda: cntk_py.pre_lu(C.constant(0.5), C.constant([-2.0, 2.0]), ""), [-1, 2]),
        (lambda: cntk_py.re_lu(C.constant([-2.0, 2.0]), ""), [0, 2]),
        (lambda: cntk_py.elu(C.constant([0.0, 2.0]), ""), [0, 2]),
        (lambda: cntk_py.cast(A, 2, ""), np.arange(6.0).reshape(2, 3)),
        (lambda: cntk_py.uniform_random((2,), 1, 0.0, 1.0, 5, ""), [0.6730649, 0.03849461]),
    ],
)
def test_operators_of_the_engine_compute_what_public_ones_do(make: Callable[[], C.Function], expected: Any) -> None:
    found = make().eval()
    assert found.shape == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: cntk_py.is_within(X, 1, ""), [[1, 0, 0], [1]]),
        (lambda: cntk_py.is_within(X, -1, ""), [[0, 0, 1], [1]]),
        (lambda: cntk_py.zeroes_with_dynamic_axes_like(X), [[0, 0, 0], [0]]),
        (lambda: cntk_py.where(CHOICE, ""), [[0, 2], [0]]),
        (lambda: cntk_py.gather(X, CHOICE, ""), [[[1, 2], [5, 6]], [[7, 8]]]),
        (lambda: cntk_py.past_value(X, 1, ""), [[[0, 0], [1, 2], [3, 4]], [[0, 0]]]),
        (lambda: cntk_py.past_value(X, C.Constant.scalar(1, 9.0), 1, ""), [[[9, 9], [1, 2], [3, 4]], [[9, 9]]]),
        (lambda: cntk_py.future_value(X, C.Constant.scalar(1, 0.0), 2, ""), [[[5, 6], [0, 0], [0, 0]], [[0, 0]]]),
        (lambda: cntk_py.sequence_slice(X, 0, 2, ""), [[[1, 2], [3, 4]], [[7, 8]]]),
        (lambda: cntk_py.first(X, ""), [[1, 2], [7, 8]]),
        (lambda: cntk_py.sequence_reduce_sum(X, ""), [[9, 12], [7, 8]]),
    ],
)
def test_values_of_sequences(make: Callable[[], C.Function], expected: Any) -> None:
    made = make()
    found = made.eval({variable: {X: STEPS, CHOICE: CHOSEN}[variable] for variable in made.arguments})
    for one, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, right)


def test_a_permutation_is_that_of_axes_counted_from_the_last() -> None:
    order = [C.Axis(place) for place in sanitize_permutation((2, 0, 1))]
    assert cntk_py.transpose(C.constant(np.zeros((2, 3, 4))), order, "").shape == (4, 2, 3)


def test_bounds_of_a_reshape_are_counted_from_the_last_axis() -> None:
    x = C.constant(np.arange(24).reshape(2, 3, 4))
    assert cntk_py.reshape(x, (12,), C.Axis(0), C.Axis(2), "").shape == (2, 12)
    assert cntk_py.reshape(x, (6,), C.Axis(1), C.Axis.new_leading_axis(), "").shape == (6, 4)


def test_flags_for_each_axis_come_from_the_last() -> None:
    image, kernel = C.input_variable((1, 5, 6)), C.parameter((2, 1, 3, 3))
    made = cntk_py.convolution(kernel, image, (1,), [True], [True, False, False], (1,), 1, 1, 0, False, "")
    assert made.shape == C.convolution(kernel, image, auto_padding=[False, False, True]).shape == (2, 3, 6)
    assert cntk_py.pooling(image, 0, (2, 2), (2, 2), [False, True], False, False, "").shape == (1, 3, 3)
    assert cntk_py.spatial_convolution(C.parameter((3, 3)), C.input_variable((5, 5)), (1,), [True], [True], (1,), 0, "").shape == (1, 5, 5)


def test_names_come_last_and_may_be_left_out() -> None:
    assert cntk_py.plus(A, A, "sum").name == "sum"
    assert cntk_py.softmax(A, "probabilities").name == "probabilities"
    assert cntk_py.top_k(A, 2, "best").name == "best"
    assert cntk_py.to_sequence(C.input_variable((3, 2)), "steps_", "sequence").name == "sequence"
    assert cntk_py.custom_proxy_op([A], "quantised", (2, 3), 1, "proxy").name == "proxy"


def test_crop_by_its_arguments() -> None:
    x, y = C.input_variable((1, 4, 4)), C.input_variable((1, 2, 2))
    assert cntk_py.crop(x, y, 1, 1, "").shape == (1, 2, 2)
    assert cntk_py.crop(C.relu(x), C.abs(x), "").shape == (1, 4, 4)
    assert cntk_py.crop(C.relu(x), C.relu(y), x, y, "").shape == (1, 2, 2)


def test_statistics_for_all_channels_without_epsilon() -> None:
    x = C.input_variable((2, 3))
    data = np.arange(6, dtype=np.float32).reshape(1, 2, 3)
    without = cntk_py.mean_variance_normalization(x, True, False, "").eval({x: data})
    np.testing.assert_allclose(without, data - 2.5)
    assert cntk_py.mean_variance_normalization(x, 1e-5, True, True, "norm").name == "norm"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cntk_py.plus(A, A, "", "more"), r"cntk_py.plus: expected at most \(left, right, name\) by position, got 4"),
        (lambda: cntk_py.reshape(A, (6,), C.Axis(0), ""), "cntk_py.reshape: expected"),
        (lambda: cntk_py.transpose(T, ""), "is no matrix; give a permutation of its 3 axes"),
        (lambda: cntk_py.reduce_elements(A, "Median", FIRST, ""), "expected one of Sum, LogSum, Mean, Max, Min, Prod, got 'Median'"),
        (lambda: cntk_py.mat_mul(C.constant([1.0]), A, ""), "operands of two and more axes"),
        (lambda: cntk_py.times_transpose(A, A, 2, ""), "output_rank"),
    ],
)
def test_errors_name_the_operator_and_its_arguments(call: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        call()


@pytest.mark.parametrize("entry", list(OPERATORS))
def test_every_operator_of_the_table_is_one_of_ours_with_these_arguments(entry: str) -> None:
    name, _, public = entry.partition("=")
    target: Any = C
    for part in (public or name).split("."):
        target = getattr(target, part)
    known = inspect.signature(target).parameters
    assert set(OPERATORS[entry].split()) <= set(known)
    assert name in getattr(cntk_py, name).__doc__


@pytest.mark.parametrize("name", ["make_shared", "packed_index", "SequenceKey", "UDFDeserializeCallbackWrapper", "create_deserializer"])
def test_what_only_the_engine_can_do_says_what_to_use_instead_when_it_is_used(name: str) -> None:
    assert getattr(cntk_py, name).__doc__
    with pytest.raises(NotImplementedError, match=f"cntk_py.{name} is part of CNTK's native engine, which is not here; "):
        getattr(cntk_py, name)()
