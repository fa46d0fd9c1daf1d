"""Fields of protobuf messages as bytes; a message is its fields, one after the other.

Source: Protocol Buffers, "Encoding", https://protobuf.dev/programming-guides/encoding.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


def varint(number: int) -> bytes:
    """A number of up to 64 bits, seven bits a byte; a negative one as its complement."""
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
