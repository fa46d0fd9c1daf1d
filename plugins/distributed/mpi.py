"""Exchanges between workers over MPI."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any

import mpi4py
import numpy as np

from ...core import profiling
from ...core.cached_property import cached_property
from ...core.distributed import Pending, Transport
from .watch import Watch

mpi4py.rc.finalize = False  # the watch does it, so that no worker waits for one that has failed

from mpi4py import MPI  # noqa: E402


class _OnThread(Pending):
    def __init__(self, done: Future[None]) -> None:
        self._done = done

    def wait(self) -> None:
        self._done.result()


class MpiTransport(Transport):
    """Carries arrays between the processes that ``mpiexec`` has started.

    Raises:
        RuntimeError: MPI knows of one process only, though a launcher has started several.
    """

    def __init__(self) -> None:
        super().__init__()
        if MPI.COMM_WORLD.size == 1:
            raise RuntimeError(
                "several workers were started, but MPI knows of one only: the launcher belongs to another MPI than mpi4py does "
                f"({MPI.Get_library_version().splitlines()[0]}). Use this MPI's mpiexec, or with Slurm srun --mpi=pmix"
            )
        self._comm, self._early_comm = MPI.COMM_WORLD.Dup(), MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size
        self._watch = Watch(MPI, MPI.COMM_WORLD.Dup())

    def hosts(self) -> list[str]:
        return list(self._hosts)

    def sum(self, array: Any) -> None:
        self._sum(self._comm, array)

    def start_sum(self, array: Any, name: str = "sum") -> Pending:
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            self._sum(self._comm, array, name)
            return Pending()
        return _OnThread(self._thread.submit(self._sum, self._early_comm, array, name))

    def gather(self, array: Any) -> list[Any]:
        own = np.ascontiguousarray(array)
        counts = np.zeros(self.size, np.int64)
        data = own.view(np.uint8)
        self._call("gather", self._comm.Allgather, np.array([data.nbytes], np.int64), counts)
        found = np.empty(int(counts.sum()), np.uint8)
        self._exchange("gather", data.nbytes * (self.size - 1), self._comm.Allgatherv, data, [found, counts, _starts(counts), MPI.BYTE])
        return [part.view(own.dtype) for part in _split(found, counts, own.dtype)]

    def exchange(self, arrays: Sequence[Any]) -> list[Any]:
        pieces = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
        counts, incoming = np.array([piece.nbytes for piece in pieces], np.int64), np.zeros(self.size, np.int64)
        self._call("exchange", self._comm.Alltoall, counts, incoming)
        found = np.empty(int(incoming.sum()), np.uint8)
        sent = [np.concatenate(pieces), counts, _starts(counts), MPI.BYTE]
        nbytes = int(counts.sum() - counts[self.rank])
        self._exchange("exchange", nbytes, self._comm.Alltoallv, sent, [found, incoming, _starts(incoming), MPI.BYTE])
        return [part.view(arrays[0].dtype) for part in _split(found, incoming, arrays[0].dtype)]

    def broadcast(self, array: Any, root: int = 0) -> None:
        nbytes = array.nbytes if self.rank == root else 0
        self._exchange("broadcast", nbytes, self._comm.Bcast, array.reshape(-1).view(np.uint8), root)

    def barrier(self) -> None:
        self._call("barrier", self._comm.Barrier)

    def finalize(self) -> None:
        """End MPI, together with the others; while an exception passes by this does nothing, so that it ends the job."""
        if sys.exc_info()[0] is None:
            self._watch.leave()

    @cached_property
    def _hosts(self) -> list[str]:
        own = np.frombuffer(MPI.Get_processor_name().encode(), np.uint8)
        return [bytes(name).decode() for name in self.gather(own)]

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "cntk-sums")

    def _sum(self, comm: Any, array: Any, name: str = "sum") -> None:
        total = array.astype(np.float32) if array.dtype == np.float16 else array
        self._exchange(name, 2 * total.nbytes * (self.size - 1) // self.size, comm.Allreduce, MPI.IN_PLACE, total)
        if total is not array:
            array[...] = total

    def _exchange(self, what: str, nbytes: int, method: Callable[..., Any], *arguments: Any) -> None:
        """Call a method that sends so many bytes to others at the least, and count them."""
        begin = perf_counter()
        self._call(what, method, *arguments)
        profiling.note_event(what, "exchange", begin, perf_counter(), bytes=nbytes)
        self.messages += 1
        self.bytes_sent += nbytes

    def _call(self, what: str, method: Callable[..., Any], *arguments: Any) -> None:
        if MPI.Is_finalized():
            raise RuntimeError(f"{what}: Communicator.finalize() was called; nothing can be exchanged after that")
        with self._watch.waiting(what):
            method(*arguments)


def _starts(counts: Any) -> Any:
    return np.cumsum(counts) - counts


def _split(found: Any, counts: Any, dtype: Any) -> list[Any]:
    """The workers' parts, each where its type may lie in memory."""
    parts = np.split(found, np.cumsum(counts)[:-1])
    return [part if part.ctypes.data % dtype.itemsize == 0 else part.copy() for part in parts]
