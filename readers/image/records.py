"""The lines of a file that lists images: columns with tabs between them."""

from __future__ import annotations

from array import array
from typing import Any, BinaryIO, NamedTuple

import numpy as np

LARGEST_KEY = 2**64 - 1
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class Records(NamedTuple):
    """One image a line.

    Attributes:
        lines: number of each line, from 1.
        keys: key of each sequence: that of the line, or else how many records are before it.
        labels: class of each image.
        starts: where in the file the column with the image, or its name, begins.
        stops: where it ends.
        faults: by record what is wrong with its line.
    """

    lines: Any
    keys: Any
    labels: Any
    starts: Any
    stops: Any
    faults: dict[int, str]


def read_records(file: BinaryIO, image_first: bool, classes: int | None) -> Records:
    """Read through a file once; lines without text do not count.

    Args:
        file: the file, at its beginning.
        image_first: whether lines are ``[key] image label``, or ``[key] label image``.
        classes: number of classes; None if labels are not wanted.
    """
    lines, labels, starts, stops = (array("q") for _ in range(4))
    keys = array("Q")
    faults: dict[int, str] = {}
    begin = len(BYTE_ORDER_MARK) if file.read(len(BYTE_ORDER_MARK)) == BYTE_ORDER_MARK else 0
    file.seek(begin)
    for number, line in enumerate(file, 1):
        if text := line.rstrip():
            record = len(lines)
            try:
                key, label, start, stop = _columns(text, record, image_first, classes)
            except ValueError as error:
                faults[record] = str(error)
                key, label, start, stop = record, 0, 0, 0
            keys.append(key)
            for column, value in ((lines, number), (labels, label), (starts, begin + start), (stops, begin + stop)):
                column.append(value)
        begin += len(line)
    return Records(np.array(lines), np.array(keys), np.array(labels), np.array(starts), np.array(stops), faults)


def _columns(text: bytes, record: int, image_first: bool, classes: int | None) -> tuple[int, int, int, int]:
    """Key and label of a line, and where its image begins and ends."""
    columns = text.split(b"\t")
    if len(columns) not in (2, 3):
        order = "image and label" if image_first else "label and image"
        raise ValueError(f"expected {order}, or a sequence key and these, with tabs between them; got {len(columns)} columns")
    first, second = columns[-2:]
    start = len(text) - len(second) - (len(first) + 1 if image_first else 0)
    image, label = (first, second) if image_first else (second, first)
    key = record if len(columns) == 2 else _number(columns[0], "sequence key", LARGEST_KEY)
    return key, 0 if classes is None else _number(label, "label", classes - 1), start, start + len(image)


def _number(text: bytes, what: str, largest: int) -> int:
    digits = text.strip()
    if not digits.isdigit() or len(digits) > 20 or int(digits) > largest:
        raise ValueError(f"the {what} must be a whole number from 0 to {largest}, got '{text[:40].decode(errors='replace')}'")
    return int(digits)
