"""Sums of row-sparse gradients over workers: rows that any worker has are sent, the others are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.types.sparse import RowSparse
from .base import Transport


def sum_rows(transport: Transport, gradients: Sequence[RowSparse], backends: Sequence[Any]) -> None:
    """Replace row-sparse gradients by their sums over the workers: a row is present where it is on any of them.

    Args:
        gradients: the gradients, in an order that all workers have.
        backends: where each lives.
    """
    if transport.size == 1 or not gradients:
        return
    held = [_host_rows(gradient, backend) for gradient, backend in zip(gradients, backends, strict=True)]
    counts = transport.gather(np.array([len(rows) for rows, _ in held], np.int64))
    packed = b"".join(part.tobytes() for rows, values in held for part in (rows, values))
    messages = transport.gather(np.frombuffer(packed, np.uint8))
    starts = [0] * transport.size
    for index, (gradient, backend) in enumerate(zip(gradients, backends, strict=True)):
        rows, values = [], []
        for worker, message in enumerate(messages):
            count = int(counts[worker][index])
            part, starts[worker] = _read(message, starts[worker], (count,), np.dtype(np.int64))
            rows.append(part)
            part, starts[worker] = _read(message, starts[worker], (count, *gradient.shape[1:]), np.dtype(gradient.dtype))
            values.append(part)
        present, places = np.unique(np.concatenate(rows), return_inverse=True)
        total = np.zeros((len(present), *gradient.shape[1:]), computing_type(gradient.dtype))
        first = 0
        for part in values:  # the rows of a worker are distinct
            total[places[first : first + len(part)]] += part
            first += len(part)
        gradient.set(backend.asarray(present, np.intp), backend.asarray(total, gradient.dtype))


def _host_rows(gradient: RowSparse, backend: Any) -> tuple[Any, Any]:
    if gradient.rows is None:
        return np.zeros(0, np.int64), np.zeros((0, *gradient.shape[1:]), gradient.dtype)
    return backend.to_numpy(gradient.rows).astype(np.int64), np.ascontiguousarray(backend.to_numpy(gradient.values))


def _read(message: Any, start: int, shape: tuple[int, ...], dtype: Any) -> tuple[Any, int]:
    stop = start + dtype.itemsize * int(np.prod(shape))
    return np.frombuffer(message[start:stop].tobytes(), dtype).reshape(shape), stop
