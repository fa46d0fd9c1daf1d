"""Asynchronous transfers between host and device through pinned memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import cupy
import numpy as np

SMALLEST = 1 << 12
"""Minimum size of a block in bytes."""

AT_ONCE = 1 << 28
"""Maximum size of all blocks together in bytes; before it is exceeded, the host waits for the oldest transfers and drops their blocks."""


class Block(NamedTuple):
    """A block of pinned host memory.

    Attributes:
        memory, nbytes: the memory and its size.
        sent: event recorded after the last transfer from the block.
    """

    memory: Any
    nbytes: int
    sent: Any


class Staging:
    """Pinned staging buffers, each reused once its transfer has completed.

    Attributes:
        is_recording: whether work is being captured, which cannot include host data.
    """

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque()  # oldest transfer first
        self._nbytes = 0
        self._lock = Lock()
        self.is_recording = False

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
        block = self._take(array.nbytes)
        staged = np.frombuffer(block.memory, array.dtype, array.size).reshape(array.shape)
        staged[...] = data
        array.set(staged, stream)
        block.sent.record(stream)
        with self._lock:
            self._blocks.append(block)

    def _take(self, nbytes: int) -> Block:
        """Return a block of at least *nbytes* bytes with no transfer in progress."""
        with self._lock:
            for index, block in enumerate(self._blocks):
                if block.nbytes >= nbytes and block.sent.done:
                    del self._blocks[index]
                    return block
            while self._blocks and self._nbytes + nbytes > AT_ONCE:
                oldest = self._blocks.popleft()
                oldest.sent.synchronize()
                self._nbytes -= oldest.nbytes
            size = max(SMALLEST, 1 << (nbytes - 1).bit_length())
            self._nbytes += size
        return Block(cupy.cuda.alloc_pinned_memory(size), size, cupy.cuda.Event(disable_timing=True))


def fetch(number: Any, stream: Any) -> Callable[[], float]:
    """Start copying a number from the device to the host, and return a function that waits for it and returns it.

    Args:
        number: a 0-d device array.
        stream: the stream that computes it.
    """
    memory = cupy.cuda.alloc_pinned_memory(number.nbytes)
    host = np.frombuffer(memory, number.dtype, 1).reshape(())
    number.get(stream, out=host, blocking=False)
    arrived = cupy.cuda.Event(disable_timing=True)
    arrived.record(stream)

    def wait() -> float:
        arrived.synchronize()
        return float(host)

    return wait
