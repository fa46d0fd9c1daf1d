"""Which products of dense matrices compiled loops compute, and what they fuse with them.

Numba, and the loops that it compiles, are imported when there is enough to do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any

from ...core.common.threads import max_threads
from ...core.common.thresholds import is_offered, thresholds
from ...core.machine.self_check import are_usable
from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.spec import Spec
from .followers import Part, parts, what_follows

WIDTH, MOST_WASTED = 16, 0.15
"""Columns that half a panel has, and the part of all columns that those of a last half may be empty."""

FEWEST_COLUMNS = 8
"""Columns of a matrix that is packed once, though it has few: of fewer most of a vector would be empty."""

DEPTH = 1024
"""Products that are added up before they are added to the result."""

FEW_ROWS = 32
"""Rows of a product for which the matrix is not packed, as long as its sums have no more terms than are added up at a time."""


class Products:
    """Loops for float32 and float64, with what follows (:mod:`.followers`)."""

    @staticmethod
    def takes(steps: Sequence[Step]) -> int:
        """A sum with a number for each column, one with a residual, and a rectifier behind either."""
        found = parts(steps, _is_bias)
        return 0 if found == [Part.RECTIFIER] else len(found)

    @staticmethod
    def fits(left: Any, right: Any, out: Any, is_packed: bool = False) -> bool:
        """Whether loops are faster at writing the product of two matrices, or of two stacks of them, to *out*.

        Args:
            is_packed: whether *right* seldom changes, and is packed once.
        """
        m, n = out.shape[-2:]
        depth = left.shape[-1]
        if depth < thresholds.product_sides or out.dtype.char not in "fd" or not left.dtype == right.dtype == out.dtype:
            return False
        is_narrow = n < thresholds.product_sides
        if is_packed and _reads_panels(left, right, out):
            least = thresholds.product_narrow if is_narrow else thresholds.product_packed
            return m * n * depth >= least and (n >= FEWEST_COLUMNS or not is_narrow) and are_usable()
        if is_narrow:
            return False
        if _has_few_rows(left, right, out):
            least = thresholds.product_compiled if m > 1 else thresholds.product_row_compiled
            return m * n * depth >= least and are_usable()
        if m < thresholds.product_sides:
            return False
        if out.ndim == 2:
            is_large = m * n * depth >= thresholds.product_compiled
            lies_well = out.itemsize in out.strides and left.itemsize in left.strides
            if out.strides[1] != out.itemsize:
                n = m
            return is_large and _fills_panels(n) and lies_well and are_usable()
        if out.strides[2] != out.itemsize:
            n = m
        return (
            out.size * depth >= thresholds.product_stack_compiled and _fills_panels(n) and out.itemsize in out.strides[1:] and are_usable()
        )

    @staticmethod
    def multiply(ctx: Context, left: Any, right: Any, out: Any) -> None:
        """Write such a product; where matrices lie as in a call before it is repeated."""
        places = tuple([(matrix.ctypes.data, matrix.shape, matrix.strides) for matrix in (left, right, out)])
        bind = partial(Products.bound, ctx, left, right, out)
        ctx.bound((places, out.dtype, max_threads()), bind)()  # type: ignore[arg-type]  # there is nothing that follows

    @staticmethod
    def bound(
        ctx: Context, left: Any, right: Any, out: Any, epilogue: Epilogue | None = None, operand: int | None = None
    ) -> Callable[[], None] | None:
        """A function that writes such a product with what follows; None where it cannot.

        Args:
            operand: which of the operator's operands *right* is, if it is one: it is packed once where it seldom changes.
        """
        follows = what_follows(epilogue, _is_bias)
        if epilogue is not None and out.strides[-1] != out.itemsize:
            return None
        if follows.bias is not None and follows.bias.size != out.shape[-1]:
            return None
        if follows.residual is not None:
            if not (out.flags.c_contiguous and follows.residual.flags.c_contiguous):
                return None
            follows = follows._replace(residual=follows.residual.reshape(out.shape))
        call: Callable[[], None]
        if operand is not None and _reads_panels(left, right, out):
            made = _packed().panels(ctx, operand, right)
            if made is not None:
                call = _packed().bound(left, made, out, follows)
                return call
        if _has_few_rows(left, right, out):
            call = _few_rows().bound(left, right, out, follows)
        else:
            call = _module().bound(ctx, left, right, out, follows)
        return call

    @staticmethod
    def send_back(ctx: Context, epilogue: Epilogue, grad: Any, out: Any) -> Any:
        """The gradient of the product, after which come the steps; writes those of their operands."""
        (bias_grad,) = epilogue.grads
        rectify = len(epilogue.steps) > 1 and bias_grad is not None
        if (
            not rectify
            or out.size < thresholds.product_cut
            or out.dtype.char not in "fd"
            or bias_grad.size != out.shape[-1]
            or not are_usable()
        ):
            return epilogue.backward(ctx, grad, out)
        from .cut_back import cut_rows

        return cut_rows(ctx, grad, out, bias_grad.reshape(-1))


def _has_few_rows(left: Any, right: Any, out: Any) -> bool:
    """Whether a matrix is read as it lies, and not packed, for it is multiplied by a few rows only."""
    if out.ndim != 2 or len(out) > FEW_ROWS or left.shape[1] > DEPTH:
        return False
    return bool(right.strides[1] == out.strides[1] == out.itemsize)


def _reads_panels(left: Any, right: Any, out: Any) -> bool:
    """Whether a matrix that is packed once is read in panels: one thread multiplies a single row faster by one that is not."""
    if right.ndim != 2 or out.strides[1] != out.itemsize:
        return False
    return len(out) > 1 or (max_threads() > 1 and is_offered(out.size * left.shape[1], thresholds.product_row_shared))


def _is_bias(spec: Spec) -> bool:
    """Whether there is a number for each column, and panels may have as many columns."""
    return spec.axes == () and len(spec.dims) == 1 and spec.dims[0] >= thresholds.product_sides and _fills_panels(spec.dims[0])


def _fills_panels(columns: int) -> bool:
    return -columns % WIDTH <= MOST_WASTED * columns


@lru_cache(maxsize=1)
def _module() -> Any:
    from . import products

    return products


@lru_cache(maxsize=1)
def _few_rows() -> Any:
    from . import few_rows

    return few_rows


@lru_cache(maxsize=1)
def _packed() -> Any:
    from . import packed

    return packed
