"""Products: which axes are summed over, inferred dimensions, and operands with and without rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension.device import DeviceDescriptor

Shape = tuple[int, ...]


@pytest.mark.parametrize(
    ("left", "right", "options", "shape"),
    [
        ((3, 4), (4, 5), {}, (3, 5)),
        ((2, 3, 4), (3, 4, 5), {}, (2, 5)),
        ((3,), (3, 4, 5), {"output_rank": 2}, (4, 5)),
        ((3,), (4,), {}, (3, 4)),
        ((3,), (4, 5), {"output_rank": 2}, (3, 4, 5)),
        ((), (3,), {}, (3,)),
        ((-3, 2), (2, 5), {}, (-3, 5)),
        ((-3, -3), (2, 5), {}, (-3, 5)),
        ((-1, 2), (-1, 5), {"infer_input_rank_to_map": 0}, (5,)),
    ],
)
def test_shapes_of_products(left: Shape, right: Shape, options: dict[str, int], shape: Shape) -> None:
    assert C.times(C.input_variable(left), C.parameter(right), **options).shape == shape


@pytest.mark.parametrize(
    ("left", "given", "mapped", "filled"),
    [
        ((3, 4), (-1, 5), -1, (4, 5)),
        ((3, 4), (-1, 5), 0, (3, 4, 5)),
        ((2, 3, 4), (-1, 5), 1, (3, 4, 5)),
        ((2, 3, 4), (-1, 5), 2, (4, 5)),
        ((2, 3, 4), (-1, 4, 5), -1, (3, 4, 5)),
        ((2, 3, 4), (-1, 4, 5), 0, (2, 3, 4, 5)),
        ((2, 3, 4), (3, 4, 5), 0, (3, 4, 5)),
    ],
)
def test_inferred_dimensions_of_a_parameter(left: Shape, given: Shape, mapped: int, filled: Shape) -> None:
    weights = C.parameter(given)
    C.times(C.input_variable(left), weights, infer_input_rank_to_map=mapped)
    assert weights.shape == filled


def test_a_parameter_on_the_left_takes_its_dimensions_from_the_right() -> None:
    weights = C.parameter((4, -1))
    assert C.times(weights, C.input_variable((6, 3))).shape == (4, 3)
    assert weights.shape == (4, 6)


def test_inferred_dimensions_of_a_transposed_parameter() -> None:
    weights = C.parameter((5, -1))
    assert C.times_transpose(C.input_variable((2, 4)), weights).shape == (2, 5)
    assert weights.shape == (5, 4)


@pytest.mark.parametrize(
    ("left", "right", "options", "error", "message"),
    [
        ((3,), (4, 5), {}, ValueError, "sums over"),
        ((3,), (2, 3, 5), {}, RuntimeError, "only 1"),
        ((3,), (3,), {"output_rank": 2}, ValueError, "output_rank"),
        ((3,), (3,), {"output_rank": 0}, ValueError, "output_rank"),
        ((3,), (3, -1), {}, ValueError, "cannot be inferred"),
        ((3,), (-1, 4), {"output_rank": 2}, ValueError, "cannot be inferred"),
        ((2, 3), (-1, 5), {"infer_input_rank_to_map": 2}, ValueError, "infer_input_rank_to_map"),
        ((2, 3), (3, 5), {"infer_input_rank_to_map": -2}, ValueError, "takes two sequences"),
    ],
)
def test_operands_that_do_not_go_together(left: Shape, right: Shape, options: dict[str, int], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        C.times(C.input_variable(left), C.parameter(right), **options)


def test_times_transpose_takes_vectors_and_matrices_only() -> None:
    with pytest.raises(RuntimeError, match="1 or 2 axes"):
        C.times_transpose(C.input_variable((2, 3, 4)), C.parameter((5, 3, 4)))


def test_a_sparse_operand_is_summed_over_one_axis_unless_the_weights_are_inferred() -> None:
    sparse = C.input_variable((2, 6), is_sparse=True)
    with pytest.raises(RuntimeError, match="only its last"):
        C.times(sparse, C.parameter((2, 6, 3)))
    assert C.times(sparse, C.parameter((-1, 3)), infer_input_rank_to_map=0).shape == (3,)


@pytest.mark.parametrize("columns", [1, 4])
def test_gradients_of_a_matrix_that_multiplies_every_row(columns: int, device: DeviceDescriptor) -> None:
    generator = np.random.default_rng(0)
    matrix, rows = generator.normal(size=(2, 3)), generator.normal(size=(5, 3, columns))
    weights, x = C.parameter(init=matrix), C.input_variable((3, columns), np.float64, needs_gradient=True)
    product = C.times(weights, x)
    np.testing.assert_allclose(product.eval({x: rows}, device=device), matrix @ rows)
    gradients = product.grad({x: rows}, wrt=[weights, x], device=device)
    np.testing.assert_allclose(gradients[weights], np.broadcast_to(rows.sum((0, 2)), (2, 3)))
    np.testing.assert_allclose(gradients[x], np.broadcast_to(matrix.sum(0)[None, :, None], rows.shape))


def test_free_dimensions_are_settled_by_each_minibatch(device: DeviceDescriptor) -> None:
    x, weights = C.input_variable((C.FreeDimension, 2)), C.constant(np.array([[1, 2], [3, 4]], dtype=np.float32))
    product = C.times(x, weights)
    for steps in (1, 3, 2):
        data: Any = np.arange(4 * steps, dtype=np.float32).reshape(2, steps, 2)
        np.testing.assert_allclose(product.eval({x: data}, device=device), data @ weights.value)


@pytest.mark.parametrize("axis", [0, 1])
def test_products_of_parts_of_a_matrix(axis: int, device: DeviceDescriptor) -> None:
    generator = np.random.default_rng(0)
    x, y = C.input_variable((4, 4), np.float64, needs_gradient=True), C.input_variable((4, 4), np.float64, needs_gradient=True)
    data = {x: generator.normal(size=(3, 4, 4)), y: generator.normal(size=(3, 4, 4))}
    left, right = ([C.slice(z, axis, 0, 2), C.slice(z, axis, 2, 4)] for z in (x, y))
    total = sum(C.reduce_sum(C.square(C.times(a, C.transpose(b, (1, 0))))) for a, b in zip(left, right, strict=True))

    def parts(z: Any) -> Any:
        return np.split(z, 2, axis=1 + axis)

    products = [a @ b.swapaxes(1, 2) for a, b in zip(parts(data[x]), parts(data[y]), strict=True)]
    np.testing.assert_allclose(total.eval(data, device=device), sum((p**2).sum((1, 2)) for p in products))
    gradients = total.grad(data, wrt=[x, y], device=device)
    of_left = [2 * p @ b for p, b in zip(products, parts(data[y]), strict=True)]
    of_right = [2 * p.swapaxes(1, 2) @ a for p, a in zip(products, parts(data[x]), strict=True)]
    np.testing.assert_allclose(gradients[x], np.concatenate(of_left, axis=1 + axis))
    np.testing.assert_allclose(gradients[y], np.concatenate(of_right, axis=1 + axis))
