"""The deserializer of features of speech."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ...core.common.cached_property import cached_property
from ..bundle import Bundle
from ..deserializer import Chunk, ChunkInfo, Deserializer, Errors, SequenceInfos
from ..streams import StreamInformation
from .htk import Header, read_frames, read_header
from .scp import Entry, read_scp
from .utterances import OpenFile, Utterance, UtteranceDeserializer, logical_name, one_dim

KIND = "HTKFeatureDeserializer"


class HTKFeatureDeserializer(Deserializer):
    """Reads frames of features that script files list, ``name=archive[first,last]`` a line, from files in HTK's format.

    Frames are counted from 0, the last one is included; without frames in brackets a line means all of the file.  Paths start in the
    current folder, or in that of the list if they begin with ``.../``.  Names, without what follows their last dot, are the keys by which
    labels and other streams are found.

    Args:
        streams: by the stream's name a ``StreamDef`` with the ``scp`` file and as ``shape`` the number of elements of a frame.  With
            ``context=(left, right)`` a sample is a frame with so many before and after it; at the ends of an utterance the outermost frame
            stands for those that lack.  With ``broadcast=True`` the only frame of each utterance is repeated for the frames of the
            deserializer that it is read together with.  Utterances that are longer than ``max_sequence_length`` are left out.

    Raises:
        ValueError: no streams, or one without script file or shape.  Errors in the files are raised when a ``MinibatchSource`` is
            made, or reads.

    >>> streams = C.io.StreamDefs(features=C.io.StreamDef(shape=40, context=(5, 5), scp="train.scp"))
    >>> C.io.HTKFeatureDeserializer(streams).stream_infos()
    [features([440])]
    """

    def __init__(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        self._parts = [_Features(name, stream) for name, stream in streams.items()]
        if not self._parts:
            raise ValueError(f"{KIND}: no streams are given; write StreamDefs(name=StreamDef(scp=..., shape=...))")
        self.is_primary = any(part.is_primary for part in self._parts)
        self.broadcast = self._parts[0].broadcast if len(self._parts) == 1 else frozenset()

    @cached_property
    def _all(self) -> Deserializer:
        """The streams, put together by the names of utterances."""
        return self._parts[0] if len(self._parts) == 1 else Bundle(self._parts)

    def stream_infos(self) -> list[StreamInformation]:
        return [part.stream_info(i) for i, part in enumerate(self._parts)]

    def chunk_infos(self) -> list[ChunkInfo]:
        return list(self._all.chunk_infos())

    def sequence_infos(self, chunk: int) -> SequenceInfos:
        return self._all.sequence_infos(chunk)

    def get_chunk(self, chunk: int, errors: Errors) -> Chunk:
        return self._all.get_chunk(chunk, errors)

    def files(self) -> list[str]:
        return [str(part.scp) for part in self._parts]

    def describe(self) -> dict[str, Any]:
        return {"type": KIND, "input": {part.name: {"scpFile": part.scp, "dim": part.dim} for part in self._parts}}


class _Features(UtteranceDeserializer):
    """One stream of features."""

    def __init__(self, name: str, stream: Mapping[str, Any]) -> None:
        self.name, self.scp, self.dim = name, stream.get("scp"), one_dim(KIND, name, stream)
        if not self.scp:
            raise ValueError(f"{KIND}: stream '{name}' names no script file; write StreamDef(scp=..., shape=...)")
        self._left, self._right = (int(frames) for frames in stream.get("context") or (0, 0))
        if min(self._left, self._right) < 0:
            raise ValueError(f"{KIND}: stream '{name}' needs a context of no less than 0 frames, got {stream['context']}")
        self._width = self.dim * (1 + self._left + self._right)
        self._defines_mb_size = bool(stream.get("defines_mb_size"))
        self.broadcast = frozenset([name] if stream.get("broadcast") else [])
        super().__init__(name, stream, 4 * self._width)

    def stream_info(self, number: int) -> StreamInformation:
        """Describes the stream, which has this *number*."""
        return StreamInformation(self.name, number, "dense", np.float32, (self._width,), self._defines_mb_size)

    def stream_infos(self) -> list[StreamInformation]:
        return [self.stream_info(0)]

    def _find(self) -> list[Utterance]:
        found = list(self._listed())
        if not found:
            raise RuntimeError(f"the script file '{self.scp}' is empty; expected a line for each utterance")
        return found

    def _listed(self) -> Iterator[Utterance]:
        for entry in read_scp(str(self.scp)):
            first, last = (0, self._last_frame(entry)) if entry.last is None else (entry.first or 0, entry.last)
            yield Utterance(logical_name(entry.name), last - first + 1, entry.path, first, entry.line)

    def _last_frame(self, entry: Entry) -> int:
        """The last frame of a file, of which only the header tells how many there are."""
        try:
            with open(entry.path, "rb") as file:
                frames = self._checked(read_header(file)).frames
        except (OSError, ValueError) as error:
            raise RuntimeError(_cannot_read(str(self.scp), entry.line, entry.path, error)) from None
        if frames < 1:
            raise RuntimeError(_cannot_read(str(self.scp), entry.line, entry.path, ValueError("it has no frames")))
        return frames - 1

    def _checked(self, header: Header) -> Header:
        if header.dim != self.dim:
            raise ValueError(f"its frames have {header.dim} elements, those of stream '{self.name}' {self.dim}")
        return header

    def _frames(self, utterance: Utterance, files: OpenFile) -> Any:
        try:
            file = files.at(utterance.path)
            header = self._checked(read_header(file))
            frames = read_frames(file, header, utterance.start, utterance.start + utterance.frames - 1)
        except (OSError, ValueError) as error:
            raise ValueError(_cannot_read(str(self.scp), utterance.line, utterance.path, error)) from None
        if self._width == self.dim:
            return frames
        around = np.arange(len(frames))[:, None] + np.arange(-self._left, self._right + 1)
        return frames[around.clip(0, len(frames) - 1)].reshape(-1, self._width)

    def _rows(self, frames: Any) -> Any:
        return np.concatenate([np.empty((0, self._width), np.float32), *frames])


def _cannot_read(scp: str, line: int, path: str, error: Exception) -> str:
    reason = getattr(error, "strerror", None) or error
    return f"{scp}, line {line}: cannot read the features '{path}': {reason}"
