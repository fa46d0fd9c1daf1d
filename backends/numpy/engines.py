"""The interface of compiled loops for products, which a plugin registers as ``Csr`` and ``Products`` of the backend ``numpy``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ...core.operators.epilogue import Epilogue, Step
from ...core.types.context import Context
from ...core.types.sparse import Parts


class SparseProducts(Protocol):
    """Products with CSR rows."""

    def product(self, rows: Parts, dense: Any, out: Any, /) -> None:
        """Write the product of *rows* with a matrix *dense*, ``(columns of the rows, n)``, to *out*, ``(rows, n)``."""

    def transposed_product(self, rows: Parts, width: int, dense: Any, /) -> tuple[Any, Any]:
        """The product of the transposed rows, which have *width* columns, with *dense*, ``(rows, n)``.

        Returns:
            The columns that hold entries, ascending, and the product's rows ``(columns with entries, n)``; the others are zero.
        """


class DenseProducts(Protocol):
    """Products of matrices ``(m, k)`` and ``(k, n)``, or of stacks of them, ``(rows, m, k)`` and ``(rows, k, n)``."""

    def takes(self, steps: Sequence[Step], /) -> int:
        """How many of the operators that follow a product it computes with it."""

    def fits(self, left: Any, right: Any, out: Any, is_packed: bool = False, /) -> bool:
        """Whether it is faster than the BLAS at writing a product to *out*.

        Args:
            left, right, out: the matrices.
            is_packed: whether *right* seldom changes, and is packed once.
        """

    def multiply(self, ctx: Context, left: Any, right: Any, out: Any, /) -> None:
        """Write such a product."""

    def bound(
        self, ctx: Context, left: Any, right: Any, out: Any, epilogue: Epilogue | None = None, operand: int | None = None, /
    ) -> Callable[[], None] | None:
        """A function that writes such a product, with what follows, whenever it is called; None where it cannot.

        Args:
            ctx: the context.
            left, right, out: the matrices.
            epilogue: what follows.
            operand: which of the operator's operands *right* is, if it is one.
        """

    def send_back(self, ctx: Context, epilogue: Epilogue, grad: Any, out: Any, /) -> Any:
        """The gradient of the product, after which come the steps of *epilogue*; writes those of their operands.

        Args:
            ctx: the context.
            epilogue: the steps.
            grad: the gradient behind the last step, of the result's shape.
            out: the result of the last step.
        """
