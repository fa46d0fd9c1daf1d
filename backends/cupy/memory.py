"""The way of data between host and device: through memory that the device reads and writes by itself, while the host goes on."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Lock
from typing import Any, NamedTuple

import cupy
import numpy as np

SMALLEST = 1 << 12
"""Bytes of the smallest block."""

AT_ONCE = 1 << 28
"""Bytes that may be on their way before the host waits for those that left first."""


class Block(NamedTuple):
    """Pinned memory of the host.

    Attributes:
        memory, nbytes: the memory, and its size.
        sent: when what was in it last had arrived.
    """

    memory: Any
    nbytes: int
    sent: Any


class Staging:
    """Pinned blocks that data go through, each of which is used again as soon as its data have arrived.

    Attributes:
        is_recording: whether work is being recorded, which data of the host cannot be part of.
    """

    def __init__(self) -> None:
        self._blocks: deque[Block] = deque()  # in the order in which they were sent
        self._nbytes = 0
        self._lock = Lock()
        self.is_recording = False

    def send(self, array: Any, data: Any, stream: Any) -> None:
        """Have data copied into a contiguous array by a stream; they may change as soon as this returns.

        Args:
            array: where to.
            data: what the host has, which is broadcast to the array's shape and converted to its element type.
            stream: the stream.
        """
        if not array.size:
            return
        if self.is_recording:
            raise RuntimeError("data of the host cannot be part of recorded work: they may be others when it is repeated")
        block = self._take(array.nbytes)
        staged = np.frombuffer(block.memory, array.dtype, array.size).reshape(array.shape)
        staged[...] = data
        array.set(staged, stream)
        block.sent.record(stream)
        with self._lock:
            self._blocks.append(block)

    def _take(self, nbytes: int) -> Block:
        """A block of at least so many bytes that nothing is on its way in."""
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
    """Begin to copy a number from the device to the host; the function that is returned waits for it and gives it.

    Args:
        number: an array without axes.
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
