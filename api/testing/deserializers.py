"""The contract of a deserializer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from cntk.core.common.shape import size_of
from cntk.core.types.csr import is_csr
from cntk.io import MinibatchSource
from cntk.readers.deserializer import UNKNOWN, Chunk, Deserializer, Errors, StreamData
from cntk.readers.streams import StreamInformation


def check_deserializer(factory: Callable[[], Any]) -> None:
    """Check a deserializer, on data without errors: what it says of chunks and sequences before it reads them is what is read then, in
    the type and shape that the streams have, every time; and a minibatch source serves every sequence once in a sweep.

    Args:
        factory: called without arguments, returns a deserializer of some small data.

    Raises:
        AssertionError: it breaks the contract.

    >>> from cntk.testing import check_deserializer
    >>> check_deserializer(lambda: C.io.CTFDeserializer("none.ctf", C.io.StreamDefs(x=C.io.StreamDef(field="x", shape=1))))
    Traceback (most recent call last):
    RuntimeError: cannot read the text file 'none.ctf': No such file or directory in ...
    """
    deserializer = factory()
    if not isinstance(deserializer, Deserializer):
        raise AssertionError(f"a deserializer is a cntk.readers.deserializer.Deserializer, this is a {type(deserializer).__name__}")
    streams = deserializer.stream_infos()
    if [info.m_id for info in streams] != list(range(len(streams))) or len({info.name for info in streams}) < len(streams):
        raise AssertionError(f"streams are numbered from 0 and have names of their own; got {[(info.m_id, info.name) for info in streams]}")
    chunks = deserializer.chunk_infos()
    if not chunks or not all(info.sequences for info in chunks):
        raise AssertionError(f"there must be a chunk at least, and in each a sequence; got {list(chunks)!r:.80}")
    first, again = _read_by_threads(deserializer, len(chunks))
    sequences = 0
    for chunk, (info, data, other) in enumerate(zip(chunks, first, again, strict=True)):
        infos = deserializer.sequence_infos(chunk)
        said = (info.sequences, info.samples) if info.samples != UNKNOWN else (len(infos.lengths), int(np.sum(infos.lengths)))
        if (len(infos.lengths), len(infos.keys), int(np.sum(infos.lengths))) != (said[0], *said):
            raise AssertionError(
                f"chunk {chunk} was said to have {said[0]} sequences with {said[1]} samples; sequence_infos gives "
                f"{len(infos.lengths)} lengths that add up to {int(np.sum(infos.lengths))}, and {len(infos.keys)} keys"
            )
        sequences += said[0]
        _check_chunk(f"chunk {chunk}", (data, other), streams, np.asarray(infos.lengths))
        if deserializer.transforms:
            _check_transform(f"chunk {chunk}", deserializer, data, infos.keys)
    _check_sweep(deserializer, sequences)


def _read_by_threads(deserializer: Deserializer, count: int) -> list[list[Chunk]]:
    """All chunks, twice, by several threads at once, which is how a source reads them."""
    errors = Errors()
    with ThreadPoolExecutor(4) as pool:
        return [list(pool.map(lambda chunk: deserializer.get_chunk(chunk, errors), range(count))) for _ in range(2)]


def _check_chunk(where: str, reads: tuple[Chunk, Chunk], streams: list[StreamInformation], lengths: Any) -> None:
    first, again = reads
    if sorted(first) != sorted(info.name for info in streams):
        raise AssertionError(f"{where} must have the streams {[info.name for info in streams]}; it has {list(first)}")
    for info in streams:
        _check_stream(f"{where}, stream '{info.name}'", info, first[info.name], len(lengths))
        if not (_dense(first[info.name].rows) == _dense(again[info.name].rows)).all():
            raise AssertionError(f"{where}, stream '{info.name}': read twice, the data differs")
    defining = [info.name for info in streams if info.m_defines_mb_size]
    counted = np.max([first[name].lengths for name in defining or first], axis=0)
    if not (counted == lengths).all():
        raise AssertionError(f"{where}: sequences were said to have {lengths.tolist()} samples, they have {counted.tolist()}")


def _check_stream(where: str, info: StreamInformation, data: StreamData, sequences: int) -> None:
    if len(data.lengths) != sequences or not (data.lengths > 0).all() or data.starts[-1] != data.rows.shape[0]:
        lengths = data.lengths.tolist()
        raise AssertionError(f"{where}: expected samples of {sequences} sequences, got lengths {lengths} of rows {data.rows.shape}")
    if data.rows.dtype != object:
        _check_rows(where, info, data.rows)


def _check_rows(where: str, info: StreamInformation, rows: Any) -> None:
    shape = (size_of(info.sample_shape),) if info.is_sparse else info.sample_shape
    if (is_csr(rows), rows.dtype) != (info.is_sparse, np.dtype(info.dtype)) or not _fits(rows.shape[1:], shape):
        raise AssertionError(f"{where}: expected {info.storage_format} {np.dtype(info.dtype)} of shape {shape}, got {rows!r:.200}")


def _check_transform(where: str, deserializer: Deserializer, data: Chunk, keys: Any) -> None:
    """Check that random numbers depend on key and seed alone, and that transformed sequences have the stream's type and shape."""
    for number in range(len(keys)):
        sequence = {name: stream.sequence(number) for name, stream in data.items()}
        first, again = (deserializer.transform(dict(sequence), keys[number], 7) for _ in range(2))
        for info in deserializer.stream_infos():
            place = f"{where}, sequence {number}, stream '{info.name}', transformed"
            _check_rows(place, info, first[info.name])
            if not (_dense(first[info.name]) == _dense(again[info.name])).all():
                raise AssertionError(f"{place}: with the same key and seed the data differs")


def _check_sweep(deserializer: Deserializer, sequences: int) -> None:
    """Count sequences, by their contents, as they lie and shuffled."""
    served = [_contents(MinibatchSource(deserializer, max_sweeps=1, randomize=randomize)) for randomize in (False, True)]
    if len(served[0]) != sequences or served[0] != served[1]:
        counts = [len(found) for found in served]
        raise AssertionError(f"a sweep must hold each of {sequences} sequences once; as they lie and shuffled there were {counts}")


def _contents(source: MinibatchSource) -> list[tuple[bytes, ...]]:
    found = []
    while minibatch := source.next_minibatch(1):
        found.append(tuple(_dense(minibatch[info].data.data.asarray()).tobytes() for info in source.stream_infos()))
    return sorted(found)


def _dense(rows: Any) -> Any:
    return rows.toarray() if is_csr(rows) else np.asarray(rows)


def _fits(shape: Any, wanted: Any) -> bool:
    """Whether the shape is the one that is wanted, of which free axes are negative."""
    return len(shape) == len(wanted) and all(dim == want or want < 0 for dim, want in zip(shape, wanted, strict=True))
