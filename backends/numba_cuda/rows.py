"""Softmax, its logarithm and cross entropy over wide rows ``(rows, classes)``, with one thread block per row.

Each thread adds up every n-th term in float64, and these sums are added in pairs, in an order that depends on the number of threads alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import cuda

from ..fused.exponential import exp
from .compiler import THREADS, Kernel

WIDE = 64
"""Minimum number of classes of rows that are handled by a thread block."""


@cuda.jit(device=True)
def _mine(size: int) -> range:
    """Return the elements of a row that this thread handles."""
    return range(cuda.threadIdx.x, size, cuda.blockDim.x)


@cuda.jit(device=True)
def _rows(x: Any) -> range:
    """Return the rows that this block handles."""
    return range(cuda.blockIdx.x, x.shape[0], cuda.gridDim.x)


@cuda.jit(device=True)
def _added(value: float, shared: Any) -> Any:
    """Return the sum of the values of all threads."""
    at, step = cuda.threadIdx.x, cuda.blockDim.x >> 1
    shared[at] = value
    cuda.syncthreads()
    while step > 0:
        if at < step:
            shared[at] += shared[at + step]
        cuda.syncthreads()
        step >>= 1
    total = shared[0]
    cuda.syncthreads()
    return total


@cuda.jit(device=True)
def _largest(row: Any, shared: Any) -> Any:
    """Return the largest element of a row, ignoring NaN."""
    at, step, best = cuda.threadIdx.x, cuda.blockDim.x >> 1, -np.inf
    for i in _mine(row.size):
        best = max(best, row[i]) if row[i] == row[i] else best
    shared[at] = best
    cuda.syncthreads()
    while step > 0:
        if at < step:
            shared[at] = max(shared[at], shared[at + step])
        cuda.syncthreads()
        step >>= 1
    best = shared[0]
    cuda.syncthreads()
    return row.dtype.type(best)


@cuda.jit(device=True)
def _added_powers(row: Any, edge: Any, shared: Any) -> Any:
    """Return the sum of the exponentials of the row's differences from *edge*."""
    total = 0.0
    for i in _mine(row.size):
        total += exp(row[i] - edge)
    return _added(total, shared)


def _softmax(x: Any, y: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(x):
        of, target, total = x[row], y[row], 0.0
        edge = _largest(of, shared)
        for i in _mine(of.size):
            power = exp(of[i] - edge)
            target[i] = power
            total += power
        share = x.dtype.type(1 / _added(total, shared))
        for i in _mine(of.size):
            target[i] *= share


def _softmax_gradient(y: Any, dy: Any, dx: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(y):
        of, given, target, total = y[row], dy[row], dx[row], 0.0
        for i in _mine(of.size):
            total += of[i] * given[i]
        mean = y.dtype.type(_added(total, shared))
        for i in _mine(of.size):
            target[i] = (given[i] - mean) * of[i]


def _log_softmax(x: Any, y: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(x):
        of, target = x[row], y[row]
        edge = _largest(of, shared)
        level = np.log(x.dtype.type(_added_powers(of, edge, shared)))
        for i in _mine(of.size):
            target[i] = (of[i] - edge) - level


def _log_softmax_gradient(y: Any, dy: Any, dx: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(y):
        of, given, target, total = y[row], dy[row], dx[row], 0.0
        for i in _mine(of.size):
            total += given[i]
        sum_of_row = y.dtype.type(_added(total, shared))
        for i in _mine(of.size):
            target[i] = given[i] - exp(of[i]) * sum_of_row


def _cross_entropy(z: Any, y: Any, edge: Any, total: Any, out: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(z):
        of, right, picked = z[row], y[row], 0.0
        for i in _mine(of.size):
            picked += of[i] * right[i]
        _note(of, row, _added(picked, shared), shared, edge, total, out)


def _sparse_cross_entropy(z: Any, data: Any, indices: Any, indptr: Any, edge: Any, total: Any, out: Any) -> None:
    shared = cuda.shared.array(THREADS, np.float64)
    for row in _rows(z):
        of, first, picked = z[row], indptr[row], 0.0
        for k in _mine(indptr[row + 1] - first):
            picked += of[indices[first + k]] * data[first + k]
        _note(of, row, _added(picked, shared), shared, edge, total, out)


@cuda.jit(device=True)
def _note(of: Any, row: int, picked: Any, shared: Any, edge: Any, total: Any, out: Any) -> None:
    """Write the loss of a row, and the values that its gradient needs."""
    peak = _largest(of, shared)
    powers = of.dtype.type(_added_powers(of, peak, shared))
    if cuda.threadIdx.x == 0:
        edge[row], total[row] = peak, powers
        out[row] = (peak - of.dtype.type(picked)) + np.log(powers)


def _cross_entropy_gradient(z: Any, y: Any, edge: Any, total: Any, grad: Any, dz: Any) -> None:
    for row in _rows(z):
        of, right, target, level, factor = z[row], y[row], dz[row], edge[row], grad[row]
        share = factor / total[row]
        for i in _mine(of.size):
            target[i] = exp(of[i] - level) * share - right[i] * factor


def _sparse_cross_entropy_gradient(
    z: Any, data: Any, indices: Any, indptr: Any, edge: Any, total: Any, grad: Any, dz: Any
) -> None:  # fmt: skip
    for row in _rows(z):
        of, target, level, factor = z[row], dz[row], edge[row], grad[row]
        share = factor / total[row]
        for i in _mine(of.size):
            target[i] = exp(of[i] - level) * share
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:  # a class may occur twice
            for k in range(indptr[row], indptr[row + 1]):
                target[indices[k]] -= data[k] * factor


softmax = Kernel(_softmax, "R2 R2", by_blocks=True)
softmax_gradient = Kernel(_softmax_gradient, "R2 R2 R2", by_blocks=True)
log_softmax = Kernel(_log_softmax, "R2 R2", by_blocks=True)
log_softmax_gradient = Kernel(_log_softmax_gradient, "R2 R2 R2", by_blocks=True)
cross_entropy = Kernel(_cross_entropy, "R2 R2 R1 R1 R1", by_blocks=True)
cross_entropy_gradient = Kernel(_cross_entropy_gradient, "R2 R2 R1 R1 R1 R2", by_blocks=True)
sparse_cross_entropy = Kernel(_sparse_cross_entropy, "R2 R1 N1 N1 R1 R1 R1", by_blocks=True)
sparse_cross_entropy_gradient = Kernel(_sparse_cross_entropy_gradient, "R2 R1 N1 N1 R1 R1 R1 R2", by_blocks=True)
