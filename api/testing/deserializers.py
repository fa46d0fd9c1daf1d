"""The contract of a deserializer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntk.core.value import is_csr
from cntk.io import MinibatchSource
from cntk.readers.deserializer import Deserializer, Errors, StreamData
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
    RuntimeError: cannot read the text file 'none.ctf': No such file or directory
    """
    deserializer = factory()
    if not isinstance(deserializer, Deserializer):
        raise AssertionError(f"a deserializer is a cntk.readers.deserializer.Deserializer, this is a {type(deserializer).__name__}")
    streams = deserializer.stream_infos()
    if [info.m_id for info in streams] != list(range(len(streams))) or len({info.name for info in streams}) < len(streams):
        raise AssertionError(f"streams are numbered from 0 and have names of their own; got {[(info.m_id, info.name) for info in streams]}")
    chunks = deserializer.chunk_infos()
    if not chunks or not all(sequences for sequences, _ in chunks):
        raise AssertionError(f"there must be a chunk at least, and in each a sequence; got {list(chunks)!r:.80}")
    for chunk, (sequences, samples) in enumerate(chunks):
        infos = deserializer.sequence_infos(chunk)
        if (len(infos.lengths), len(infos.keys), int(np.sum(infos.lengths))) != (sequences, sequences, samples):
            raise AssertionError(
                f"chunk {chunk} was said to have {sequences} sequences with {samples} samples; sequence_infos gives "
                f"{len(infos.lengths)} lengths that add up to {int(np.sum(infos.lengths))}, and {len(infos.keys)} keys"
            )
        _check_chunk(f"chunk {chunk}", deserializer, chunk, streams, np.asarray(infos.lengths))
    _check_sweep(deserializer, sum(sequences for sequences, _ in chunks))


def _check_chunk(where: str, deserializer: Deserializer, chunk: int, streams: list[StreamInformation], lengths: Any) -> None:
    first, again = (deserializer.get_chunk(chunk, Errors()) for _ in range(2))
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
    shape = info.sample_shape
    if (is_csr(data.rows), tuple(data.rows.shape[1:]), data.rows.dtype) != (info.is_sparse, shape, np.dtype(info.dtype)):
        raise AssertionError(f"{where}: expected {info.storage_format} {np.dtype(info.dtype)} of shape {shape}, got {data.rows!r:.200}")


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
