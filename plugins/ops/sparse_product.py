"""Products in which one operand is sparse, over any array namespace.

Dense operands, results and gradients come as stacks of matrices, ``(rows, m, k)`` on the left, ``(rows, k, n)`` on the right and
``(rows, m, n)`` for the result; an operand that is the same for all rows is a stack of one.  A sparse operand comes as the CSR arrays of
its matrices laid below each other.
"""

from __future__ import annotations

from typing import Any

from . import csr
from .csr import Csr


def spread(xp: Any, matrices: Csr, height: int, width: int) -> Csr:
    """Matrices laid below each other, *height* rows and *width* columns each, as one with these along its diagonal."""
    data, indices, indptr = matrices
    row = xp.repeat(xp.arange(len(indptr) - 1), indptr[1:] - indptr[:-1])
    return data, indices + width * (row // height), indptr


def side_by_side(stack: Any) -> Any:
    """The matrices of a stack as one of as many rows."""
    rows, height, width = stack.shape
    return stack.swapaxes(0, 1).reshape(height, rows * width)


# ---- sparse @ dense ------------------------------------------------------------------------------


def left_product(xp: Any, left: Csr, right: Any, out: Any) -> None:
    """Write ``left @ right``, whose left operand is sparse."""
    rows, m, n = out.shape
    if len(right) == 1:
        csr.multiply(xp, left, right[0], out.reshape(rows * m, n))
    elif len(left[2]) - 1 == rows * m:
        csr.multiply(xp, spread(xp, left, m, right.shape[1]), right.reshape(-1, n), out.reshape(rows * m, n))
    else:
        products = xp.empty((m, rows * n), out.dtype)
        csr.multiply(xp, left, side_by_side(right), products)
        out[...] = products.reshape(m, rows, n).swapaxes(0, 1)


def left_gradient_of_right(xp: Any, left: Csr, dy: Any, dright: Any) -> None:
    """Write the gradient of the dense right operand."""
    rows, m, n = dy.shape
    k = dright.shape[1]
    dright[...] = 0
    if len(dright) == 1:
        present, transposed = csr.transpose(xp, left)
        dright[0][present] = _product(xp, transposed, dy.reshape(rows * m, n))
    elif len(left[2]) - 1 == rows * m:
        present, transposed = csr.transpose(xp, spread(xp, left, m, k))
        dright[present // k, present % k] = _product(xp, transposed, dy.reshape(rows * m, n))
    else:
        present, transposed = csr.transpose(xp, left)
        sums = _product(xp, transposed, side_by_side(dy))
        dright[:, present] = sums.reshape(-1, rows, n).swapaxes(0, 1)


# ---- dense @ sparse ------------------------------------------------------------------------------


def right_product(xp: Any, left: Any, right: Csr, out: Any) -> None:
    """Write ``left @ right``, whose right operand is sparse."""
    left, out = _paired(left, right, out, left.shape[2])
    k, (rows, m, n) = left.shape[2], out.shape
    present, transposed = csr.transpose(xp, spread(xp, right, k, n))
    products = xp.zeros((rows * n, m), out.dtype)
    products[present] = _product(xp, _under(transposed, left), _turned(left))
    out[...] = products.reshape(rows, n, m).swapaxes(1, 2)


def right_gradient_of_left(xp: Any, right: Csr, dy: Any, dleft: Any) -> None:
    """Write the gradient of the dense left operand."""
    k = dleft.shape[2]
    dleft, dy = _paired(dleft, right, dy, k)
    rows, m, n = dy.shape
    sums = _product(xp, spread(xp, right, k, n), _turned(dy)).reshape(rows, k, m).swapaxes(1, 2)
    dleft[...] = sums if len(dleft) == rows else sums.sum(axis=0)


# ---- dense @ transposed sparse -------------------------------------------------------------------


def transposed_product(xp: Any, left: Any, right: Csr, out: Any) -> None:
    """Write the product with the sparse matrices *right* transposed."""
    left, out = _paired(left, right, out, out.shape[2])
    rows, m, n = out.shape
    if len(left) > 1:
        right = spread(xp, right, n, left.shape[2])
    products = _product(xp, right, _turned(left))
    out[...] = products.reshape(rows, n, m).swapaxes(1, 2)


def transposed_gradient_of_left(xp: Any, right: Csr, dy: Any, dleft: Any) -> None:
    """Write the gradient of the dense left operand of a product with transposed sparse matrices."""
    dleft, dy = _paired(dleft, right, dy, dy.shape[2])
    n, k = dy.shape[2], dleft.shape[2]
    if len(dleft) > 1:
        right = spread(xp, right, n, k)
    present, transposed = csr.transpose(xp, right)
    dleft[...] = 0
    dleft.swapaxes(1, 2)[present // k, present % k] = _product(xp, transposed, _turned(dy))


def _product(xp: Any, left: Csr, right: Any) -> Any:
    out = xp.empty((len(left[2]) - 1, right.shape[1]), right.dtype)
    csr.multiply(xp, left, right, out)
    return out


def _paired(left: Any, right: Csr, result: Any, height: int) -> tuple[Any, Any]:
    """Left operand and result, as one matrix each where the sparse right operand, of *height* matrix rows, is the same for all rows."""
    if len(right[2]) - 1 > height or len(left) == 1:
        return left, result
    return left.reshape(1, -1, left.shape[2]), result.reshape(1, -1, result.shape[2])


def _turned(stack: Any) -> Any:
    """The transposed matrices of a stack below each other."""
    return stack.swapaxes(1, 2).reshape(-1, stack.shape[1])


def _under(transposed: Csr, left: Any) -> Csr:
    """Columns counted within one matrix, if the left operand is one for all rows."""
    data, indices, indptr = transposed
    return (data, indices % left.shape[2], indptr) if len(left) == 1 else transposed
