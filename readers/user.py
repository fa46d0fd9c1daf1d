"""Deserializers that users write as a few methods of Python."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ..core.common.displayed import Displayed
from ..core.common.dtypes import is_real
from ..core.common.lock import ForkSafeLock
from ..core.common.shape import size_of
from ..core.types.csr import fault_of, is_csr, pruned
from .deserializer import UNKNOWN, Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos, StreamData
from .rows import join_rows
from .streams import StreamInformation


class UserDeserializer(Displayed):
    """Base class of deserializers that users write: implement ``stream_infos``, ``num_chunks`` and ``get_chunk``.

    A chunk is what is read in one go.  The number of its sequences is known once it is read.

    >>> class Squares(C.io.UserDeserializer):
    ...     def stream_infos(self):
    ...         return [C.io.StreamInformation(name, i, "dense", np.float32, (1,)) for i, name in enumerate(["n", "n2"])]
    ...
    ...     def num_chunks(self):
    ...         return 10
    ...
    ...     def get_chunk(self, chunk_id):
    ...         n = np.arange(100 * chunk_id, 100 * (chunk_id + 1), dtype=np.float32)[:, None]
    ...         return {"n": n, "n2": n * n}
    >>> source = C.io.MinibatchSource(Squares(), randomize=False)
    >>> source.next_minibatch(3)[source.streams.n2].asarray().ravel()
    array([0., 1., 4.], dtype=float32)
    """

    def stream_infos(self) -> list[StreamInformation]:
        """The streams; to be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement stream_infos: a list of StreamInformation")

    def num_chunks(self) -> int:
        """How many chunks there are; to be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement num_chunks: how many chunks there are")

    def get_chunk(self, chunk_id: int) -> dict[str, Any]:
        """Read a chunk; to be implemented.

        It is called from other threads, though one at a time unless the source was made with ``multithreaded_deserializer=True``.

        Args:
            chunk_id: number of the chunk, from 0; given by name.

        Returns:
            By the stream's name an array or CSR matrix whose rows are samples, or a list of sequences, each an array
            ``(samples, *sample shape)`` or a CSR matrix.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement get_chunk: data by the stream's name")


class UserChunks(Deserializer):
    """Adapts a user's deserializer.

    Args:
        user: has the methods of :class:`UserDeserializer`.
        is_parallel: whether several threads may call it at once.

    Raises:
        ValueError: it has no streams, or no chunks.
    """

    def __init__(self, user: UserDeserializer, is_parallel: bool = False) -> None:
        self._user = user
        self._streams = list(user.stream_infos())
        self._count = user.num_chunks()
        self._turn: AbstractContextManager[Any] = nullcontext() if is_parallel else ForkSafeLock()
        if not self._streams or self._count < 1:
            raise ValueError(f"{type(user).__name__}: expected a stream and a chunk at least, got {self._streams} and {self._count} chunks")

    def stream_infos(self) -> list[StreamInformation]:
        return self._streams

    def chunk_infos(self) -> Sequence[ChunkInfo]:
        return [ChunkInfo(UNKNOWN, UNKNOWN)] * self._count

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        data = self.get_chunk(chunk, Errors())
        counted = [info.name for info in self._streams if info.m_defines_mb_size] or list(data)
        lengths = np.max([data[name].lengths for name in counted], axis=0)
        return SequenceInfos(lengths, np.arange(len(lengths)))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        where = f"{type(self._user).__name__}.get_chunk(chunk_id={chunk})"
        try:
            with self._turn:
                found = self._user.get_chunk(chunk_id=chunk)
        except Exception as error:
            error.add_note(f"raised by {where}")
            raise
        missing = [info.name for info in self._streams if info.name not in found]
        if missing:
            raise RuntimeError(f"{where}: expected data of the streams {self._streams}, got {list(found)}")
        chunks = {info.name: _stream_data(where, info, found[info.name]) for info in self._streams}
        counts = {name: len(data) for name, data in chunks.items()}
        if len(set(counts.values())) > 1:
            raise RuntimeError(f"{where}: all streams must have equally many sequences, got {counts}")
        return chunks

    def describe(self) -> dict[str, Any]:
        return {"type": type(self._user).__name__}


def _stream_data(where: str, info: StreamInformation, given: Any) -> StreamData:
    where = f"{where}, stream '{info.name}'"
    if isinstance(given, (list, tuple)):
        parts = [_rows(where, info, part, i) for i, part in enumerate(given)]
        if not parts:
            raise RuntimeError(f"{where}: expected sequences, got an empty list")
        return StreamData.of_lengths(join_rows(parts), [part.shape[0] for part in parts])
    return StreamData.of_steps(_rows(where, info, given))


def _rows(where: str, info: StreamInformation, given: Any, position: int | None = None) -> Any:
    """Samples as an array or CSR matrix of the stream's type; the item at a *position* of a list may be a single one."""
    at = where if position is None else f"{where}, sequence {position}"
    shape: tuple[int, ...] = info.sample_shape
    if is_csr(given):
        if why := fault_of(given):
            raise RuntimeError(f"{at}: {why}")
        given = pruned(given)
    if info.is_sparse:
        if not is_csr(given) or given.shape[1] != size_of(shape):
            raise RuntimeError(f"{at}: expected CSR rows {size_of(shape)} wide, got {_described(given)}")
        return given.astype(info.dtype, copy=False)
    array = given.toarray() if is_csr(given) else np.asarray(given)
    if position is not None and array.shape == shape:
        array = array[np.newaxis]
    if not is_real(array.dtype) or array.ndim < 1 or size_of(array.shape[1:]) != size_of(shape):
        raise RuntimeError(f"{at}: expected numbers of shape {('samples', *shape)}, got {_described(given)}")
    return array.astype(info.dtype, copy=False).reshape(-1, *shape)


def _described(given: Any) -> str:
    shape = getattr(given, "shape", None)
    return f"{type(given).__name__} {given!r:.60}" if shape is None else f"{type(given).__name__} of {given.dtype} and shape {shape}"
