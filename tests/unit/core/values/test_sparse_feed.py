"""Feeding sparse data: CSR matrices and sparse Values, for samples and steps of any shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array, csr_matrix, issparse

import cntk as C

EYE = np.eye(3, dtype=np.float32)


def csr(array: Any) -> Any:
    array = np.asarray(array, np.float32)
    return csr_matrix(array.reshape(-1, array.shape[-1]))


def fed(variable: Any, data: Any) -> Any:
    """What arrives: the product with the unit matrix."""
    return C.times(variable, np.eye(variable.shape[-1], dtype=variable.dtype)).eval({variable: data})


def sequence(*shape: int, sparse: bool = True) -> Any:
    return C.sequence.input_variable(shape, is_sparse=sparse, name="s")


# ---- one-hot values ----


@pytest.mark.parametrize(
    ("batch", "classes", "shape", "expected"),
    [
        ([1, 2, 0], 3, (3, 3), EYE[[1, 2, 0]]),
        (np.array([1, 2]), (3,), (2, 3), EYE[[1, 2]]),
        ([1, 2, 0, 0], (2, 3), (2, 2, 3), EYE[[[1, 2], [0, 0]]]),
        ([1, 2, 0, 0], (2, 2, 3), (1, 2, 2, 3), EYE[[[[1, 2], [0, 0]]]]),
        ([C.Value.ONE_HOT_SKIP, 1], 3, (2, 3), [[0, 0, 0], [0, 1, 0]]),
    ],
)
def test_one_hot_samples(batch: Any, classes: Any, shape: Any, expected: Any) -> None:
    value = C.Value.one_hot(batch, classes)
    assert (value.is_sparse, value.shape) == (True, shape)
    np.testing.assert_array_equal(fed(C.input_variable(shape[1:], is_sparse=True), value), expected)


@pytest.mark.parametrize(
    ("batch", "classes", "shape", "expected"),
    [
        ([[1, 2], [0]], 3, (2, 2, 3), [EYE[[1, 2]], EYE[[0]]]),
        ([np.array([1, 2])], 3, (1, 2, 3), [EYE[[1, 2]]]),
        ([[1, 2, 0, 1], [0, 0]], (2, 3), (2, 2, 2, 3), [EYE[[[1, 2], [0, 1]]], EYE[[[0, 0]]]]),
        ([[1, 2]], (1, 2, 3), (1, 1, 1, 2, 3), [EYE[[[[1, 2]]]]]),
    ],
)
def test_one_hot_sequences(batch: Any, classes: Any, shape: Any, expected: Any) -> None:
    value, s = C.Value.one_hot(batch, classes), sequence(*shape[2:])
    assert (value.is_sparse, value.shape) == (True, shape)
    for found in (fed(s, value), [part.toarray() if issparse(part) else part for part in value.as_sequences(s)]):
        for part, right in zip(found, expected, strict=True):
            np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize("batch", [[5], [[0, 3]], [-1], [[1, -2]], [1.5], [[1], [2.5]], [], [[]], (1, 2), [[[1]]]])
def test_what_is_not_one_hot(batch: Any) -> None:
    with pytest.raises(ValueError, match=r"Value.one_hot"):
        C.Value.one_hot(batch, 3)


@pytest.mark.parametrize("batch", [[1, 2, 0], [[1, 2], [0]]])
def test_one_hot_classes_that_fill_no_samples(batch: Any) -> None:
    with pytest.raises(ValueError, match=r"Value.one_hot"):
        C.Value.one_hot(batch, (2, 3))


# ---- sequences ----


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3)])
def test_sequences_of_csr_rows(shape: Any, sparse: bool) -> None:
    generator = np.random.default_rng(0)
    arrays = [generator.normal(size=(steps, *shape)).astype(np.float32) for steps in (2, 4, 1, 3)]
    s = sequence(*shape, sparse=sparse)
    for part, right in zip(fed(s, [csr(a) for a in arrays]), arrays, strict=True):
        np.testing.assert_array_equal(part, right)
    np.testing.assert_array_equal(fed(s, csr(arrays[0]))[0], arrays[0])


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_values_of_sparse_sequences(shape: Any) -> None:
    arrays = [np.arange(n * np.prod(shape), dtype=np.float32).reshape(n, *shape) for n in (1, 3)]
    s = sequence(*shape)
    value = C.Value.create(s, [csr(a) for a in arrays])
    assert (value.shape, value.mask.tolist()) == ((2, 3, *shape), [[2, 0, 0], [2, 1, 1]])
    for held in (value, value.deep_clone(), value.alias(), C.alias(s).eval({s: value}, as_numpy=False)):
        for part, right in zip(fed(s, held), arrays, strict=True):
            np.testing.assert_array_equal(part, right)


@pytest.mark.parametrize(("shape", "steps"), [((2, 2, 3), 2), ((1, 4, 3), 4), ((4, 1, 3), 1)])
def test_the_shape_of_a_sparse_view_tells_its_sequences(shape: Any, steps: int) -> None:
    rows = np.arange(12, dtype=np.float32).reshape(4, 3)
    found = fed(sequence(3), C.Value(C.NDArrayView.from_csr(csr(rows), shape=shape)))
    assert [len(part) for part in found] == [steps] * shape[0]
    np.testing.assert_array_equal(np.concatenate(found), rows)


@pytest.mark.parametrize(
    ("shape", "data", "message"),
    [
        ((2, 3), [csr(EYE)], "sequence 0 has 3 rows; every sequence needs at least one step, and a step 2 rows"),
        ((3,), [csr(EYE), csr(EYE[:0])], "sequence 1 has 0 rows"),
        ((3,), [csr(EYE[:, :2])], r"takes CSR rows 3 wide, got a matrix of shape \(3, 2\) at position 0"),
        ((3,), [EYE], "is sparse and takes CSR matrices, got ndarray"),
        ((3,), [csr(EYE), EYE], "takes a list of CSR matrices, got ndarray at position 1"),
        ((3,), [csr(EYE).tocsc()], "is sparse and takes CSR matrices"),
        ((-3, 3), [csr(EYE)], "rows of sparse data do not tell the sizes of free axes other than the last"),
    ],
)
def test_sparse_sequences_that_do_not_fit(shape: Any, data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"'s'.*{message}"):
        C.alias(sequence(*shape)).eval(data, as_numpy=False)


@pytest.mark.parametrize("classes", [np.array([2, 0]), np.array([[2], [0]]), [2, 0]], ids=["vector", "column", "list"])
def test_class_numbers_for_sparse_vectors_are_explained(classes: Any) -> None:
    told = r"takes CSR matrices, got .*; class numbers become rows of 3 with C\.Value\.one_hot\(y.*, 3\)"
    with pytest.raises(ValueError, match=told):
        C.alias(C.input_variable(3, is_sparse=True)).eval(classes)


def with_room(array: Any) -> Any:
    """CSR rows with more room for elements than they need, and wide indices."""
    tight = csr(array)
    data, indices = np.append(tight.data, np.float32([7, 7])), np.append(tight.indices, [0, 0]).astype(np.int64)
    rows = csr_array(tight.shape, dtype=np.float32)
    rows.data, rows.indices, rows.indptr = data, indices, tight.indptr.astype(np.int64)
    return rows


@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("order", [[0], [0, 1], [1, 0, 2], [0, 0, 1]])
def test_matrices_of_all_kinds_below_each_other(order: list[int], sparse: bool) -> None:
    arrays = [np.float32([[0, 2, 0], [1, 0, 3]]), np.float32([[0, 0, 4]]), np.float32([[0, 0, 0], [5, 6, 0], [0, 0, 7]])]
    made = [with_room(arrays[0]), csr(arrays[1]), csr_array(arrays[2])]
    s = sequence(3, sparse=sparse)
    data = [made[number] for number in order]
    for given in data, C.Value.create(s, data):
        for found, number in zip(fed(s, given), order, strict=True):
            np.testing.assert_array_equal(found, arrays[number])


def test_a_free_last_axis() -> None:
    s = C.sequence.input_variable(C.FreeDimension, is_sparse=True)
    value = C.alias(s).eval({s: [csr(EYE), csr(EYE[:1])]}, as_numpy=False)
    assert value.shape == (2, 3, 3)


def test_float16_takes_data_that_scipy_can_hold() -> None:
    x = C.input_variable(3, np.float16, is_sparse=True)
    found = C.times(x, np.eye(3, dtype=np.float16)).eval({x: csr_matrix(np.float64([[0, 0.1, 700]]))})
    np.testing.assert_array_equal(found, np.float16([[0, 0.1, 700]]))
    np.testing.assert_array_equal(fed(x, C.Value.one_hot([2, 0], 3, np.float16)), EYE[[2, 0]])
    assert C.Value.create(x, csr(EYE)).dtype == np.float32
    with pytest.raises(ValueError, match="got dtype complex128"):
        C.times(x, np.eye(3, dtype=np.float16)).eval({x: csr_matrix(np.array([[1j, 0, 0]]))})


def test_other_types_are_converted_with_a_warning() -> None:
    x = C.input_variable(3, is_sparse=True)
    with pytest.warns(UserWarning, match="float64 data, which is converted to float32"):
        np.testing.assert_array_equal(fed(x, csr_matrix(np.eye(3))), EYE)


def test_numbers_are_steps_of_sequences_of_vectors_of_one() -> None:
    s = sequence(1, sparse=False)
    first, second = C.alias(s).eval({s: [[2, 0], [1]]})
    assert (first.tolist(), second.tolist()) == ([[2], [0]], [[1]])


# ---- free axes ----


BLOCKS = (np.arange(24).reshape(2, 2, 2, 3) % 5 == 0).astype(np.float32)


def free_sum(variable: Any, data: Any) -> Any:
    """Sums along the last axis, where the free axes are those of the data."""
    return C.times(variable, np.ones((variable.shape[-1], 1), np.float32)).eval({variable: data})


@pytest.mark.parametrize("dims", [(C.FreeDimension, 2, 3), (2, C.FreeDimension, 3), (C.FreeDimension, C.FreeDimension, 3)])
@pytest.mark.parametrize("wrap", [lambda view: view, C.Value])
def test_a_view_tells_free_dimensions(dims: Any, wrap: Any) -> None:
    x = C.input_variable(dims, is_sparse=True)
    view = C.NDArrayView.from_csr(csr(BLOCKS), shape=BLOCKS.shape)
    np.testing.assert_array_equal(free_sum(x, wrap(view)), BLOCKS.sum(-1, keepdims=True))


def test_a_view_tells_free_dimensions_of_steps() -> None:
    s = sequence(C.FreeDimension, 3)
    data = BLOCKS.reshape(2, 2, 2, 3)
    found = free_sum(s, C.NDArrayView.from_csr(csr(data), shape=data.shape))
    np.testing.assert_array_equal(found, data.sum(-1, keepdims=True))


def test_the_rows_of_each_sample_tell_one_free_dimension() -> None:
    x = C.input_variable((C.FreeDimension, 2, 3), is_sparse=True)
    np.testing.assert_array_equal(free_sum(x, [csr(block) for block in BLOCKS]), BLOCKS.sum(-1, keepdims=True))


@pytest.mark.parametrize(
    ("dims", "data"),
    [
        ((C.FreeDimension, 2, 3), csr(BLOCKS)),
        ((C.FreeDimension, C.FreeDimension, 3), [csr(block) for block in BLOCKS]),
        ((C.FreeDimension, 2, 3), [csr(BLOCKS[0]), csr(BLOCKS[:, 0])[:2]]),
        ((C.FreeDimension, 2, 3), [csr(BLOCKS[0])[:3]] * 2),
    ],
)
def test_rows_that_do_not_tell_free_dimensions_are_refused(dims: Any, data: Any) -> None:
    with pytest.raises(ValueError, match="do not tell the sizes of free axes other than the last; give an NDArrayView"):
        free_sum(C.input_variable(dims, is_sparse=True), data)


def test_steps_of_free_dimensions_need_a_view() -> None:
    with pytest.raises(ValueError, match="do not tell the sizes of free axes"):
        free_sum(sequence(C.FreeDimension, 3), [csr(BLOCKS[0])])
