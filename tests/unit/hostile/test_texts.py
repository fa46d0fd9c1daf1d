"""Texts that nobody writes on purpose are read, or refused, in time that grows as they do; archives and numbers keep within limits."""

from __future__ import annotations

import gzip
import os
import struct
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from counting import calls_of
from shares import share

import cntk as C
from cntk.core.common.thresholds import thresholds
from cntk.io import StreamDef, StreamDefs
from cntk.readers.ctf import index as ctf_index
from cntk.readers.ctf import text as ctf_text
from cntk.readers.image import files
from cntk.readers.image.mean import read_mean

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hostile"))
import texts


@pytest.fixture(autouse=True)
def modules(request: pytest.FixtureRequest) -> None:
    """What readers need that may not be installed."""
    if "image" in request.node.name:
        pytest.importorskip("PIL")


@pytest.mark.parametrize("fragment", [b" ", b"\t", b" \t", b"\n", b"0"], ids=repr)
@pytest.mark.parametrize("reader", texts.READERS)
def test_blanks_and_digits(reader: str, fragment: bytes, tmp_path: Path) -> None:
    texts.check(texts.READERS[reader], fragment, "alone", tmp_path)


EVERY = [(name, fragment, place) for name, reader in texts.READERS.items() for fragment in reader.fragments for place in texts.PLACES]
CASES = share(EVERY, 5)


@pytest.mark.slow
@pytest.mark.parametrize(("reader", "fragment", "place"), CASES, ids=[f"{name} {fragment!r} {place}" for name, fragment, place in CASES])
def test_every_fragment_of_every_grammar(reader: str, fragment: bytes, place: str, tmp_path: Path) -> None:
    texts.check(texts.READERS[reader], fragment, place, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("reader", texts.READERS)
def test_every_byte(reader: str, tmp_path: Path) -> None:
    for fragment in share(texts.SINGLES, 3):
        texts.check(texts.READERS[reader], fragment, "alone", tmp_path)


def source(path: Path) -> Any:
    deserializer = C.io.CTFDeserializer(str(path), StreamDefs(a=StreamDef(field="a", shape=2)))
    return C.io.MinibatchSource([deserializer], randomize=False, max_sweeps=1)


def test_a_run_of_blanks_is_refused_at_once(tmp_path: Path) -> None:
    (tmp_path / "f.ctf").write_bytes(b" " * 4_000_000)

    def read() -> None:
        with pytest.raises(RuntimeError, match="line 1, column 1: expected a sequence id or nothing"):
            source(tmp_path / "f.ctf").next_minibatch(7)

    assert calls_of(read) < 20_000


def test_a_line_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctf_index, "BLOCK", 1 << 10)
    monkeypatch.setattr(ctf_index, "LONGEST_LINE", 1 << 12)
    (tmp_path / "f.ctf").write_bytes(b"|a 1 2\n" + b"|a " + b"1" * (1 << 14) + b"\n|a 1 2\n")
    with pytest.raises(RuntimeError, match=r"f.ctf, byte 8: the line that begins here has more than 0 MiB"):
        source(tmp_path / "f.ctf")


# ---- archives ----


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_text_that_unpacks_to_much_more_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool) -> None:
    monkeypatch.setenv("CNTK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(ctf_text, "MOST_UNPACKED", 1 << 20)
    (tmp_path / "f.ctf.gz").write_bytes(gzip.compress(b"|a 1 2\n" * 2_000_000))
    with pytest.raises(RuntimeError, match=r"f.ctf.gz' unpacks to more than \d+ MiB, 100 times its size or more"):
        ctf_text.TextFile(str(tmp_path / "f.ctf.gz"), is_kept)
    assert not list((tmp_path / "cache").glob("*"))


def test_a_text_that_was_unpacked_in_part_is_unpacked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "f.ctf.gz").write_bytes(gzip.compress(b"|a 1 2\n" * 100))
    plain = ctf_text.TextFile(str(tmp_path / "f.ctf.gz")).plain
    for content in (b"", b"|a 1 2\n", b"|a 1 2\n" * 101):
        Path(plain).write_bytes(content)
        assert ctf_text.TextFile(str(tmp_path / "f.ctf.gz")).plain == plain
        assert Path(plain).read_bytes() == b"|a 1 2\n" * 100


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system does not tell who owns a file")
def test_texts_and_indices_that_others_may_have_written_are_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.readers.ctf import index_file

    monkeypatch.setenv("CNTK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(thresholds, "ctf_index_kept", 0)
    (tmp_path / "f.ctf.gz").write_bytes(gzip.compress(b"|a 1 2\n" * 10))
    text = ctf_text.TextFile(str(tmp_path / "f.ctf.gz"))
    Path(text.plain).chmod(0o666)
    with pytest.warns(RuntimeWarning, match="is not trusted: .* The text is unpacked again"):
        text = ctf_text.TextFile(str(tmp_path / "f.ctf.gz"))
    index_file.index_of(text, ctf_index.Settings())
    Path(f"{text.plain}.index").chmod(0o666)
    with pytest.warns(RuntimeWarning, match=r"index is not trusted: .* The index of the text is recreated"):
        assert len(index_file.index_of(text, ctf_index.Settings())) == 10


def test_a_user_without_a_home_reads_texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.readers.ctf import cache, index_file

    monkeypatch.delenv("CNTK_CACHE", raising=False)
    monkeypatch.setattr(cache, "user_cache", lambda name: None)
    monkeypatch.setattr(thresholds, "ctf_index_kept", 0)
    monkeypatch.setattr(index_file, "write_trusted", lambda *_: (_ for _ in ()).throw(PermissionError()))
    (tmp_path / "f.ctf").write_bytes(b"|a 1 2\n" * 10)
    (tmp_path / "g.ctf.gz").write_bytes(gzip.compress(b"|a 1 2\n" * 10))
    for name in ("f.ctf", "g.ctf.gz"):
        assert source(tmp_path / name).next_minibatch(10)


def read_image(place: Path) -> bytes:
    return files.Files().read(str(place))


def test_members_of_archives_that_are_too_large_are_refused_before_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("large.png", bytes((1 << 20) + 1))
        archive.writestr("small.png", b"small")
    with pytest.raises(ValueError, match=r"'large.png' in the archive '.*a.zip' unpacks to 1048577 bytes; expected an image"):
        read_image(tmp_path / "a.zip@" / "large.png")
    assert read_image(tmp_path / "a.zip@" / "small.png") == b"small"
    (tmp_path / "large.png").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(ValueError, match="it has 1048577 bytes; expected an image"):
        read_image(tmp_path / "large.png")


@pytest.mark.parametrize("method", ["ZIP_DEFLATED", "ZIP_BZIP2", "ZIP_LZMA"])
def test_damaged_members_of_archives_are_named(tmp_path: Path, method: str) -> None:
    pytest.importorskip({"ZIP_DEFLATED": "zlib", "ZIP_BZIP2": "bz2", "ZIP_LZMA": "lzma"}[method])
    with zipfile.ZipFile(tmp_path / "a.zip", "w", getattr(zipfile, method)) as archive:
        archive.writestr("a.png", np.random.default_rng(0).bytes(200))
    whole = (tmp_path / "a.zip").read_bytes()
    refused = 0
    for place in range(30, 200):
        (tmp_path / "a.zip").write_bytes(whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :])
        try:
            read_image(tmp_path / "a.zip@" / "a.png")
        except ValueError as error:
            assert "a.zip" in str(error) or "Invalid" in str(error)  # noqa: PT017  (a few changes do no harm)
            refused += 1
    assert refused > 150


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_are_no_images(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ValueError, match="it is not a regular file"):
        read_image(tmp_path / "pipe.png")


# ---- other formats ----


@pytest.mark.parametrize("frames", [0, -1, 2**31 - 1])
def test_frames_are_not_read_behind_the_end_of_a_file(tmp_path: Path, frames: int) -> None:
    (tmp_path / "a.fea").write_bytes(struct.pack(">iiHH", frames, 100000, 65532, 9) + bytes(100))
    (tmp_path / "a.scp").write_text(f"a={tmp_path}/a.fea[0,60000]\n")
    deserializer = C.io.HTKFeatureDeserializer(StreamDefs(a=StreamDef(scp=str(tmp_path / "a.scp"), shape=65532 // 4)))
    with pytest.raises(RuntimeError, match="it ends at byte 112, within frames 0 to 60000"):
        C.io.MinibatchSource([deserializer], randomize=False, max_sweeps=1).next_minibatch(1)


@pytest.mark.parametrize("number", ["1e400", "inf", "nan", "-1e39"])
@pytest.mark.parametrize("field", ["Channel", "MeanImg"])
def test_mean_images_of_numbers_beyond_the_type(tmp_path: Path, number: str, field: str) -> None:
    channel, mean = (number, "1") if field == "Channel" else ("1", number)
    file = tmp_path / "mean.xml"
    file.write_text(f"<a><Channel>{channel}</Channel><Row>1</Row><Col>1</Col><MeanImg><data>{mean}</data></MeanImg></a>")
    with pytest.raises(RuntimeError, match=rf"mean.xml': {field}.* has a number that is infinite, not a number or too large for float32"):
        read_mean(str(file))


@pytest.mark.parametrize("digits", [b"1" * 5000, b"0" * 5000 + b"7"])
def test_utterances_that_are_called_by_many_digits(tmp_path: Path, digits: bytes) -> None:
    (tmp_path / "a.mlf").write_bytes(b'#!MLF!#\n"' + digits + b'.lab"\n0 100000 a\n.\n')
    (tmp_path / "labels").write_text("a\n")
    deserializer = C.io.HTKMLFDeserializer(str(tmp_path / "labels"), StreamDefs(a=StreamDef(mlf=str(tmp_path / "a.mlf"), shape=1)))
    assert C.io.MinibatchSource([deserializer], randomize=False, max_sweeps=1).next_minibatch(1)
