"""Products of sparse rows with dense weights, by the operator itself and by the backend's kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.backends.numpy.times import TimesKernel
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.core.types.sparse import RowSparse, SparseRows
from cntk.core.types.spec import BATCH, Spec
from cntk.plugins.ops import csr
from cntk.plugins.ops.product import Times
from cntk.testing import assert_close

ROWS = 6
IMPLEMENTATIONS = {"operator": Times, "numpy kernel": TimesKernel}
FILLINGS = {"empty": 0.0, "thin": 0.3, "full": 1.0, "one-hot": 2.0}
SHAPES: dict[str, tuple[Any, Any, dict[str, int]]] = {
    "vector": ((5,), (5, 4), {"output_rank": 1, "infer_input_rank_to_map": -1}),
    "matrix": ((2, 5), (5, 4), {"output_rank": 1, "infer_input_rank_to_map": -1}),
    "matrix, both axes": ((2, 5), (2, 5, 4), {"output_rank": 1, "infer_input_rank_to_map": 0}),
    "tensor result": ((5,), (5, 2, 3), {"output_rank": 2, "infer_input_rank_to_map": -1}),
}


class Trial:
    """A product of random sparse rows and weights, with the right results."""

    def __init__(self, shapes: str, filling: str, dtype: type[np.floating[Any]] = np.float64, rows: int = ROWS) -> None:
        generator = np.random.default_rng(0)
        shape, weights_shape, options = SHAPES[shapes]
        self.op = Times(**options)
        self.x = random_rows((rows, *shape), FILLINGS[filling], generator).astype(dtype)
        self.weights = generator.normal(size=weights_shape).astype(dtype)
        summed = len(weights_shape) - options["output_rank"]
        self.product = np.tensordot(self.x, self.weights, summed)
        self.grad = generator.normal(size=self.product.shape).astype(dtype)
        free = list(range(self.x.ndim - summed))
        self.weights_grad = np.tensordot(self.x, self.grad, (free, free))
        last = range(len(free), self.product.ndim)
        self.x_grad = np.tensordot(self.grad, self.weights, (list(last), list(range(summed, self.weights.ndim))))
        self.context = Context(NumpyBackend(), training=True)
        self.context.layouts, self.context.layout = (Layout(rows), None), Layout(rows)
        self.sparse = sparse_rows(self.x)


def random_rows(shape: tuple[int, ...], filling: float, generator: np.random.Generator) -> Any:
    if filling > 1:
        return np.eye(shape[-1])[generator.integers(shape[-1], size=shape[:-1])]
    return generator.normal(size=shape) * (generator.random(shape) < filling)


def sparse_rows(x: Any) -> SparseRows:
    matrix = x.reshape(-1, x.shape[-1])
    rows, columns = np.nonzero(matrix)
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=len(matrix)))))
    made = SparseRows(x.shape, x.dtype.type)
    made.set(matrix[rows, columns], columns.astype(np.int32), starts.astype(np.int32))
    return made


of_each_kind = pytest.mark.parametrize(
    ("shapes", "filling", "implementation"), [(s, f, i) for s in SHAPES for f in FILLINGS for i in IMPLEMENTATIONS]
)


@of_each_kind
def test_values_and_dense_gradients(shapes: str, filling: str, implementation: str) -> None:
    trial, product = Trial(shapes, filling), IMPLEMENTATIONS[implementation]
    out, grads = np.full_like(trial.product, np.nan), [np.full_like(trial.x, np.nan), np.full_like(trial.weights, np.nan)]
    product.forward(trial.op, trial.context, out, trial.sparse, trial.weights)
    product.backward(trial.op, trial.context, trial.grad, grads, None, trial.sparse, trial.weights)
    np.testing.assert_allclose(out, trial.product)
    np.testing.assert_allclose(grads[0], trial.x_grad)
    assert_close(grads[1], trial.weights_grad)


@of_each_kind
def test_row_sparse_gradients(shapes: str, filling: str, implementation: str) -> None:
    trial = Trial(shapes, filling)
    left = Spec(trial.x.shape[1:], np.float64, BATCH, sparse=True)
    expected = trial.weights.ndim - trial.op.output_rank == 1
    assert trial.op.row_sparse(1, (left, Spec(trial.weights.shape, np.float64, ()))) == expected
    if not expected:
        return
    grad = RowSparse(trial.weights.shape, np.float64)
    IMPLEMENTATIONS[implementation].backward(trial.op, trial.context, trial.grad, [None, grad], None, trial.sparse, trial.weights)
    assert np.array_equal(grad.rows, np.unique(trial.sparse.indices))
    assert_close(grad.to_dense(np), trial.weights_grad)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_products_are_right_in_every_type(dtype: type[np.floating[Any]], implementation: str) -> None:
    trial = Trial("vector", "thin", dtype)
    out = np.empty_like(trial.product)
    IMPLEMENTATIONS[implementation].forward(trial.op, trial.context, out, trial.sparse, trial.weights)
    assert_close(out, trial.product)


@pytest.mark.parametrize("implementation", IMPLEMENTATIONS)
def test_a_minibatch_without_rows(implementation: str) -> None:
    trial, product = Trial("vector", "thin", rows=0), IMPLEMENTATIONS[implementation]
    grad = np.full_like(trial.weights, np.nan)
    product.forward(trial.op, trial.context, np.empty_like(trial.product), trial.sparse, trial.weights)
    product.backward(trial.op, trial.context, trial.grad, [None, grad], None, trial.sparse, trial.weights)
    assert not grad.any()


def test_weights_that_differ_from_row_to_row() -> None:
    trial = Trial("vector", "thin")
    weights = np.random.default_rng(1).normal(size=(ROWS, 5, 4))
    trial.context.layouts = (Layout(ROWS), Layout(ROWS))
    out, grads = np.empty_like(trial.product), [None, np.full_like(weights, np.nan)]
    trial.op.forward(trial.context, out, trial.sparse, weights)
    trial.op.backward(trial.context, trial.grad, grads, None, trial.sparse, weights)
    np.testing.assert_allclose(out, np.einsum("rk,rkn->rn", trial.x, weights))
    np.testing.assert_allclose(grads[1], np.einsum("rk,rn->rkn", trial.x, trial.grad))


def test_long_minibatches_are_worked_off_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    trial = Trial("matrix", "thin")
    monkeypatch.setattr(csr, "_CHUNK", 8)
    out, grad = np.empty_like(trial.product), np.empty_like(trial.weights)
    trial.op.forward(trial.context, out, trial.sparse, trial.weights)
    trial.op.backward(trial.context, trial.grad, [None, grad], None, trial.sparse, trial.weights)
    np.testing.assert_allclose(out, trial.product)
    assert_close(grad, trial.weights_grad)


@pytest.mark.parametrize(
    "weights_of", [lambda w: w, lambda w: w * 2, lambda w: C.reshape(w, (6, 3))], ids=["parameter", "computed", "view"]
)
def test_gradients_reach_a_parameter_behind_other_operators(weights_of: Any, device: DeviceDescriptor) -> None:
    x, w = C.input_variable(6, is_sparse=True), C.parameter(init=np.ones((6, 3), np.float32))
    weights = weights_of(w)
    grad = C.times(x, weights).grad({x: csr_matrix(np.eye(6, dtype=np.float32)[[1, 1, 4]])}, wrt=[w], device=device)
    scale = 1 if isinstance(weights, C.Parameter) else float(weights.eval(device=device)[0, 0])
    np.testing.assert_array_equal(grad, scale * np.float32([0, 2, 0, 0, 1, 0])[:, None] * np.ones((1, 3)))


def test_a_sparse_sample_is_expanded_along_a_sequence(device: DeviceDescriptor) -> None:
    x, y = C.input_variable(3, is_sparse=True), C.sequence.input_variable((3, 2))
    samples = csr_matrix(np.eye(3, dtype=np.float32)[[2, 0]])
    sequences = [np.arange(6 * steps, dtype=np.float32).reshape(steps, 3, 2) for steps in (1, 3)]
    results = C.times(x, y).eval({x: samples, y: sequences}, device=device)
    for result, sequence, chosen in zip(results, sequences, (2, 0), strict=True):
        assert_close(result, sequence[:, chosen])
