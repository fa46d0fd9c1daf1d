"""Labels of the frames of speech, as text and binary.  Contents, rounding of times and what is refused were measured on CNTK 2.7."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.io import HTKMLFBinaryDeserializer, HTKMLFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.deserializer import Errors
from cntk.readers.speech.binary_mlf import read_utterances
from cntk.testing import check_deserializer

HEAD = "#!MLF!#\n"
X = '"x.lab"\n0 200000 sil\n200000 500000 a\n.\n'
Y = '"*/y.rec"\n0 400000 b\n.\n'
Z = '"z"\n0 100000 c\n100000 300000 sil\n.\n'
LABELS = [[0, 0, 1, 1, 1], [2, 2, 2, 2], [3, 0, 0]]
SEGMENTS = [[(0, 2), (1, 3)], [(2, 4)], [(3, 1), (0, 2)]]


@pytest.fixture(autouse=True)
def states(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapping file of four labels in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("states").write_text("sil\na\nb\nc\n")


def text(content: str, dim: int = 4, mapping: str = "states", boundaries: bool = False) -> HTKMLFDeserializer:
    Path("l.mlf").write_text(content, newline="")
    return HTKMLFDeserializer(mapping, StreamDefs(l=StreamDef(shape=dim, mlf="l.mlf")), boundaries)


def packed(names: Sequence[int | bytes], segments: Any = SEGMENTS, frames: int | None = None) -> bytes:
    """A binary file whose utterances have numbers or names."""
    numbered = isinstance(names[0], int)
    data = b"MLF" + struct.pack("<H", 1 if numbered else 2)
    for name, parts in zip(names, segments, strict=True):
        data += struct.pack("<I", name) if isinstance(name, int) else struct.pack("<H", len(name)) + name
        data += struct.pack("<IH", sum(n for _, n in parts) if frames is None else frames, len(parts))
        data += b"".join(struct.pack("<HH", *part) for part in parts)
    return data


def binary(data: bytes, dim: int = 4) -> HTKMLFBinaryDeserializer:
    Path("l.bin").write_bytes(data)
    return HTKMLFBinaryDeserializer(StreamDefs(l=StreamDef(shape=dim, mlf=["l.bin"])))


def served(deserializers: Any, dim: int = 4, **settings: Any) -> list[Any]:
    """The rows of each utterance."""
    source = MinibatchSource(deserializers, **{"max_sweeps": 1, "randomize": False, **settings})
    found = []
    while minibatch := source.next_minibatch(100):
        found += minibatch[source.streams.l].as_sequences(C.sequence.input_variable(dim, is_sparse=True))
    return found


def classes(deserializers: Any, **settings: Any) -> list[list[int]]:
    return [rows.indices.tolist() for rows in served(deserializers, **settings)]


# ---- text ----


def test_frames_get_the_labels_of_their_times() -> None:
    found = served(text(HEAD + X + Y + Z))
    assert [rows.indices.tolist() for rows in found] == LABELS
    assert {value for rows in found for value in rows.data.tolist()} == {1}
    check_deserializer(lambda: text(HEAD + X + Y + Z))


def test_first_frames_can_be_marked() -> None:
    found = served(text(HEAD + X + Y + Z, boundaries=True))
    assert [rows.data.tolist() for rows in found] == [[2, 1, 2, 1, 1], [2, 1, 1, 1], [2, 2, 1]]
    assert [rows.indices.tolist() for rows in found] == LABELS


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (X.replace("200000", "250000"), [0, 0, 0, 1, 1]),
        (X.replace("200000", "0"), [1, 1, 1, 1, 1]),
        (X.replace("sil", "sil -12.5 sil"), LABELS[0]),
        (X.replace("500000", "5e5"), LABELS[0]),
        (X.replace("\n", "\r\n"), LABELS[0]),
        ("\n" + X.replace(" a", "\ta\n"), LABELS[0]),
    ],
)
def test_times_are_rounded_and_more_columns_passed_over(content: str, expected: list[int]) -> None:
    assert classes(text(HEAD + content)) == [expected]


def test_labels_may_be_in_several_files() -> None:
    Path("1.mlf").write_text(HEAD + X)
    Path("2.mlf").write_text(HEAD + Y + Z)
    deserializer = HTKMLFDeserializer("states", StreamDefs(l=StreamDef(shape=4, mlf=["1.mlf", "2.mlf"])))
    assert classes(deserializer) == LABELS


def test_labels_are_found_by_the_names_of_features() -> None:
    Path("a.fea").write_bytes(struct.pack(">iiHH", 12, 100_000, 4, 9) + bytes(48))
    Path("f.scp").write_text("z.fea=a.fea[9,11]\nx.fea=a.fea[0,4]\n")
    features = C.io.HTKFeatureDeserializer(StreamDefs(f=StreamDef(shape=1, scp="f.scp")))
    assert classes([features, text(HEAD + X + Y + Z)]) == [LABELS[2], LABELS[0]]
    assert classes([features, binary(packed([b"x", b"y", b"z"]))]) == [LABELS[2], LABELS[0]]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (X.replace("sil", "zz"), 3, "the label 'zz' is not in 'states'"),
        (X.replace("\n200000", "\n300000"), 4, "the label starts with frame 3; expected 2, where the one before it ends"),
        (X.replace("\n0", "\n100000"), 3, "the label starts with frame 1; expected 0"),
        (X.replace("500000", "100000"), 4, "the label ends, at 100000, before it starts, at 200000"),
        (X.replace("500000", "abc"), 4, "expected a time in units of 100 nanoseconds, got 'abc'"),
        (X.replace("500000", "nan"), 4, "expected a time in units of 100 nanoseconds, got 'nan'"),
        (X.replace("500000", "1e300"), 4, "expected a time in units of 100 nanoseconds, got '1e300'"),
        (X.replace("200000 500000 a", "a"), 4, "expected start, end and label, got 'a'"),
        (X.replace("500000 a", "500000"), 4, "expected start, end and label, got '200000 500000'"),
        (X[:-2] + Y, 5, "expected start, end and label, got"),
    ],
)
def test_what_is_wrong_with_an_utterance_is_named_and_may_be_left_out(content: str, line: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"l.mlf, line {line}: {message}"):
        served(text(HEAD + content))
    assert classes(text(HEAD + content + Z), max_errors=1) == [LABELS[2]]


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        (X, 1, "expected #!MLF!#, with which master label files begin"),
        (HEAD + X.replace('"', ""), 2, "expected the name of an utterance in quotation marks, got 'x.lab'"),
        (HEAD + X + Y[:-2], 6, "the utterance 'y' does not end: expected a line with a dot"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_when_a_source_is_made(content: str, line: int, message: str) -> None:
    with pytest.raises(RuntimeError, match=f"l.mlf, line {line}: {message}"):
        MinibatchSource(text(content))


def test_the_shape_bounds_the_classes() -> None:
    with pytest.raises(RuntimeError, match=r"l.mlf, line 10: the label 'c' is of class 3; expected less than 3, the stream's shape"):
        served(text(HEAD + X + Y + Z, dim=3), dim=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot read the label mapping file 'm': No such file"),
        ("", "is empty"),
        ("a\nb\na\n", "m, line 3: the label 'a' is on line 1"),
    ],
)
def test_mapping_files_are_checked(content: str | None, message: str) -> None:
    if content is not None:
        Path("m").write_text(content)
    with pytest.raises(RuntimeError, match=message):
        MinibatchSource(text(HEAD + X, mapping="m"))


def test_a_label_file_must_be_there() -> None:
    deserializers = text(HEAD), binary(b"MLF\1\0")
    Path("l.mlf").unlink()
    Path("l.bin").unlink()
    for deserializer, name in zip(deserializers, ("l.mlf", "l.bin"), strict=True):
        with pytest.raises(RuntimeError, match=f"cannot read the master label file '{name}': No such file"):
            MinibatchSource(deserializer)


def test_streams_that_are_none_are_refused() -> None:
    for kind in (lambda streams: HTKMLFDeserializer("states", streams), HTKMLFBinaryDeserializer):
        with pytest.raises(ValueError, match="expected one stream, got 2"):
            kind(StreamDefs(a=StreamDef(shape=1, mlf="a"), b=StreamDef(shape=1, mlf="b")))
        with pytest.raises(ValueError, match="names no master label file"):
            kind(StreamDefs(a=StreamDef(shape=1)))
        with pytest.raises(ValueError, match="these files have no fields"):
            kind(StreamDefs(a=StreamDef(field="a", shape=1, mlf="a")))


# ---- binary ----


@pytest.mark.parametrize("names", [(12, 13, 14), (b"x", b"y", b"z")])
def test_binary_files_have_numbers_or_names(names: Sequence[int | bytes]) -> None:
    assert classes(binary(packed(names))) == LABELS
    check_deserializer(lambda: binary(packed(names)))
    keys = binary(packed(names)).sequence_infos(0).keys.tolist()
    assert (keys == list(names)) == isinstance(names[0], int)


def test_segments_without_frames_are_passed_over() -> None:
    assert classes(binary(packed([1], [[(3, 0), (1, 2)]]))) == [[1, 1]]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "l.bin, byte 0: the file ends where 5 more bytes are expected"),
        (b"MLG\1\0", "expected MLF and version 1 or 2, got b'MLG"),
        (b"MLF\3\0", "expected MLF and version 1 or 2, got b'MLF"),
        (packed([1, 2, 3])[:-3], "l.bin, byte 52: the file ends where 3 more bytes are expected"),
        (packed([1], [[]]), "the utterance '1' has no frames"),
    ],
)
def test_a_binary_file_that_is_none_is_named_with_the_byte(data: bytes, message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        MinibatchSource(binary(data))


def test_a_binary_utterance_that_is_wrong_is_named_and_may_be_left_out() -> None:
    with pytest.raises(RuntimeError, match=r"l.bin, byte 6: utterance '1': it is said to have 7 frames, its segments have 5"):
        served(binary(packed([1], SEGMENTS[:1], frames=7)))
    with pytest.raises(RuntimeError, match=r"l.bin, byte 6: utterance '1': it has the class 9; expected less than 4, the stream's shape"):
        served(binary(packed([1], [[(9, 1)]])))
    assert classes(binary(packed([1, 2], [[(9, 1)], [(2, 4)]])), max_errors=1) == [[2, 2, 2, 2]]


# ---- anything ----


@settings(deadline=None)
@given(st.text(alphabet='"x.lab\n0123456789 #!MLF\r', max_size=80))
def test_text_is_refused_or_read(content: str) -> None:
    deserializer = text(HEAD + content)
    refused = ""
    try:
        for chunk in range(len(deserializer.chunk_infos())):
            deserializer.get_chunk(chunk, Errors(1000))
    except RuntimeError as error:
        refused = str(error)
    assert not refused or "l.mlf, line " in refused


@settings(deadline=None)
@given(st.binary(max_size=60), st.sampled_from([1, 2]))
def test_bytes_are_refused_or_read(data: bytes, version: int) -> None:
    Path("any.bin").write_bytes(b"MLF" + struct.pack("<H", version) + data)
    refused = ""
    try:
        assert all(utterance.frames for utterance in read_utterances("any.bin"))
    except RuntimeError as error:
        refused = str(error)
    assert not refused or "any.bin, byte " in refused
