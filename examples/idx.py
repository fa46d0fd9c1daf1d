"""Reading IDX files, the format of MNIST: a magic number, the sizes of the axes, then the bytes."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path
from typing import IO, Any

import numpy as np

UNSIGNED_BYTES = 8
LARGEST = 2**31
"""More bytes than this are not read, whatever the header says."""


def read_idx(path: str | Path, rank: int) -> Any:
    """Read an IDX file of unsigned bytes, gzipped or not.

    Args:
        path: the file; one that ends in ``.gz`` is unpacked on the way.
        rank: number of axes expected: 3 for images, 1 for labels.

    Returns:
        An array of uint8.

    Raises:
        ValueError: the file is no such file; the message names it and says what was expected.
    """
    path = Path(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return _read(file, path, rank)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{path}: damaged gzip file ({error}); fetch it again") from None


def _read(file: IO[bytes], path: Path, rank: int) -> Any:
    magic = file.read(4)
    expected = bytes([0, 0, UNSIGNED_BYTES, rank])
    if magic != expected:
        raise ValueError(f"{path}: begins with the bytes {magic.hex(' ')}, an IDX file of {rank} axes begins with {expected.hex(' ')}")
    header = file.read(4 * rank)
    if len(header) < 4 * rank:
        raise ValueError(f"{path}: ends at byte {4 + len(header)}, within the sizes of its {rank} axes")
    shape = struct.unpack(f">{rank}I", header)
    size = math.prod(shape)
    if size > LARGEST:
        raise ValueError(f"{path}: says that it holds {size} bytes of shape {shape}; more than {LARGEST} are not read")
    data = file.read(size + 1)
    if len(data) != size:
        held = f"only {len(data)}" if len(data) < size else "more"
        raise ValueError(f"{path}: its shape {shape} needs {size} bytes of data, the file holds {held}")
    return np.frombuffer(data, np.uint8).reshape(shape)
