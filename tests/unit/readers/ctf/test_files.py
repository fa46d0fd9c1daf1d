"""Text files on the disk: indices that are kept, packed files, several at once, and how little of them is in memory."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cntk.core.common.thresholds import thresholds
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.ctf import index as ctf_index
from cntk.readers.ctf import index_file
from cntk.readers.ctf.index import Settings
from cntk.readers.ctf.index_file import END, MAGIC, Rows, index_of
from cntk.readers.ctf.text import TextFile
from cntk.readers.deserializer import Errors

A = {"a": StreamDef(field="A", shape=1)}
TEXT = "".join(f"{i // 2} |A {i}\n" for i in range(20))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.ctf"
    path.write_text(TEXT)
    return path


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(thresholds, "ctf_index_kept", 0)
    folder = tmp_path / "cache"
    monkeypatch.setenv("CNTK_CACHE", str(folder))
    return folder


def values(filename: Any, **settings: Any) -> list[list[float]]:
    """The sequences of stream a."""
    return [rows for _, rows in keyed(filename, **settings)]


def keyed(filename: Any, **settings: Any) -> list[tuple[int, list[float]]]:
    """The sequences of stream a with their keys."""
    deserializer = CTFDeserializer(filename, StreamDefs(**A))
    for name, value in settings.items():
        deserializer[name] = value
    found: list[tuple[int, list[float]]] = []
    for chunk in range(len(deserializer.chunk_infos())):
        data = deserializer.get_chunk(chunk, Errors())["a"]
        keys = deserializer.sequence_infos(chunk).keys.tolist()
        found += [(key, data.sequence(number).ravel().tolist()) for number, key in enumerate(keys)]
    return found


EXPECTED = [[2 * i, 2 * i + 1] for i in range(10)]

# ---- indices ----


def test_an_index_is_made_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert values(str(file)) == EXPECTED
    assert sorted(path.name for path in file.parent.iterdir()) == ["data.ctf", "data.ctf.index"]
    monkeypatch.setattr(index_file, "rows_of", lambda *_: pytest.fail("indexed again"))
    assert values(str(file)) == EXPECTED


def test_an_index_is_made_again_when_the_file_changes(file: Path) -> None:
    values(str(file))
    file.write_text(TEXT.replace("0 |A 0", "7 |A 5"))
    assert values(str(file)) == [[5], [1], *EXPECTED[1:]]
    before = os.stat(file)
    file.write_text(TEXT)
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))  # as long, and as old as it was
    assert values(str(file)) == EXPECTED


def test_an_index_is_for_its_settings(file: Path) -> None:
    assert values(str(file), skipSequenceIds=True) == [[i] for i in range(20)]
    assert values(str(file)) == EXPECTED
    counted = CTFDeserializer(str(file), StreamDefs(a=StreamDef(field="A", shape=1, defines_mb_size=True)))
    assert counted.sequence_infos(0).lengths.tolist() == [2] * 10


def test_an_index_need_not_be_kept(file: Path) -> None:
    assert values(str(file), cacheIndex=False) == EXPECTED
    assert [path.name for path in file.parent.iterdir()] == ["data.ctf"]


def test_an_index_lies_in_the_cache_where_there_is_no_writing_beside_the_file(
    file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file.parent / "data.ctf.index").mkdir()
    assert values(str(file)) == EXPECTED
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(index_file, "rows_of", lambda *_: pytest.fail("indexed again"))
    assert values(str(file)) == EXPECTED


def test_an_index_is_in_no_place_where_there_is_no_writing_at_all(file: Path, cache: Path) -> None:
    (file.parent / "data.ctf.index").mkdir()
    cache.write_text("no folder")
    assert values(str(file)) == EXPECTED


@given(st.data())
@settings(deadline=None)
def test_a_damaged_index_is_made_again(tmp_path_factory: pytest.TempPathFactory, data: Any) -> None:
    file = tmp_path_factory.getbasetemp() / "damaged.ctf"
    index = Path(f"{file}.index")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "ctf_index_kept", 0)
        file.write_text(TEXT)
        index.unlink(missing_ok=True)
        assert values(str(file)) == EXPECTED
        damaged = bytearray(index.read_bytes())
        for _ in range(data.draw(st.integers(1, 3))):
            damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= data.draw(st.integers(1, 255))
        index.write_bytes(damaged[: data.draw(st.sampled_from([len(damaged), len(damaged) - 1, 40, 0]))])
        assert values(str(file)) == EXPECTED


@given(st.lists(st.integers(-5, 200), min_size=1, max_size=8), st.lists(st.integers(0, 9), min_size=8, max_size=8))
@settings(deadline=None)
def test_an_index_that_lies_does_no_harm(tmp_path_factory: pytest.TempPathFactory, starts: list[int], lines: list[int]) -> None:
    """Its check sum is right, and it is for this file."""
    import zlib

    file = tmp_path_factory.getbasetemp() / "lied.ctf"
    file.write_text(TEXT)
    size = len(TEXT)
    rows = np.zeros(len(starts) + 1, [("start", "<i8"), ("line", "<i8"), ("key", "<u8")])
    rows["start"] = [*starts, size]
    rows["line"][:-1] = np.cumsum(lines)[: len(starts)]
    rows["line"][-1] = 20
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "ctf_index_kept", 0)
        fingerprint = TextFile(str(file)).fingerprint(MAGIC, *Settings())
        end = END.pack(MAGIC, fingerprint, len(rows), 0, zlib.crc32(rows.tobytes()))
        Path(f"{file}.index").write_bytes(rows.tobytes() + end)
        message = complaint(str(file))
        assert not message or str(file) in message


def complaint(filename: str) -> str:
    """What is said of a file that cannot be read, nothing of one that can."""
    try:
        values(filename)
    except RuntimeError as error:
        return str(error)
    return ""


def test_rows_are_read_in_slices(file: Path) -> None:
    index = index_of(TextFile(str(file)), Settings())
    assert isinstance(index._rows, Rows)
    assert (len(index), index.has_ids) == (10, True)
    assert index.starts(3, 5).tolist() == [3 * 14, 4 * 14, 5 * 14]
    assert index.lines(3, 5).tolist() == [7, 9, 11]
    assert index.keys(3, 5).tolist() == [3, 4]
    assert (index.lengths(3, 5).tolist(), index.samples(0, 10)) == ([2, 2], 20)


LINES = st.sampled_from(["1 |A 1", "|A 2", "2 |A 3 |A 3", "2 |B 1", " |A 1"])


@given(st.lists(LINES, min_size=1, max_size=12), st.integers(1, 20), st.data())
@settings(deadline=None)
def test_blocks_make_no_difference(tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int, data: Any) -> None:
    """For the index of any text."""
    file = tmp_path_factory.getbasetemp() / "blocks.ctf"
    file.write_text("\n".join(lines))
    chosen = Settings(data.draw(st.booleans()), data.draw(st.sampled_from(["", "A"])))
    tables = []
    for size in (1 << 20, block):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ctf_index, "BLOCK", size)
            patch.setattr(thresholds, "ctf_index_kept", 1 << 60)
            tables.append(index_of(TextFile(str(file)), chosen)._rows)
    np.testing.assert_array_equal(*tables)


# ---- packed files ----


def test_a_packed_file_is_unpacked_once(file: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = file.with_suffix(".ctf.gz")
    packed.write_bytes(gzip.compress(TEXT.encode()[:100]) + gzip.compress(TEXT.encode()[100:]))  # of two members
    assert values(str(packed)) == EXPECTED
    monkeypatch.setattr(gzip, "open", lambda *_: pytest.fail("unpacked again"))
    assert values(str(packed)) == EXPECTED
    assert [path.suffix == ".index" for path in sorted(cache.iterdir())] == [False, True]


def test_a_packed_file_that_is_not_kept(file: Path, cache: Path) -> None:
    packed = file.with_suffix(".ctf.gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert values(str(packed), cacheIndex=False) == EXPECTED
    assert not cache.exists()


PACKED = gzip.compress(TEXT.encode(), mtime=0)


@pytest.mark.parametrize("content", [PACKED[:-12], b"0 |A 1\n", PACKED[:40] + bytes(40)], ids=["cut", "text", "overwritten"])
def test_a_packed_file_that_is_none(file: Path, cache: Path, content: bytes) -> None:
    packed = file.with_suffix(".ctf.gz")
    packed.write_bytes(content)
    with pytest.raises(RuntimeError, match=r"data\.ctf\.gz' is not a complete gzip file: .*, behind byte \d+ of its text"):
        values(str(packed))
    assert not list(cache.iterdir())


def test_there_is_no_room_to_unpack(file: Path, cache: Path) -> None:
    packed = file.with_suffix(".ctf.gz")
    packed.write_bytes(gzip.compress(TEXT.encode()))
    cache.write_text("no folder")
    with pytest.raises(RuntimeError, match=r"unpacked into .*; set the environment variable CNTK_CACHE to a folder with enough space"):
        values(str(packed))


# ---- several files ----


def test_several_files_are_one(tmp_path: Path) -> None:
    for name, text in (("b1", "|A 3\n|A 4"), ("b2", "|A 5\r\n"), ("a", "|A 1\n|A 2\n")):
        (tmp_path / f"{name}.ctf").write_text(text)
    everything = [(0, [1]), (1, [2]), (2, [3]), (3, [4]), (4, [5])]
    assert keyed(str(tmp_path / "*.ctf")) == everything
    assert keyed([str(tmp_path / "a.ctf"), str(tmp_path / "b?.ctf")]) == everything
    assert keyed([str(tmp_path / "b2.ctf"), str(tmp_path / "a.ctf")]) == [(0, [5]), (1, [1]), (2, [2])]
    source = MinibatchSource(CTFDeserializer(str(tmp_path / "*.ctf"), StreamDefs(**A)), randomize=False, max_sweeps=2)
    assert source.next_minibatch(7)[source.streams.a].asarray().ravel().tolist() == [1, 2, 3, 4, 5, 1, 2]


def test_ids_stay_what_they_are(tmp_path: Path) -> None:
    """A sequence does not go on in the next file."""
    (tmp_path / "1.ctf").write_text("5 |A 1\n5 |A 2\n")
    (tmp_path / "2.ctf").write_text("5 |A 3\n9 |A 4\n")
    assert keyed(str(tmp_path / "?.ctf")) == [(5, [1, 2]), (5, [3]), (9, [4])]


def test_a_file_of_several_is_named_in_errors(tmp_path: Path) -> None:
    (tmp_path / "1.ctf").write_text("|A 1\n")
    (tmp_path / "2.ctf").write_text("|A 2\n|A x\n")
    with pytest.raises(RuntimeError, match=r"2\.ctf, line 2, column 4: "):
        keyed(str(tmp_path / "?.ctf"))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no file whose name matches '.*x\*\.ctf'"):
        CTFDeserializer(str(tmp_path / "x*.ctf"), StreamDefs(**A))
    for none in ([], [""], ""):
        with pytest.raises(ValueError, match="no file name is given"):
            CTFDeserializer(none, StreamDefs(**A))


def test_a_name_may_look_like_a_pattern(tmp_path: Path) -> None:
    (tmp_path / "a[1].ctf").write_text("|A 1\n")
    assert values(str(tmp_path / "a[1].ctf")) == [[1]]


# ---- files that change ----


def test_a_file_that_vanishes(file: Path) -> None:
    deserializer = CTFDeserializer(str(file), StreamDefs(**A))
    deserializer.chunk_infos()
    file.unlink()
    with pytest.raises(RuntimeError, match=r"cannot read the text file '.*data\.ctf': No such file"):
        deserializer.get_chunk(0, Errors())


def test_a_file_that_is_written_anew(file: Path) -> None:
    deserializer = CTFDeserializer(str(file), StreamDefs(**A))
    deserializer.chunk_infos()
    os.utime(file, ns=(0, 0))
    with pytest.raises(RuntimeError, match=r"data\.ctf' has changed since it was first read"):
        deserializer.get_chunk(0, Errors())


PROGRAM = """
import resource, sys
from cntk.io import CTFDeserializer, StreamDef, StreamDefs
from cntk.readers.deserializer import Errors
from cntk.core.common.thresholds import thresholds
thresholds.ctf_compiled = 1 << 60  # to import Numba takes memory of its own
deserializer = CTFDeserializer(sys.argv[1], StreamDefs(a=StreamDef(field="A", shape=1)))
deserializer["chunkSizeInBytes"] = 1 << 18
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for chunk in range(len(deserializer.chunk_infos())):
    deserializer.sequence_infos(chunk)
    deserializer.get_chunk(chunk, Errors())
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_little_of_a_large_file_is_in_memory(tmp_path: Path) -> None:
    """Of 60 MB; a line has one."""
    file = tmp_path / "large.ctf"
    with open(file, "w") as out:
        for _ in range(60):
            out.write("|A 1\n" * 10_000 + f"|A 1 |# {'x' * 950_000}\n")
    environment = {**os.environ, "CNTK_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(file)], env=environment, capture_output=True, text=True, check=True)
    assert int(done.stdout) * 1024 < 40e6
