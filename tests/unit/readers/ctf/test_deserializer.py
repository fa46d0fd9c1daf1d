"""CNTK's text format: what is read, what is refused, and how little of a file is in memory.  Accepted and refused texts, and their
contents, were measured on CNTK 2.7."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.core.common.thresholds import thresholds
from cntk.io import CTFDeserializer, MinibatchSource, StreamDef, StreamDefs
from cntk.readers.compiled import loops
from cntk.readers.ctf import deserializer as ctf
from cntk.readers.ctf import document as ctf_document
from cntk.readers.ctf import index as ctf_index
from cntk.readers.deserializer import Errors

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


WAYS = {"grammar": 1 << 60, "numpy": 1 << 60, "numba": 0}
"""Line by line, in bulk, and compiled: from how many bytes of text on the last of them is taken."""


def take(way: str, patch: pytest.MonkeyPatch) -> None:
    """Read this way, whatever the size of the text."""
    if way == "numba" and loops("ctf.compiled") is None:
        pytest.skip("compiled loops are switched off")
    patch.setattr(thresholds, "ctf_compiled", WAYS[way])
    if way == "grammar":
        patch.setattr(ctf_document, "scan", lambda *_: None)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    take(request.param, monkeypatch)
    return str(request.param)


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
        ("|A 1e38\n|A 1e-400\n", [[[np.float32(1e38)]], [[0]]]),
    ],
)
@pytest.mark.usefixtures("way")
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
@pytest.mark.usefixtures("way")
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
@pytest.mark.usefixtures("way")
def test_two_streams(file: Path, text: str, first: Any, second: Any) -> None:
    assert read(file, text, AB) == {"a": first, "b": second}


@pytest.mark.usefixtures("way")
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
        ("|A 1\n|A 1 |A 2\n", 2, "more than 1 samples of |A in 1 lines; expected one in a line"),
        *((f"|A 1\n|A {number}\n", 2, f"expected a number such as -1.5 or 2e-3, got {number!r}") for number in NO_NUMBERS),
    ],
)
@pytest.mark.usefixtures("way")
def test_what_is_wrong_with_a_dense_stream(file: Path, text: str, line: int, expected: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        read(file, text, A)
    assert f"{file}, line {line}" in str(caught.value)
    assert expected in str(caught.value)


@pytest.mark.parametrize("pair", ["1: 2", "1 :2", "-1:2", "+1:2", "1.0:2", "1:2:3", "1", ":1", "1:", "1:.5"])
@pytest.mark.usefixtures("way")
def test_what_is_wrong_with_a_pair(file: Path, pair: str) -> None:
    with pytest.raises(RuntimeError, match=r"line 2, column 4: field \|A is sparse: expected index:value, got"):
        read(file, f"|A 0:1\n|A {pair}\n", SPARSE)


@pytest.mark.parametrize("index", ["6", "999999999999999999999999"])
@pytest.mark.usefixtures("way")
def test_an_index_outside(file: Path, index: str) -> None:
    with pytest.raises(RuntimeError, match=rf"line 1, column 4: field \|A: the index '{index}' lies outside 0 … 5; is the shape in its"):
        read(file, f"|A {index}:1\n", SPARSE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0 |A 1 |B 1 2\n1 |A 1\n", "line 2: the sequence has no sample of |B"),
        ("0 |A 1\n0 |A 2\n", "lines 1 to 2: the sequence has no sample of |B"),
        ("0 |A 1\n0 |B 1 2\n", "lines 1 to 2: 2 lines, but no stream has more than 1 samples"),
        ("0 |A 1 |A 2 |B 1 2\n", "line 1: more than 1 samples of |A in 1 lines"),
    ],
)
@pytest.mark.usefixtures("way")
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
    with pytest.raises(RuntimeError, match="has changed since it was first read"):
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
        ("x", {"a": StreamDef(field="A", shape=1, context=(1, 1))}, ValueError, "stream 'a' has context, which text files do not use"),
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
def test_chunks_make_no_difference(file: Path, size: int, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = read(file, _lines(30), AB)
    assert [len(part) for part in expected["a"]] == [i % 3 + 1 for i in range(30)]
    for module, name in ((ctf, "CHUNK_SIZE"), (ctf_document, "SCAN_SIZE"), (ctf_index, "BLOCK")):
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
        assert (len(lengths), lengths.sum()) == info[:2]
        np.testing.assert_array_equal(deserializer.sequence_infos(chunk).lengths, lengths)
    assert [key for chunk in range(len(infos)) for key in deserializer.sequence_infos(chunk).keys] == list(range(30))


def test_ids_can_be_skipped(file: Path) -> None:
    file.write_text("0 |A 1\n0 |A 2\n")
    deserializer = CTFDeserializer(str(file), StreamDefs(**A))
    assert [info[:2] for info in deserializer.chunk_infos()] == [(1, 2)]
    deserializer["skipSequenceIds"] = True
    assert [info[:2] for info in deserializer.chunk_infos()] == [(2, 2)]
    with pytest.raises(KeyError, match="no setting 'frameMode'"):
        deserializer["frameMode"] = True
    with pytest.raises(ValueError, match="must be 'float' or 'double', got 'half'"):
        deserializer["precision"] = "half"


# ---- three ways of reading ----

FIELDS = {"a": StreamDef(field="A", shape=3), "b": StreamDef(field="B", shape=9, is_sparse=True)}
PLAIN = ["0", "7", "-1", "+2.5", "5.", "1e3", "2.5E-2", "0.123456", "16777217", "1.17549429e-38", "123456789012345678901234567890", "-0"]
STRANGE = [".5", "1e", "1:", "x", "3:3", "1.2.3", "5.e1", "1e5:2", "--1", "1e5e5", "+1:2", "2:1:1", "|", "| ", "\r", "#", ":", "1e400"]


def lines_of(values: list[str]) -> st.SearchStrategy[str]:
    blank = st.sampled_from([" ", "\t", "  "])
    dense = st.lists(st.sampled_from(values), max_size=3).map(lambda numbers: "|A " + " ".join(numbers))
    pairs = st.lists(st.tuples(st.integers(0, 8), st.sampled_from(values)).map(lambda pair: f"{pair[0]}:{pair[1]}"), max_size=3)
    sparse = pairs.map(lambda found: "|B " + " ".join(found))
    other = st.sampled_from(["|# 1 2", "|C 1:1 x", "|A1 2", "|#", "|# : a:b"])
    fields = st.lists(st.one_of(dense, sparse, other), min_size=1, max_size=4)
    start = st.sampled_from(["", "1 ", "12\t", " ", "123456789012 "])
    return st.builds(lambda begin, gap, found: begin + gap.join(found), start, blank, fields)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch") / "data.ctf"


def outcomes(file: Path, text: bytes, **arguments: Any) -> Iterator[str]:
    """What each way makes of a text: all that is read, to the last bit, or what it says of it."""
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            take(way, patch)
            try:
                made = repr(read(file, text, FIELDS, **arguments))
            except RuntimeError as error:
                made = f"refused: {error}"
            yield made + "".join(str(warning.message) for warning in caught)


def agree(file: Path, text: bytes, **arguments: Any) -> bool:
    made = set(outcomes(file, text, **arguments))
    return len(made) == 1 and all(not one.startswith("refused") or str(file) in one for one in made)


@given(st.lists(lines_of(PLAIN), min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
@settings(deadline=None)
def test_plain_lines_are_read_the_same_in_all_ways(scratch: Path, lines: list[str], end: str, is_ended: bool) -> None:
    assert agree(scratch, (end.join(lines) + end * is_ended).encode())


@given(st.lists(lines_of(PLAIN + STRANGE), min_size=1, max_size=3))
@settings(deadline=None)
def test_strange_lines_are_read_the_same_in_all_ways(scratch: Path, lines: list[str]) -> None:
    assert agree(scratch, "\n".join(lines).encode())


@given(st.lists(lines_of(PLAIN + STRANGE), min_size=1, max_size=8))
@settings(deadline=None)
def test_the_same_sequences_are_left_out_in_all_ways(scratch: Path, lines: list[str]) -> None:
    assert agree(scratch, "\n".join([*lines, "77 |A 1 2 3 |B 1:1"]).encode(), max_errors=100)


@given(st.one_of(st.binary(max_size=60), st.text("|AB#:. \t\r\n-+eE019x", max_size=60).map(str.encode)))
@settings(deadline=None)
def test_whatever_is_in_a_file_is_read_or_refused_the_same_in_all_ways(scratch: Path, text: bytes) -> None:
    assert agree(scratch, text)


def test_columns_are_told(file: Path) -> None:
    with pytest.raises(RuntimeError, match=r"line 2, column 13: field \|A: expected 1 numbers, got 2; correct the line, or the shape"):
        read(file, "|# é |A 1\n|# é  |A\t1 2 |B 1\n", A)
    with pytest.raises(RuntimeError, match="line 1, column 7: expected the name of a field"):
        read(file, "|A 1 | 2\n", A)


@pytest.mark.usefixtures("way")
def test_sequences_that_cannot_be_read_are_counted_and_left_out(file: Path) -> None:
    text = "".join(f"{i} |A {i}{'x' * (i % 3 == 1)}\n" for i in range(300))
    assert read(file, text, A, max_errors=100) == {"a": [[[i]] for i in range(300) if i % 3 != 1]}
    with pytest.raises(RuntimeError, match=r"line 299, column 8: .*\(max_errors=99 sequences were left out before\)"):
        read(file, text, A, max_errors=99)


@pytest.mark.usefixtures("way")
def test_double_precision(file: Path) -> None:
    file.write_text("|A 0.1 |B 2:0.1\n|A 16777217.25 |B 3:1e-300\n")
    deserializer = CTFDeserializer(str(file), StreamDefs(a=A["a"], b=StreamDef(field="B", shape=5, is_sparse=True)))
    deserializer["precision"] = "double"
    assert [info.dtype for info in deserializer.stream_infos()] == [np.float64] * 2
    chunk = deserializer.get_chunk(0, Errors())
    assert chunk["a"].rows.tolist() == [[0.1], [16777217.25]]
    assert chunk["b"].rows.data.tolist() == [0.1, 1e-300]


@pytest.mark.usefixtures("way")
def test_long_lines(file: Path) -> None:
    numbers = np.random.default_rng(0).random(30_000).round(6)
    pairs = " ".join(f"{i}:{v:.6f}" for i, v in enumerate(numbers))
    text = f"|A {' '.join(f'{v:.6f}' for v in numbers)} |B {pairs}\n"
    found = read(file, text, {"a": StreamDef(field="A", shape=30_000), "b": StreamDef(field="B", shape=30_000, is_sparse=True)})
    assert found["a"] == found["b"] == [[numbers.astype(np.float32).tolist()]]


@pytest.mark.usefixtures("way")
def test_few_numbers_that_make_many(file: Path) -> None:
    """Short samples take more room than their text lets expect."""
    with pytest.warns(UserWarning, match="fewer numbers"):
        found = read(file, "|A 1\n" * 3000 + "|A 2\n", {"a": StreamDef(field="A", shape=1000)})
    assert [sequence[0][0] for sequence in found["a"]] == [1] * 3000 + [2]
    assert not any(sequence[0][999] for sequence in found["a"])


@pytest.mark.usefixtures("way")
def test_many_streams(file: Path) -> None:
    names = [f"s{'x' * (i % 7)}{i}" for i in range(60)]
    text = "".join("".join(f"|{name} {i * j} " for j, name in enumerate(names)) + "\n" for i in range(20))
    found = read(file, text, {name: StreamDef(field=name, shape=1) for name in names})
    assert all(found[name] == [[[i * j]] for i in range(20)] for j, name in enumerate(names))


@given(st.data())
@settings(deadline=None)
def test_a_document_is_read_as_it_was_written(scratch: Path, data: Any) -> None:
    """Whatever the way, and the size of chunks."""
    floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
    dense = st.lists(floats, min_size=3, max_size=3)
    sparse = st.dictionaries(st.integers(0, 8), floats, max_size=4)
    steps = st.integers(1, 4)
    sequences = [
        (data.draw(st.lists(dense, min_size=n, max_size=n)), data.draw(st.lists(sparse, min_size=n, max_size=n)))
        for n in data.draw(st.lists(steps, min_size=1, max_size=5))
    ]
    text = "\n".join(C.io.sequence_to_cntk_text_format(i, {"A": np.array(d), "B": s}) for i, (d, s) in enumerate(sequences))
    expected = {
        "a": [np.float32(d).tolist() for d, _ in sequences],
        "b": [[[step.get(k, 0.0) for k in range(9)] for step in s] for _, s in sequences],
    }
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            take(way, patch)
            patch.setattr(ctf, "CHUNK_SIZE", data.draw(st.sampled_from([1, 30, 1 << 20])))
            assert read(scratch, text, FIELDS) == expected


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
