"""The deserializer of CNTK's text format."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from glob import glob, has_magic
from typing import Any

from ...core.common.cached_property import cached_property
from ...core.common.dtypes import as_dtype
from ...core.common.thresholds import thresholds
from ...core.common.user_frame import user_line, warn_at
from ...core.types.arguments import mapping, shown
from ..compiled import loops
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos
from ..streams import StreamConfiguration, StreamInformation
from .document import Document
from .index import Settings
from .samples import Part, join

CHUNK_SIZE = 32 << 20
"""Bytes of text in a chunk."""

FOREIGN = ("transforms", "context", "scp", "mlf", "broadcast")
"""Keys of a StreamDef that other deserializers use."""


class CTFDeserializer(Deserializer):
    """Reads CNTK's text format: lines such as ``12 |x 560:1 |y 0 0 1 |# comment``.

    A line holds samples of one or more streams: numbers of a dense one, ``index:value`` pairs of a sparse one.  If the first line begins
    with a number, consecutive lines with the same number are a sequence; otherwise every line is one.  A stream may have fewer samples
    in a sequence than the sequence has lines, but at least one, and some stream has as many.  Missing numbers at the end of a dense
    sample are zero, with a warning; fields that no stream wants and comments are ignored.

    Numbers are rounded once, to the nearest of the stream's type.  Large files have an index, which is made once, is kept beside the
    file as ``<file>.index``, and is made again when the file changes.

    Args:
        filename: the file, or several: a list, or a pattern such as ``'train-*.ctf'``, whose files are read in the order of their names.
            Those that end in ``.gz`` are unpacked into the cache folder first.
        streams: by the stream's name a ``StreamDef`` with the ``field``, its ``shape`` (a number of elements) and ``is_sparse``.

    Raises:
        ValueError: no file name, a pattern that no file has, or a stream without field or shape.
        RuntimeError: no streams, or two of one field.  Errors in the file are raised when a ``MinibatchSource`` is made of it, or
            reads.

    >>> streams = C.io.StreamDefs(words=C.io.StreamDef(field="S0", shape=943, is_sparse=True))
    >>> C.io.CTFDeserializer("atis.train.ctf", streams).stream_infos()
    [words([943])]
    """

    multithreaded = True

    def __init__(self, filename: str | Sequence[str], streams: Mapping[str, Mapping[str, Any]]) -> None:
        self._line = user_line()
        self._paths = _files(filename)
        self._streams = [_configuration(name, stream) for name, stream in mapping("CTFDeserializer", "streams", streams).items()]
        if not self._streams:
            raise RuntimeError("CTFDeserializer: no streams are given; write StreamDefs(name=StreamDef(field=..., shape=...))")
        fields = [stream.stream_alias for stream in self._streams]
        if len(set(fields)) < len(fields):
            raise RuntimeError(f"CTFDeserializer: every stream needs a field of its own, got {fields}")
        self.is_primary = any(stream.get("is_primary", False) for stream in streams.values())
        self._settings: dict[str, Any] = {
            "chunkSizeInBytes": CHUNK_SIZE,
            "skipSequenceIds": False,
            "precision": "float",
            "cacheIndex": True,
        }
        self._has_warned = False

    def __setitem__(self, setting: str, value: Any) -> None:
        """Change a setting of the engine's.

        ``chunkSizeInBytes`` is how much is read in one go, 32 MiB; ``skipSequenceIds`` makes every line a sequence; ``precision`` is
        ``'float'`` or ``'double'``; ``cacheIndex`` says whether indices and unpacked files are kept for the next time.

        Raises:
            KeyError: there is no such setting.
            ValueError: another precision.
        """
        if setting not in self._settings:
            raise KeyError(f"CTFDeserializer has no setting '{setting}'; it has {', '.join(self._settings)}")
        if setting == "precision" and value not in ("float", "double"):
            raise ValueError(f"CTFDeserializer: the precision must be 'float' or 'double', got {value!r}")
        self._settings[setting] = value
        for made in ("_documents", "_chunks", "_infos"):
            self.__dict__.pop(made, None)

    def stream_infos(self) -> list[StreamInformation]:
        return [
            StreamInformation(s.name, i, "sparse" if s.is_sparse else "dense", self._dtype, (s.dim,), s.defines_mb_size)
            for i, s in enumerate(self._streams)
        ]

    def chunk_infos(self) -> list[ChunkInfo]:
        return self._infos

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        document, first, last = self._chunks[chunk]
        return SequenceInfos(document.index.lengths(first, last), document.keys(first, last))

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        document, first, last = self._chunks[chunk]
        parts = list(document.read(first, last, errors, self._is_compiled))
        self._warn(document, parts)
        return {stream.name: join([part[i] for part in parts]) for i, stream in enumerate(self._streams)}

    def files(self) -> list[str]:
        return [document.plain for document in self._documents]

    def describe(self) -> dict[str, Any]:
        streams = {
            s.name: {
                "alias": s.stream_alias,
                "dim": s.dim,
                "format": "sparse" if s.is_sparse else "dense",
                "definesMBSize": s.defines_mb_size,
            }
            for s in self._streams
        }
        file = self._paths[0] if len(self._paths) == 1 else list(self._paths)
        return {"type": "CNTKTextFormatDeserializer", "file": file, "input": streams}

    @property
    def _dtype(self) -> Any:
        return as_dtype(self._settings["precision"])

    @cached_property
    def _documents(self) -> list[Document]:
        counted = [stream.stream_alias for stream in self._streams if stream.defines_mb_size]
        settings = Settings(bool(self._settings["skipSequenceIds"]), counted[0] if len(counted) == 1 else "")
        documents: list[Document] = []
        for path in self._paths:
            before = sum(len(document.index) for document in documents)
            documents.append(Document(path, self._streams, self._dtype, settings, before, bool(self._settings["cacheIndex"])))
        return documents

    @cached_property
    def _is_compiled(self) -> bool:
        size = sum(document.size for document in self._documents)
        return size >= thresholds.ctf_compiled and loops("ctf.compiled") is not None

    @cached_property
    def _chunks(self) -> list[tuple[Document, int, int]]:
        """The document of each chunk, its first sequence, and the one behind its last."""
        size = max(int(self._settings["chunkSizeInBytes"]), 1)
        parts = ((document, document.index.chunks(size).tolist()) for document in self._documents)
        return [(document, first, last) for document, ends in parts for first, last in zip(ends, ends[1:])]  # noqa: B905, RUF007

    @cached_property
    def _infos(self) -> list[ChunkInfo]:
        return [self._info(*chunk) for chunk in self._chunks]

    def _info(self, document: Document, first: int, last: int) -> ChunkInfo:
        samples = document.index.samples(first, last)
        per_sample = sum(info.bytes_of_sample for info in self.stream_infos() if not info.is_sparse)
        is_sparse = any(stream.is_sparse for stream in self._streams)
        # A pair of few digits takes more bytes in memory than in text, and so does where each row begins.
        return ChunkInfo(last - first, samples, samples * per_sample + is_sparse * document.bytes_of(first, last) * 3 // 2)

    def _warn(self, document: Document, parts: Sequence[Sequence[Part]]) -> None:
        short = min((part.short for streams in parts for part in streams if part.short is not None), default=None)
        if short is not None and not self._has_warned:
            self._has_warned = True
            dims = ", ".join(f"|{stream.stream_alias} {stream.dim}" for stream in self._streams if not stream.is_sparse)
            warn_at(
                f"{document.path}, line {short}: fewer numbers than a dense sample has ({dims}); "
                "the rest is taken for zeros, here and below",
                self._line,
            )


def _files(given: str | Sequence[str]) -> list[str]:
    """The files meant by a path, a pattern, or a list of these."""
    listed: list[Any] = list(given) if isinstance(given, (list, tuple)) else [given]
    if not all(isinstance(path, (str, os.PathLike)) for path in listed):
        raise TypeError(f"CTFDeserializer: filename must be a path or a list of paths, got {shown(given)}")
    found = list(_matching(listed))
    if not found:
        raise ValueError(f"CTFDeserializer: no file name is given\n[CALL STACK]\n{user_line()}")
    return found


def _matching(listed: Sequence[str]) -> Iterator[str]:
    for path in map(os.fspath, listed):
        if not path:
            raise ValueError(f"CTFDeserializer: no file name is given\n[CALL STACK]\n{user_line()}")
        if not has_magic(path) or os.path.exists(path):
            yield path
            continue
        files = sorted(glob(path, recursive=True))
        if not files:
            raise ValueError(f"CTFDeserializer: there is no file whose name matches '{path}'")
        yield from files


def _configuration(name: str, stream: Mapping[str, Any]) -> StreamConfiguration:
    given = [key for key in FOREIGN if stream.get(key) is not None]
    if given:
        raise ValueError(f"CTFDeserializer: stream '{name}' has {', '.join(given)}, which text files do not use")
    if stream.get("max_sequence_length", 65535) != 65535:
        raise NotImplementedError(f"CTFDeserializer: max_sequence_length, as stream '{name}' has it, is not implemented for text files")
    field, dim = stream.get("stream_alias"), stream.get("dim")
    if not field:
        raise ValueError(f"CTFDeserializer: stream '{name}' names no field of the file; write StreamDef(field=..., shape=...)")
    if isinstance(dim, (tuple, list)) and len(dim) == 1:
        dim = dim[0]
    if not isinstance(dim, int) or dim < 1:
        raise ValueError(f"CTFDeserializer: stream '{name}' needs a shape, a positive number of elements, got {dim!r}; reshape them later")
    return StreamConfiguration(name, dim, bool(stream.get("is_sparse")), field, bool(stream.get("defines_mb_size")))
