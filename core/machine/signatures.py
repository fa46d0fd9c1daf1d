"""The arguments that a loop is compiled for in advance, a letter for each kind.

``R2`` is an array with two axes of the loop's real numbers, which are float32 or float64; ``D`` is an array of float64, ``I`` and ``N``
of whole numbers of 64 and 32 bits, ``U`` and ``V`` of unsigned ones, ``B`` of bytes, ``T`` of truth values, ``W`` of unsigned whole
numbers of as many bits as the real ones have.  ``r`` is one of the loop's real numbers, ``d`` a
float64, ``q`` a whole number, ``?`` a truth value, ``(3)`` a tuple of three whole numbers.
"""

from __future__ import annotations

from typing import Any

ARRAYS = {"D": "<f8", "I": "<i8", "N": "<i4", "U": "<u8", "V": "<u4", "B": "|u1", "T": "|b1"}


def kinds_of(arguments: str, is_double: bool) -> list[str]:
    """The kinds that the letters stand for.

    >>> from cntk.core.machine.signatures import kinds_of
    >>> kinds_of("R2 N1 r ?", False)
    ['<f4:2:C', '<i4:1:C', 'f', '?']
    """
    real, bits, number = ("<f8", "<u8", "d") if is_double else ("<f4", "<u4", "f")
    arrays: dict[str, Any] = {"R": real, "W": bits, **ARRAYS}
    return [f"{arrays[a[0]]}:{a[1]}:C" if a[0] in arrays else number if a == "r" else a for a in arguments.split()]
