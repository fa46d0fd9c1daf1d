"""Data-parallel training with gradients of a few bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import computing_type
from ...core.types.sparse import RowSparse
from ...core.values.minibatch import Minibatch
from .base import Strategy, Transport
from .quantizer import BITS, Quantizer
from .states import require_arrays


class _Table:
    """The state of one parameter's gradient, which is treated as a matrix with a column in each row, of which every worker owns some.

    Attributes:
        columns, width: how many columns there are, and how long they are.
        bounds: the columns of worker j are those from ``bounds[j]`` to ``bounds[j + 1]``.
        error: the accumulated quantisation error of this worker.
        sum_error: the same for the sums of the columns that it owns.
    """

    def __init__(self, parameter: Any, bits: int, transport: Transport) -> None:
        shape = tuple(parameter.shape)
        self.width = shape[-1] if shape else 1
        self.columns = int(np.prod(shape[:-1])) if shape else 1
        dtype = computing_type(parameter.dtype).type
        self.backend = parameter.backend
        self.quantizer = Quantizer(self.backend.xp, bits, dtype)
        self.bounds = [self.columns * worker // transport.size for worker in range(transport.size + 1)]
        self.own = slice(self.bounds[transport.rank], self.bounds[transport.rank + 1])
        self.error = self.backend.xp.zeros((self.columns, self.width), dtype)
        self.sum_error = self.backend.xp.zeros((self.own.stop - self.own.start, self.width), dtype)
        self.column_bytes = self.quantizer.column_bytes(self.width)

    def encode(self, gradient: Any) -> list[Any]:
        """The gradient's columns as bytes, a piece for each worker that owns some of them."""
        xp = self.backend.xp
        dense = gradient.to_dense(xp) if isinstance(gradient, RowSparse) else gradient
        self.error += dense.reshape(self.columns, self.width)
        host = self.backend.to_numpy(self.quantizer.encode(self.error))
        return [host[start:stop].reshape(-1) for start, stop in zip(self.bounds, self.bounds[1:], strict=False)]

    def sum_own(self, pieces: Sequence[Any]) -> Any:
        """The sum of the workers' columns that this worker owns, as bytes."""
        for piece in pieces:
            self.sum_error += self._decode(piece)
        return self.backend.to_numpy(self.quantizer.encode(self.sum_error)).reshape(-1)

    def decode_sum(self, pieces: Sequence[Any], shape: Sequence[int]) -> Any:
        """The gradient that consists of the workers' sums."""
        return self._decode(np.concatenate(pieces)).reshape(tuple(shape))

    def _decode(self, piece: Any) -> Any:
        encoded = self.backend.asarray(piece.reshape(-1, self.column_bytes), np.uint8)
        return self.quantizer.decode(encoded, self.width)


class QuantizedDataParallel(Strategy):
    """Sums gradients over the workers with few bits a number, and corrects the errors in the next minibatch.

    Every worker owns some columns of each gradient.  First each sends the columns that others own to them, quantised; the owners add them
    up and send the sums to all, quantised again.  The errors of both are added to the next minibatch's gradients.

    Args:
        learner: the learner that updates the parameters.
        transport: carries data between the workers.
        bits: bits of a number, 1 to 31.

    Raises:
        ValueError: another number of bits.

    Source: F. Seide, H. Fu, J. Droppo, G. Li and D. Yu, "1-bit stochastic gradient descent and its application to data-parallel distributed
    training of speech DNNs", Interspeech 2014.
    """

    is_lossless = False

    def __init__(self, learner: Any, transport: Transport, bits: int = 1) -> None:
        super().__init__(learner, transport)
        if bits not in BITS:
            raise ValueError(f"quantised gradients have {BITS[0]} to {BITS[-1]} bits, got {bits}; 32 bits need no quantisation")
        self._bits = int(bits)
        self._tables = [_Table(parameter, bits, transport) for parameter in learner.updated_parameters] if transport.size > 1 else []

    def settings(self) -> dict[str, Any]:
        return {"bits": self._bits}

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        if self._tables:
            if not self._admits(gradients):
                skipped: bool = self.learner.skip(minibatch.samples, minibatch.ends_sweep)
                return skipped
            gradients = self._sum(gradients)
        updated: bool = self.learner.update_arrays(gradients, minibatch.samples, minibatch.ends_sweep)
        return updated

    def _admits(self, gradients: Sequence[Any]) -> bool:
        """Whether the loss scale was not too large on any worker: what is not finite would stay in the errors that are made up for."""
        scale = self.learner.loss_scale
        if scale is None or not scale.is_dynamic:
            return True
        refused = np.array([not scale.admits(self._tables[0].backend.xp, gradients)], np.float64)
        self.transport.sum(refused, "gradients that are not finite")
        return not refused.any()

    def _sum(self, gradients: Sequence[Any]) -> list[Any]:
        transport, tables = self.transport, self._tables
        pieces = [table.encode(gradient) for table, gradient in zip(tables, gradients, strict=True)]
        received = transport.exchange([np.concatenate([piece[worker] for piece in pieces]) for worker in range(transport.size)])
        own = [table.own.stop - table.own.start for table in tables]
        split = [self._split(message, own) for message in received]
        sums = transport.gather(np.concatenate([table.sum_own(parts) for table, *parts in zip(tables, *split, strict=True)]))
        owned = [[table.bounds[worker + 1] - table.bounds[worker] for table in tables] for worker in range(transport.size)]
        split = [self._split(message, columns) for message, columns in zip(sums, owned, strict=True)]
        shapes = [parameter.shape for parameter in self.learner.updated_parameters]
        return [table.decode_sum(parts, shape) for table, shape, *parts in zip(tables, shapes, *split, strict=True)]

    def _split(self, message: Any, columns: Sequence[int]) -> list[Any]:
        """A message as one piece for each parameter, of so many columns."""
        sizes = [count * table.column_bytes for count, table in zip(columns, self._tables, strict=True)]
        return list(np.split(message, np.cumsum(sizes)[:-1]))

    def create_own_checkpoint(self) -> dict[str, Any]:
        tables = self._tables
        errors = [table.backend.to_numpy(table.error) for table in tables]
        sum_errors = [table.backend.to_numpy(table.sum_error) for table in tables]
        return {"errors": errors, "sum_errors": sum_errors}

    def check_checkpoint(self, common: Any, own: Sequence[Any]) -> None:
        states = [state for state in own if state["errors"]]
        if not states:
            return
        whole = [(table.columns, table.width) for table in self._tables]
        for state in states:
            require_arrays("quantised gradients: errors", state["errors"], whole)
            parts = [(len(part), table.width) for part, table in zip(state["sum_errors"], self._tables, strict=True)]
            require_arrays("quantised gradients: errors of sums", state["sum_errors"], parts)
        for index, table in enumerate(self._tables):
            columns = sum(len(state["sum_errors"][index]) for state in states)
            if columns != table.columns:
                raise RuntimeError(f"quantised gradients: errors of sums of {columns} columns given to a parameter with {table.columns}")

    def restore_from_checkpoint(self, common: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> None:
        """Restore the workers' errors: each its own if there are as many workers as before, otherwise equal shares of the sum."""
        states = [state for state in own if state["errors"]]
        if not states:
            return
        same = len(states) == self.transport.size
        for index, table in enumerate(self._tables):
            held = [np.asarray(state["errors"][index]) for state in states]
            error = held[self.transport.rank] if same else sum(held[1:], start=held[0]) / self.transport.size
            sums = np.concatenate([np.asarray(state["sum_errors"][index]).reshape(-1, table.width) for state in states])
            table.error[...] = table.backend.asarray(error.reshape(table.error.shape), table.error.dtype)
            table.sum_error[...] = table.backend.asarray(sums[table.own], table.sum_error.dtype)
