"""Features of speech in HTK's format.  Contents, context at the ends and what is refused were measured on CNTK 2.7."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk.io import CTFDeserializer, HTKFeatureDeserializer, LatticeDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.speech.htk import read_frames, read_header
from cntk.readers.speech.scp import read_scp
from cntk.readers.speech.utterances import key_of, logical_name
from cntk.testing import check_deserializer

USER, MFCC, COMPRESSED, WITH_CRC = 9, 6, 0o2000, 0o10000


def frames(start: float, number: int, dim: int = 3) -> Any:
    return (start + np.arange(number)[:, None] + np.arange(dim) / 10).astype(np.float32)


def htk(path: Path, data: Any, kind: int = USER, order: str = ">", **header: int) -> str:
    fields = {"frames": len(data), "size": 4 * data.shape[1], **header}
    path.write_bytes(struct.pack(f"{order}iiHH", fields["frames"], 100_000, fields["size"], kind) + data.astype(f"{order}f4").tobytes())
    return str(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with an archive of 20 frames."""
    htk(tmp_path / "archive.fea", frames(0, 20))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def features(scp: str, dim: Any = 3, name: str = "f", **settings: Any) -> HTKFeatureDeserializer:
    """A deserializer of a script file of these lines."""
    path = Path(f"{name}.scp")
    path.write_text(scp)
    return HTKFeatureDeserializer(StreamDefs(**{name: StreamDef(shape=dim, scp=str(path), **settings)}))


def served(deserializers: Any, name: str = "f", size: int = 1, **settings: Any) -> list[Any]:
    source = MinibatchSource(deserializers, **{"max_sweeps": 1, "randomize": False, **settings})
    found = []
    while minibatch := source.next_minibatch(size):
        found += minibatch[source.stream_info(name)].as_sequences()
    return found


THREE = "x=archive.fea[0,4]\ny=archive.fea[5,8]\nz=archive.fea[9,11]\n"


# ---- what is served ----


def test_utterances_are_ranges_of_archives(folder: Path) -> None:
    found = served(features(THREE))
    for utterance, expected in zip(found, (frames(0, 5), frames(5, 4), frames(9, 3)), strict=True):
        np.testing.assert_array_equal(utterance, expected)
    check_deserializer(lambda: features(THREE, context=(1, 2)))


def test_minibatches_hold_whole_utterances(folder: Path) -> None:
    source = MinibatchSource(features(THREE), randomize=False, max_sweeps=1)
    counts = []
    while minibatch := source.next_minibatch(8):
        data = minibatch[source.streams.f]
        counts.append((data.num_sequences, data.num_samples, data.end_of_sweep))
    assert counts == [(1, 5, False), (2, 7, True)]


def test_a_file_may_be_an_utterance(folder: Path) -> None:
    htk(folder / "whole.fea", frames(50, 2))
    found = served(features("whole.fea\nname=archive.fea\n\n  spaced=archive.fea[ 3 , 3 ]  \r\n"))
    for utterance, expected in zip(found, (frames(50, 2), frames(0, 20), frames(3, 1)), strict=True):
        np.testing.assert_array_equal(utterance, expected)


def test_paths_may_begin_in_the_folder_of_the_list(tmp_path: Path) -> None:
    htk(tmp_path / "a.fea", frames(0, 2))
    (tmp_path / "a.scp").write_text("x=.../a.fea[1,1]\n")
    deserializer = HTKFeatureDeserializer(StreamDefs(f=StreamDef(shape=3, scp=str(tmp_path / "a.scp"))))
    np.testing.assert_array_equal(served(deserializer), [frames(1, 1)])


def test_context_repeats_the_outermost_frames_of_the_utterance(folder: Path) -> None:
    deserializer = features("x=archive.fea[2,4]\n", context=(2, 1))
    assert deserializer.stream_infos()[0].sample_shape == (12,)
    (found,) = served(deserializer)
    expected = [[2, 2, 2, 3], [2, 2, 3, 4], [2, 3, 4, 4]]
    np.testing.assert_array_equal(found, [np.concatenate([frames(i, 1)[0] for i in row]) for row in expected])


def test_compressed_frames_and_others_byte_order(folder: Path) -> None:
    scale, offset = np.array([10, 20, 40.0]), np.array([5, 0, -5.0])
    packed = np.arange(12).reshape(4, 3)
    header = struct.pack(">iiHH", 8, 100_000, 6, USER | COMPRESSED)
    Path("packed.fea").write_bytes(header + scale.astype(">f4").tobytes() + offset.astype(">f4").tobytes() + packed.astype(">i2").tobytes())
    np.testing.assert_allclose(served(features("x=packed.fea[1,3]\n"))[0], ((packed + offset) / scale)[1:], rtol=1e-6)
    np.testing.assert_allclose(served(features("packed.fea\n"))[0], (packed + offset) / scale, rtol=1e-6)
    htk(folder / "little.fea", frames(0, 2), order="<")
    np.testing.assert_array_equal(served(features("little.fea\n")), [frames(0, 2)])
    htk(folder / "checked.fea", frames(0, 2), kind=MFCC | WITH_CRC)
    np.testing.assert_array_equal(served(features("checked.fea\n")), [frames(0, 2)])


def test_streams_of_one_deserializer_are_put_together_by_name(folder: Path) -> None:
    Path("a.scp").write_text(THREE)
    Path("b.scp").write_text("z.other=archive.fea[9,11]\nx.other=archive.fea[10,14]\n")
    deserializer = HTKFeatureDeserializer(StreamDefs(a=StreamDef(shape=3, scp="a.scp"), b=StreamDef(shape=3, scp="b.scp", context=(0, 1))))
    assert [(info.name, info.m_id, info.sample_shape) for info in deserializer.stream_infos()] == [("a", 0, (3,)), ("b", 1, (6,))]
    with pytest.warns(UserWarning, match="1 sequences"):
        source = MinibatchSource(deserializer, randomize=False, max_sweeps=1)
    minibatch = source.next_minibatch(100)
    assert [part[0, 0] for part in minibatch[source.streams.a].as_sequences()] == [0, 9]
    assert [part[0, 0] for part in minibatch[source.streams.b].as_sequences()] == [10, 9]


def test_one_frame_is_broadcast_to_all_of_an_utterance(folder: Path) -> None:
    htk(folder / "speakers.fea", frames(900, 3, 2))
    speakers = features("y=speakers.fea[1,1]\nx=speakers.fea[0,0]\nz=speakers.fea[2,2]\n", 2, "s", broadcast=True)
    found = served([features(THREE), speakers], "s")
    for utterance, start, number in zip(found, (900, 901, 902), (5, 4, 3), strict=True):
        np.testing.assert_array_equal(utterance, np.repeat(frames(start, 1, 2), number, axis=0))
    long = features("x=speakers.fea[1,2]\ny=speakers.fea[0,0]\nz=speakers.fea[0,0]\n", 2, "s", broadcast=True)
    with pytest.raises(RuntimeError, match="stream 's' is broadcast"):
        served([features(THREE), long], "s")


def test_utterances_with_numbers_meet_sequences_with_ids(folder: Path) -> None:
    Path("speaker.ctf").write_text("8 |y 0.5\n7 |y 1.5\n")
    speaker = CTFDeserializer("speaker.ctf", StreamDefs(y=StreamDef(field="y", shape=1)))
    found = served([features("7.fea=archive.fea[0,1]\n8.fea=archive.fea[2,3]\n"), speaker], "y")
    assert [float(part.item()) for part in found] == [1.5, 0.5]


def test_longer_utterances_are_left_out(folder: Path) -> None:
    assert [len(part) for part in served(features(THREE, max_sequence_length=4))] == [4, 3]


def test_only_the_current_chunks_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntk.readers.speech.utterances.CHUNK_BYTES", 5 * 12)
    deserializer = features(THREE)
    assert [(info.sequences, info.samples, info.nbytes) for info in deserializer.chunk_infos()] == [(1, 5, 60), (2, 7, 84)]
    check_deserializer(lambda: features(THREE))


# ---- names ----


@pytest.mark.parametrize(
    ("path", "name"),
    [("x", "x"), ("x.fea", "x"), ("a.b/x.y.fea", "a.b/x.y"), ("*/d/x.lab", "d/x"), ("a.b/x", "a.b/x"), (".lab", ".lab"), ("12.lab", "12")],
)
def test_names_lose_what_files_add_to_them(path: str, name: str) -> None:
    assert logical_name(path) == name


def test_keys_of_names_last() -> None:
    assert key_of("speaker1/utterance2") == 15123553827614030368
    assert key_of("12") == 12
    assert key_of(str(2**64)) != 2**64


# ---- what is wrong ----


@pytest.mark.parametrize("line", ["x=a.fea[1", "x=a.fea[1,a]", "x=a.fea[-1,2]", "x=a.fea[1]", "x=[0,1]", "x=", "x=y=a.fea[0,1]b"])
def test_lines_that_are_none_are_named(folder: Path, line: str) -> None:
    with pytest.raises(RuntimeError, match=r"f.scp, line 2: expected file, name=file or name=file\[first,last\], got '.*'"):
        served(features(f"a=archive.fea[0,1]\n{line}\n"))


def test_a_range_goes_forward(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"f.scp, line 1: the first frame, 5, comes after the last, 2"):
        served(features("x=archive.fea[5,2]\n"))


def test_a_script_file_must_be_there_and_list_something(folder: Path) -> None:
    with pytest.raises(RuntimeError, match=r"the script file 'f.scp' is empty"):
        served(features("\n"))
    deserializer = features("")
    Path("f.scp").unlink()
    with pytest.raises(RuntimeError, match=r"cannot read the script file 'f.scp': No such file"):
        served(deserializer)


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("none.fea", "No such file or directory"),
        ("tiny.fea", "it has 3 bytes; expected a header of 12 and frames"),
        ("wide.fea", "its frames have 4 elements, those of stream 'f' 3"),
        ("short.fea", "it ends at byte 35, within frames 0 to 1, which end at byte 36"),
        ("wave.fea", r"its header says 12 bytes a frame of kind 0; expected 4 bytes an element of kind LPREFC \(3\), "),
        ("odd.fea", "its header says 13 bytes a frame of kind 9"),
        ("few.fea", "frames 0 to 1 are wanted, it has 1"),
    ],
)
def test_files_that_cannot_be_read_are_named_and_may_be_left_out(folder: Path, file: str, message: str) -> None:
    Path("tiny.fea").write_bytes(b"123")
    htk(folder / "wide.fea", frames(0, 2, 4))
    Path(htk(folder / "short.fea", frames(0, 2))).write_bytes(Path("short.fea").read_bytes()[:-1])
    htk(folder / "wave.fea", frames(0, 2), kind=0)
    htk(folder / "odd.fea", frames(0, 2), size=13)
    htk(folder / "few.fea", frames(0, 1))
    scp = f"a=archive.fea[0,1]\nb={file}[0,1]\n"
    with pytest.raises(RuntimeError, match=f"f.scp, line 2: cannot read the features '{file}': {message}"):
        served(features(scp))
    np.testing.assert_array_equal(served(features(scp), max_errors=1), [frames(0, 2)])


def test_a_file_without_range_is_looked_at_first(folder: Path) -> None:
    htk(folder / "empty.fea", np.empty((0, 3)))
    for file, message in (("none.fea", "No such file"), ("empty.fea", "it has no frames")):
        with pytest.raises(RuntimeError, match=f"f.scp, line 1: cannot read the features '{file}': {message}"):
            MinibatchSource(features(f"{file}\n"))


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (StreamDef(field="f", shape=3, scp="a.scp"), "stream 'f' has the field 'f', but these files have no fields"),
        (StreamDef(shape=3), "stream 'f' names no script file"),
        (StreamDef(scp="a.scp"), "stream 'f' needs a shape"),
        (StreamDef(shape=3, scp="a.scp", context=(-1, 0)), "needs a context of no less than 0 frames"),
    ],
)
def test_streams_that_are_none_are_refused(stream: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HTKFeatureDeserializer(StreamDefs(f=stream))
    with pytest.raises(ValueError, match="no streams are given"):
        HTKFeatureDeserializer(StreamDefs())


def test_lattices_are_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"lattice_sequence_with_softmax, which opencntk does not have .*'lattices.toc'"):
        LatticeDeserializer("lattices.toc", StreamDefs(l=StreamDef()))


@settings(deadline=None)
@given(st.binary(max_size=80), st.integers(0, 5), st.integers(0, 5))
def test_bytes_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, data: bytes, first: int, more: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.fea"
    path.write_bytes(data)
    with open(path, "rb") as file, np.errstate(all="ignore"):
        try:
            header = read_header(file)
            found = read_frames(file, header, first, first + more)
        except ValueError:
            return
        assert found.shape == (more + 1, header.dim)


@settings(deadline=None)
@given(st.text(max_size=60))
def test_lines_are_refused_or_read(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.scp"
    path.write_text(text, encoding="utf-8")
    refused = ""
    try:
        assert all(entry.path for entry in read_scp(str(path)))
    except RuntimeError as error:
        refused = str(error)
    assert not refused or "any.scp, line " in refused
