"""CRC-32C, the checksum of event files, over megabytes in milliseconds.

A checksum is linear in the data: that of a text is that of its first half, moved on over the length of the second, plus (xor) that
of the second half.  So the checksums of all pieces of one length are made at once, and joined two by two.

Source: RFC 3720, appendix B.4 (polynomial 0x1EDC6F41, bits in reverse).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

POLYNOMIAL = 0x82F63B78
WORD = 4
SHORT = 1024
"""Up to so many bytes, one after the other is quicker."""


def crc32c(data: bytes) -> int:
    """The checksum of *data*."""
    return (_one_by_one if len(data) <= SHORT else _all_at_once)(data) ^ 0xFFFFFFFF


def _one_by_one(data: bytes) -> int:
    table, checksum = _table(), 0xFFFFFFFF
    for byte in data:
        checksum = table[(checksum ^ byte) & 255] ^ checksum >> 8
    return checksum


def _all_at_once(data: bytes) -> int:
    words = np.zeros(1 << ((len(data) - 1) // WORD).bit_length(), "<u4")  # zeros in front leave a checksum of 0 as it is
    text = words.view(np.uint8)[-len(data) :]
    text[:] = np.frombuffer(data, np.uint8)
    text[:WORD] ^= 0xFF  # as beginning with a checksum of ones
    power = WORD.bit_length() - 1
    checksums = _move_on(words, power)
    while len(checksums) > 1:
        checksums = _move_on(checksums[::2], power) ^ checksums[1::2]
        power += 1
    return int(checksums[0])


def _move_on(checksums: Any, power: int) -> Any:
    """What becomes of *checksums* over 2 ** *power* bytes of zeros."""
    tables = _tables(power)
    moved = tables[0][checksums & 255]
    for number in range(1, WORD):
        moved ^= tables[number][checksums >> 8 * number & 255]
    return moved


@cache
def _tables(power: int) -> Any:
    """For each byte of a checksum, and each value of it, what becomes of it over 2 ** *power* bytes of zeros."""
    if power:
        before = _tables(power - 1)
        return np.stack([_move_on(row, power - 1) for row in before])
    values = np.arange(256, dtype=np.uint32)
    return np.stack([np.array(_table(), np.uint32), *(values << 8 * number for number in range(WORD - 1))])


@cache
def _table() -> list[int]:
    table = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return table
