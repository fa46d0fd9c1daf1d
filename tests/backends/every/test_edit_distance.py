"""Edit distances of sequences of classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.testing import assert_close

CASES: list[tuple[str, str, int, int, int, bool, list[int], float]] = [
    ("002", "112", 1, 1, 1, True, [], 1.5),
    ("012", "112", 1, 1, 1, True, [], 1.5),
    ("01002", "11222", 1, 1, 1, True, [0], 0),
    ("101", "111", 1, 1, 1, True, [0], 3),
    ("323323", "120212", 0, 2, 2, False, [1], 7.5),
    ("220033", "020310", 2, 1, 1, False, [], 5),
    ("300022", "322121", 2, 1, 2, False, [], 4),
    ("021322", "323233", 0, 1, 0, False, [1], 6),
    ("032120", "233222", 1, 1, 1, True, [0], 4),
    ("031310", "222030", 3, 2, 0, True, [], 6),
    ("200311", "300031", 0, 1, 0, False, [0], 4),
    ("331121", "121232", 1, 1, 0, True, [], 4),
    ("313030", "303110", 1, 1, 0, False, [], 4),
    ("232202", "032021", 1, 0, 1, False, [], 3),
    ("300123", "213321", 0, 0, 2, True, [1], 8),
    ("323010", "013131", 1, 2, 0, False, [], 5),
    ("330110", "300210", 0, 1, 1, False, [2], 2.4),
    ("111321", "201003", 0, 1, 1, False, [], 5),
    ("330130", "112111", 0, 2, 0, False, [1], 30),
    ("233323", "133121", 2, 0, 1, True, [2], 6),
    ("222221", "012123", 2, 1, 0, False, [3], 8.4),
    ("231213", "000101", 1, 1, 2, False, [3], 4),
    ("1 20030 211323", "1 32013 021312", 1, 0, 1, True, [2], 6.666667),
    ("0 3 1300", "0 3 0030", 0, 1, 2, False, [], 3),
    ("322 120 3001", "101 311 0203", 0, 1, 2, False, [3], 10),
    ("2 3332 022323", "2 1202 333120", 1, 2, 0, True, [], 8.555555),
    ("31201 3233 23", "30232 3211 11", 0, 2, 1, False, [0], 7.7),
    ("33313 3010 1013", "00012 1331 1133", 2, 2, 1, False, [], 9),
    ("02231 0 210", "13112 1 022", 1, 2, 0, True, [3], 10.5),
    ("2 11202 212121", "1 03320 322131", 2, 1, 2, False, [], 8),
    ("3 2 1200", "0 1 2211", 2, 0, 0, False, [2], 12),
    ("32203 33130 0", "12323 13332 2", 0, 2, 1, True, [], 8.555555),
    ("3030 21101 1220", "2012 00310 3230", 3, 2, 1, False, [0], 13),
    ("0 1 020201", "0 3 001232", 2, 2, 0, False, [], 5),
]
"""Strings of classes, one for each sequence; penalties; whether to squash; what to ignore; the error that CNTK 2.7 gives."""


def one_hot(text: str) -> list[Any]:
    return [np.eye(4, dtype=np.float32)[[int(token) for token in word]] for word in text.split()]


@pytest.mark.parametrize(("left", "right", "sub", "delete", "insert", "squash", "ignore", "error"), CASES)
def test_values_of_cntk(left: str, right: str, sub: int, delete: int, insert: int, squash: bool, ignore: list[int], error: float) -> None:
    a, b = C.sequence.input_variable(4), C.sequence.input_variable(4)
    function = C.edit_distance_error(a, b, sub, delete, insert, squash, ignore)
    assert (function.shape, function.dynamic_axes) == ((), ())
    np.testing.assert_allclose(function.eval({a: one_hot(left), b: one_hot(right)}), error, rtol=1e-6)


def distance(a: str, b: str) -> int:
    """Levenshtein's distance by its definition."""

    @cache
    def between(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        return min(between(i - 1, j) + 1, between(i, j - 1) + 1, between(i - 1, j - 1) + (a[i - 1] != b[j - 1]))

    return between(len(a), len(b))


def test_sequences_of_different_lengths_on_axes_of_their_own() -> None:
    a = C.sequence.input_variable(4, sequence_axis=C.Axis.new_unique_dynamic_axis("a"))
    b = C.sequence.input_variable(4, sequence_axis=C.Axis.new_unique_dynamic_axis("b"))
    left, right = "0123 2 0132103", "01 313 113210"
    error = C.edit_distance_error(a, b).eval({a: one_hot(left), b: one_hot(right)})
    edits = sum(distance(x, y) for x, y in zip(left.split(), right.split(), strict=True))
    np.testing.assert_allclose(error, edits * 12 / 11, rtol=1e-6)


def test_many_random_strings() -> None:
    a = C.sequence.input_variable(4, sequence_axis=C.Axis.new_unique_dynamic_axis("a"))
    b = C.sequence.input_variable(4, sequence_axis=C.Axis.new_unique_dynamic_axis("b"))
    generator = np.random.default_rng(3)

    def words() -> list[str]:
        return ["".join(map(str, generator.integers(4, size=generator.integers(1, 25)))) for _ in range(20)]

    left, right = words(), words()
    error = C.edit_distance_error(a, b).eval({a: one_hot(" ".join(left)), b: one_hot(" ".join(right))})
    edits = sum(distance(x, y) for x, y in zip(left, right, strict=True))
    np.testing.assert_allclose(error, edits * len("".join(left)) / len("".join(right)), rtol=1e-6)


def test_without_a_sequence_axis_a_sample_is_a_step() -> None:
    a, b = C.input_variable(4), C.input_variable(4)
    assert_close(C.edit_distance_error(a, b).eval({a: one_hot("012")[0], b: one_hot("010")[0]}), 1.0)


def test_targets_may_be_sparse() -> None:
    a, b = C.sequence.input_variable(4), C.sequence.input_variable(4, is_sparse=True)
    sparse = [csr_matrix(x) for x in one_hot("0223 10")]
    assert_close(C.edit_distance_error(a, b).eval({a: one_hot("0123 11"), b: sparse}), 2.0)
    weights = [csr_matrix(0.5 * x - 0.25) for x in one_hot("0223 10")]
    assert_close(C.edit_distance_error(a, b).eval({a: one_hot("0123 11"), b: weights}), 2.0)


def test_where_no_token_is_left_edits_are_counted_whole() -> None:
    a, b = C.sequence.input_variable(4), C.sequence.input_variable(4)
    function = C.edit_distance_error(a, b, tokensToIgnore=[0])
    assert_close(function.eval({a: one_hot("00"), b: one_hot("00")}), 0.0)
    assert_close(function.eval({a: one_hot("11"), b: one_hot("00")}), 4.0)


def test_attributes_have_cntks_names() -> None:
    a = C.sequence.input_variable(4)
    attributes = C.edit_distance_error(a, a, subPen=2, tokensToIgnore=[1]).root_function.attributes
    assert attributes == {
        "SubstitutionPenalty": 2,
        "DeletionPenalty": 1,
        "InsertionPenalty": 1,
        "SquashInputs": False,
        "TokensToIgnore": [1],
    }


@pytest.mark.parametrize("shapes", [(4, 3), ((), ()), ((4,), (1, 4))])
def test_shapes_must_be_the_same(shapes: Sequence[Any]) -> None:
    with pytest.raises(ValueError, match="scores of the same classes"):
        C.edit_distance_error(*(C.sequence.input_variable(shape) for shape in shapes))


def test_every_sequence_needs_its_counterpart() -> None:
    a = C.sequence.input_variable(4, sequence_axis=C.Axis.new_unique_dynamic_axis("a"))
    b = C.input_variable(4)
    with pytest.raises(ValueError, match="each needs its counterpart"):
        C.edit_distance_error(a, b).eval({a: one_hot("01 2"), b: np.eye(4, dtype=np.float32)})
    with pytest.raises(ValueError, match="batch axis"):
        C.edit_distance_error(a, C.parameter(4))
