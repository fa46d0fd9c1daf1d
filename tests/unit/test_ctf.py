"""CNTK's text format: what is read, what is refused, and how little of a file is in memory.  Accepted and refused texts, and their
contents, were measured on CNTK 2.7."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cntk as C
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.ctf import deserializer as ctf
from cntk.readers.ctf import index as ctf_index
from cntk.readers.ctf.grammar import read_line
from cntk.readers.ctf.numbers import read_numbers
from cntk.readers.ctf.scan import scan
from cntk.readers.deserializer import Errors
from cntk.readers.streams import StreamConfiguration

A = {"a": StreamDef(field="A", shape=1)}
AB = {"a": StreamDef(field="A", shape=1), "b": StreamDef(field="B", shape=2)}
NO_NUMBERS = [
    ".5",
    "-.5",
    "nan",
    "inf",
    "1e",
    "1e+",
    "1.2.3",
    "1e5.0",
    "1e5e6",
    "--1",
    "+",
    "0x10",
    "1_0",
    "1,5",
    "1d5",
    "5.e1",
    "x",
    "1\x0b",
]
SPARSE = {"a": StreamDef(field="A", shape=6, is_sparse=True)}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.ctf"


def read(file: Path, text: str | bytes, streams: dict[str, Any], **arguments: Any) -> dict[str, list[list[list[float]]]]:
    """By stream the sequences of one sweep, as nested lists."""
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    source = MinibatchSource(CTFDeserializer(str(file), StreamDefs(**streams)), randomize=False, max_sweeps=1, **arguments)
    found = source.next_minibatch(10**6)
    shapes = {name: C.sequence.input_variable(stream.dim, is_sparse=stream.is_sparse) for name, stream in streams.items()}
    parts = {name: found[source[name]].as_sequences(shapes[name]) for name in streams}
    return {name: [(p.toarray() if hasattr(p, "toarray") else p).tolist() for p in sequences] for name, sequences in parts.items()}


@pytest.mark.parametrize(
    ("text", "sequences"),
    [
        ("|A 1\n|A 2\n", [[[1]], [[2]]]),
        ("0 |A 1\n0 |A 2\n1 |A 3\n", [[[1], [2]], [[3]]]),
        ("0 |A 1\n1 |A 2\n0 |A 3\n", [[[1]], [[2]], [[3]]]),  # the id is compared with that of the line before
        ("007 |A 1\n7 |A 2\n", [[[1], [2]]]),
        ("0 |A 1\n|A 2\n0 |A 3\n", [[[1], [2], [3]]]),  # a line without id goes on
        ("|A 1\n5 |A 2\n5 |A 3\n|A 4\n", [[[1]], [[2]], [[3]], [[4]]]),  # unless the file begins with one
        ("  |A 1\n \t|A 2\n", [[[1]], [[2]]]),
        ("3|A 1\n4|A 5\n", [[[1]], [[5]]]),
        ("18446744073709551615 |A 1\n18446744073709551614 |A 2\n", [[[1]], [[2]]]),
        ("0\t|A\t1\t\n", [[[1]]]),
        ("|A 1   \t \n|A 2 \n", [[[1]], [[2]]]),
        ("0 |A 1\r\n0 |A 2\r\n1 |A 3\r\n", [[[1], [2]], [[3]]]),
        ("0 |A 1\n1 |A 2", [[[1]], [[2]]]),
        ("\n|A 1\n", [[[1]]]),
        ("\ufeff|A 1\n|A 2\n", [[[1]], [[2]]]),
        ("|A 1 |# äö 7\n|A 2|#\n", [[[1]], [[2]]]),
        ("|A 1\n|# hello |A 3\n", [[[1]], [[3]]]),
        ("|A 1 |# he#|llo\n|A 3\n", [[[1]], [[3]]]),
        ("|U 1 2 x:y |A 1|AB 3\n|A 2 |a 5\n", [[[1]], [[2]]]),  # other fields, other names
        ("|A 5.\n|A +3\n|A 2E1\n|A 1e+02\n|A 00012\n|A -0.5\n", [[[5]], [[3]], [[20]], [[100]], [[12]], [[-0.5]]]),
        ("|A 1e-2\n", [[[np.float32(0.01)]]]),
        ("|A 1e400\n|A 1e-400\n|A 1e39\n", [[[np.inf]], [[0]], [[np.inf]]]),
    ],
)
def test_one_dense_stream(file: Path, text: str, sequences: Any) -> None:
    assert read(file, text, A) == {"a": sequences}


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("|A 0:1 5:2\n", [[1, 0, 0, 0, 0, 2]]),
        ("|A 5:2 0:1\n", [[1, 0, 0, 0, 0, 2]]),
        ("|A 3:1 3:4\n", [[0, 0, 0, 5, 0, 0]]),
        ("0 |A\n0 |A 1:-2e1\n", [[0, 0, 0, 0, 0, 0], [0, -20, 0, 0, 0, 0]]),
        ("0 |A \n", [[0, 0, 0, 0, 0, 0]]),
    ],
)
def test_a_sparse_stream(file: Path, text: str, rows: Any) -> None:
    assert read(file, text, SPARSE) == {"a": [rows]}


@pytest.mark.parametrize(
    ("text", "first", "second"),
    [
        ("0 |A 1 |B 1 2\n0 |A 2\n1 |B 3 4 |A 5\n", [[[1], [2]], [[5]]], [[[1, 2]], [[3, 4]]]),
        ("0 |A 1\n0 |A 2 |B 1 2\n", [[[1], [2]]], [[[1, 2]]]),
        ("0 |A 1 |A 2 |B 1 2\n0 |B 3 4\n", [[[1], [2]]], [[[1, 2], [3, 4]]]),  # no more samples than lines
    ],
)
def test_two_streams(file: Path, text: str, first: Any, second: Any) -> None:
    assert read(file, text, AB) == {"a": first, "b": second}


def test_missing_numbers_are_zeros(file: Path) -> None:
    with pytest.warns(UserWarning, match=r"data\.ctf, line 2: fewer numbers than a dense sample has \(\|A 1, \|B 2\)"):
        assert read(file, "|A 1 |B 3 4\n|A |B 1\n|A 2 |B\n", AB) == {"a": [[[1]], [[0]], [[2]]], "b": [[[3, 4]], [[1, 0]], [[0, 0]]]}


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("x |A 1\n", 1, "expected a sequence id (digits) or a field (|name values), the line begins with b'x'"),
        ("-1 |A 1\n", 1, "expected a sequence id"),
        ("# hello\n|A 1\n", 1, "expected a sequence id"),
        ("0 abc |A 1\n", 1, "expected a sequence id or nothing, then fields"),
        ("  0 |A 1\n", 1, "expected a sequence id or nothing"),
        ("0 |A 1\n18446744073709551616 |A 2\n", 2, "the sequence id 18446744073709551616 is larger than 18446744073709551615"),
        ("|A 1\n\n|A 2\n", 2, "expected a sequence id or nothing"),
        ("|A 1\n  \n|A 2\n", 2, "expected a sequence id or nothing"),
        ("0 |A 1\n0 |# hello\n", 2, "expected at least one of the fields |A"),
        ("|A 1\n|U 1\n", 2, "expected at least one of the fields |A"),
        ("|A1 2\n", 1, "expected at least one of the fields |A"),
        ("| A 2\n", 1, "expected the name of a field behind '|'"),
        ("| 2 |A 4\n", 1, "expected the name of a field"),
        ("|A 1 2\n", 1, "field |A: expected 1 numbers, got 2"),
        ("|A 1:2\n", 1, "or is_sparse=True for index:value, got '1:2'"),
        ("|A 1\n|A 1 |A 2\n", 2, "2 samples of |A in 1 lines; expected one in a line"),
        *((f"|A 1\n|A {number}\n", 2, f"expected a number such as -1.5 or 2e-3, got {number!r}") for number in NO_NUMBERS),
    ],
)
def test_what_is_wrong_with_a_dense_stream(file: Path, text: str, line: int, expected: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        read(file, text, A)
    assert f"{file}, line {line}: " in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("pair", ["1: 2", "1 :2", "-1:2", "+1:2", "1.0:2", "1:2:3", "1", ":1", "1:", "1:.5"])
def test_what_is_wrong_with_a_pair(file: Path, pair: str) -> None:
    with pytest.raises(RuntimeError, match=r"line 2: field \|A is sparse: expected index:value, got"):
        read(file, f"|A 0:1\n|A {pair}\n", SPARSE)


@pytest.mark.parametrize("index", ["6", "999999999999999999999999"])
def test_an_index_outside(file: Path, index: str) -> None:
    with pytest.raises(RuntimeError, match=rf"line 1: field \|A: the index '{index}' lies outside 0 … 5; is the shape in its"):
        read(file, f"|A {index}:1\n", SPARSE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 |A 1 |B 1 2\n1 |A 1\n", "line 2: the sequence has no sample of |B"),
        ("0 |A 1\n0 |A 2\n", "lines 1 to 2: the sequence has no sample of |B"),
        ("0 |A 1\n0 |B 1 2\n", "lines 1 to 2: 2 lines, but no stream has more than 1 samples"),
        ("0 |A 1 |A 2 |B 1 2\n", "line 1: 2 samples of |A in 1 lines"),
    ],
)
def test_what_is_wrong_with_a_sequence(file: Path, text: str, expected: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        read(file, text, AB)
    assert f"{file}, {expected}" in str(caught.value)


def test_an_empty_file(file: Path) -> None:
    for text in ("", "\n\r\n"):
        with pytest.raises(RuntimeError, match=r"the text file '.*data\.ctf' is empty"):
            read(file, text, A)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cannot read the text file '.*none\.ctf': No such file"):
        MinibatchSource(CTFDeserializer(str(tmp_path / "none.ctf"), StreamDefs(**A)))


def test_a_file_that_shrinks(file: Path) -> None:
    file.write_text("|A 1\n|A 2\n")
    source = MinibatchSource(CTFDeserializer(str(file), StreamDefs(**A)))
    file.write_text("|A 1\n")
    with pytest.raises(RuntimeError, match="has become shorter since it was first read"):
        source.next_minibatch(1)


@pytest.mark.parametrize(
    ("filename", "streams", "error", "message"),
    [
        ("", A, ValueError, "no file name is given\n\\[CALL STACK\\]"),
        ("x", {}, RuntimeError, "no streams are given"),
        ("x", {"a": StreamDef(shape=1)}, ValueError, "stream 'a' names no field"),
        ("x", {"a": StreamDef(field="A")}, ValueError, "stream 'a' needs a shape, a positive number of elements, got None"),
        ("x", {"a": StreamDef(field="A", shape=(2, 3))}, ValueError, r"got \(2, 3\)"),
        ("x", {"a": StreamDef(field="A", shape=1), "b": StreamDef(field="A", shape=1)}, RuntimeError, "a field of its own"),
        ("x", {"a": StreamDef(field="A", shape=1, context=(1, 1))}, ValueError, "stream 'a' has context, which mean nothing"),
        ("x", {"a": StreamDef(field="A", shape=1, max_sequence_length=9)}, NotImplementedError, "max_sequence_length"),
    ],
)
def test_what_is_wrong_with_the_streams(filename: str, streams: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CTFDeserializer(filename, StreamDefs(**streams))


# ---- a part of the file at a time ----


def _lines(sequences: int) -> str:
    """Sequences of 1, 2 and 3 lines by turns."""
    return "".join(f"{i} |A {i}.{j} |B {i} {j}\n" for i in range(sequences) for j in range(i % 3 + 1))


@pytest.mark.parametrize("size", [1, 20, 100, 1 << 20])
def test_chunks_make_no_difference(file: Path, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(file, _lines(30), AB)
    assert [len(part) for part in expected["a"]] == [i % 3 + 1 for i in range(30)]
    for module, name in ((ctf, "CHUNK_SIZE"), (ctf, "SCAN_SIZE"), (ctf_index, "BLOCK")):
        monkeypatch.setattr(module, name, size)
    assert read(file, _lines(30), AB) == expected


def test_ids_across_blocks(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctf_index, "BLOCK", 7)
    assert read(file, "5 |A 1\n|A 2\n5 |A 3\n12 |A 4\n|A 5\n", A) == {"a": [[[1], [2], [3]], [[4], [5]]]}


def test_chunks_know_their_size_before_they_are_read(file: Path) -> None:
    file.write_text(_lines(30))
    deserializer = CTFDeserializer(str(file), StreamDefs(**AB))
    deserializer["chunkSizeInBytes"] = 100
    infos = deserializer.chunk_infos()
    assert len(infos) > 5
    for chunk, info in enumerate(infos):
        lengths = deserializer.get_chunk(chunk, Errors())["a"].lengths
        assert (len(lengths), lengths.sum()) == info
        np.testing.assert_array_equal(deserializer.sequence_infos(chunk).lengths, lengths)
    assert [key for chunk in range(len(infos)) for key in deserializer.sequence_infos(chunk).keys] == list(range(30))


def test_ids_can_be_skipped(file: Path) -> None:
    file.write_text("0 |A 1\n0 |A 2\n")
    deserializer = CTFDeserializer(str(file), StreamDefs(**A))
    assert deserializer.chunk_infos() == [(1, 2)]
    deserializer["skipSequenceIds"] = True
    assert deserializer.chunk_infos() == [(2, 2)]
    with pytest.raises(KeyError, match="no setting 'cacheIndex'"):
        deserializer["cacheIndex"] = True


# ---- reading in bulk and line by line ----

STREAMS = [StreamConfiguration("a", 3, False, "A"), StreamConfiguration("b", 9, True, "B")]
PLAIN = ["0", "7", "-1", "+2.5", "5.", "1e3", "2.5E-2"]
STRANGE = [".5", "1e", "1:", "x", "3:3", "1.2.3", "5.e1", "1e5:2", "--1", "1e5e5", "+1:2", "2:1:1", "|", "| ", "\r", "#"]


def lines_of(values: list[str]) -> st.SearchStrategy[str]:
    blank = st.sampled_from([" ", "\t", "  "])
    dense = st.lists(st.sampled_from(values), max_size=3).map(lambda numbers: "|A " + " ".join(numbers))
    pairs = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(values)).map(lambda pair: f"{pair[0]}:{pair[1]}"), max_size=3)
    sparse = pairs.map(lambda found: "|B " + " ".join(found))
    other = st.sampled_from(["|# 1 2", "|C 1:1 x", "|A1 2", "|#"])
    fields = st.lists(st.one_of(dense, sparse, other), min_size=1, max_size=4)
    start = st.sampled_from(["", "1 ", "12\t", " "])
    return st.builds(lambda begin, gap, found: begin + gap.join(found), start, blank, fields)


def by_line(text: str) -> list[list[tuple[int, list[float], list[int]]]] | None:
    """For each stream its samples with their lines, None where a line is refused."""
    found: list[list[tuple[int, list[float], list[int]]]] = [[], []]
    try:
        for number, line in enumerate(text.encode().split(b"\n")[:-1]):
            for sample in read_line(line.removesuffix(b"\r"), STREAMS):
                found[sample.stream].append((number, sample.values, sample.indices))
    except ValueError:
        return None
    return found


def in_bulk(text: str) -> list[list[tuple[int, list[float], list[int]]]] | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = scan(text.encode(), STREAMS)
    if found is None or found[0].counts.max(initial=0) > 3 or found[1].indices.max(initial=0) > 8:
        return None
    samples = []
    for part in found:
        ends = np.cumsum(part.counts)
        samples.append(
            [
                (line, part.values[end - n : end].tolist(), [] if part.indices is None else part.indices[end - n : end].tolist())
                for line, n, end in zip(part.lines.tolist(), part.counts.tolist(), ends.tolist(), strict=True)
            ]
        )
    return samples


@given(st.lists(lines_of(PLAIN), min_size=1, max_size=6))
def test_plain_lines_are_read_in_bulk_as_line_by_line(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    assert in_bulk(text) == by_line(text)


@given(st.lists(lines_of(PLAIN + STRANGE), min_size=1, max_size=3))
def test_strange_lines_are_read_in_bulk_as_line_by_line(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    assert in_bulk(text) == by_line(text)


@given(st.text(alphabet="|AB#:. \t\r\n-+eE019x", max_size=40))
def test_any_text_is_read_in_bulk_as_line_by_line(text: str) -> None:
    text += "\n"
    bulk = in_bulk(text)
    assert bulk is None or bulk == by_line(text)


@given(st.lists(st.from_regex(r"[+-]?\d{1,9}(\.\d{0,9}|(\.\d{1,9})?e[+-]?\d{1,2})?", fullmatch=True).filter(str.isascii), min_size=1))
def test_numbers_are_rounded_as_python_rounds_them(numbers: list[str]) -> None:
    for chosen in (numbers, [number for number in numbers if "e" not in number and len(number) <= 15]):
        text = "".join(f"{number} " for number in chosen).encode()
        ends = np.cumsum([len(number) + 1 for number in chosen], dtype=np.int64) - 1
        starts = ends - np.array([len(number) for number in chosen], np.int64)
        assert read_numbers(np.frombuffer(text, np.uint8), starts, ends).tolist() == [float(number) for number in chosen]


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzzed") / "data.ctf"


HOSTILE = st.one_of(st.binary(max_size=60), st.text("|AB#:. \t\r\n-e019", max_size=60).map(str.encode))


@given(HOSTILE)
def test_whatever_is_in_a_file_is_read_or_refused(fuzzed: Path, text: bytes) -> None:
    """With the file, and where it can be told, the line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of missing numbers
        assert outcome(fuzzed, text) in ("read", "refused")


def outcome(file: Path, text: bytes) -> str:
    try:
        found = read(file, text, {**A, "b": StreamDef(field="B", shape=9, is_sparse=True)})
    except RuntimeError as error:
        return "refused" if file.name in str(error) else f"refused without naming the file: {error}"
    return "read" if len(found["a"]) == len(found["b"]) > 0 else f"read as {found}"


# ---- writing ----


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"W": np.array([])}, ""),
        ({"W": [[[1, 0], [1, 0]]], "L": np.array([[2]])}, "3\t|L 2 |W 1 0 1 0"),
        ({"W": np.array([[1], [2]]), "L": [[2.5]]}, "3\t|L 2.5 |W 1\n3\t|W 2"),
        ({"x": [{5: 2, 3: 1}, {}]}, "3\t|x 3:1 5:2\n3\t|x "),
    ],
)
def test_the_text_of_a_sequence(fields: Any, text: str) -> None:
    assert C.io.sequence_to_cntk_text_format(3, fields) == text


@pytest.mark.parametrize("samples", [[object()], [np.array([1, 2])], ["x"], [{1: 2}, [3]]])
def test_what_is_no_sequence(samples: Any) -> None:
    with pytest.raises(ValueError, match="field 'A': expected an array, nested lists of numbers or a list of dictionaries"):
        C.io.sequence_to_cntk_text_format(0, {"A": samples})


def test_what_is_written_is_read(file: Path) -> None:
    rng = np.random.default_rng(0)
    dense = [rng.standard_normal((n, 2)).astype(np.float32) for n in (3, 1, 4)]
    sparse = [[{int(k): float(k) + 0.5 for k in rng.choice(6, 2, replace=False)} for _ in part] for part in dense]
    texts = (C.io.sequence_to_cntk_text_format(i, {"B": d, "A": s}) for i, (d, s) in enumerate(zip(dense, sparse, strict=True)))
    streams = {"a": StreamDef(field="A", shape=6, is_sparse=True), "b": StreamDef(field="B", shape=2)}
    found = read(file, "\n".join(texts), streams)
    assert found["b"] == [part.tolist() for part in dense]
    assert found["a"] == [[[step.get(k, 0.0) for k in range(6)] for step in part] for part in sparse]
