"""Writes CNTK's binary format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ...core.storage.files import write_file
from ..deserializer import Deserializer, Errors
from .chunk import stream_bytes
from .layout import MAGIC, START, VERSION, ChunkLayout, Layout, StreamLayout, header_of


def write_cbf(filename: Any, deserializer: Deserializer, errors: Errors) -> Layout:
    """Write the data of a deserializer to a binary file, a chunk for each of its chunks.

    Args:
        filename: the file.
        deserializer: its streams must have one axis.
        errors: counts sequences that cannot be read, which are left out.

    Returns:
        What has been written.

    Raises:
        RuntimeError: no sequence can be read.
    """
    infos = deserializer.stream_infos()
    layout = Layout([StreamLayout(info.name, info.is_sparse, np.dtype(info.dtype).type, info.sample_shape[0]) for info in infos], [], 0)
    write_file(filename, _pieces(layout, deserializer, errors))
    return layout


def _pieces(layout: Layout, deserializer: Deserializer, errors: Errors) -> Iterator[bytes]:
    yield START.pack(MAGIC, VERSION)
    at = START.size
    for number in range(len(deserializer.chunk_infos())):
        chunk = deserializer.get_chunk(number, errors)
        lengths = np.max([chunk[stream.name].lengths for stream in layout.streams], axis=0)
        is_there = lengths > 0
        lengths = lengths[is_there].astype("<u4")
        if not len(lengths):
            continue
        layout.chunks.append(ChunkLayout(at, len(lengths), int(lengths.sum())))
        for stream in layout.streams:
            chunk[stream.name].starts = np.append(chunk[stream.name].starts[:-1][is_there], chunk[stream.name].starts[-1])
        for piece in (lengths.tobytes(), *(stream_bytes(chunk[stream.name], stream) for stream in layout.streams)):
            at += len(piece)
            yield piece
    if not layout.chunks:
        raise RuntimeError("there are no sequences to write")
    yield header_of(layout._replace(header=at))
