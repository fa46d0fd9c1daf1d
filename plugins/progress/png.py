"""Pictures as PNG files.

Source: W3C, "Portable Network Graphics (PNG) Specification", https://www.w3.org/TR/png.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

COLOUR_TYPES = {1: 0, 3: 2, 4: 6}
"""By the number of channels: grey, red-green-blue, and these with opacity."""


def png(picture: Any) -> bytes:
    """A picture as the bytes of a PNG file.

    Args:
        picture: array of uint8 of shape (height, width, channels), where channels are 1, 3 or 4.
    """
    height, width, channels = picture.shape
    header = struct.pack(">IIBBBBB", width, height, 8, COLOUR_TYPES[channels], 0, 0, 0)
    rows = np.zeros((height, 1 + width * channels), np.uint8)  # each row begins with its filter, 0 for none
    rows[:, 1:] = picture.reshape(height, -1)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows.tobytes())) + _chunk(b"IEND", b"")


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
