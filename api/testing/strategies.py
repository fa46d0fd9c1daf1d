"""The contract of a distributed strategy, and workers within a process to try it on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import cntk as C
from cntk.core.common.dtypes import computing_type
from cntk.core.values.minibatch import Minibatch
from cntk.plugins.distributed.base import Strategy, Transport, sum_over_workers

STEPS = 30
TOLERANCE = 0.1
GOAL = np.array([[1.0], [-2.0], [0.5]], np.float32)
"""The expected value of the first parameter."""


class ThreadTransport(Transport):
    """Carries arrays between threads of this process, each a worker.

    Args:
        rank: number of this worker.
        board: where the workers put what they send.
        barrier: where they meet.
    """

    def __init__(self, rank: int, board: list[Any], barrier: threading.Barrier) -> None:
        super().__init__()
        self.rank, self.size = rank, len(board)
        self._board, self._barrier = board, barrier

    def hosts(self) -> list[str]:
        return super().hosts() * self.size

    def sum(self, array: Any, name: str = "sum") -> None:
        terms = self._show(array)
        array[...] = np.sum(terms, axis=0, dtype=computing_type(array.dtype))
        self._count(2 * array.nbytes * (self.size - 1) // self.size)

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        self._count(array.nbytes * (self.size - 1))
        return self._show(array)

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        self._count(sum(array.nbytes for worker, array in enumerate(arrays) if worker != self.rank))
        return [sent[self.rank] for sent in self._show(list(arrays))]

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        self._count(array.nbytes if self.rank == root else 0)
        array[...] = self._show(array)[root]

    def barrier(self, name: str = "barrier") -> None:
        self._barrier.wait()

    def _show(self, item: Any) -> list[Any]:
        """What every worker shows; copies, since the workers go on with their own."""
        self._board[self.rank] = [part.copy() for part in item] if isinstance(item, list) else item.copy()
        self._barrier.wait()
        shown = list(self._board)
        self._barrier.wait()
        return shown

    def _count(self, nbytes: int) -> None:
        self.messages += 1
        self.bytes_sent += nbytes


def run_workers(workers: int, work: Callable[[Transport], Any]) -> list[Any]:
    """Call *work* on so many threads, each with a transport to the others.

    Returns:
        What it returned, by worker.

    Raises:
        Exception: what it raised on a worker.

    >>> from cntk.testing.strategies import run_workers
    >>> def work(transport):
    ...     array = np.array([transport.rank + 1.0])
    ...     transport.sum(array)
    ...     return array
    >>> run_workers(2, work)
    [array([3.]), array([3.])]
    """
    barrier, board = threading.Barrier(workers, timeout=60), [None] * workers
    results: list[Any] = [None] * workers
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(ThreadTransport(rank, board, barrier))
        except BaseException as error:
            if not isinstance(error, threading.BrokenBarrierError):
                errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(rank,), name=f"worker {rank}") for rank in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def check_strategy(factory: Callable[[Any, Transport], Strategy]) -> None:
    """Check a distributed strategy: workers agree, learn what one process does, and go on from a checkpoint.

    One worker and three train a linear model of two parameters on samples of their own, the last with fewer samples than the others and
    at times with none.  After
    :meth:`~cntk.plugins.distributed.base.Strategy.synchronize` all models must be equal bit for bit, the loss must have fallen to a tenth,
    and a run that goes on from its checkpoint halfway must go as one that has not stopped.  Where the strategy does
    not set ``is_lossless`` to False, the models must be those of one process that learns from all samples, bit for bit.

    Args:
        factory: called with a learner and a transport, returns the strategy.

    Raises:
        AssertionError: it does not keep the contract.

    >>> from cntk.testing import check_strategy
    >>> from cntk.plugins.distributed.data_parallel import DataParallel
    >>> check_strategy(DataParallel)
    """
    for workers in (1, 3):
        whole = run_workers(workers, lambda transport: _train(factory, transport))
        losses = [worker.loss for worker in whole]
        for worker in whole:
            for own, first in zip(worker.parameters, whole[0].parameters, strict=True):
                if not np.array_equal(own, first):
                    raise AssertionError(f"after synchronize() the models of {workers} workers differ")
        if whole[0].is_lossless and not all(map(np.array_equal, whole[0].parameters, _train_alone(workers))):
            raise AssertionError(
                f"{workers} workers learn otherwise than one process does from all samples; "
                f"a strategy that means it sets is_lossless = False"
            )
        if not max(losses) < TOLERANCE:
            raise AssertionError(f"the loss of {workers} workers has fallen to {max(losses):.3g} of what it was; expected {TOLERANCE}")
        resumed = run_workers(workers, lambda transport: _train(factory, transport, stop=STEPS // 2))
        for own, first in zip(resumed, run_workers(workers, lambda t: _train(factory, t, pause=STEPS // 2)), strict=True):
            if not all(np.array_equal(a, b) for a, b in zip(own.parameters, first.parameters, strict=True)):
                raise AssertionError(f"{workers} workers that go on from a checkpoint learn otherwise than ones that never stopped")


class _Trained(NamedTuple):
    """The outcome of a worker: the remaining part of the loss, its parameters, and whether its strategy declares that it is lossless."""

    loss: float
    parameters: list[Any]
    is_lossless: bool


def _train(factory: Any, transport: Transport, pause: int = 0, stop: int = 0) -> _Trained:
    """Train a worker; *pause* synchronises after so many steps, *stop* also begins anew from there."""
    random, parameters = np.random.default_rng(transport.rank), _parameters()
    strategy = _begun(factory, parameters, transport)
    for step in range(STEPS):
        if step and step in (pause, stop):
            strategy.synchronize()
        if step and step == stop:
            common, own = strategy.create_checkpoint(), _everyones(transport, strategy.create_own_checkpoint())
            state = strategy.learner.create_checkpoint()
            strategy = factory(C.momentum_sgd(parameters, *_rates()), transport)
            strategy.learner.restore_from_checkpoint(state)
            strategy.restore_from_checkpoint(common, own)
            strategy.begin()
        gradients, minibatch = _gradients(parameters, random, transport.rank, transport.size, step)
        sum_over_workers(transport, minibatch)
        strategy.update(gradients, minibatch)
    strategy.synchronize()
    left = np.abs(parameters[0].value - GOAL).max() / 2
    return _Trained(float(left), [parameter.value for parameter in parameters], strategy.is_lossless)


def _train_alone(workers: int) -> list[Any]:
    """The parameters after one process has learnt from the samples of so many workers, whose gradients it adds up in their order."""
    randoms, parameters = [np.random.default_rng(rank) for rank in range(workers)], _parameters()
    learner = C.momentum_sgd(parameters, *_rates())
    for step in range(STEPS):
        shares = [_gradients(parameters, random, rank, workers, step) for rank, random in enumerate(randoms)]
        totals = [np.sum(terms, axis=0) for terms in zip(*(gradients for gradients, _ in shares), strict=True)]
        learner.update_arrays(totals, sum(minibatch.samples for _, minibatch in shares))
    return [parameter.value for parameter in parameters]


def _parameters() -> list[Any]:
    return [C.parameter((3, 1), init=0), C.parameter(1, init=0)]


def _gradients(parameters: Sequence[Any], random: np.random.Generator, rank: int, workers: int, step: int) -> tuple[list[Any], Minibatch]:
    """The gradients of a worker's next samples, and what the minibatch is."""
    is_last = rank == workers - 1 > 0
    count = 0 if is_last and step % 4 == 3 else 8 if is_last else 16
    x = random.standard_normal((count, 3)).astype(np.float32)
    error = x @ (parameters[0].value - GOAL) + parameters[1].value
    return [x.T @ error, error.sum(axis=0)], Minibatch(count, float((error**2).sum()), 0.0)


def _begun(factory: Any, parameters: list[Any], transport: Transport) -> Any:
    strategy = factory(C.momentum_sgd(parameters, *_rates()), transport)
    strategy.begin()
    return strategy


def _rates() -> tuple[Any, Any]:
    return C.learning_parameter_schedule(0.1), C.momentum_schedule(0.5)


def _everyones(transport: Any, own: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of all workers, as the main worker would read them from a file."""
    from cntk.train.checkpoint import from_bytes, to_bytes

    return [from_bytes(bytes(data)) for data in transport.gather(np.frombuffer(to_bytes(own), np.uint8))]
