"""The deserializer of master label files."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np

from .labels import NO_FRAMES, LabelDeserializer
from .utterances import OpenFile, Utterance, logical_name

FIRST_LINE = b"#!MLF!#"
FRAME = 100_000
"""Duration of a frame in the unit of the files, 100 nanoseconds."""

BOUNDARY = 2
"""Value of the first frame of a label where boundaries are marked."""


class HTKMLFDeserializer(LabelDeserializer):
    """Reads the labels of frames from HTK's master label files.

    A file begins with ``#!MLF!#``.  An utterance is its name in quotation marks, then lines with start, end and label, times in units of
    100 nanoseconds, and a line with a dot.  Frames have 10 milliseconds.  Names are compared without ``*/`` before them and without what
    follows their last dot.

    Args:
        label_mapping_file: file with a label a line; the number of the line, from 0, is the class.
        streams: by the stream's name its ``StreamDef`` with the ``mlf`` file, or a list of them, and the number of classes as ``shape``.
        phoneBoundaries: whether the first frame of each label gets the value 2, as training with CTC expects.

    Raises:
        ValueError: not one stream, or one without files or shape.  Errors in the files are raised when a ``MinibatchSource`` is made,
            or reads.

    >>> C.io.HTKMLFDeserializer("states.txt", C.io.StreamDefs(labels=C.io.StreamDef(shape=132, mlf="train.mlf"))).stream_infos()
    [labels([132])]
    """

    def __init__(self, label_mapping_file: str, streams: Mapping[str, Mapping[str, Any]], phoneBoundaries: bool = False) -> None:
        super().__init__(streams)
        self._mapping_file = os.fspath(label_mapping_file)
        self._first_value = BOUNDARY if phoneBoundaries else 1
        self._classes: dict[bytes, int] = {}

    def _find(self) -> list[Utterance]:
        self._classes = read_classes(self._mapping_file)
        return [utterance for path in self._paths for utterance in read_mlf(path)]

    def _frames(self, utterance: Utterance, files: OpenFile) -> Any:
        try:
            segments = list(self._segments(files.at(utterance.path, utterance.start), utterance))
        except OSError as error:
            raise ValueError(f"cannot read the master label file '{utterance.path}': {error.strerror or error}") from None
        if not segments:
            return NO_FRAMES
        classes, counts = zip(*segments, strict=True)
        return self._labelled(np.array(classes, np.int64), np.array(counts, np.int64), self._first_value)

    def _segments(self, file: BinaryIO, utterance: Utterance) -> Iterator[tuple[int, int]]:
        """Class and number of frames of each label of an utterance."""
        previous = 0
        for line_number, line in enumerate(file, utterance.line + 1):
            text = line.strip()
            if text == b".":
                return
            if text:
                try:
                    start, end, number = self._segment(text)
                    if start != previous:
                        raise ValueError(f"the label starts with frame {start}; expected {previous}, where the one before it ends")
                except ValueError as error:
                    raise ValueError(f"{utterance.path}, line {line_number}: {error}") from None
                previous = end
                yield number, end - start

    def _segment(self, text: bytes) -> tuple[int, int, int]:
        columns = text.split()
        if len(columns) < 3:
            raise ValueError(f"expected start, end and label, got '{_shown(text)}'")
        start, end = frame_of(columns[0]), frame_of(columns[1])
        if end < start:
            raise ValueError(f"the label ends, at {_shown(columns[1])}, before it starts, at {_shown(columns[0])}")
        number = self._classes.get(columns[2])
        if number is None:
            raise ValueError(f"the label '{_shown(columns[2])}' is not in '{self._mapping_file}'")
        if number >= self._dim:
            raise ValueError(f"the label '{_shown(columns[2])}' is of class {number}; expected less than {self._dim}, the stream's shape")
        return start, end, number


def read_mlf(path: str) -> Iterator[Utterance]:
    """The utterances of a master label file.

    Raises:
        RuntimeError: the file cannot be read, or is of another format.
    """
    try:
        with open(path, "rb") as file:
            if file.readline().strip() != FIRST_LINE:
                raise RuntimeError(f"{path}, line 1: expected {FIRST_LINE.decode()}, with which master label files begin")
            yield from _utterances(path, file)
    except OSError as error:
        raise RuntimeError(f"cannot read the master label file '{path}': {error.strerror or error}") from None


def _utterances(path: str, file: BinaryIO) -> Iterator[Utterance]:
    name: str | None = None
    start, first, last = 0, 0, b""
    offset = file.tell()
    for number, line in enumerate(file, 2):
        offset += len(line)
        text = line.strip()
        if not text:
            continue
        if name is None:
            if len(text) < 3 or not (text.startswith(b'"') and text.endswith(b'"')):
                raise RuntimeError(f"{path}, line {number}: expected the name of an utterance in quotation marks, got '{_shown(text)}'")
            name, start, first, last = logical_name(text[1:-1].decode(errors="surrogateescape")), offset, number, b""
        elif text == b".":
            yield Utterance(name, _end_of(last), path, start, first)
            name = None
        else:
            last = text
    if name is not None:
        raise RuntimeError(f"{path}, line {first}: the utterance '{name}' does not end: expected a line with a dot")


def _end_of(line: bytes) -> int:
    """The frame with which the last line of an utterance ends; 1 if it does not say, for it has to be read to say what is wrong."""
    columns = line.split()
    try:
        return max(frame_of(columns[1]), 1) if len(columns) > 1 else 1
    except ValueError:
        return 1


def frame_of(time: bytes) -> int:
    """The number of the frame that starts nearest to a time.

    Raises:
        ValueError: it is not a time.
    """
    try:
        frames = math.nan if b"_" in time else float(time) / FRAME
    except ValueError:
        frames = math.nan
    if not 0 <= frames < 2**31:
        raise ValueError(f"expected a time in units of 100 nanoseconds, got '{_shown(time)}'")
    return math.floor(frames + 0.5)


def read_classes(path: str) -> dict[bytes, int]:
    """The class of each label of a mapping file: the number of its line.

    Raises:
        RuntimeError: the file cannot be read, is empty, or has a label twice.
    """
    try:
        with open(path, "rb") as file:
            labels = [line.strip() for line in file]
    except OSError as error:
        raise RuntimeError(f"cannot read the label mapping file '{path}': {error.strerror or error}") from None
    classes: dict[bytes, int] = {}
    for number, label in enumerate(labels):
        if label and classes.setdefault(label, number) != number:
            raise RuntimeError(f"{path}, line {number + 1}: the label '{_shown(label)}' is on line {classes[label] + 1} as well")
    if not classes:
        raise RuntimeError(f"the label mapping file '{path}' is empty; expected a label a line")
    return classes


def _shown(text: bytes) -> str:
    return text[:40].decode(errors="replace")
