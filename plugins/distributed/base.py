"""Base classes for training one model on several workers: the transport of data between them, and strategies."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any, ClassVar

import numpy as np

from ...core.values.minibatch import Minibatch


class Pending:
    """A sum that is being computed."""

    def wait(self) -> None:
        """Wait until it is complete."""


class Transport:
    """Carries arrays between workers; this one knows a single worker.

    All workers call the same methods in the same order, with the same names, by which traces and errors show what is exchanged.  Arrays are
    NumPy arrays, contiguous in memory; those of devices are summed where :meth:`sums_on_device` says so.

    Attributes:
        rank, size: number of this worker, and how many there are.
        messages, bytes_sent: calls that sent something to other workers, and the least that this worker had to send in them: for a
            sum of n bytes over p workers 2 n (p - 1) / p.
    """

    rank: int = 0
    size: int = 1

    def __init__(self) -> None:
        self.messages = self.bytes_sent = 0
        self._numbers = count()

    def next_number(self) -> int:
        """A number, from 0, for objects that all workers create in the same order, such as trainers."""
        return next(self._numbers)

    def hosts(self) -> list[str]:
        """Name of each worker's machine."""
        return [platform.node()]

    def sum(self, array: Any, name: str = "sum") -> None:
        """Replace an array by its sum over the workers, the same bits everywhere."""

    def start_sum(self, array: Any, name: str = "sum") -> Pending:
        """Begin to :meth:`sum` an array, which must not be used until the sum is complete."""
        self.sum(array, name)
        return Pending()

    def sums_on_device(self, arrays: Sequence[Any]) -> bool:
        """Whether arrays of devices may be summed where they are, because all workers hand over such ones; all call this.

        Args:
            arrays: what this worker will have summed, arrays of backends.
        """
        return False

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        """The one-dimensional arrays that the workers hand over, of one type and any length, on every worker."""
        return [array]

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        """Send the first of these one-dimensional arrays to the first worker, …; what each worker has sent to this one."""
        return list(arrays)

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        """Overwrite an array with that of the worker *root*."""

    def barrier(self, name: str = "barrier") -> None:
        """Wait until every worker is here."""

    def finalize(self) -> None:
        """Disconnect from the others; no method may be called afterwards."""


def sum_over_workers(transport: Transport, minibatch: Minibatch, digest: int = 0) -> bool:
    """Replace the sums over a minibatch of this worker by those of all workers.

    Args:
        transport: the connection between workers.
        minibatch: sums over this worker's samples, which become those over all.
        digest: a digest of 32 bits of whatever should be the same on every worker.

    Returns:
        Whether the digest is the same; the result is the same on every worker.
    """
    high, low = divmod(digest, 2**16)
    ends_sweep = minibatch.ends_sweep and transport.rank == 0
    sums = np.array([*minibatch.sums, ends_sweep, high, high * high, low, low * low], np.float64)
    transport.sum(sums, "sums of a minibatch")
    samples, minibatch.loss, minibatch.metric, ends, high, high_squares, low, low_squares = sums.tolist()
    minibatch.samples, minibatch.ends_sweep = int(samples), ends > 0
    # p numbers are equal where p times the sum of their squares is the square of their sum
    return transport.size * high_squares == high * high and transport.size * low_squares == low * low


def hand_out(transport: Transport, parameters: Iterable[Any]) -> None:
    """Overwrite parameters with those of the first worker."""
    for parameter in parameters:
        values = parameter.backend.to_numpy(parameter.array)
        transport.broadcast(values, name="initial values")
        parameter.value = values


class Strategy:
    """Base class of strategies, which stand between the trainer and a learner.

    Every worker has the same model and a strategy of the same kind.  For each minibatch the trainer computes gradients from this
    worker's samples and has the strategy :meth:`update` the parameters; a worker that has no samples takes part with gradients of zero.

    Attributes:
        learner: the learner that updates this worker's parameters; its ``update_arrays`` takes gradients and the number of samples,
            its ``values`` are the parameters' in the type that it computes in, and ``take_values`` sets them.
        transport: carries data between the workers.
        averages_models: whether workers learn from their own samples and have different parameters from time to time.

    >>> from cntk.extend import Strategy, Transport
    >>> class Summing(Strategy):
    ...     def update(self, gradients, minibatch):
    ...         for gradient in gradients:
    ...             self.transport.sum(gradient)
    ...         return self.learner.update_arrays(gradients, minibatch.samples, minibatch.ends_sweep)
    >>> x, w = C.input_variable(1), C.parameter(1)
    >>> learner = C.sgd([w], C.learning_parameter_schedule_per_sample(0.5))
    >>> trainer = C.Trainer(x * w, x * w, C.DistributedLearner(learner, Summing(learner, Transport())))
    >>> trainer.train_minibatch({x: [[2]]}), w.value
    (True, array([-1.], dtype=float32))
    """

    averages_models: ClassVar[bool] = False
    is_lossless: ClassVar[bool] = True
    """Whether the workers together learn the same as one process with all their samples, whichever worker has them."""
    wants_gradients_early: ClassVar[bool] = False
    """Whether :meth:`gradient_is_final` is to be called while others are still being computed."""

    def __init__(self, learner: Any, transport: Transport) -> None:
        self.learner, self.transport = learner, transport

    def begin(self) -> None:
        """Called once, before the first minibatch that the workers learn from together: all start from the first one's parameters."""
        values = self.learner.values()
        for array in values:
            self.transport.broadcast(array, name="initial values")
        self.learner.take_values(values)

    def settings(self) -> dict[str, Any]:
        """Its options, by name: numbers, strings and the like, which must be the same on every worker."""
        return {}

    def gradient_is_final(self, index: int, gradient: Any) -> None:
        """The gradient of parameter *index* is complete, while others are being computed.  Without samples this is not called."""

    def update(self, gradients: Sequence[Any], minibatch: Minibatch) -> bool:
        """Update the parameters.

        Args:
            gradients: of each parameter of the learner, summed over this worker's samples: arrays of the backend or
                :class:`~cntk.core.types.sparse.RowSparse`, which may be overwritten.
            minibatch: sums over all workers' samples, of which there is one at least.

        Returns:
            Whether something was learnt.
        """
        raise TypeError(f"{type(self).__name__}: a strategy must define update(gradients, minibatch)")

    def synchronize(self) -> None:
        """Synchronise the models, before they are saved or tested."""

    def take_synchronized(self) -> int:
        """How many samples of all workers the models had been apart for before the last update made them equal; 0 if it did not."""
        return 0

    def create_checkpoint(self) -> dict[str, Any]:
        """Its state between minibatches that is the same on every worker."""
        return {}

    def create_own_checkpoint(self) -> dict[str, Any]:
        """Its state that belongs to this worker."""
        return {}

    def check_checkpoint(self, common: Any, own: Sequence[Any]) -> None:
        """Check that :meth:`restore_from_checkpoint` accepts these states, before anything is changed.

        Raises:
            RuntimeError: they belong to another strategy, or are damaged.
        """

    def restore_from_checkpoint(self, common: Mapping[str, Any], own: Sequence[Mapping[str, Any]]) -> None:
        """Restore these states.

        Args:
            common: the state that was the same on every worker.
            own: the state of each worker; their number may have been another.
        """
