"""Texts of a fragment that is repeated, of 256 KiB and 1 MiB: every reader is done with them in time that grows as they do."""

from __future__ import annotations

import base64
import gzip
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C
from cntk.io import StreamDef, StreamDefs

SMALL, LARGE = 1 << 18, 1 << 20
SECONDS = 6.0
"""Processor time that 1 MiB may take on a machine that has other things to do: master label files of utterances of six bytes take longest,
two thirds of it; the others take less than one."""
STEEPEST = 8
"""How many times as long four times the text may take, where it takes longer than :data:`NOTHING`; a square takes sixteen times."""
NOTHING = 0.1

EXPECTED = (ValueError, RuntimeError, OSError)

SINGLES = [bytes([number]) for number in range(256)]
BLANKS = [b" ", b"\t", b"\n", b"\r", b"\r\n", b"\n\n", b" \t", b"\n "]
COMMON = [*BLANKS, b"0", b"1", b"00 ", b"1\n", b"\xff\xfe", b"\xef\xbb\xbf", b"\0", b'"']

Read = Callable[[str], Any]


class Reader:
    """A reader of texts.

    Args:
        name: what it is called.
        read: reads the file of a path.
        line: a line that it reads.
        fragments: of its grammar.
        head: what a file begins with.
        tail: what ends what a line begins.
    """

    def __init__(self, name: str, read: Read, line: bytes, fragments: Sequence[bytes], head: bytes = b"", tail: bytes = b"") -> None:
        self.name, self.read, self.line, self.head, self.tail = name, read, line, head, tail
        self.fragments = [*fragments, *COMMON]


def minibatches(deserializer: Any) -> None:
    """Read all of a source."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = C.io.MinibatchSource([deserializer], randomize=False, max_sweeps=1, multithreaded_deserializer=False)
        while source.next_minibatch(4096):
            pass


def ctf(sparse: bool = False, double: bool = False, by_line: bool = False, counted: bool = False) -> Read:
    def read(path: str) -> None:
        stream = StreamDef(field="a", shape=2, is_sparse=sparse, defines_mb_size=counted)
        deserializer = C.io.CTFDeserializer(path, StreamDefs(a=stream))
        deserializer["precision"] = "double" if double else "float"
        deserializer["skipSequenceIds"] = by_line
        deserializer["cacheIndex"] = False
        minibatches(deserializer)

    return read


def packed(read: Read) -> Read:
    """The same of a file that is compressed."""

    def unpack(path: str) -> None:
        Path(f"{path}.gz").write_bytes(gzip.compress(Path(path).read_bytes(), 1))
        read(f"{path}.gz")

    return unpack


def compiled_ctf(path: str) -> None:
    from cntk.readers.compiled import loops
    from cntk.readers.ctf.document import Document
    from cntk.readers.ctf.index import Settings
    from cntk.readers.deserializer import Errors
    from cntk.readers.streams import StreamConfiguration

    document = Document(path, [StreamConfiguration("a", 2, False, "a")], np.float32, Settings(), keep=False)
    is_compiled = loops("ctf.compiled") is not None
    list(document.read(0, len(document.index), Errors(), is_compiled))


def scp(path: str) -> None:
    minibatches(C.io.HTKFeatureDeserializer(StreamDefs(a=StreamDef(scp=path, shape=2))))


def labels_of(path: str, mapping: str) -> None:
    minibatches(C.io.HTKMLFDeserializer(mapping, StreamDefs(a=StreamDef(mlf=path, shape=2))))


def mlf(path: str) -> None:
    mapping = Path(f"{path}.labels")
    mapping.write_bytes(b"a\nb\n")
    labels_of(path, str(mapping))


def mapping(path: str) -> None:
    file = Path(f"{path}.mlf")
    file.write_bytes(b'#!MLF!#\n"u.lab"\n0 100000 a\n.\n')
    labels_of(str(file), path)


def image_map(path: str) -> None:
    minibatches(C.io.ImageDeserializer(path, StreamDefs(a=StreamDef(field="image"), b=StreamDef(field="label", shape=2))))


def image_texts(path: str) -> None:
    minibatches(C.io.Base64ImageDeserializer(path, StreamDefs(a=StreamDef(field="image"), b=StreamDef(field="label", shape=2))))


def mean(path: str) -> None:
    from cntk.readers.image.mean import read_mean

    read_mean(path)


def model(path: str) -> None:
    C.load_model(path)


_XML = b"<?xml version='1.0'?><opencv_storage><Channel>1</Channel><Row>1</Row><Col>1</Col><MeanImg><data>"

READERS = {
    reader.name: reader
    for reader in (
        Reader("ctf", ctf(), b"|a 1 2\n", [b"|", b"|a", b"|a ", b"|a 1", b"|a 1 2\n", b"1 |a 1 2\n", b"|#", b"#", b"1 ", b".", b"e", b"1.",
            b"1e", b"-", b"+1", b"|b ", b"9", b"1e400 ", b"0." , b"12345678901234567890\n", b"12345678901234567890 |a 1 2\n"]),
        Reader("ctf sparse", ctf(sparse=True), b"|a 1:2\n", [b"|a 1:", b"1:", b":", b"1:1 ", b"0:1 ", b"|a 1:1\n", b"1:1e9 ", b"1:1:"]),
        Reader("ctf double", ctf(double=True, by_line=True), b"|a 1 2\n", [b"1 |a 1 2\n", b"1", b"1e5", b".1"]),
        Reader("ctf counted", ctf(counted=True), b"1 |a 1 2\n", [b"|a", b"|a ", b"|aa", b"| ", b"|a\r", b"1 |a 1\n"]),
        Reader("ctf packed", packed(ctf()), b"|a 1 2\n", [b"|a 1 2\n", b"|a "]),
        Reader("ctf compiled", compiled_ctf, b"|a 1 2\n", [b"|", b"|a ", b"|a 1 2\n", b"1 |a 1 2\n", b"1 ", b"1e", b"|b", b"|#", b"0."]),
        Reader("scp", scp, b"a=b[0,1]\n",
            [b"=", b"a=", b"[", b"]", b"[0", b"a=b[", b"a=b[0,1", b"a=b[0,1]\n", b",", b".../", b"/"], tail=b"]"),
        Reader("mlf", mlf, b'"a.lab"\n0 100000 a\n.\n', [b'"a"\n', b'"a"\n.\n', b'"a"\n0 100000 a\n.\n', b"0 100000 a\n", b".",
            b".\n", b"0 ", b"a ", b"*/", b"/"], head=b"#!MLF!#\n", tail=b'"\n.\n'),
        Reader("mapping", mapping, b"a\nb\n", [b"a\n", b"a ", b"\n\n"]),
        Reader("image map", image_map, b"a.png\t0\n",
            [b"\t", b"\t0\n", b"a\t0\n", b"a\t", b"0\t", b".zip@/", b"@/", b".../"], tail=b"\t0\n"),
        Reader("image texts", image_texts, b"0\t" + base64.b64encode(b"image") + b"\n",
            [b"0\tAAAA\n", b"A", b"=", b"0\t", b"A=", b"===="], head=b"0\t"),
        Reader("mean", mean, b"1 ", [b"1 ", b"1", b"<a>", b"<a/>", b"<", b">", b"&", b"&lt;", b"1e400 ", b"<!--", b"<![CDATA[", b"<a b='"],
            head=_XML, tail=b"</data></MeanImg></opencv_storage>"),
        Reader("model", model, b"BCN\0", [b"B\0C\0N\0", b"BNode", b"\x0a\x80", b"\x0a\xff\xff\xff\xff\x07", b"\x12\x04", b"{", b"["],
            head=b"B\0C\0N\0\0\0"),
    )
}  # fmt: skip

PLACES = "alone", "behind lines", "inside a line", "without newline"


def text_of(reader: Reader, fragment: bytes, size: int, place: str) -> bytes:
    """So many bytes of a fragment, in some place of a file."""
    repeated = fragment * (size // len(fragment))  # whole, so that all sizes are right, or wrong, alike
    line = reader.line
    return {
        "alone": repeated + b"\n",
        "behind lines": reader.head + line * 3 + repeated + b"\n",
        "inside a line": reader.head + line * 3 + line.rstrip() + repeated + reader.tail + b"\n" + line,
        "without newline": reader.head + repeated,
    }[place]


def seconds(reader: Reader, text: bytes, folder: Path) -> float:
    """Processor time that a reader takes for a text, which it may refuse."""
    file = folder / "text"
    file.write_bytes(text)
    begin = time.process_time()
    with suppress(*EXPECTED):
        reader.read(str(file))
    return time.process_time() - begin


def check(reader: Reader, fragment: bytes, place: str, folder: Path) -> str:
    """Have a reader read a fragment that is repeated; tells how that went.

    Raises:
        AssertionError: it took too long.
    """
    taken = [seconds(reader, text_of(reader, fragment, size, place), folder) for size in (SMALL, LARGE)]
    for _ in range(2):  # the machine may have been busy
        if taken[1] <= SECONDS and (taken[1] <= NOTHING or taken[1] <= STEEPEST * taken[0]):
            break
        again = [seconds(reader, text_of(reader, fragment, size, place), folder) for size in (SMALL, LARGE)]
        taken = [min(pair) for pair in zip(taken, again, strict=True)]
    what = f"{reader.name}: {fragment!r} repeated, {place}, takes {taken[0]:.2f} s for 256 KiB and {taken[1]:.2f} s for 1 MiB"
    assert taken[1] <= SECONDS, f"{what}; expected {SECONDS:.0f} s at most"
    if taken[1] > max(NOTHING, STEEPEST * taken[0]):  # memory that is new, or a collection, may have come between
        longer = seconds(reader, text_of(reader, fragment, 4 * LARGE, place), folder)
        assert longer <= STEEPEST * taken[1], f"{what}, and {longer:.2f} s for 4 MiB; expected four times as long"
    return reader.name


def trial(random: np.random.Generator) -> str:
    """A fragment of one to three of a grammar's, or single bytes, in some place of a file of some reader."""
    reader = READERS[random.choice(list(READERS))]
    pool = reader.fragments if random.random() < 0.8 else SINGLES
    fragment = b"".join(pool[random.integers(len(pool))] for _ in range(random.integers(1, 4)))
    with tempfile.TemporaryDirectory() as folder:
        return check(reader, fragment, str(random.choice(PLACES)), Path(folder))
