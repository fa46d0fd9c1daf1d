"""Reads the numbers of event files, which may still be written to, cut off or damaged."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..protobuf import DamagedFile, Piece
from .event_file import masked_checksum

HEAD, TAIL = 12, 4
"""Bytes before the content of a record, its length with a checksum, and behind it, another checksum."""
LARGEST = 2**26
"""Records with more bytes have no numbers for curves and are passed over."""
SEARCHED = 2**20
"""Bytes in which the next record is looked for at a time where one is damaged."""
ZEROS = bytes(4)
"""The upper half of a length."""


class Number(NamedTuple):
    """A number of an event file."""

    tag: str
    step: int
    value: float


class EventReader:
    """Reads what is new in an event file, each time it is asked.

    Records are as :mod:`event_file` writes them; those of other programs have the same form.

    Args:
        name: path of the file.

    Attributes:
        damaged: how many times bytes were passed over that are no records.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.damaged = 0
        self._at = 0

    def read(self) -> Iterator[Number]:
        """The numbers that have come since the last time; from the start again where the file has become shorter.

        A record at the end of the file that is not complete is read when it is.

        Raises:
            OSError: the file cannot be read.
        """
        with open(self.name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < self._at:
                self._at = 0
            while (record := self._record(file, size)) is not None:
                yield from _numbers(record)

    def _record(self, file: Any, size: int) -> bytes | None:
        """The content of the next whole record, empty for one without numbers; None where there is none yet."""
        while size - self._at >= HEAD:
            file.seek(self._at)
            length = _length(file.read(HEAD))
            if length is None:
                if not self._search(file, size):
                    return None
                continue
            if size - self._at < HEAD + length + TAIL:
                return None
            self._at += HEAD + length + TAIL
            if length > LARGEST:
                return b""
            content, checksum = file.read(length), file.read(TAIL)
            if masked_checksum(content) == checksum:
                return bytes(content)
            self.damaged += 1
            return b""
        return None

    def _search(self, file: Any, size: int) -> bool:
        """Go to the next place that may begin a record; False where that is not in the file yet."""
        self.damaged += 1
        self._at += 1
        while size - self._at >= HEAD:
            file.seek(self._at)
            searched = file.read(SEARCHED)
            place = _first_head(searched)
            self._at += place
            if place <= len(searched) - HEAD:
                return True
        return False


def _first_head(data: bytes) -> int:
    """Where a record may begin first; where there is none, the first place that more data may show to be one."""
    place = data.find(ZEROS, 4) - 4
    while 0 <= place <= len(data) - HEAD:
        if _length(data[place : place + HEAD]) is not None:
            return place
        rest = data[place:]
        run = len(rest) - len(rest.lstrip(b"\0"))
        place = data.find(ZEROS, place + 4 + max(run - HEAD, 1)) - 4
    return max(len(data) - HEAD + 1, 0)


def _length(head: bytes) -> int | None:
    """The length that a record says it has, where it is below 4 GiB and its checksum is right."""
    if len(head) < HEAD or head[4:8] != ZEROS or masked_checksum(head[:8]) != head[8:]:
        return None
    return int.from_bytes(head[:8], "little")


def _numbers(record: bytes) -> Iterator[Number]:
    """The numbers of an event; none where it has a graph, a text, or fields of another kind."""
    try:
        yield from list(_scalars(Piece(record, 0, len(record))))
    except (DamagedFile, struct.error, UnicodeDecodeError):
        return


def _scalars(event: Piece) -> Iterator[Number]:
    step, summary = 0, None
    for field, held in event.fields():
        if field == 2 and isinstance(held, int):
            step = held
        if field == 5 and isinstance(held, Piece):
            summary = held
    for field, held in summary.fields() if summary is not None else ():
        if field == 1 and isinstance(held, Piece):
            yield from _scalar(held, step)


def _scalar(value: Piece, step: int) -> Iterator[Number]:
    tag, number = "", math.nan
    has_number = False
    for field, held in value.fields():
        if field == 1 and isinstance(held, Piece):
            tag = held.text()
        if field == 2 and isinstance(held, Piece):
            number, has_number = struct.unpack("<f", held.bytes)[0], True
    if has_number:
        yield Number(tag, step, number)
