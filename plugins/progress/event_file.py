"""Event files: what TensorBoard reads.  A record an event, each a protobuf message with checksums before and after it.

Source: TensorFlow's ``record_writer.h``, ``event.proto`` and ``summary.proto``, of which these are the fields in use.
"""

from __future__ import annotations

import os
import socket
import struct
import time
from itertools import count
from typing import Any

import numpy as np

from ..protobuf import content, double, doubles, integer, single
from .crc32c import crc32c
from .png import png

VERSION = "brain.Event:2"
BUCKETS = 64


class EventFile:
    """A new file of events in a folder, both made if need be; no other writer's file is touched.

    It is open only while an event is added, so that TensorBoard sees it at once, and a program that is killed leaves whole ones.

    Args:
        folder: where it is to be.

    Attributes:
        name: its path.
    """

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, exist_ok=True)
        stem = os.path.join(folder, f"events.out.tfevents.{time.time():.0f}.{socket.gethostname()}")
        names = (f"{stem}.{number}" if number else stem for number in count())
        self.name = next(name for name in names if _is_new(name))
        self.add(content(3, VERSION))

    def add(self, what: bytes) -> None:
        """Add an event that was now."""
        event = double(1, time.time()) + what
        length = struct.pack("<Q", len(event))
        with open(self.name, "ab") as file:
            file.write(length + masked_checksum(length) + event + masked_checksum(event))

    def add_graph(self, graph: bytes) -> None:
        """Add a graph, as :meth:`.model_graph.ModelGraph.definition` gives it."""
        self.add(content(4, graph))

    def add_summary(self, step: int, values: bytes) -> None:
        """Add what :func:`scalar`, :func:`image` and :func:`histogram` give, one or several, at a time step."""
        self.add(integer(2, step) + content(5, values))

    def flush(self) -> None:
        """Wait until everything is on the disk."""
        with open(self.name, "ab") as file:
            os.fsync(file.fileno())


def _is_new(name: str) -> bool:
    """Whether there was no file of this name; there is one now."""
    try:
        open(name, "xb").close()
    except FileExistsError:
        return False
    return True


def masked_checksum(data: bytes) -> bytes:
    """The checksum, changed so that the checksum of data that hold checksums is as good as that of others."""
    checksum = crc32c(data)
    return struct.pack("<I", ((checksum >> 15 | checksum << 17) + 0xA282EAD8) % 2**32)


def scalar(tag: str, value: float) -> bytes:
    """A number to show under *tag*."""
    return _value(tag, single(2, value))


def image(tag: str, picture: Any) -> bytes:
    """A picture to show under *tag*: an array as :func:`.png.png` takes it."""
    height, width, channels = picture.shape
    return _value(tag, content(4, integer(1, height) + integer(2, width) + integer(3, channels) + content(4, png(picture))))


def histogram(tag: str, values: Any) -> bytes:
    """The distribution of the finite ones of *values* to show under *tag*."""
    values = np.asarray(values, np.float64).reshape(-1)
    values = values[np.isfinite(values)]
    counts, limits = _counts(values)
    with np.errstate(over="ignore"):
        sums = double(4, values.sum()) + double(5, np.square(values).sum())
    ends = double(1, values.min(initial=np.inf)) + double(2, values.max(initial=-np.inf))
    return _value(tag, content(5, ends + double(3, values.size) + sums + doubles(6, limits) + doubles(7, counts)))


def _counts(values: Any) -> tuple[Any, Any]:
    """How many of *values* are in each bucket, and where the buckets end."""
    if not values.size:
        return [], []
    least, most = values.min(), values.max()
    if least == most:
        return [values.size], [most]
    parts = np.linspace(0, 1, BUCKETS + 1)
    limits = least * (1 - parts) + most * parts
    return np.histogram(values, np.maximum.accumulate(limits))[0], limits[1:]


def _value(tag: str, held: bytes) -> bytes:
    return content(1, content(1, tag) + held)
