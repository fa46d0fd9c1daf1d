"""Labels of frames: classes one after another, each for so many frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.types.csr import csr_matrix_of
from ..streams import StreamInformation
from .utterances import UtteranceDeserializer, one_dim

BYTES = 24
"""Memory that the label of a frame takes: a row of a sparse matrix with one element."""

NO_FRAMES = np.empty((0, 2), np.int64)
"""Class and value of each frame of an utterance without any."""


class LabelDeserializer(UtteranceDeserializer):
    """Base class: one stream of one-hot labels.

    Args:
        streams: by the stream's name its ``StreamDef`` with the ``mlf`` file, or a list of them, and the number of classes as ``shape``.
    """

    def __init__(self, streams: Mapping[str, Mapping[str, Any]]) -> None:
        kind = type(self).__name__
        if len(streams) != 1:
            raise ValueError(f"{kind}: expected one stream, got {len(streams)}")
        ((name, stream),) = streams.items()
        self._dim = one_dim(kind, name, stream)
        given = stream.get("mlf")
        self._paths = [str(path) for path in (given if isinstance(given, (list, tuple)) else [given] if given else [])]
        if not self._paths:
            raise ValueError(f"{kind}: stream '{name}' names no master label file; write StreamDef(mlf=..., shape=...)")
        self._defines_mb_size = bool(stream.get("defines_mb_size"))
        super().__init__(name, stream, BYTES)

    def stream_infos(self) -> list[StreamInformation]:
        return [StreamInformation(self._name, 0, "sparse", np.float32, (self._dim,), self._defines_mb_size)]

    def files(self) -> list[str]:
        return self._paths

    def describe(self) -> dict[str, Any]:
        return {"type": type(self).__name__, "input": {self._name: {"mlfFileList": self._paths, "dim": self._dim}}}

    def _labelled(self, classes: Any, counts: Any, first: int = 1) -> Any:
        """Class and value of each frame, where so many frames follow each other; the first of them has the value *first*."""
        frames = np.ones((int(np.sum(counts)), 2), np.int64)
        frames[:, 0] = np.repeat(classes, counts)
        starts = np.cumsum(counts) - counts
        frames[starts[np.asarray(counts) > 0], 1] = first
        return frames

    def _rows(self, frames: Any) -> Any:
        joined = np.concatenate([NO_FRAMES, *frames])
        indices = joined[:, 0].astype(np.int64)
        return csr_matrix_of(joined[:, 1].astype(np.float32), indices, np.arange(len(joined) + 1), self._dim)
