"""Operators of attention with operands of all forms, and their results by a kernel or by the operator's own methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from cntk.core.types.context import Context
from cntk.core.types.layout import Layout
from cntk.plugins.ops.attention import Attention

BIASES: dict[str, Any] = {
    "none": None,
    "keys": (1, 0, 1),
    "matrix": (0, 1, 1),
    "matrices": (1, 1, 1),
    "queries": (1, 1, 0),
    "number": (0, 0, 0),
}
"""For each form of a bias along which of rows, queries and keys it has elements of its own."""


def attention(
    stack: int, queries: int, keys: int, depth: int, width: int, bias: str, turned: bool, scaling: str, dtype: Any
) -> tuple[Attention, list[Any], list[bool]]:
    """An operator, operands, and which of these have rows."""
    random = np.random.default_rng(1)
    shapes: list[tuple[int, ...]] = [
        (stack, queries, depth),
        (stack, depth, keys) if turned else (stack, keys, depth),
        (stack, keys, width),
    ]
    inputs = [random.normal(0, 0.5, shape).astype(dtype) for shape in shapes]
    rows = [True] * 3
    if scaling != "none":
        inputs.append(np.array(0.7, dtype))
        rows.append(False)
    along = BIASES[bias]
    if along is not None:
        shape = tuple(size if own else 1 for size, own in zip((stack, queries, keys), along, strict=True))
        inputs.append(random.normal(size=shape if along[0] else shape[1:]).astype(dtype))
        rows.append(bool(along[0]))
    return Attention(turned=turned, scaling=scaling, biased=along is not None), inputs, rows


def results(
    kernel: Any,
    backend: Any,
    place: Callable[[Any], Any],
    op: Any,
    inputs: Sequence[Any],
    rows: Sequence[bool],
    wanted: Sequence[int],
    training: bool = True,
) -> list[Any]:
    """Result and gradients.

    Args:
        kernel: computes them; the operator's own methods where None.
        backend: has the arrays.
        place: makes one of an array of the host.
        op, inputs, rows: the operator, its operands, and which of these have rows.
        wanted: of which operands gradients are wanted.
        training: whether there are any.
    """
    ctx = Context(backend, training)
    ctx.layout = Layout(len(inputs[0]))
    ctx.layouts = [ctx.layout if has_rows else None for has_rows in rows]
    methods, leading = (op, ()) if kernel is None else (kernel, (op,))
    inputs = [place(x) for x in inputs]
    out = place(np.full((*inputs[0].shape[:2], inputs[2].shape[2]), np.nan, inputs[0].dtype))
    grad = place(np.random.default_rng(2).normal(size=out.shape).astype(out.dtype))
    grads = [place(np.full(x.shape, np.nan, x.dtype)) if i in wanted else None for i, x in enumerate(inputs)]
    with backend.guard():
        methods.forward(*leading, ctx, out, *inputs)
        if training:
            methods.backward(*leading, ctx, grad, grads, out, *inputs)
    return [np.asarray(one) for one in (out, *(grads[i] for i in wanted if training))]
