"""Files of features in HTK's format: a header of 12 bytes, then frames of numbers.

Source: S. Young et al., The HTK Book (for HTK version 3.4), section 5.10.1.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO, NamedTuple

import numpy as np

HEADER = 12
KINDS = {3: "LPREFC", 4: "LPCEPSTRA", 6: "MFCC", 7: "FBANK", 8: "MELSPEC", 9: "USER", 11: "PLP"}
"""Kinds of frames of real numbers that are read, by the six lowest bits of the header's last field."""

COMPRESSED = 0o2000
"""Bit that says that frames are whole numbers of 16 bits, behind a scale and an offset of each element."""


class Header(NamedTuple):
    """What a file begins with.

    Attributes:
        order: ``>`` or ``<``, the order of its bytes.
        frames: how many frames it has.
        dim: elements of a frame.
        is_compressed: whether its frames are whole numbers of 16 bits.
    """

    order: str
    frames: int
    dim: int
    is_compressed: bool

    @property
    def start(self) -> int:
        """The byte with which frames begin."""
        return HEADER + (8 * self.dim if self.is_compressed else 0)

    @property
    def size(self) -> int:
        """Bytes of a frame."""
        return self.dim * (2 if self.is_compressed else 4)


def read_header(file: BinaryIO) -> Header:
    """The header of a file, at its beginning.

    Raises:
        ValueError: it is no file of features.
    """
    data = file.read(HEADER)
    if len(data) < HEADER:
        raise ValueError(f"it has {len(data)} bytes; expected a header of {HEADER} and frames")
    found = []
    for order in "><":  # HTK writes the highest byte first; some programs do not
        frames, _, size, kind = struct.unpack(f"{order}iiHH", data)
        is_compressed = bool(kind & COMPRESSED)
        width = 2 if is_compressed else 4
        if kind & 0o77 in KINDS and size and size % width == 0:
            return Header(order, frames - 4 if is_compressed else frames, size // width, is_compressed)
        found.append(f"{size} bytes a frame of kind {kind & 0o77}")
    known = ", ".join(f"{name} ({number})" for number, name in KINDS.items())
    raise ValueError(f"its header says {found[0]}; expected 4 bytes an element of kind {known}")


def read_frames(file: BinaryIO, header: Header, first: int, last: int) -> Any:
    """Frames *first* to *last*, as float32.

    Args:
        file: the file.
        header: its header.
        first: the first frame, from 0.
        last: the last one, which is included.

    Raises:
        ValueError: there are not so many.
    """
    if last >= header.frames > 0:
        raise ValueError(f"frames {first} to {last} are wanted, it has {header.frames}")
    begin, end = header.start + first * header.size, header.start + (last + 1) * header.size
    size = os.fstat(file.fileno()).st_size
    if end > size:
        raise ValueError(f"it ends at byte {size}, within frames {first} to {last}, which end at byte {end}")
    file.seek(begin)
    data = file.read(end - begin)
    if len(data) < end - begin:
        raise ValueError(f"it has become shorter while it was read, and ends at byte {begin + len(data)}")
    if not header.is_compressed:
        return np.frombuffer(data, f"{header.order}f4").astype(np.float32).reshape(-1, header.dim)
    file.seek(HEADER)
    scale, offset = np.frombuffer(file.read(8 * header.dim), f"{header.order}f4").astype(np.float32).reshape(2, -1)
    return (np.frombuffer(data, f"{header.order}i2").reshape(-1, header.dim) + offset) / scale
