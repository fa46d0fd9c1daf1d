"""Matrix products: times and times_transpose, of dense and sparse operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from ...core.common.shape import InferredDimension, Shape, format_shape, size_of
from ...core.common.thresholds import thresholds
from ...core.graph.arguments import TensorLike
from ...core.graph.function import Function
from ...core.graph.variable import Parameter
from ...core.operators.abilities import Expression
from ...core.operators.cost import numbers_in
from ...core.operators.op import ALL, Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.program.slots import Instruction
from ...core.types.context import Context
from ...core.types.layout import Layout
from ...core.types.sparse import RowSparse, SparseRows
from ...core.types.spec import Spec
from . import csr
from .contraction import contract, fill
from .dense_product import bound_product, multiply
from .embedded_product import EmbeddedTimes
from .sequence_product import REDUCE_SEQUENCE_AXIS, TimesOverSteps
from .shaping import TransposeAxes
from .sparse_product import (
    left_gradient_of_right,
    left_product,
    right_gradient_of_left,
    right_product,
    transposed_gradient_of_left,
    transposed_product,
)

NO_INFERRED_RANK = -1


class Times(Op):
    """Tensor product that contracts the last axes of the left operand with the first of the right one."""

    op_name = "Times"
    keep_inputs = ALL
    sparse_inputs: ClassVar[tuple[int, ...]] = (0, 1)
    traits = Traits(reversed_operands=True)
    output_rank: int
    infer_input_rank_to_map: int = NO_INFERRED_RANK

    # ---- types ----

    def infer(self, left: Spec, right: Spec) -> Spec:
        if self.output_rank > right.rank:
            raise ValueError(f"output_rank is {self.output_rank}, but the right operand has only {right.rank} axes")
        a, b = self.resolve(left, right)
        if left.sparse and len(b) - self.output_rank > 1 and self.infer_input_rank_to_map < 0:
            raise RuntimeError(f"the right operand {format_shape(b)} sums over several axes; a sparse left operand allows only its last")
        return self.common(left, right).but(shape=contract(a, b, self.output_rank))

    def assume(self, left: Spec, right: Spec) -> Sequence[Spec] | None:
        if right.shape is None:
            return None
        return left.but(shape=right.shape[: right.rank - self.output_rank]), right

    def resolve(self, left: Spec, right: Spec) -> Sequence[Shape]:
        return fill(left.dims, self._spread(left.dims, right.dims), self.output_rank)

    def accepts_strided(self, *inputs: Spec) -> bool:
        """Where there is a product of matrices for each row, none is reshaped."""
        return self.output_rank == 1 and all(spec.axes and spec.rank == 2 and not spec.sparse for spec in inputs)

    def factored(self, factor: Shape, left: Spec, right: Spec) -> tuple[int, Shape] | None:
        """Into the right operand, where there is a number for each column, or one for all."""
        along, summed = tuple(factor)[-self.output_rank :], right.rank - self.output_rank
        if size_of(factor) != size_of(along):
            return None
        return 1, (*(1,) * (summed + self.output_rank - len(along)), *along)

    def _spread(self, a: Shape, b: Shape) -> Shape:
        """Let a first inferred axis of the right operand stand for as many as leave the wanted number unsummed."""
        mapped = self.infer_input_rank_to_map
        reduced = len(b) - self.output_rank
        if mapped < 0 or reduced < 1 or b[0] != InferredDimension:
            return b
        if mapped >= len(a):
            raise ValueError(f"infer_input_rank_to_map is {mapped}, but the left operand has only {len(a)} axes")
        return (InferredDimension,) * (len(a) - mapped - reduced) + b

    # ---- values ----

    def right_matrix(self, ctx: Context, right: Any) -> Any:
        """View the right operand, or its gradient, as a matrix (summed, output), or as one such for each row."""
        has_rows = ctx.layouts[1] is not None
        if right.ndim == has_rows + 2 and self.output_rank == 1:
            return right
        rows, static = right.shape[:has_rows], right.shape[has_rows:]
        split = len(static) - self.output_rank
        return right.reshape(*rows, size_of(static[:split]), size_of(static[split:]))

    def right_size(self, static: Shape) -> tuple[int, int]:
        """Size of the right matrix: what is summed over, and the output."""
        split = len(static) - self.output_rank
        return size_of(static[:split]), size_of(static[split:])

    def flop(self, ctx: Context, out: Any, left: Any, right: Any) -> int:
        """A multiplication and an addition for each element of the result and each that is summed over, as far as both are stored."""
        summed, _ = self.right_size(static_shape(right, ctx.layouts[1]))
        flop = 2 * size_of(out.shape) * summed
        for operand in (left, right):
            flop = flop * numbers_in(operand) // max(size_of(operand.shape), 1)
        return flop

    def matrices(self, ctx: Context, out: Any, left: Any, right: Any) -> tuple[Any, Any, Any]:
        """View dense operands and the result as matrices, or stacks of them, of which the last is the product of the first two."""
        w = self.right_matrix(ctx, right)
        x, y = matrices(ctx, left, w, out)
        return x, w, y

    def bound_product(self, ctx: Context, x: Any, w: Any, y: Any) -> Callable[[], Any]:
        """A function that multiplies what is in such matrices whenever it is called."""
        return bound_product(ctx, x, w, y)

    def forward(self, ctx: Context, out: Any, left: Any, right: Any) -> None:
        if isinstance(left, SparseRows):
            left = self._summable(ctx, left, right)
        if isinstance(left, SparseRows):
            w = self.right_matrix(ctx, dense(ctx, right))
            k, n = w.shape[-2:]
            left_product(ctx.xp, flat_rows(ctx.xp, left, k), stack_of(w), stacked(out, n, ctx.layout))
        elif isinstance(right, SparseRows):
            k, n = self.right_size(static_shape(right, ctx.layouts[1]))
            self._right_product(ctx, stacked(left, k, ctx.layouts[0]), right, stacked(out, n, ctx.layout))
        else:
            multiply(ctx, *self.matrices(ctx, out, left, right))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, left: Any, right: Any, loops: Any = None) -> None:
        """Also with *loops* that compute the products of dense matrices which suit them, as a kernel has."""
        dleft, dright = grads
        left = self._summable(ctx, left, right)
        if isinstance(dright, RowSparse):
            self._row_sparse_gradient(ctx, grad, dright, left)
        elif dright is not None:
            dw = self.right_matrix(ctx, dright)
            k, n = dw.shape[-2:]
            if isinstance(left, SparseRows):
                left_gradient_of_right(ctx.xp, flat_rows(ctx.xp, left, k), stacked(grad, n, ctx.layout), stack_of(dw))
            else:
                x, dy = matrices(ctx, left, dw, grad)
                multiply(ctx, x.swapaxes(-1, -2), dy, dw, loops)
        if dleft is None:
            return
        if isinstance(right, SparseRows) and not isinstance(left, SparseRows):
            k, n = self.right_size(static_shape(right, ctx.layouts[1]))
            self._gradient_of_left(ctx, right, stacked(grad, n, ctx.layout), stacked(dleft, k, ctx.layouts[0]))
        else:
            left_gradient(ctx, dleft, self.right_matrix(ctx, dense(ctx, right)), grad, loops)

    def _summable(self, ctx: Context, left: Any, right: Any) -> Any:
        """The left operand; dense in an outer product, which does not sum over its sparse axis."""
        outer = isinstance(left, SparseRows) and self.right_size(static_shape(right, ctx.layouts[1]))[0] < left.shape[-1]
        return dense(ctx, left) if outer else left

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        left, right = inputs
        return index == 1 and left.sparse and right.axes == () and right.rank - self.output_rank == 1

    def after(self, before: Instruction, own: Instruction, inputs: Sequence[Spec]) -> Op | None:
        if type(self) is not Times:
            return None
        if own.inputs[0] == before.outputs[0]:
            return _embedded(before, own, inputs) if type(before.op) is Times else None
        is_turned = isinstance(before.op, TransposeAxes) and inputs[1].rank == 2 and before.op.order(2) == (1, 0)
        are_stacks = all(spec.axes and not spec.sparse for spec in inputs)
        return TransposeTimes(output_rank=1) if is_turned and are_stacks and self.output_rank == 1 else None

    def whole(self, own: Instruction, expression: Expression) -> tuple[Op, tuple[int, ...]] | None:
        from .attention_pattern import attention_at  # which needs this class

        return attention_at(own, expression)

    def _row_sparse_gradient(self, ctx: Context, grad: Any, dright: RowSparse, left: SparseRows) -> None:
        width = size_of(dright.shape[1:])
        present, transposed = csr.transpose(ctx.xp, flat_rows(ctx.xp, left, dright.shape[0]))
        values = ctx.backend.empty((len(present), width), grad.dtype)
        csr.multiply(ctx.xp, transposed, flat(grad, width), values)
        dright.set(present, values.reshape(len(present), *dright.shape[1:]))

    def _right_product(self, ctx: Context, left: Any, right: SparseRows, out: Any) -> None:
        right_product(ctx.xp, left, flat_rows(ctx.xp, right, out.shape[2]), out)

    def _gradient_of_left(self, ctx: Context, right: SparseRows, dy: Any, dleft: Any) -> None:
        right_gradient_of_left(ctx.xp, flat_rows(ctx.xp, right, dy.shape[2]), dy, dleft)


class TransposeTimes(Times):
    """Product of the left operand with the transposed right one, over the last axis of each."""

    op_name = "TransposeTimes"

    def infer(self, left: Spec, right: Spec) -> Spec:
        if right.rank not in (1, 2):
            raise RuntimeError(f"the right operand must have 1 or 2 axes, it has {right.rank}")
        a, b = self.resolve(left, right)
        return self.common(left, right).but(shape=contract(a, _turned(b), 1))

    def assume(self, left: Spec, right: Spec) -> Sequence[Spec] | None:
        return None if right.shape is None else (left.but(shape=right.shape[-1:]), right)

    def resolve(self, left: Spec, right: Spec) -> Sequence[Shape]:
        a, b = fill(left.dims, _turned(right.dims), 1)
        return a, b[::-1][-right.rank :]

    def factored(self, factor: Shape, left: Spec, right: Spec) -> tuple[int, Shape] | None:
        """Into the right operand, where there is a number for each of its rows, or one for all."""
        along = tuple(factor)[-1:]
        return (1, (*along, 1)) if right.rank == 2 and size_of(factor) == size_of(along) else None

    def right_matrix(self, ctx: Context, right: Any) -> Any:
        rows = right.shape[:1] if ctx.layouts[1] is not None else ()
        matrix = right if right.ndim == len(rows) + 2 else right.reshape(*rows, 1, right.shape[-1])
        return matrix.swapaxes(-1, -2)

    def right_size(self, static: Shape) -> tuple[int, int]:
        return static[-1], size_of(static[:-1])

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        return False

    def _right_product(self, ctx: Context, left: Any, right: SparseRows, out: Any) -> None:
        transposed_product(ctx.xp, left, right.parts, out)

    def _gradient_of_left(self, ctx: Context, right: SparseRows, dy: Any, dleft: Any) -> None:
        transposed_gradient_of_left(ctx.xp, right.parts, dy, dleft)


def _embedded(before: Instruction, own: Instruction, inputs: Sequence[Spec]) -> Op | None:
    """An embedding and the product that follows it in one."""
    x, *matrices = inputs
    is_embedding = x.sparse and x.rank == 1 and x.axes != ()
    if not is_embedding or any(matrix.axes != () or matrix.rank != 2 or matrix.sparse for matrix in matrices):
        return None
    return EmbeddedTimes(look_up=(before.forward, before.backward), multiply=(own.forward, own.backward))


# ---- shapes --------------------------------------------------------------------------------------


def _turned(right: Shape) -> Shape:
    """The transposed shape of a matrix, or of a vector taken as a row."""
    return right[::-1] if len(right) == 2 else (*right, 1)


# ---- values --------------------------------------------------------------------------------------


def flat(array: Any, columns: int) -> Any:
    """View an array as a matrix of *columns* columns."""
    return array if array.ndim == 2 and array.shape[1] == columns else array.reshape(-1, columns)


def matrices(ctx: Context, left: Any, w: Any, out: Any) -> tuple[Any, Any]:
    """View the left operand and the result so that ``result = left @ w``, in one product or one for each row."""
    k, n = w.shape[-2:]
    if w.ndim == 2:
        are_matrices = left.ndim == out.ndim == 2 and left.shape[1] == k and out.shape[1] == n
        return (left, out) if are_matrices else (flat(left, k), flat(out, n))
    rows = len(w)
    m = size_of(out.shape[1:]) // n
    return flat(left, k) if ctx.layouts[0] is None else left.reshape(rows, m, k), out.reshape(rows, m, n)


def left_gradient(ctx: Context, dleft: Any, w: Any, grad: Any, loops: Any) -> None:
    """Write the gradient of the left operand: the result's gradient times the transposed right operand."""
    dx, dy = matrices(ctx, dleft, w, grad)
    if w.ndim == 2 and len(dx) < thresholds.product_gradient_direct:
        turned = ctx.scratch("dx", dx.shape[::-1], dx.dtype)
        multiply(ctx, w, dy.T, turned)
        ctx.xp.copyto(dx, turned.T)
        return
    if dx.ndim == w.ndim:
        if dy.shape[-1] == 1:  # NumPy's matmul does not call the BLAS where there is one product to sum
            ctx.xp.multiply(dy, w.swapaxes(-1, -2), out=dx)
        else:
            multiply(ctx, dy, w.swapaxes(-1, -2), dx, loops)
        return
    rows, m, n = dy.shape
    k = dx.shape[1]
    side_by_side = ctx.scratch("dy", (m, rows, n), dy.dtype)
    ctx.xp.copyto(side_by_side, dy.swapaxes(0, 1))
    columns = ctx.scratch("w", (k, rows, n), dy.dtype)
    ctx.xp.copyto(columns, w.swapaxes(0, 1))
    multiply(ctx, side_by_side.reshape(m, rows * n), columns.reshape(k, rows * n).T, dx)


def stack_of(w: Any) -> Any:
    """A matrix as a stack of one; a stack as it is."""
    return w if w.ndim == 3 else w[None]


def stacked(array: Any, columns: int, layout: Layout | None) -> Any:
    """View an array as a stack of matrices of *columns* columns, one for each row of its layout."""
    rows, static = (1, array.shape) if layout is None else (array.shape[0], array.shape[1:])
    return array.reshape(rows, size_of(static) // columns, columns)


def static_shape(value: Any, layout: Layout | None) -> Shape:
    """The static shape of an array or SparseRows of this layout."""
    shape: Shape = value.shape
    return shape if layout is None else shape[1:]


def dense(ctx: Context, value: Any) -> Any:
    """The value as an array: scratch space for a sparse one."""
    if not isinstance(value, SparseRows):
        return value
    array = ctx.scratch("dense", value.shape, value.dtype)
    value.to_dense(ctx.xp, array)
    return array


def flat_rows(xp: Any, sparse: SparseRows, columns: int) -> csr.Csr:
    """CSR arrays of a sparse operand with as many of its last axes laid side by side as make *columns* columns."""
    width = sparse.shape[-1]
    beside = columns // width
    if beside == 1:
        return sparse.parts
    return sparse.data, sparse.indices + width * (sparse.row_numbers(xp) % beside), sparse.indptr[::beside]


# ---- public functions ----------------------------------------------------------------------------


@operator(
    sample((2,), Operand((2, 2), kind="parameter"), expected=np.dot),
    sample((3, 4), Operand((4, 5), kind="parameter"), expected=np.dot),
    sample((2, 3), Operand((2, 3, 4), kind="parameter"), expected=lambda x, w: np.tensordot(x, w, 2)),
    sample((3,), Operand((3, 4, 5), kind="parameter"), output_rank=2, expected=lambda x, w: np.tensordot(x, w, 1)),
    sample((2, 3), (3, 4), expected=np.dot),
    sample((2, 3, 4), (4, 3, 2), output_rank=2, expected=lambda x, y: np.tensordot(x, y, 1)),
    sample(Operand((2, 3), kind="parameter"), (3, 4), expected=np.dot),
    sample(Operand((2, 3), kind="parameter"), (3, 1), expected=np.dot),
    sample(Operand((2, 3), kind="parameter"), Operand((3, 4), kind="parameter"), expected=np.dot),
    sample((3,), Operand((4,), kind="parameter"), expected=np.outer),
    sample((), (4,), expected=np.multiply),
    sample(Operand((6,), sparse=True, gradient=False), Operand((6, 4), kind="parameter"), expected=np.dot),
    sample(Operand((2, 6), sparse=True, gradient=False), Operand((6, 4), kind="parameter"), expected=np.dot),
    sample(
        Operand((6,), sparse=True, gradient=False),
        Operand((6, 2, 3), kind="parameter"),
        output_rank=2,
        expected=lambda x, w: np.tensordot(x, w, 1),
    ),
    sample(Operand((2, 3), sparse=True, gradient=False), (3, 4), expected=np.dot),
    sample(Operand((3,), sparse=True, gradient=False), Operand((4,), kind="parameter"), expected=np.outer),
    sample((2, 3), Operand((3, 4), sparse=True, gradient=False), expected=np.dot),
    sample(Operand((2, 3), kind="parameter"), Operand((3, 4), sparse=True, gradient=False), expected=np.dot),
    sample(
        Operand((2, 3), kind="sequence"),
        Operand((3, 4), kind="sequence"),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("tmk,tkn->mn", x, y),
    ),
    sample(
        Operand((2,), kind="sequence"),
        Operand((3,), kind="sequence"),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("tk,tn->kn", x, y),
    ),
    sample(
        Operand((), kind="sequence"),
        Operand((3,), kind="sequence"),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("t,tn->n", x, y),
    ),
    sample(
        Operand((3,), kind="sequence"),
        Operand((3, 4, 2), kind="sequence"),
        output_rank=2,
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("tk,tknm->nm", x, y),
    ),
    sample(
        (2, 3),
        Operand((3, 4), kind="sequence"),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("mk,tkn->mn", x, y),
    ),
    sample(
        Operand((2,), kind="sequence"),
        Operand((5,), kind="sequence", sparse=True, gradient=False),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("tk,tn->kn", x, y),
    ),
    sample(
        Operand((5,), kind="sequence", sparse=True, gradient=False),
        Operand((5, 2), kind="sequence"),
        infer_input_rank_to_map=REDUCE_SEQUENCE_AXIS,
        expected=lambda x, y: np.einsum("tk,tkn->n", x, y),
    ),
)
def times(
    left: TensorLike, right: TensorLike, output_rank: int = 1, infer_input_rank_to_map: int = NO_INFERRED_RANK, name: str = ""
) -> Function:
    """Matrix or tensor product: sums over the last axes of *left* and the first axes of *right*.

    Args:
        left: operand of static shape ``(*M, *K)``; may be sparse, if only its last axis is summed over.
        right: operand of static shape ``(*K, *N)``; may be sparse.  Dimensions of a parameter given as -1 are taken from *left*.
        output_rank: number of axes in ``N``; the others of *right* are summed over.  A vector is therefore a row, ``(N,)``.
        infer_input_rank_to_map: when the first dimension of a parameter *right* is -1: how many leading axes of *left* are not
            summed over; the -1 then stands for all the others.  With -1 it stands for a single axis.  With -2
            (``TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK``) the products of two sequences are summed over the steps too.
        name: name of the function.

    Returns:
        Function of static shape ``(*M, *N)`` on the merged dynamic axes of the operands, without the sequence axis if it is summed over.

    Raises:
        ValueError: ``K`` differs between the operands, *output_rank* is not between 1 and the rank of *right*, or a dimension in ``N`` is
            -1.
        RuntimeError: *left* has fewer axes than are summed over, or a sparse *left* would be summed over several.

    >>> x = C.input_variable(3)
    >>> W = C.parameter(init=np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32))
    >>> C.times(x, W).eval({x: np.array([[1, 0, 2]], dtype=np.float32)})
    array([[11., 14.]], dtype=float32)
    >>> W = C.parameter((-1, 5))
    >>> C.times(C.input_variable((3, 4)), W, infer_input_rank_to_map=0).shape, W.shape
    ((5,), (3, 4, 5))
    """
    if output_rank < 1:
        raise ValueError(f"times: output_rank must be at least 1, got {output_rank}")
    if infer_input_rank_to_map < REDUCE_SEQUENCE_AXIS:
        raise ValueError(
            f"times: infer_input_rank_to_map must be a number of axes, -1 (keep) or -2 (sum over the steps), got {infer_input_rank_to_map}"
        )
    if isinstance(right, Parameter) and InferredDimension in right.shape[-output_rank:]:
        raise ValueError(
            f"times: the last {output_rank} dimensions of {right!r} (output_rank) are dimensions of the result and cannot be inferred"
        )
    kind = TimesOverSteps if infer_input_rank_to_map == REDUCE_SEQUENCE_AXIS else Times
    return kind(output_rank=output_rank, infer_input_rank_to_map=infer_input_rank_to_map)(left, right, name=name)


@operator(
    sample((3, 4), Operand((5, 4), kind="parameter"), expected=lambda x, w: x @ w.T),
    sample((2, 3, 4), Operand((5, 4), kind="parameter"), expected=lambda x, w: x @ w.T),
    sample((3,), Operand((3,), kind="parameter"), expected=lambda x, w: x[None] @ w),
    sample((2, 3), (4, 3), expected=lambda x, y: x @ y.T),
    sample((3,), (3,), expected=lambda x, y: x[None] @ y),
    sample(Operand((5, 3), kind="parameter"), (3,), expected=lambda w, x: w @ x[:, None]),
    sample(Operand((2, 6), sparse=True, gradient=False), Operand((4, 6), kind="parameter"), expected=lambda x, w: x @ w.T),
    sample(Operand((4, 6), kind="parameter"), Operand((6,), sparse=True, gradient=False), expected=lambda w, x: w @ x[:, None]),
    sample((2, 6), Operand((4, 6), sparse=True, gradient=False), expected=lambda x, y: x @ y.T),
)
def times_transpose(left: TensorLike, right: TensorLike, name: str = "") -> Function:
    """Product with the transposed matrix *right*: sums over the last axis of both operands.

    Args:
        left: operand of static shape ``(*M, K)``; may be sparse.
        right: operand of static shape ``(N, K)``, or ``(K,)``, which stands for ``(1, K)``; may be sparse.
        name: name of the function.

    Returns:
        Function of static shape ``(*M, N)`` on the merged dynamic axes of the operands.

    Raises:
        ValueError: the last dimensions differ.
        RuntimeError: *right* has more than two axes.

    >>> C.times_transpose(np.float32([[1, 2], [3, 4]]), np.float32([[1, 0], [1, 1], [0, 1]])).eval()
    array([[1., 3., 2.],
           [3., 7., 4.]], dtype=float32)
    """
    return TransposeTimes(output_rank=1)(left, right, name=name)
