"""Shapes of products that contract the last axes of the left operand with the first of the right one."""

from __future__ import annotations

from ...core.common.shape import InferredDimension, Shape, format_shape


def fill(a: Shape, b: Shape, output_rank: int) -> tuple[Shape, Shape]:
    """Fill in the inferred dimensions that the two shapes of a product tell each other."""
    reduced = len(b) - output_rank
    if not 0 < reduced <= len(a):
        return a, b
    split = len(a) - reduced
    tail = tuple(y if x == InferredDimension and y >= 0 else x for x, y in zip(a[split:], b[:reduced], strict=True))
    head = tuple(x if y == InferredDimension and x >= 0 else y for x, y in zip(a[split:], b[:reduced], strict=True))
    return a[:split] + tail, head + b[reduced:]


def contract(a: Shape, b: Shape, output_rank: int) -> Shape:
    """Shape of a product.

    Raises:
        RuntimeError: the left shape has fewer axes than are summed over.
        ValueError: the axes to sum over differ.
    """
    reduced = len(b) - output_rank
    if reduced > len(a):
        raise RuntimeError(f"the product sums over {reduced} axes, but the left operand has only {len(a)}")
    tail, head = a[len(a) - reduced :], b[:reduced]
    if any(x != y for x, y in zip(tail, head, strict=True) if x >= 0 and y >= 0):
        raise ValueError(f"the product sums over {format_shape(tail)} on the left, but {format_shape(head)} on the right; they must agree")
    return a[: len(a) - reduced] + b[reduced:]
