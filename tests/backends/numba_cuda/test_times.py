"""Products with CSR rows under Numba's simulator: values, gradients, and long rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from simulated import on_the_simulator

import cntk as C
from cntk.core.common.sums import PIECE

pytestmark = on_the_simulator


def rows_of(random: Any, rows: int, columns: int, entries: int, dtype: Any) -> Any:
    """A matrix with some entries, among them a row without any and a column with several."""
    dense = np.zeros((rows, columns), dtype)
    dense.flat[random.choice(rows * columns, entries, replace=False)] = random.normal(size=entries)
    dense[rows // 2] = 0
    dense[:, 1] = 1
    dense[rows // 2, 1] = 0
    return csr_matrix(dense)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transposed", [False, True])
def test_values_and_gradients(dtype: Any, transposed: bool) -> None:
    random = np.random.default_rng(1)
    data, matrix = rows_of(random, 9, 7, 20, dtype), random.normal(size=(7, 5)).astype(dtype)
    x = C.input_variable(7, is_sparse=True, dtype=dtype)
    w = C.parameter(init=np.ascontiguousarray(matrix.T) if transposed else matrix)
    z = C.times_transpose(x, w) if transposed else C.times(x, w)
    gradients, result = (z * z).grad({x: data}, wrt=[w], outputs=[z.output])
    np.testing.assert_allclose(result, data @ matrix, rtol=1e-6)
    expected = data.T @ (2 * (data @ matrix))
    np.testing.assert_allclose(gradients, expected.T if transposed else expected, rtol=1e-5, atol=1e-6)


def test_no_entries() -> None:
    x, w = C.input_variable(4, is_sparse=True), C.parameter(init=np.ones((4, 3), np.float32))
    z = C.times(x, w)
    gradient, result = z.grad({x: csr_matrix((2, 4), dtype=np.float32)}, wrt=[w], outputs=[z.output])
    assert not gradient.any()
    assert not result.any()


def test_long_rows_lose_no_digits() -> None:
    from cntk.backends.numba_cuda.csr import product

    count = 80 * PIECE + 3
    data, starts = np.full(count, 0.1, np.float32), np.array([0, count])
    out = np.empty((1, 2), np.float32)
    product((data, np.zeros(count, np.intp), starts), np.ones((1, 2), np.float32), out)
    np.testing.assert_allclose(out, count * np.float64(np.float32(0.1)), rtol=5e-6)


def test_learners_update_the_rows_that_are_present() -> None:
    from cntk.core.common.thresholds import overridden

    x, w = C.input_variable(6, is_sparse=True), C.parameter(init=np.ones((6, 2), np.float32))
    loss = C.reduce_sum(C.times(x, w))
    with overridden(learner_compiled=1):
        learner = C.sgd([w], C.learning_parameter_schedule_per_sample(1.0))
    trainer = C.Trainer(loss, loss, [learner])
    trainer.train_minibatch({x: csr_matrix(np.eye(6, dtype=np.float32)[[1, 1, 4]])})
    np.testing.assert_array_equal(w.value[:, 0], [1, -1, 1, 1, 0, 1])


def test_terms_of_a_column_are_added_in_the_order_of_rows() -> None:
    from cntk.backends.numba_cuda.csr import transposed_product

    random, count = np.random.default_rng(2), 400
    data, dense = (random.normal(size=size).astype(np.float32) for size in (count, (count, 1)))
    columns = np.where(np.arange(count) % 2, 6, 1)
    present, sums = transposed_product(np, (data, columns, np.arange(count + 1)), dense)
    terms = (data * dense[:, 0]).reshape(-1, 2)
    assert present.tolist() == [1, 6]
    np.testing.assert_array_equal(sums[:, 0], np.add.accumulate(terms, axis=0)[-1])
