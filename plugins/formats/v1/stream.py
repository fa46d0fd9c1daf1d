"""The elements of files, read with checks of bounds: numbers, texts, markers, shapes and matrices."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...protobuf import DamagedFile
from ..wire import NDShape

MOST_AXES = 12
"""Axes that a shape of CNTK's engine has at most."""
_DENSE, _UNNAMED = b"d", "unnamed"
_SIZES: dict[int, np.dtype[Any]] = {4: np.dtype("<f4"), 8: np.dtype("<f8")}


class Source:
    """The bytes of a file, read from front to back.

    Attributes:
        name: the file's name in errors.
        at: offset of what is read next.
        version: number of the format's version.
    """

    def __init__(self, data: Any, name: str) -> None:
        self.data, self.name, self.at, self.version = bytes(data), name, 0, 0

    def damaged(self, what: str, at: int | None = None) -> DamagedFile:
        """The error that says what is wrong, and where."""
        return DamagedFile(f"{self.name}, byte {self.at if at is None else at}: {what}")

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return len(self.data) - self.at

    def take(self, size: int, what: str) -> memoryview:
        """The next *size* bytes."""
        if size > self.left:
            raise self.damaged(f"expected {size} bytes for {what}, but {self.left} are left")
        self.at += size
        return memoryview(self.data)[self.at - size : self.at]

    def number(self, code: str, what: str) -> Any:
        """A number, by the letter that ``struct`` has for its kind."""
        return struct.unpack(f"<{code}", self.take(struct.calcsize(f"<{code}"), what))[0]

    def count(self, code: str, what: str, size: int) -> int:
        """How many things of at least *size* bytes follow."""
        begin, found = self.at, self.number(code, what)
        if not 0 <= found <= self.left // size:
            raise self.damaged(f"expected {what} that fits into the {self.left} bytes left, found {found}", begin)
        return int(found)

    def flag(self, what: str) -> bool:
        """A byte that is 0 or 1."""
        begin, found = self.at, self.number("B", what)
        if found > 1:
            raise self.damaged(f"expected 0 or 1 for {what}, found {found}", begin)
        return bool(found)

    def text(self, what: str) -> str:
        """Characters of 16 bits, and a zero."""
        begin = self.at
        end = self.data.find(b"\0\0", begin)
        while end >= 0 and (end - begin) % 2:
            end = self.data.find(b"\0\0", end + 1)
        if end < 0:
            raise self.damaged(f"expected {what}, a text that a zero ends")
        self.at = end + 2
        try:
            return self.data[begin:end].decode("utf-16-le")
        except UnicodeDecodeError as error:
            raise self.damaged(f"expected {what} in UTF-16: {error.reason}", begin) from None

    def marker(self, name: str) -> None:
        """The text at the begin or end of a section."""
        if not self.skips(name):
            raise self.damaged(f"expected the marker {name}, found {self.data[self.at : self.at + 2 * len(name) + 2]!r}")

    def skips(self, name: str) -> bool:
        """Whether this marker follows, which then counts as read."""
        wanted = text(name)
        found = self.data.startswith(wanted, self.at)
        self.at += len(wanted) * found
        return found

    def axis(self, what: str, least: int = 1) -> int:
        """The number of an axis, from 1 on, or of a place behind the last one; smaller ones have meanings of their own."""
        begin, found = self.at, self.number("i", what)
        if not least <= found <= MOST_AXES + 1:
            raise self.damaged(f"expected {what} from {least} to {MOST_AXES + 1}, found {found}", begin)
        return int(found)

    def shape(self, what: str) -> NDShape:
        """Dimensions in our order; the engine's first one is our last."""
        begin, rank = self.at, self.count("I", f"the rank of {what}", 4)
        if rank > MOST_AXES:
            raise self.damaged(f"expected at most {MOST_AXES} dimensions of {what}, found {rank}", begin)
        return NDShape(reversed([self.number("I", what) for _ in range(rank)]))

    def matrix(self, what: str) -> np.ndarray:
        """The values of a matrix, column by column."""
        begin = self.at
        if self.take(1, what) != _DENSE:
            raise self.damaged(f"expected a dense matrix for {what}", begin)
        self.marker("BMAT")
        begin, size = self.at, self.number("Q", "the size of a value")
        if size not in _SIZES:
            raise self.damaged(f"expected values of 4 or 8 bytes, found {size}", begin)
        self.text("the name of a matrix")
        self.number("i", "flags of a matrix")
        count = self.number("Q", "the number of rows") * self.number("Q", "the number of columns")
        values = np.frombuffer(self.take(count * size, what), _SIZES[size])
        self.marker("EMAT")
        return values


# ---- writing -------------------------------------------------------------------------------------


def text(value: str) -> bytes:
    """A text, and the zero that ends it.

    Raises:
        ValueError: it contains the character 0.
    """
    if "\0" in value:
        raise ValueError(f"a name in this format cannot contain the character 0, got {value!r:.80}")
    return value.encode("utf-16-le") + b"\0\0"


def number(code: str, value: Any) -> bytes:
    """A number, by the letter that ``struct`` has for its kind."""
    return struct.pack(f"<{code}", value)


def shape(value: tuple[int, ...]) -> bytes:
    """Dimensions, given in our order."""
    return number("I", len(value)) + b"".join(number("I", dim) for dim in reversed(value))


def matrix(values: np.ndarray) -> Iterator[Any]:
    """A matrix in pieces: the last axis along a column."""
    rows = values.shape[-1] if values.ndim else 1
    columns = math.prod(values.shape[:-1])
    yield _DENSE + text("BMAT") + number("Q", values.itemsize) + text(_UNNAMED) + number("i", 0) + number("Q", rows) + number("Q", columns)
    yield np.ascontiguousarray(values).reshape(-1).data
    yield text("EMAT")
