"""Sums of arrays on GPUs over workers by NCCL; everything else uses the host's transport.

NCCL is called through CuPy.  The first worker sends NCCL's unique id of the job to the others through the host's transport, MPI or sockets.
If one of the workers cannot use NCCL, none of them does, and gradients are summed on the host.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from ...core.common.user_frame import warn_user
from ...core.run import profiling
from .base import Pending, Transport

TYPES = {"float32": "NCCL_FLOAT32", "float64": "NCCL_FLOAT64", "float16": "NCCL_FLOAT16", "int32": "NCCL_INT32", "int64": "NCCL_INT64"}
"""NCCL's names of the element types that can be summed."""

WAY = "pip install 'opencntk[gpu]' brings CuPy and NCCL"


class NcclTransport(Transport):
    """A transport of the host, extended by sums of arrays on GPUs.

    Sums run on a separate stream: they start after the work that has been enqueued on the current stream, and :meth:`Pending.wait` makes
    the current stream wait for them; the host does not wait.

    Args:
        host: the transport for arrays of the host.
        cuda: the module ``cupy.cuda``; imported when needed if None.
    """

    def __init__(self, host: Transport, cuda: Any = None) -> None:
        super().__init__()
        self.host, self.rank, self.size, self._given = host, host.rank, host.size, cuda
        self._communicator: Any = None

    @property
    def messages(self) -> int:
        """Number of calls that sent data, by either transport."""
        return self.host.messages + self._own_messages

    @messages.setter
    def messages(self, count: int) -> None:
        self._own_messages = count

    @property
    def bytes_sent(self) -> int:
        """Minimum number of bytes that this worker had to send in these calls."""
        return self.host.bytes_sent + self._own_bytes

    @bytes_sent.setter
    def bytes_sent(self, nbytes: int) -> None:
        self._own_bytes = nbytes

    # ---- by the host's transport ----

    def next_number(self) -> int:
        return self.host.next_number()

    def hosts(self) -> list[str]:
        return self.host.hosts()

    def gather(self, array: Any, name: str = "gather") -> list[Any]:
        return self.host.gather(array, name)

    def exchange(self, arrays: Sequence[Any], name: str = "exchange") -> list[Any]:
        return self.host.exchange(arrays, name)

    def broadcast(self, array: Any, root: int = 0, name: str = "broadcast") -> None:
        self.host.broadcast(array, root, name)

    def barrier(self, name: str = "barrier") -> None:
        self.host.barrier(name)

    def finalize(self) -> None:
        if self._communicator is not None:
            self._communicator.destroy()
            self._communicator = None
        self.host.finalize()

    # ---- sums ----

    def sums_on_device(self, arrays: Sequence[Any]) -> bool:
        """Whether all workers pass arrays on GPUs that NCCL can sum; all must call this, and it connects them if so."""
        can = bool(arrays) and all(_is_on_gpu(array) for array in arrays) and self._is_available
        flags = self.host.gather(np.array([can], np.uint8), "whether gradients are on GPUs")
        if not all(flag[0] for flag in flags):
            return False
        if self._communicator is None:
            self._join()
        return True

    def sum(self, array: Any, name: str = "sum") -> None:
        if _is_on_gpu(array):
            self.start_sum(array, name).wait()
        else:
            self.host.sum(array, name)

    def start_sum(self, array: Any, name: str = "sum") -> Pending:
        if not _is_on_gpu(array):
            return self.host.start_sum(array, name)
        if self._communicator is None:
            raise RuntimeError(f"{name}: the workers have not agreed to sum arrays of GPUs; sums_on_device(arrays) comes first, on all")
        if not array.flags.c_contiguous or array.dtype.name not in TYPES:
            raise TypeError(f"{name}: NCCL sums contiguous arrays of {', '.join(TYPES)}, got {array.dtype} of strides {array.strides}")
        begin, cuda = perf_counter(), self._cuda
        ready, done = (cuda.Event(disable_timing=True) for _ in range(2))
        ready.record(cuda.get_current_stream())
        self._stream.wait_event(ready)
        address = array.__cuda_array_interface__["data"][0]
        kind = getattr(cuda.nccl, TYPES[array.dtype.name])
        self._communicator.allReduce(address, address, array.size, kind, cuda.nccl.NCCL_SUM, self._stream.ptr)
        done.record(self._stream)
        nbytes = 2 * array.nbytes * (self.size - 1) // self.size
        profiling.note_event(name, "exchange", begin, perf_counter(), bytes=nbytes)
        self._own_messages += 1
        self._own_bytes += nbytes
        return _OnStream(cuda, done)

    def _join(self) -> None:
        """Join NCCL's communicator on the current device."""
        nccl = self._cuda.nccl
        number = nccl.get_unique_id() if self.rank == 0 else ()
        packed = np.array(number, np.int64).astype(np.int8).view(np.uint8)
        numbers = self.host.gather(packed, "NCCL's number of the job")
        self._communicator = nccl.NcclCommunicator(self.size, tuple(numbers[0].view(np.int8).tolist()), self.rank)

    @cached_property
    def _cuda(self) -> Any:
        if self._given is None:
            from cupy import cuda

            return cuda
        return self._given

    @cached_property
    def _stream(self) -> Any:
        return self._cuda.Stream(non_blocking=True)

    @cached_property
    def _is_available(self) -> bool:
        if self._cuda.nccl.available:
            return True
        warn_user(f"NCCL is missing, so gradients are summed over the workers on the host, which is slower; {WAY}", RuntimeWarning)
        return False


class _OnStream(Pending):
    """A sum that is in progress on a stream."""

    def __init__(self, cuda: Any, done: Any) -> None:
        self._cuda, self._done = cuda, done

    def wait(self) -> None:
        self._cuda.get_current_stream().wait_event(self._done)


def _is_on_gpu(array: Any) -> bool:
    return hasattr(array, "__cuda_array_interface__")
