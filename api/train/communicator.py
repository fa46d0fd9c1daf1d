"""The workers of this run: who they are, and exchanges between them."""

from __future__ import annotations

import os
from functools import cache
from importlib.util import find_spec
from typing import Any

import numpy as np

from cntk.core.common.launch import is_launched, rendezvous_in
from cntk.plugins.distributed.base import Transport


class WorkerDescriptor:
    """One of the workers.

    Attributes:
        global_rank: its number, from 0.
        host_id: name of the machine that it runs on.

    >>> worker = C.distributed.mpi_communicator().current_worker()
    >>> worker.global_rank, worker.is_main()
    (0, True)
    """

    def __init__(self, global_rank: int, host_id: str) -> None:
        self._rank, self._host = global_rank, host_id

    @property
    def global_rank(self) -> int:
        """Its number, from 0."""
        return self._rank

    @property
    def host_id(self) -> str:
        """Name of the machine that it runs on."""
        return self._host

    def is_main(self) -> bool:
        """Whether it is the main worker, the one with number 0."""
        return self._rank == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WorkerDescriptor) and (self._rank, self._host) == (other._rank, other._host)

    def __hash__(self) -> int:
        return hash((self._rank, self._host))

    def __repr__(self) -> str:
        return f"WorkerDescriptor({self._rank}, {self._host!r})"


class Communicator:
    """Exchanges between the workers that a launcher has started; without one this process is the only worker.

    All workers must call the same methods in the same order.

    >>> C.Communicator.num_workers(), C.Communicator.rank()
    (1, 0)
    >>> communicator = C.distributed.mpi_communicator()
    >>> communicator.is_main()
    True
    >>> communicator.aggregate(np.array([1.0, 2.0]))
    array([1., 2.])
    """

    def __init__(self, transport: Transport | None = None) -> None:
        self.transport = world() if transport is None else transport

    @staticmethod
    def num_workers() -> int:
        """How many workers there are."""
        return world().size

    @staticmethod
    def rank() -> int:
        """Number of this worker, from 0."""
        return world().rank

    @staticmethod
    def finalize() -> None:
        """Take leave of the other workers, at the end of a program; it returns when all have called it."""
        world().finalize()

    def workers(self) -> list[WorkerDescriptor]:
        """All workers, by number."""
        return [WorkerDescriptor(rank, host) for rank, host in enumerate(self.transport.hosts())]

    def current_worker(self) -> WorkerDescriptor:
        """This worker."""
        return self.workers()[self.transport.rank]

    def is_main(self) -> bool:
        """Whether this is the main worker, the one with number 0."""
        return self.transport.rank == 0

    def barrier(self) -> None:
        """Wait until all workers have called this."""
        self.transport.barrier()

    def aggregate(self, array: Any) -> Any:
        """The sum of the workers' arrays of one shape and type, on every worker: a new array."""
        total = np.array(array, order="C")
        self.transport.sum(total, f"sum of arrays of shape {total.shape}")
        return total

    def gather(self, array: Any) -> list[Any]:
        """The workers' arrays, which may be of different lengths along their first axis, in the order of their numbers, on every worker."""
        own = np.asarray(array, order="C")
        found = self.transport.gather(own.reshape(-1), f"arrays of {own.ndim} axes, {own.shape[1:]} behind the first")
        return [part.reshape(-1, *own.shape[1:]) if own.ndim else part.reshape(()) for part in found]

    def broadcast(self, array: Any, root: int = 0) -> Any:
        """The array of the worker *root*, on every worker, where the others hand over arrays of its shape and type: a new array."""
        found = np.array(array, order="C")
        self.transport.broadcast(found, root, f"array of shape {found.shape}")
        return found


def mpi_communicator() -> Communicator:
    """A communicator of all workers.

    >>> C.distributed.mpi_communicator().workers()[0].global_rank
    0
    """
    return Communicator()


@cache
def world() -> Transport:
    """What connects the workers of this run: MPI where ``mpiexec`` has started several, sockets where ``torchrun`` has, else nothing.

    Where CuPy is installed, gradients on GPUs are summed there, by NCCL.

    Raises:
        ImportError: ``mpiexec`` has started several, but mpi4py is missing.
        RuntimeError: the other workers do not come.
    """
    host = _of_host()
    if host.size == 1 or find_spec("cupy") is None:
        return host
    from cntk.plugins.distributed.nccl import NcclTransport

    return NcclTransport(host)


def _of_host() -> Transport:
    """What carries arrays of the host."""
    if not is_launched(os.environ):
        return Transport()
    rendezvous = rendezvous_in(os.environ)
    if rendezvous is not None:
        from cntk.plugins.distributed.tcp import TcpTransport

        return TcpTransport(rendezvous)
    if find_spec("mpi4py") is None:
        raise ImportError("this program was started by mpiexec, for several workers, but mpi4py is missing: pip install 'opencntk[mpi]'")
    from cntk.plugins.distributed.mpi import MpiTransport

    return MpiTransport()
