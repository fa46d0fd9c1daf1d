"""Loops of softmax, its logarithm and cross entropy, over rows ``(rows, classes)`` that are distributions or their logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.machine.language import prange
from ...core.machine.loops import loop
from .exponential import exp
from .lanes import add_up, add_up_powers, highest, inner, write_powers


@loop("R2 R2")
def softmax(x: Any, y: Any) -> None:
    """Write exponentials that sum to 1 to y."""
    for row in prange(len(x)):
        target = y[row]
        total = write_powers(x[row], highest(x[row]), target)
        share = x.dtype.type(1 / total)
        for i in range(target.size):
            target[i] *= share


@loop("R2 R2 R2")
def softmax_gradient(y: Any, dy: Any, dx: Any) -> None:
    for row in prange(len(y)):
        of, given, target = y[row], dy[row], dx[row]
        mean = y.dtype.type(inner(of, given))
        for i in range(target.size):
            target[i] = (given[i] - mean) * of[i]


@loop("R2 R2")
def log_softmax(x: Any, y: Any) -> None:
    """Write the softmax's logarithms to y."""
    for row in prange(len(x)):
        of, target = x[row], y[row]
        edge = highest(of)
        level = np.log(x.dtype.type(add_up_powers(of, edge)))
        for i in range(target.size):
            target[i] = (of[i] - edge) - level


@loop("R2 R2 R2")
def log_softmax_gradient(y: Any, dy: Any, dx: Any) -> None:
    for row in prange(len(y)):
        of, given, target = y[row], dy[row], dx[row]
        total = y.dtype.type(add_up(given))
        for i in range(target.size):
            target[i] = given[i] - exp(of[i]) * total


@loop("R2 R2 R1 R1 R1")
def cross_entropy(z: Any, y: Any, edge: Any, total: Any, out: Any) -> None:
    """Write each row's loss for the target y, the largest logit, and the sum of the exponentials of the distances from it."""
    for row in prange(len(z)):
        of = z[row]
        edge[row] = highest(of)
        total[row] = add_up_powers(of, edge[row])
        out[row] = (edge[row] - z.dtype.type(inner(of, y[row]))) + np.log(total[row])


@loop("R2 R2 R1 R1 R1 R2")
def cross_entropy_gradient(z: Any, y: Any, edge: Any, total: Any, grad: Any, dz: Any) -> None:
    for row in prange(len(z)):
        of, right, target, level, factor = z[row], y[row], dz[row], edge[row], grad[row]
        share = factor / total[row]
        for i in range(target.size):
            target[i] = exp(of[i] - level) * share - right[i] * factor


@loop("R2 R1 N1 N1 R1 R1 R1")
def sparse_cross_entropy(z: Any, data: Any, indices: Any, indptr: Any, edge: Any, total: Any, out: Any) -> None:
    """The same for a target in CSR."""
    for row in prange(len(z)):
        of, picked = z[row], z.dtype.type(0)
        edge[row] = highest(of)
        total[row] = add_up_powers(of, edge[row])
        for k in range(indptr[row], indptr[row + 1]):
            picked += of[indices[k]] * data[k]
        out[row] = (edge[row] - picked) + np.log(total[row])


@loop("R2 R1 N1 N1 R1 R1 R1 R2")
def sparse_cross_entropy_gradient(
    z: Any, data: Any, indices: Any, indptr: Any, edge: Any, total: Any, grad: Any, dz: Any
) -> None:  # fmt: skip
    for row in prange(len(z)):
        of, target, level, factor = z[row], dz[row], edge[row], grad[row]
        share = factor / total[row]
        for i in range(target.size):
            target[i] = exp(of[i] - level) * share
        for k in range(indptr[row], indptr[row + 1]):
            target[indices[k]] -= data[k] * factor
