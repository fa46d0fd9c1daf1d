"""Fields of protobuf messages as bytes; a message is its fields, one after the other.

Source: Protocol Buffers, "Encoding", https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class DamagedFile(RuntimeError):
    """Bytes of a file that are not what they should be; the message names the place."""


_OF_ONE_BYTE = [bytes([number]) for number in range(128)]


def varint(number: int) -> bytes:
    """A number of up to 64 bits, seven bits a byte; a negative one as its complement."""
    if 0 <= number < 128:
        return _OF_ONE_BYTE[number]
    number %= 2**64
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)


def integer(field: int, number: int) -> bytes:
    """A field that holds an integer, bool or enum."""
    return varint(field << 3 | VARINT) + varint(number)


def single(field: int, number: float) -> bytes:
    """A field that holds a float32; what is too large for it becomes infinite."""
    with np.errstate(over="ignore"):
        return varint(field << 3 | FIXED32) + np.array(number, "<f4").tobytes()


def double(field: int, number: float) -> bytes:
    """A field that holds a float64."""
    return varint(field << 3 | FIXED64) + struct.pack("<d", number)


def content(field: int, held: bytes | str) -> bytes:
    """A field that holds bytes, a text or a message."""
    held = held.encode() if isinstance(held, str) else held
    return varint(field << 3 | BYTES) + varint(len(held)) + held


def doubles(field: int, numbers: Any) -> bytes:
    """A field that holds an array of float64."""
    return content(field, np.asarray(numbers, "<f8").tobytes())


class Chunks(list[Any]):
    """Pieces of a message, so that arrays are not copied; ``size`` counts their bytes."""

    size = 0

    def add(self, piece: Any) -> None:
        self.append(piece)
        self.size += len(piece)

    def add_message(self, field: int, message: Chunks) -> None:
        self.add(varint(field << 3 | BYTES) + varint(message.size))
        self.extend(message)
        self.size += message.size

    def add_number(self, field: int, number: int) -> None:
        if number:  # readers take a missing number as zero
            self.add(varint(field << 3 | VARINT) + varint(number))

    def add_bytes(self, field: int, piece: Any) -> None:
        self.add(varint(field << 3 | BYTES) + varint(len(piece)))
        self.add(piece)


class Piece:
    """A stretch of a file's bytes, which knows where it lies for what errors say."""

    def __init__(self, data: Any, begin: int, end: int, apart: Piece | None = None) -> None:
        self.data, self.at, self.end = data, begin, end
        self.apart = apart
        """Where the values of arrays are; in the arrays themselves where None."""

    def damaged(self, expected: str, at: int | None = None) -> DamagedFile:
        """The error for bytes that are not what is expected."""
        return DamagedFile(f"byte {self.at if at is None else at}: expected {expected}")

    def varint(self) -> int:
        """The next number."""
        number, begin = 0, self.at
        for shift in range(0, 70, 7):
            if self.at >= self.end:
                raise self.damaged("a number, found the end of the message", begin)
            byte = self.data[self.at]
            self.at += 1
            number |= (byte & 127) << shift
            if byte < 128:
                return number % 2**64
        raise self.damaged("a number of at most 64 bits", begin)

    def take(self, size: int, what: str) -> Piece:
        """The next *size* bytes."""
        if size > self.end - self.at:
            raise self.damaged(f"{size} bytes of {what}, found {self.end - self.at}")
        taken = Piece(self.data, self.at, self.at + size, self.apart)
        self.at += size
        return taken

    @property
    def bytes(self) -> Any:
        """All of it."""
        return self.data[self.at : self.end]

    def text(self) -> str:
        """All of it, as a string."""
        try:
            return bytes(self.bytes).decode()
        except UnicodeDecodeError as error:
            raise self.damaged(f"text in UTF-8 ({error.reason})") from None

    def fields(self) -> Iterator[tuple[int, Any]]:
        """Numbers and values of the message's fields; a value is a number or a :class:`Piece`."""
        while self.at < self.end:
            begin = self.at
            field, wire = divmod(self.varint(), 8)
            if wire == VARINT:
                yield field, self.varint()
            elif wire == BYTES:
                yield field, self.take(self.varint(), f"field {field}")
            elif wire in (FIXED32, FIXED64):
                yield field, self.take(4 if wire == FIXED32 else 8, f"field {field}")
            else:
                raise self.damaged(f"a field of a protobuf message, found one of wire type {wire}", begin)

    def message(self, what: str, **names: int) -> dict[str, Any]:
        """The last value of each field by its name; fields without a name here are an error."""
        begin, by_number = self.at, {number: name for name, number in names.items()}
        found: dict[str, Any] = {}
        for number, value in self.fields():
            if number not in by_number:
                raise self.damaged(f"{what} with the fields {', '.join(names)}, found field {number}", begin)
            found[by_number[number]] = value
        return found

    def inside(self, value: Any, what: str) -> Piece:
        """*value*, where it is a piece."""
        if not isinstance(value, Piece):
            raise self.damaged(what)
        return value

    def number(self, value: Any, what: str) -> int:
        """*value*, where it is a number."""
        if not isinstance(value, int):
            raise self.damaged(what)
        return value
