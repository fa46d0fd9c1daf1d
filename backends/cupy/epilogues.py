"""Gradients through epilogues: one kernel goes back through all steps and adds up the gradients of vectors, such as a bias, in parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.common.shape import size_of
from ...core.formulas.derivatives import gradient_of
from ...core.formulas.formula import Term, operands
from ...core.operators.epilogue import Epilogue
from ...core.types.context import Context
from . import elements, folds
from .calls import Call
from .chains import substituted
from .elements import Operand, Store, axes_of, parts_of


def before_steps(ctx: Context, epilogue: Epilogue, grad: Any) -> Any:
    """Return the array for the gradient of the result before the steps: *grad* itself if they pass it on, or scratch space."""
    passes = all(step.position in step.op.passes_gradient for step in epilogue.steps)
    return grad if passes else ctx.scratch("gradient before steps", grad.shape, grad.dtype)


def backward(ctx: Context, epilogue: Epilogue, grad: Any, out: Any, before: Any, with_sums: bool = True) -> list[Call]:
    """Return the calls that compute the gradients of an epilogue's operands.

    Args:
        ctx: the context.
        epilogue: an epilogue of a backward step, whose other operands have no rows.
        grad: gradient of the result, ``(rows, *static)``, or ``static`` without dynamic axes.
        out: the result, None if no step needs it.
        before: the array from :func:`before_steps`.
        with_sums: whether to compute the gradients of the other operands; they are contiguous.
    """
    dy, y = operands(2)
    term, totals = _terms(epilogue, dy, y)
    wanted = [pair for pair in totals if with_sums]
    if term is dy and not wanted:
        return []
    if ctx.layout is None:
        grad, out, before = (None if array is None else array[None] for array in (grad, out, before))
    shape, given = grad.shape, ((dy, grad), (y, out))
    space, parts = shape[1:], parts_of(shape[0], size_of(shape[1:]))
    read = [Operand(symbol, array, axes_of(array, shape, True)) for symbol, array in given if array is not None]
    stores = [] if term is dy else [Store(term, before, axes_of(before, shape, True))]
    sums = [(of, ctx.scratch(f"sums {number}", (parts, size_of(space)), np.dtype(np.float64))) for number, (of, _) in enumerate(wanted)]
    calls = [elements.bound(grad.dtype, shape, read, stores, sums)]
    for (_, target), (_, of_parts) in zip(wanted, sums, strict=True):
        calls += folds.adding_up(ctx.backend, of_parts if shape[0] else of_parts[:0], target, space)
    return calls


def _terms(epilogue: Epilogue, dy: Term, y: Term) -> tuple[Term, list[tuple[Term, Any]]]:
    """Return the gradient before the steps, and those of the other operands with the arrays to add them up in, where they are wanted."""
    term, totals, targets = dy, list[tuple[Term, Any]](), list(epilogue.grads)
    for step in reversed(epilogue.steps):
        own, result, *inputs = operands(3 + len(step.others))
        gradients = [substituted(gradient_of(step.op, i, own, result, tuple(inputs)), (own, result), (term, y)) for i in range(len(inputs))]
        taken = [targets.pop() for _ in step.others][::-1]
        others = [gradient for i, gradient in enumerate(gradients) if i != step.position]
        totals += [(gradient, target) for gradient, target in zip(others, taken, strict=True) if target is not None]
        term = gradients[step.position]
    return term, totals
