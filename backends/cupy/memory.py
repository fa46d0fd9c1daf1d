"""Asynchronous transfers between host and device through pinned memory.

A call of CUDA takes the host longer than the transfer of a minibatch takes the device.  Events are therefore recorded only where nothing
else tells how far the device has come: a program that waits for its loss knows that all data sent before have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, NamedTuple

import cupy
import numpy as np

SMALLEST = 1 << 12
"""Minimum size of a block in bytes."""

AT_ONCE = 1 << 28
"""Maximum size of all blocks together in bytes; before it is exceeded, the host waits for all transfers and drops their blocks."""


class Block(NamedTuple):
    """A block of pinned host memory, and the number of the last transfer from it."""

    memory: Any
    nbytes: int
    number: int


class Staging:
    """Pinned staging buffers, each reused once its transfer has completed.

    Attributes:
        is_recording: whether work is being captured, which cannot include host data.
        sent: how many transfers have been enqueued.
    """

    def __init__(self) -> None:
        self._free: dict[int, list[Block]] = {}
        self._busy: deque[Block] = deque()  # oldest transfer first
        self._mark: tuple[int, Any] | None = None
        self._nbytes = 0
        self._lock = Lock()
        self.is_recording = False
        self.sent = 0

    def send(self, array: Any, data: Any, stream: Any) -> None:
        """Copy host data to a contiguous device array asynchronously; *data* may be modified as soon as this returns.

        Args:
            array: the device array.
            data: host data, which are broadcast to the array's shape and converted to its element type.
            stream: the stream on which the copy is enqueued.

        Raises:
            RuntimeError: work is being captured.
        """
        if not array.size:
            return
        if self.is_recording:
            raise RuntimeError("host data cannot be part of recorded work, which may be repeated with other data")
        with self._lock:
            block = self._take(array.nbytes, stream)
            staged = np.frombuffer(block.memory, array.dtype, array.size).reshape(array.shape)
            staged[...] = data
            array.set(staged, stream)
            self.sent += 1
            self._busy.append(block._replace(number=self.sent))

    def arrived(self, number: int) -> None:
        """Note that all transfers up to this one are known to have completed."""
        with self._lock:
            self._release(number)

    def _release(self, number: int) -> None:
        while self._busy and self._busy[0].number <= number:
            block = self._busy.popleft()
            self._free.setdefault(block.nbytes, []).append(block)

    def _take(self, nbytes: int, stream: Any) -> Block:
        """Return a block of at least *nbytes* bytes with no transfer in progress."""
        size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
        if not self._free.get(size) and self._busy:
            self._look(stream)
        if self._free.get(size):
            return self._free[size].pop()
        if self._nbytes + size > AT_ONCE:
            stream.synchronize()
            self._busy.clear()
            self._free.clear()
            self._mark, self._nbytes = None, 0
        self._nbytes += size
        return Block(cupy.cuda.alloc_pinned_memory(size), size, 0)

    def _look(self, stream: Any) -> None:
        """See how far the device has come: whether it has reached the last mark, in which case another one is made."""
        if self._mark is not None:
            number, event = self._mark
            if not event.done:
                return
            self._release(number)
            self._mark = None
        if self._busy:
            event = cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            self._mark = self.sent, event


class Fetching:
    """Fetches numbers: a copy to pinned memory for all of them, and an event behind it.

    Args:
        staging: told of the transfers that have completed when numbers have arrived.
    """

    def __init__(self, staging: Staging) -> None:
        self._staging = staging
        self._idle: dict[int, list[tuple[Any, Any]]] = {}

    def begin(self, numbers: Sequence[Any], stream: Any) -> Callable[[], list[float]]:
        """Start copying numbers from the device to the host, and return a function that waits for them and returns them.

        Args:
            numbers: 0-d device arrays of one element type; those that are side by side in memory, in this order, are copied at once.
            stream: the stream that computes them.
        """
        first, count = numbers[0], len(numbers)
        idle = self._idle.setdefault(count, [])
        memory, event = idle.pop() if idle else (cupy.cuda.alloc_pinned_memory(8 * count), cupy.cuda.Event(disable_timing=True))
        host = np.frombuffer(memory, first.dtype, count)
        if _are_side_by_side(numbers):
            cupy.ndarray((count,), first.dtype, first.data).get(stream, out=host, blocking=False)
        else:
            for at, number in enumerate(numbers):
                number.get(stream, out=host[at : at + 1].reshape(()), blocking=False)
        event.record(stream)
        sent, found = self._staging.sent, list[float]()

        def wait() -> list[float]:
            if not found:
                event.synchronize()
                found.extend(host.tolist())
                self._staging.arrived(sent)
                idle.append((memory, event))
            return found

        return wait


def _are_side_by_side(numbers: Sequence[Any]) -> bool:
    first = numbers[0]
    return all(number.dtype == first.dtype and number.data.ptr == first.data.ptr + at * first.itemsize for at, number in enumerate(numbers))
