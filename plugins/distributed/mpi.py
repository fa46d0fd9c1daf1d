"""Exchanges between workers over MPI."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mpi4py
import numpy as np

from .group import Group, Post
from .processes import ProcessTransport

mpi4py.rc.finalize = False  # the watch does it, so that no worker waits for one that has failed

from mpi4py import MPI  # noqa: E402


class MpiTransport(ProcessTransport):
    """Carries arrays between the processes that ``mpiexec`` has started.

    Raises:
        RuntimeError: MPI knows of one process only, though a launcher has started several.
    """

    def __init__(self) -> None:
        if MPI.COMM_WORLD.size == 1:
            raise RuntimeError(
                "several workers were started, but MPI knows of one only: the launcher belongs to another MPI than mpi4py does "
                f"({MPI.Get_library_version().splitlines()[0]}). Use this MPI's mpiexec, or with Slurm srun --mpi=pmix"
            )
        super().__init__(MpiGroup(), MpiGroup(), MpiPost())


class MpiGroup(Group):
    """All workers, on a communicator of its own."""

    def __init__(self) -> None:
        self._comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size = self._comm.rank, self._comm.size

    def gather_equal(self, own: Any, found: Any) -> None:
        self._comm.Allgather(own, found)

    def gather(self, own: Any, sizes: Any) -> Any:
        found = np.empty(int(sizes.sum()), np.uint8)
        self._comm.Allgatherv(own, [found, sizes, _starts(sizes), MPI.BYTE])
        return found

    def exchange(self, pieces: Sequence[Any], sizes: Any) -> Any:
        found = np.empty(int(sizes.sum()), np.uint8)
        counts = np.array([piece.nbytes for piece in pieces], np.int64)
        sent = [np.concatenate(pieces), counts, _starts(counts), MPI.BYTE]
        self._comm.Alltoallv(sent, [found, sizes, _starts(sizes), MPI.BYTE])
        return found

    def broadcast(self, data: Any, root: int) -> None:
        self._comm.Bcast(data, root)

    def swap(self, sent: Any, to: int, found: Any, source: int) -> None:
        self._comm.Sendrecv(sent, to, recvbuf=found, source=source)


class MpiPost(Post):
    """Messages on a communicator of their own."""

    def __init__(self) -> None:
        self._comm = MPI.COMM_WORLD.Dup()
        self.rank, self.size, self.host = self._comm.rank, self._comm.size, MPI.Get_processor_name()
        self.has_threads = MPI.Query_thread() == MPI.THREAD_MULTIPLE

    def send(self, worker: int, tag: int, data: bytes) -> None:
        self._comm.Send(np.frombuffer(data, np.uint8), worker, tag)

    def received(self) -> list[tuple[int, int, bytes]]:
        status, found = MPI.Status(), []
        while self._comm.Iprobe(MPI.ANY_SOURCE, MPI.ANY_TAG, status):
            source, tag = status.Get_source(), status.Get_tag()
            data = np.empty(status.Get_count(MPI.BYTE), np.uint8)
            self._comm.Recv(data, source, tag)
            found.append((source, tag, bytes(data)))
        return found

    def abort(self) -> None:
        MPI.COMM_WORLD.Abort(1)

    def close(self) -> None:
        MPI.Finalize()

    def forget(self) -> None:
        """MPI's connection is the parent's alone."""


def _starts(counts: Any) -> Any:
    return np.cumsum(counts) - counts
