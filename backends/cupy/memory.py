"""Asynchronous transfers between host and device through pinned memory.

A call of CUDA takes the host longer than the transfer of a minibatch takes the device.  Events are therefore recorded only where nothing
else tells how far the device has come: a program that waits for its loss knows that all data sent before have arrived.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import cupy
import numpy as np

SMALLEST = 1 << 12
"""Minimum size of a block in bytes."""

AT_ONCE = 1 << 28
"""Maximum size of all blocks together in bytes; before it is exceeded, the host waits for all transfers and drops their blocks."""


TO_DEVICE, TO_HOST = 1, 2
"""Directions of a copy: cudaMemcpyKind."""


class Block:
    """A block of pinned host memory.

    Attributes:
        nbytes, address: its size, and where it begins.
        number: the number of the last transfer from it.
    """

    __slots__ = ("_array", "_bytes", "_shown", "address", "nbytes", "number")

    def __init__(self, nbytes: int) -> None:
        self._bytes = np.frombuffer(cupy.cuda.alloc_pinned_memory(nbytes), np.uint8, nbytes)
        self.nbytes, self.address, self.number = nbytes, self._bytes.ctypes.data, 0
        self._shown: Any = None
        self._array: Any = None

    def line(self, count: int, dtype: Any) -> Any:
        """The first elements of a type."""
        return self._bytes[: count * dtype.itemsize].view(dtype)

    def array(self, like: Any) -> Any:
        """The beginning of the block as an array of the shape and element type of another, the last time's where it is the same."""
        shown = like.shape, like.dtype
        if self._shown != shown:
            self._shown, self._array = shown, self._bytes[: like.nbytes].view(like.dtype).reshape(like.shape)
        return self._array


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
            nbytes = array.nbytes
            block = self._take(nbytes, stream)
            block.array(array)[...] = data
            cupy.cuda.runtime.memcpyAsync(array.data.ptr, block.address, nbytes, TO_DEVICE, stream.ptr)
            self.sent += 1
            block.number = self.sent
            self._busy.append(block)

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
        return Block(size)

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
        self._idle: list[tuple[Block, Any]] = []

    def begin(self, numbers: Sequence[Any], stream: Any) -> Callable[[], list[float]]:
        """Start copying numbers from the device to the host, and return a function that waits for them and returns them.

        Args:
            numbers: 0-d device arrays of one element type; those that are side by side in memory, in this order, are copied at once.
            stream: the stream that computes them.
        """
        block, event = self._idle.pop() if self._idle else (Block(SMALLEST), cupy.cuda.Event(disable_timing=True))
        size, addresses = numbers[0].itemsize, [number.data.ptr for number in numbers]
        runs = [len(numbers)] if addresses == [addresses[0] + at * size for at in range(len(numbers))] else [1] * len(numbers)
        at = 0
        for run in runs:
            cupy.cuda.runtime.memcpyAsync(block.address + at * size, addresses[at], run * size, TO_HOST, stream.ptr)
            at += run
        event.record(stream)
        host, sent, found = block.line(len(numbers), numbers[0].dtype), self._staging.sent, list[float]()

        def wait() -> list[float]:
            if not found:
                event.synchronize()
                found.extend(host.tolist())
                self._staging.arrived(sent)
                self._idle.append((block, event))
            return found

        return wait
