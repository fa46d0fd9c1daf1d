"""The bytes of a file that are read when they are looked at."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

BLOCK = 1 << 16
"""Bytes that are read at once for those who look at few."""


class FileBytes:
    """The bytes of an open file, for readers that look at its headers byte by byte and take its arrays as a whole.

    What is longer than a block is read into memory of its own, which is free again as soon as nothing refers to it.  The file is not mapped
    into memory: a program dies that looks at a mapped file where another has made it shorter.

    Args:
        file: the file, opened for reading without a buffer.

    Raises:
        EOFError: when bytes are looked at that the file has no more.
    """

    def __init__(self, file: Any) -> None:
        self._file, self._size = file, os.fstat(file.fileno()).st_size
        self._block, self._begin = memoryview(b""), 0

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, place: Any) -> Any:
        if not isinstance(place, slice):
            at = place - self._begin
            if not 0 <= at < len(self._block):
                self._look(place)
                at = 0
            return self._block[at]
        begin, end, _ = place.indices(self._size)
        if end - begin > BLOCK:
            return self._read(begin, end - begin)
        if not self._begin <= begin <= end <= self._begin + len(self._block):
            self._look(begin)
        return self._block[begin - self._begin : end - self._begin]

    def _look(self, begin: int) -> None:
        """Have the block that begins there."""
        if not 0 <= begin <= self._size:
            raise IndexError(f"byte {begin} of {self._size}")
        self._block, self._begin = self._read(begin, min(BLOCK, self._size - begin)), begin

    def _read(self, begin: int, count: int) -> memoryview:
        made = memoryview(np.empty(count, np.uint8).data)
        self._file.seek(begin)
        read = 0
        while read < count:
            more = self._file.readinto(made[read:])
            if not more:
                raise EOFError(f"expected {count} bytes from byte {begin} on, found {read}; the file became shorter while it was read")
            read += more
        return made
