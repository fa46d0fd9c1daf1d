"""CNTK's binary format: what is written is read, as CNTK 2.7 reads it, and damaged files are refused."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.cli import main
from cntk.io import CBFDeserializer, CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.cbf.writer import write_cbf
from cntk.readers.deserializer import Errors
from cntk.testing import check_deserializer

HEADER = "x A dense 2\ny B sparse 5\n"
TEXT = "0 |A 1 2 |B 0:1.5 3:2\n0 |A 3 4\n1 |A 5 6 |B 4:7\n2 |A 7 8 |B\n"
STREAMS = {"x": StreamDef(field="A", shape=2), "y": StreamDef(field="B", shape=5, is_sparse=True)}

# The sequences of TEXT, the last in a chunk of its own, in a file that CNTK 2.7 reads.
MAGIC = struct.pack("<Q", 0x636E746B5F62696E)
CHUNK_1 = struct.pack("<2I I4f I2f", 2, 1, 2, 1, 2, 3, 4, 1, 5, 6) + struct.pack("<Ii2f2ii Iifii", 1, 2, 1.5, 2, 0, 3, 2, 1, 1, 7, 4, 1)
CHUNK_2 = struct.pack("<I I2f Iii", 1, 1, 7, 8, 1, 0, 0)
NAMES = struct.pack("<BI1sBI", 0, 1, b"x", 0, 2) + struct.pack("<BI1sBI", 1, 1, b"y", 0, 5)
CHUNKS = struct.pack("<qII", 12, 2, 3) + struct.pack("<qII", 12 + len(CHUNK_1), 1, 1)
BYTES = (
    MAGIC + struct.pack("<I", 1) + CHUNK_1 + CHUNK_2 + MAGIC + struct.pack("<II", 2, 2) + NAMES + CHUNKS
    + struct.pack("<q", 12 + len(CHUNK_1) + len(CHUNK_2))
)  # fmt: skip


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.cbf"


def contents(deserializer: Any) -> dict[str, list[Any]]:
    """By stream the sequences, as nested lists."""
    found: dict[str, list[Any]] = {info.name: [] for info in deserializer.stream_infos()}
    for chunk in range(len(deserializer.chunk_infos())):
        for name, data in deserializer.get_chunk(chunk, Errors()).items():
            rows = data.rows.toarray() if hasattr(data.rows, "toarray") else data.rows
            found[name] += [rows[a:b].tolist() for a, b in zip(data.starts[:-1], data.starts[1:], strict=True)]
    return found


EXPECTED = {"x": [[[1, 2], [3, 4]], [[5, 6]], [[7, 8]]], "y": [[[1.5, 0, 0, 2, 0]], [[0, 0, 0, 0, 7]], [[0] * 5]]}


def test_a_file_is_read(file: Path) -> None:
    file.write_bytes(BYTES)
    deserializer = CBFDeserializer(str(file))
    assert [str(info) for info in deserializer.stream_infos()] == ["x([2])", "y([5])"]
    assert contents(deserializer) == EXPECTED
    assert [info[:2] for info in deserializer.chunk_infos()] == [(2, 3), (1, 1)]
    assert [deserializer.sequence_infos(chunk).keys.tolist() for chunk in (0, 1)] == [[0, 1], [2]]
    minibatch = MinibatchSource(deserializer, randomize=False, max_sweeps=1).next_minibatch(10)
    assert {info.name: (data.num_sequences, data.num_samples) for info, data in minibatch.items()} == {"x": (3, 4), "y": (3, 3)}


def test_a_file_is_written(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text, header = tmp_path / "data.ctf", tmp_path / "streams.txt"
    text.write_text(TEXT)
    header.write_text(HEADER)
    command = ["ctf2bin", "--input", str(text), "--header", str(header), "--output", str(file)]
    assert main([*command, "--chunk_size", "50"]) == 0
    assert capsys.readouterr().out == "3 sequences of 4 samples in 2 chunks\n"
    assert file.read_bytes() == BYTES
    text.write_text("0 |A 1 x |B\n1 |A 1 2 |B 1:1\n")
    assert main(command) == 1
    assert "line 1, column 8: field |A: expected a number" in capsys.readouterr().err
    assert main([*command, "--max_errors", "1", "--precision", "double"]) == 0
    assert contents(CBFDeserializer(str(file))) == {"x": [[[1, 2]]], "y": [[[0, 1, 0, 0, 0]]]}
    assert {info.dtype for info in CBFDeserializer(str(file)).stream_infos()} == {np.float64}
    header.write_text("x A dense\n")
    assert main(command) == 1
    assert f"'{header}', line 1: expected a name, a field, 'dense' or 'sparse' and a number" in capsys.readouterr().err
    header.write_text("\n")
    assert main(command) == 1
    assert f"'{header}' names no stream" in capsys.readouterr().err
    header.write_bytes(b"\xff")
    assert main(command) == 1
    assert f"'{header}' is not a text in UTF-8" in capsys.readouterr().err


@pytest.mark.parametrize("which", ["input", "header"])
def test_a_file_that_is_read_is_not_written_over(which: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = {"input": tmp_path / "data.ctf", "header": tmp_path / "streams.txt"}
    given["input"].write_text(TEXT)
    given["header"].write_text(HEADER)
    before = given[which].read_bytes()
    with pytest.raises(SystemExit) as ended:
        main(["ctf2bin", "--input", str(given["input"]), "--header", str(given["header"]), "--output", str(given[which])])
    assert ended.value.code == 2
    assert f"--output and --{which} are the same file" in capsys.readouterr().err
    assert given[which].read_bytes() == before


def test_streams_are_renamed(file: Path) -> None:
    file.write_bytes(BYTES)

    def names(**streams: Any) -> list[str]:
        return [info.name for info in CBFDeserializer(str(file), StreamDefs(**streams)).stream_infos()]

    assert names(left=StreamDef(field="x", shape=2)) == ["left", "y"]
    assert names(y=StreamDef(field="B", shape=5, is_sparse=True)) == ["x", "y"]  # the field of the text that it was made of
    with pytest.raises(ValueError, match="has no stream 'z'; it has x, y"):
        names(left=StreamDef(field="z"))
    for wrong in (StreamDef(field="x", shape=3), StreamDef(field="x", shape=2, is_sparse=True)):
        with pytest.raises(ValueError, match="stream 'x' is dense with 2 elements there"):
            names(left=wrong)
    with pytest.raises(ValueError, match="cannot define the minibatch size"):
        names(left=StreamDef(field="x", shape=2, defines_mb_size=True))


def test_it_does_what_deserializers_do(file: Path) -> None:
    file.write_bytes(BYTES)
    check_deserializer(lambda: CBFDeserializer(str(file)))


@pytest.mark.parametrize(
    ("at", "to", "message"),
    [
        (0, b"x", "byte 0: expected a file in CNTK's binary format"),
        (8, b"\2", "byte 8: expected version 1 of the format, got 2"),
        (-8, b"\1\0\0\0\0\0\0\1", "the header should begin at byte 72057594037927937, which lies outside"),
        (-8, b"\x0c", "expected the header"),
        (len(BYTES) - 8 - 32 - 22, b"\7", "expected a stream, which begins with 0 .dense. or 1 .sparse., got 7"),
        (len(BYTES) - 8 - 32 - 21, b"\xff\xff\xff", "the name of a stream, got one of 16777215 bytes"),
        (len(BYTES) - 8 - 32 - 5, b"\3", "elements of type 0 .float. or 1 .double., got 3"),
        (len(BYTES) - 8 - 32 - 4, b"\0", "expected 1 to 2147483647 elements, got 0"),
        (len(BYTES) - 8 - 32, b"\xff\xff", "chunk 0 of 2 sequences cannot lie at bytes"),
        (12, b"\3", "chunk 0 has not as many samples as the header says"),
        (20, b"\xff\xff\xff\xff", "byte 20: stream 'x': sequence 0 of 4294967295 samples does not fit into its chunk"),
        (12 + 8 + 32 + 4, b"\xff", "byte 52: stream 'y': sequence 0 of 1 samples and 255 pairs does not fit"),
        (12 + 8 + 32 + 16, b"\7", "the index 7 lies outside 0 … 4"),
        (12 + 8 + 32 + 24, b"\1", "the samples of sequence 0 have not as many pairs as it has"),
    ],
)
def test_what_is_wrong_with_a_file(file: Path, at: int, to: bytes, message: str) -> None:
    damaged = bytearray(BYTES)
    at %= len(BYTES)
    damaged[at : at + len(to)] = to
    file.write_bytes(damaged)
    with pytest.raises(RuntimeError, match=f"{file.name}, byte .*{message}" if "byte" not in message else message) as caught:
        MinibatchSource(CBFDeserializer(str(file)), max_sweeps=1).next_minibatch(10)
    assert str(file) in str(caught.value)


def test_what_is_no_file(file: Path) -> None:
    with pytest.raises(ValueError, match="no file name is given"):
        CBFDeserializer("")
    with pytest.raises(RuntimeError, match=r"cannot read the binary file '.*data\.cbf': No such file"):
        MinibatchSource(CBFDeserializer(str(file)))


@given(st.data())
@settings(deadline=None)
def test_any_damage_is_found_or_harmless(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.cbf"
    damaged = bytearray(BYTES)
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(BYTES) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(damaged[: data.draw(st.integers(0, len(BYTES)))])
    message = complaint(CBFDeserializer(str(file)))
    assert not message or str(file) in message


def complaint(deserializer: Any) -> str:
    """What is said of a file that cannot be read, nothing of one that can."""
    try:
        contents(deserializer)
        for chunk in range(len(deserializer.chunk_infos())):
            deserializer.sequence_infos(chunk)
    except RuntimeError as error:
        return str(error)
    return ""


@given(st.data())
@settings(deadline=None)
def test_what_is_written_is_read(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    """In either precision, in any number of chunks."""
    folder = tmp_path_factory.getbasetemp()
    numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
    lines = []
    for sequence in range(data.draw(st.integers(1, 8))):
        steps = data.draw(st.integers(1, 4))
        dense = data.draw(st.lists(st.lists(numbers, min_size=2, max_size=2), min_size=steps, max_size=steps))
        sparse = data.draw(st.lists(st.dictionaries(st.integers(0, 4), numbers, max_size=3), min_size=1, max_size=steps))
        lines.append(C.io.sequence_to_cntk_text_format(sequence, {"A": np.array(dense), "B": sparse}))
    text = folder / "written.ctf"
    text.write_text("\n".join(lines))
    source = CTFDeserializer(str(text), StreamDefs(**STREAMS))
    source["precision"] = data.draw(st.sampled_from(["float", "double"]))
    source["chunkSizeInBytes"] = data.draw(st.sampled_from([1, 50, 1 << 20]))
    write_cbf(folder / "written.cbf", source, Errors())
    written = CBFDeserializer(str(folder / "written.cbf"))
    assert contents(written) == contents(source)
    assert [info[:2] for info in written.chunk_infos()] == [info[:2] for info in source.chunk_infos()]
