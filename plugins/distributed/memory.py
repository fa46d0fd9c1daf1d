"""Workers on one machine read one another's memory, without a copy on the way, by Linux's ``process_vm_readv``."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import Any

import numpy as np

from .group import Group

READ_BYTES = 2**16
"""Arrays of at least so many bytes are read by the other worker; what is smaller is sent sooner than read."""

PIECE_BYTES = 2**18
"""Terms are read and added in pieces of this size, which stay in a processor's cache."""

_SET_TRACER = 0x59616D61
"""Linux's number for the call by which a process names those that may read its memory."""


class _Piece(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Memory:
    """Reads the memory of other workers.

    Args:
        group: connects the workers; all of them make one together.

    Attributes:
        is_shared: whether all workers can read one another's: they run on one machine, which allows it.
    """

    def __init__(self, group: Group) -> None:
        self._read = _system_call()
        self._mark = np.frombuffer(os.urandom(16), np.uint8).copy()  # what others must find; it also tells apart processes of one number
        own = np.array([os.getpid(), self._mark.ctypes.data, *self._mark.view(np.int64)], np.int64)
        places = np.empty((group.size, own.size), np.int64)
        group.gather_equal(own, places)
        self._processes = places[:, 0].tolist()
        found = np.array([all(self._finds(worker, place) for worker, place in enumerate(places))], np.uint8)
        everyones = np.empty((group.size, 1), np.uint8)
        group.gather_equal(found, everyones)
        self.is_shared = bool(everyones.all())

    def read(self, worker: int, address: int, found: Any) -> None:
        """Read what lies at an address of a worker's memory into an array.

        Raises:
            OSError: the worker has ended.
        """
        done = 0
        while done < found.nbytes:
            here, there = (_Piece(start + done, found.nbytes - done) for start in (found.ctypes.data, address))
            count = self._read(self._processes[worker], ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if count <= 0:
                raise OSError(ctypes.get_errno(), f"the memory of worker {worker} cannot be read: {os.strerror(ctypes.get_errno())}")
            done += count

    def read_and_add(self, worker: int, address: int, total: Any) -> None:
        """Add to an array what lies at an address of a worker's memory.

        Raises:
            OSError: the worker has ended.
        """
        step = PIECE_BYTES // total.itemsize
        room = np.empty(min(step, total.size), total.dtype)
        for start in range(0, total.size, step):
            part = total[start : start + step]
            term = room[: part.size]
            self.read(worker, address + start * total.itemsize, term)
            np.add(term, part, out=part)

    def _finds(self, worker: int, place: Any) -> bool:
        """Whether this worker's memory can be read, and is that of the worker."""
        found = np.zeros(16, np.uint8)
        try:
            if self._read is not None:
                self.read(worker, int(place[1]), found)
        except OSError:  # it runs elsewhere, or the system does not allow it
            return False
        return found.tobytes() == place[2:].tobytes()


def _system_call() -> Any:
    """The system's function, once the process has allowed its siblings to read its memory; None where there is no such function."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    read = getattr(library, "process_vm_readv", None)
    if read is not None:
        read.restype = ctypes.c_ssize_t
        pieces = [ctypes.POINTER(_Piece), ctypes.c_ulong]
        read.argtypes = [ctypes.c_int, *pieces, *pieces, ctypes.c_ulong]
        library.prctl(_SET_TRACER, ctypes.c_ulong(os.getppid()), 0, 0, 0)  # an error says that the system asks for no permission
    return read
