"""Sums of dense gradients over workers, some at a time, while others are still being computed."""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.run import profiling
from .base import Pending, Transport

BUCKET_BYTES = 4 * 2**20
"""Gradients are summed in messages of at least this size: smaller ones cost more time, larger ones leave less to be sent early."""


class Bucket:
    """Gradients that travel in one message.

    A gradient that is large enough for a message of its own is summed where it lies, others are copied together.

    Args:
        backends: where each of the gradients lives.
        indices: their numbers.
        shapes: their shapes.
        dtype: their type; types of 16 bits travel as float32.
        name: name of its sum in traces and messages.
        on_device: whether they are summed where they live, all on one device, and not on the host.
    """

    def __init__(
        self,
        backends: Sequence[Any],
        indices: Sequence[int],
        shapes: Sequence[tuple[int, ...]],
        dtype: Any,
        name: str = "sum of a bucket",
        on_device: bool = False,
    ) -> None:
        self.name, self.indices, self._backends = name, list(indices), list(backends)
        self._on_device = on_device
        self._shapes = list(shapes)
        self._ends = np.cumsum([int(np.prod(shape)) for shape in shapes]).tolist()
        self._dtype = computing_type(dtype)
        self._own: Any = None
        self._message: Any = None
        self._pending: Pending | None = None
        self.missing = set(self.indices)

    def start(self, transport: Transport, gradients: Sequence[Any]) -> None:
        """Send the gradients, in the order of :attr:`indices`."""
        self._message = self._in_place(gradients)
        if self._message is None:
            self._message = self._gathered(gradients)
        self._pending = transport.start_sum(self._message, self.name)

    def finish(self, gradients: Sequence[Any]) -> None:
        """Wait for the sums and write them into the gradients."""
        assert self._pending is not None
        begin = perf_counter()
        self._pending.wait()
        profiling.note_event(f"wait for {self.name}", "wait", begin, perf_counter())
        self._pending, self.missing = None, set(self.indices)
        if self._message is self._own:
            start = 0
            for gradient, backend, shape, end in zip(gradients, self._backends, self._shapes, self._ends, strict=True):
                part = self._message[start:end].reshape(shape)
                gradient[...] = part if self._is_beside(gradient) else backend.asarray(part, gradient.dtype)
                start = end
        self._message = None

    def _is_beside(self, gradient: Any) -> bool:
        """Whether a gradient lies where it is summed."""
        return self._on_device or isinstance(gradient, np.ndarray)

    def _in_place(self, gradients: Sequence[Any]) -> Any:
        alone = gradients[0] if len(gradients) == 1 else None
        fits = alone is not None and self._is_beside(alone) and alone.flags.c_contiguous and alone.dtype == self._dtype
        return alone if fits else None

    def _gathered(self, gradients: Sequence[Any]) -> Any:
        if self._own is None:
            size = self._ends[-1]
            self._own = self._backends[0].empty((size,), self._dtype) if self._on_device else np.empty(size, self._dtype)
        start = 0
        for gradient, backend, end in zip(gradients, self._backends, self._ends, strict=True):
            beside = gradient if self._is_beside(gradient) else backend.to_numpy(gradient)
            self._own[start:end] = beside.reshape(-1)
            start = end
        return self._own


def divide(parameters: Sequence[Any], order: Sequence[int], nbytes: int = BUCKET_BYTES, on_device: bool = False) -> list[Bucket]:
    """Buckets of at least *nbytes* of the parameters' gradients, taken in *order*; each of one type."""
    buckets: list[Bucket] = []
    open_for: dict[Any, list[int]] = {}

    def close(dtype: Any) -> None:
        indices = open_for.pop(dtype)
        chosen = [parameters[index] for index in indices]
        shapes = [tuple(parameter.shape) for parameter in chosen]
        backends = [parameter.backend for parameter in chosen]
        buckets.append(Bucket(backends, indices, shapes, dtype, f"sum of bucket {len(buckets)}", on_device))

    for index in order:
        dtype = np.dtype(parameters[index].dtype)
        open_for.setdefault(dtype, []).append(index)
        if sum(int(np.prod(parameters[i].shape)) for i in open_for[dtype]) * dtype.itemsize >= nbytes:
            close(dtype)
    for dtype in list(open_for):
        close(dtype)
    return buckets
