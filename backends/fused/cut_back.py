"""Gradients that go back through a rectifier, and their sums for a bias, in compiled loops whose parts threads share."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import prange
from ...core.machine.loops import loop
from ...core.types.context import Context
from .lanes import add_up
from .pieces import writable

SUMMED = 64
"""Rows of a gradient that are summed one after another."""


@loop("R2 R2 R2 R2")
def _cut_rows(grad: Any, out: Any, cut: Any, sums: Any) -> None:
    """Write the gradient that a rectifier sends back, and the sum of some of its rows after the other."""
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    rows, columns = grad.shape
    for part in prange(len(sums)):
        total = sums[part]
        total[:] = 0
        for row in range(rows * part // len(sums), rows * (part + 1) // len(sums)):
            for i in range(columns):
                value = grad[row, i] * (one if out[row, i] > 0 else zero)
                cut[row, i] = value
                total[i] += value


@loop("R2 R2 R2 R1 ?")
def _cut_planes(grad: Any, out: Any, cut: Any, sums: Any, rectify: bool) -> None:
    """Write the gradient that a rectifier sends back, unless there is none, and the sum of each row."""
    zero, one = grad.dtype.type(0), grad.dtype.type(1)
    for row in prange(len(grad)):
        if not rectify:
            sums[row] = add_up(grad[row])
            continue
        of, result, target = grad[row], out[row], cut[row]
        for i in range(target.size):
            target[i] = of[i] * (one if result[i] > 0 else zero)
        sums[row] = add_up(target)


def cut_rows(ctx: Context, grad: Any, out: Any, bias_grad: Any) -> Any:
    """The gradient of what a rectifier with the result *out* was applied to, in scratch space.

    Args:
        bias_grad: where the sum of its rows goes.
    """
    columns = out.shape[-1]
    flat = out.reshape(-1, columns)
    cut = ctx.scratch("cut", out.shape, out.dtype)
    sums = ctx.scratch("sums", (-(-len(flat) // SUMMED), columns), out.dtype)
    _cut_rows.run(True, grad.reshape(flat.shape), flat, cut.reshape(flat.shape), sums)
    np.add.reduce(sums, axis=0, out=bias_grad)
    return cut


def cut_planes(ctx: Context, grad: Any, out: Any, bias_grad: Any) -> Any:
    """The gradient of what a bias with a number for each map, and perhaps a rectifier, was applied to: *grad* itself, or scratch space.

    Args:
        grad: the gradient, ``(rows, maps, places)``.
        out: the rectifier's result; None if there is none.
        bias_grad: where the sums of all places of a map go.
    """
    rows, maps, places = grad.shape
    planes = writable(ctx, "gradient", grad).reshape(-1, places)
    result, cut = planes, planes
    if out is not None:
        result, cut = writable(ctx, "result", out).reshape(planes.shape), ctx.scratch("cut", planes.shape, planes.dtype)
    sums = ctx.scratch("sums", (rows, maps), planes.dtype)
    _cut_planes.run(True, planes, result, cut, sums.reshape(-1), out is not None)
    ctx.sum_to(sums, bias_grad.reshape(1, maps))
    return cut.reshape(grad.shape)
