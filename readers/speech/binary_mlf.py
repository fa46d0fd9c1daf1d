"""The deserializer of master label files in CNTK's binary form."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from .labels import LabelDeserializer
from .utterances import OpenFile, Utterance

MAGIC = b"MLF"
NUMBERED, NAMED = 1, 2
"""Versions: utterances have numbers, or names."""

SEGMENT = 4
"""Bytes of a segment: class and number of frames."""


class HTKMLFBinaryDeserializer(LabelDeserializer):
    """Reads the labels of frames from CNTK's binary master label files.

    A file begins with ``MLF`` and a version of 16 bits.  An utterance is its number, of 32 bits (version 1), or the length of its name in
    16 bits and the name (version 2); then the number of its frames in 32 bits, that of its segments in 16, and each segment: class and
    number of frames, 16 bits each.  The lowest byte comes first.

    Args:
        streams: by the stream's name its ``StreamDef`` with the ``mlf`` file, or a list of them, and the number of classes as ``shape``.

    Raises:
        ValueError: not one stream, or one without files or shape.  Errors in the files are raised when a ``MinibatchSource`` is made,
            or reads.

    >>> C.io.HTKMLFBinaryDeserializer(C.io.StreamDefs(labels=C.io.StreamDef(shape=132, mlf="train.bin"))).stream_infos()
    [labels([132])]
    """

    def __init__(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(streams)

    def _find(self) -> list[Utterance]:
        return [utterance for path in self._paths for utterance in read_utterances(path)]

    def _frames(self, utterance: Utterance, files: OpenFile) -> Any:
        where = f"{utterance.path}, byte {utterance.line}: utterance '{utterance.name}'"
        try:
            file = files.at(utterance.path, utterance.start)
            (count,) = struct.unpack("<H", _read(file, 2))
            classes, counts = np.frombuffer(_read(file, count * SEGMENT), "<u2").astype(np.int64).reshape(-1, 2).T
        except OSError as error:
            raise ValueError(f"cannot read the master label file '{utterance.path}': {error.strerror or error}") from None
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None
        if (classes >= self._dim).any():
            raise ValueError(f"{where}: it has the class {classes.max()}; expected less than {self._dim}, the stream's shape")
        if counts.sum() != utterance.frames:
            raise ValueError(f"{where}: it is said to have {utterance.frames} frames, its segments have {counts.sum()}")
        return self._labelled(classes, counts)


def read_utterances(path: str) -> Iterator[Utterance]:
    """The utterances of a file.

    Raises:
        RuntimeError: the file cannot be read, or is of another format.
    """
    try:
        with open(path, "rb") as file:
            try:
                version = _version(file)
                while file.peek(1):
                    yield _utterance(path, file, version)
            except ValueError as error:
                raise RuntimeError(f"{path}, byte {file.tell()}: {error}") from None
    except OSError as error:
        raise RuntimeError(f"cannot read the master label file '{path}': {error.strerror or error}") from None


def _version(file: BinaryIO) -> int:
    start = _read(file, len(MAGIC) + 2)
    version = int.from_bytes(start[len(MAGIC) :], "little")
    if not start.startswith(MAGIC) or version not in (NUMBERED, NAMED):
        raise ValueError(f"expected {MAGIC.decode()} and version {NUMBERED} or {NAMED}, got {start!r}")
    return version


def _utterance(path: str, file: BinaryIO, version: int) -> Utterance:
    begin = file.tell()
    if version == NUMBERED:
        name = str(int.from_bytes(_read(file, 4), "little"))
    else:
        name = _read(file, int.from_bytes(_read(file, 2), "little")).decode(errors="surrogateescape")
    (frames,) = struct.unpack("<I", _read(file, 4))
    start = file.tell()
    (segments,) = struct.unpack("<H", _read(file, 2))
    _read(file, segments * SEGMENT)
    if not frames:
        raise ValueError(f"the utterance '{name}' has no frames")
    return Utterance(name, frames, path, start, begin + 1)


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError(f"the file ends where {size - len(data)} more bytes are expected")
    return data
