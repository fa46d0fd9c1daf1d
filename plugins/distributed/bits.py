"""Numbers of a few bits each, packed without gaps."""

from __future__ import annotations

from typing import Any

GROUP = 8
"""So many numbers of n bits take n bytes."""


def column_size(width: int, bits: int) -> int:
    """Bytes that a row of *width* numbers takes."""
    return -(-width // GROUP) * bits


def pack(xp: Any, codes: Any, bits: int) -> Any:
    """Pack a matrix of numbers below 2**bits, row by row: eight numbers take *bits* bytes, the last ones are padded with zeros.

    Args:
        codes: of type uint32; for one bit bool.
    """
    columns, width = codes.shape
    groups = -(-width // GROUP)
    padded = codes
    if width % GROUP:
        padded = xp.zeros((columns, groups * GROUP), codes.dtype)
        padded[:, :width] = codes
    if bits == 1:
        return xp.packbits(padded.reshape(-1), bitorder="little").reshape(columns, groups)
    numbers = padded.reshape(columns, groups, GROUP)
    packed = xp.zeros((columns, groups, bits), xp.uint8)
    for number in range(GROUP):
        value = numbers[:, :, number]
        for byte, shift in _places(number, bits):
            packed[:, :, byte] |= ((value << shift if shift >= 0 else value >> -shift) & 0xFF).astype(xp.uint8)
    return packed.reshape(columns, groups * bits)


def unpack(xp: Any, packed: Any, width: int, bits: int) -> Any:
    """The matrix of rows of *width* numbers that :func:`pack` was given."""
    columns, groups = len(packed), -(-width // GROUP)
    if bits == 1:
        flags = xp.unpackbits(xp.ascontiguousarray(packed).reshape(-1), bitorder="little")
        return flags.reshape(columns, groups * GROUP)[:, :width].view(bool)
    held = packed.reshape(columns, groups, bits)
    codes = xp.zeros((columns, groups, GROUP), xp.uint32)
    for number in range(GROUP):
        value = codes[:, :, number]
        for byte, shift in _places(number, bits):
            part = held[:, :, byte].astype(xp.uint32)
            value |= part >> shift if shift >= 0 else part << -shift
    codes &= xp.uint32(2**bits - 1)
    return codes.reshape(columns, groups * GROUP)[:, :width]


def _places(number: int, bits: int) -> list[tuple[int, int]]:
    """The bytes that a number of a group reaches into, and how far to the left it is shifted there."""
    first, last = number * bits, number * bits + bits - 1
    return [(byte, first - 8 * byte) for byte in range(first // 8, last // 8 + 1)]
