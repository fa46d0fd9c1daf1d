"""Exchanges between workers over MPI."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Any

import mpi4py
import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.dtypes import computing_type, is_float
from ...core.run import profiling
from .base import Pending, Transport
from .channel import ROOM, Channel
from .watch import Watch

mpi4py.rc.finalize = False  # the watch does it, so that no worker waits for one that has failed

from mpi4py import MPI  # noqa: E402

NUMBERS = "iufc"
"""Kinds of the element types that can be summed."""


class _OnThread(Pending):
    def __init__(self, done: Future[None], watch: Watch) -> None:
        self._done, self._watch = done, watch

    def wait(self) -> None:
        with self._watch.resting():
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
        self._main, self._early = (Channel(number, MPI.COMM_WORLD.Dup()) for number in range(2))
        self.rank, self.size = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
        self._watch = Watch(MPI, MPI.COMM_WORLD.Dup(), (self._main, self._early))

    def hosts(self) -> list[str]:
        return list(self._hosts)

    def sum(self, array: Any, name: str = "sum") -> None:
        self._sum(self._main, array, name, threading.get_ident())

    def start_sum(self, array: Any, name: str = "sum") -> Pending:
        if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
            self.sum(array, name)
            return Pending()
        return _OnThread(self._thread.submit(self._sum, self._early, array, name, threading.get_ident()), self._watch)

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        own = np.ascontiguousarray(array)
        data = own.view(np.uint8)

        def work(channel: Channel, thread: int) -> tuple[Any, Any]:
            sizes = channel.meet(f"{name}, gather of {own.dtype.str}", thread, np.array([data.nbytes]).view(np.uint8))
            counts = sizes[:, 0].copy()
            found = np.empty(int(counts.sum()), np.uint8)
            channel.comm.Allgatherv(data, [found, counts, _starts(counts), MPI.BYTE])
            return found, counts

        found, counts = self._exchange(self._main, name, data.nbytes * (self.size - 1), work)
        return [part.view(own.dtype) for part in _split(found, counts, own.dtype)]

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        dtype = arrays[0].dtype
        pieces = [np.ascontiguousarray(array).view(np.uint8) for array in arrays]
        counts = np.array([piece.nbytes for piece in pieces], np.int64)

        def work(channel: Channel, thread: int) -> tuple[Any, Any]:
            fits = counts.nbytes <= ROOM
            sizes = channel.meet(f"{name}, exchange of {dtype.str}", thread, counts.view(np.uint8) if fits else None)
            incoming = sizes[:, self.rank].copy() if fits else np.empty_like(counts)
            if not fits:
                channel.comm.Alltoall(counts, incoming)
            found = np.empty(int(incoming.sum()), np.uint8)
            sent = [np.concatenate(pieces), counts, _starts(counts), MPI.BYTE]
            channel.comm.Alltoallv(sent, [found, incoming, _starts(incoming), MPI.BYTE])
            return found, incoming

        found, incoming = self._exchange(self._main, name, int(counts.sum() - counts[self.rank]), work)
        return [part.view(dtype) for part in _split(found, incoming, dtype)]

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        data = array.reshape(-1).view(np.uint8)

        def work(channel: Channel, thread: int) -> None:
            channel.meet(f"{name}, {_described(array)} from worker {root}", thread)
            channel.comm.Bcast(data, root)

        self._exchange(self._main, name, data.nbytes if self.rank == root else 0, work)

    def barrier(self, name: str = "barrier") -> None:
        self._exchange(self._main, name, 0, lambda channel, thread: channel.meet(name, thread))

    def finalize(self) -> None:
        """End MPI, together with the others; does nothing during an exception, which then ends the job."""
        if sys.exc_info()[0] is None:
            self._watch.leave()

    @cached_property
    def _hosts(self) -> list[str]:
        own = np.frombuffer(MPI.Get_processor_name().encode(), np.uint8)
        return [bytes(name).decode() for name in self.gather(own, "names of machines")]

    @cached_property
    def _thread(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(1, "cntk-sums")

    def _sum(self, channel: Channel, array: Any, name: str, thread: int) -> None:
        if array.dtype.kind not in NUMBERS and not is_float(array.dtype):
            raise TypeError(f"{name}: numbers can be summed over the workers, got an array of {array.dtype}")
        dtype = computing_type(array.dtype).newbyteorder("=")
        total = array.astype(dtype, order="C", copy=False)

        def work(channel: Channel, thread: int) -> None:
            what = f"{name}, sum of {_described(array)}"
            if total.nbytes <= ROOM:
                terms = channel.meet(what, thread, total.reshape(-1).view(np.uint8)).view(total.dtype)
                np.add.reduce(terms[:, : total.size], 0, out=total.reshape(-1))
            else:
                channel.meet(what, thread)
                channel.comm.Allreduce(MPI.IN_PLACE, total)

        self._exchange(channel, name, 2 * total.nbytes * (self.size - 1) // self.size, work, thread)
        if total is not array:
            array[...] = total

    def _exchange(self, channel: Channel, name: str, nbytes: int, work: Callable[[Channel, int], Any], thread: int | None = None) -> Any:
        """Run an exchange that sends at least so many bytes to others, and count them."""
        if MPI.Is_finalized():
            raise RuntimeError(f"{name}: Communicator.finalize() was called; nothing can be exchanged after that")
        begin = perf_counter()
        caller = threading.get_ident() if thread is None else thread
        with channel.lock, self._watch.waiting(channel, name, caller):
            result = work(channel, caller)
        profiling.note_event(name, "exchange", begin, perf_counter(), bytes=nbytes)
        self.messages += 1
        self.bytes_sent += nbytes
        return result


def _described(array: Any) -> str:
    return f"{array.size} of {array.dtype.str}"


def _starts(counts: Any) -> Any:
    return np.cumsum(counts) - counts


def _split(found: Any, counts: Any, dtype: Any) -> list[Any]:
    """The workers' parts, each where its type may lie in memory."""
    parts = np.split(found, np.cumsum(counts)[:-1])
    return [part if part.ctypes.data % dtype.itemsize == 0 else part.copy() for part in parts]
