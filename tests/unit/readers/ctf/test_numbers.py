"""Decimal texts become the nearest number, in either precision, whichever way they are read."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cntk.readers.ctf import document
from cntk.readers.ctf.document import Document
from cntk.readers.ctf.exact import rounded
from cntk.readers.ctf.index import Settings
from cntk.readers.deserializer import Errors
from cntk.readers.streams import StreamConfiguration

STREAM = [StreamConfiguration("a", 1, False, "A")]
NUMBER = st.from_regex(r"[+-]?\d{1,25}(\.\d{0,25}|(\.\d{1,9})?[eE][+-]?\d{1,3})?", fullmatch=True).filter(str.isascii)

# Halves of the last place, and what lies just beside them; the smallest and largest numbers; more digits than 64 bits hold.
HARD = [
    "16777217", "16777217.0000000000000000000001", "16777216.9999999999999999999999", "16777219", "-16777217", "9007199254740993",
    "9007199254740993.0000000000000000001", "9007199254740992.9999999999999999999", "1.00000017881393432617187499", "4.9e-324",
    "1.00000017881393432617187500", "1.00000017881393432617187501", "3.4028235677973366e38", "3.4028235677973365e38", "2.4e-324",
    "1.401298464324817e-45", "7.006492321624085e-46", "7.006492321624086e-46", "1.1754943508222874e-38", "1.7976931348623157e308",
    "2.2250738585072011e-308", "2.2250738585072012e-308", "3e38", "1e-400", "-0", "0e9999999", "0e99999999999", "1e-99999999999",
    "0." + "0" * 60 + "1", "1" + "0" * 60, "123456789012345678901234567890e-25", "8.5", "0.1", "00000000000000000000000000001.5",
]  # fmt: skip


def nearest(text: str, dtype: Any) -> Any:
    """By its distance from the exact number, of a number's neighbours the nearest, of two the even one."""
    if dtype == np.float64:
        return np.float64(float(text))
    with np.errstate(over="ignore"):
        near = np.float32(abs(float(text)))
        around = [np.nextafter(near, np.float32(0)), near, np.nextafter(near, np.float32(np.inf))]
    if not 0 < abs(float(text)) < 1e300:
        return np.copysign(near, np.float32(-1 if text.startswith("-") else 1))
    exact = abs(Fraction(text))
    distances = [abs((Fraction(float(one)) if np.isfinite(one) else Fraction(2) ** 128) - exact) for one in around]
    best = min(range(3), key=lambda i: (distances[i], int(around[i].view(np.uint32)) & 1))
    return np.copysign(around[best], np.float32(-1 if text.startswith("-") else 1))


def read(file: Path, texts: Sequence[str], dtype: Any, is_compiled: bool) -> Any:
    """The bits of the numbers."""
    file.write_text("".join(f"|A {text}\n" for text in texts))
    read_by = Document(str(file), STREAM, dtype, Settings())
    parts = list(read_by.read(0, len(texts), Errors(), is_compiled))
    return np.concatenate([part[0].rows.ravel() for part in parts]).view(np.uint32 if dtype == np.float32 else np.uint64)


def check(file: Path, given: Sequence[str], expected: Any = nearest) -> None:
    """Those that are too large for a type are not among its texts, for they are refused."""
    for dtype, whole in ((np.float32, np.uint32), (np.float64, np.uint64)):
        with np.errstate(over="ignore"):
            numbers = np.array([expected(text, dtype) for text in given], dtype)
        texts, right = [text for text, number in zip(given, numbers, strict=True) if np.isfinite(number)], numbers[np.isfinite(numbers)]
        if not texts:
            continue
        right = right.view(whole)
        for is_compiled in (False, True):
            if is_compiled:
                pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
            wrong = np.flatnonzero(read(file, texts, dtype, is_compiled) != right)
            assert not len(wrong), (dtype, is_compiled, [texts[i] for i in wrong[:5]])


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("numbers") / "data.ctf"


@given(st.lists(NUMBER, min_size=1, max_size=30))
@settings(deadline=None)
@example(HARD)
def test_numbers_are_the_nearest(file: Path, texts: list[str]) -> None:
    check(file, texts)


@given(st.lists(st.tuples(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(-2, 2)), min_size=1, max_size=20))
@settings(deadline=None)
def test_numbers_beside_the_middle_of_two_are_the_nearest(file: Path, found: list[tuple[float, int]]) -> None:
    """Of two float32: the exact text of the middle, and of what differs from it in the fortieth digit."""
    texts = []
    for number, beside in found:
        low = np.float32(abs(number))
        if 1e-10 < low < 1e10:
            high = np.nextafter(low, np.float32(np.inf))
            middle = (Fraction(float(low)) + Fraction(float(high))) / 2 + beside * Fraction(1, 10**40)
            sign, digits = "-" if number < 0 else "", str(middle.numerator * 10**40 // middle.denominator).zfill(41)
            texts += [f"{sign}{digits}e-40", f"{sign}{digits[:-40]}.{digits[-40:]}"]
    if texts:
        check(file, texts)


def random_texts(count: int) -> list[str]:
    """Numbers as programs write them."""
    chosen = random.Random(0)
    forms = ["{:.6f}", "{:.4g}", "{:.9g}", "{!r}", "{:.18e}", "{:.3f}", "{:.0f}", "{:+.7E}", "{:.15f}", "{:.19g}", "{:.25f}"]
    sizes = [chosen.gauss(0, 1) * 10.0 ** chosen.choice([0, 0, 0, 3, -3, 8, -8, 20, -20, 37, -40, 100, -300]) for _ in range(count)]
    return [chosen.choice(forms).format(size) for size in sizes]


def test_numbers_as_programs_write_them(file: Path) -> None:
    check(file, random_texts(4000), lambda text, dtype: rounded(text.encode(), dtype))


@pytest.mark.slow
def test_millions_of_numbers(file: Path) -> None:
    check(file, random_texts(2_000_000), lambda text, dtype: rounded(text.encode(), dtype))


TOO_LARGE = {
    np.float32: ["1e39", "-1e39", "3.4028236e38", "3.4028235677973367e38", "1e400", "1" + "0" * 39, "9" * 5000, "1e99999999999"],
    np.float64: ["1e309", "-1e309", "1.7976931348623159e308", "1e400", "1" + "0" * 309, "9" * 5000, "1e99999999999"],
}


@pytest.mark.parametrize("is_compiled", [False, True], ids=["python", "compiled"])
@pytest.mark.parametrize(("dtype", "text"), [(dtype, text) for dtype in TOO_LARGE for text in TOO_LARGE[dtype]], ids=lambda v: str(v)[:24])
@pytest.mark.parametrize("is_sparse", [False, True], ids=["dense", "sparse"])
def test_numbers_that_are_too_large_are_refused_as_infinite_ones_are(
    file: Path, dtype: Any, text: str, is_sparse: bool, is_compiled: bool
) -> None:
    if is_compiled:
        pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
    before = "0:" if is_sparse else ""
    file.write_text(f"|A {before}1\n|A {before}{text}\n|A {before}2\n")
    document = Document(str(file), [StreamConfiguration("a", 1, is_sparse, "A")], dtype, Settings())
    expected = rf"line 2, column {4 + len(before)}: field \|A: expected a number such as -1.5 or 2e-3, no larger"
    with pytest.raises(RuntimeError, match=expected):
        list(document.read(0, 3, Errors(), is_compiled))


def test_ten_million_digits_are_read_or_refused_at_once(file: Path) -> None:
    begin = time.perf_counter()
    many = "0" * 10**7
    found = read(file, [f"0.{many}", f"1.{many}1", f"1.000000059604644775390625{many}1"], np.float32, False)
    assert found.view(np.float32).tolist() == [0, 1, np.nextafter(np.float32(1), np.float32(2))]
    assert time.perf_counter() - begin < 5  # a clock: what would take long is one call, of int on so many digits


def test_few_numbers_go_the_slow_way(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The grammar is for the others."""
    pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
    texts = [text for text in random_texts(2000) if abs(float(text)) < 1e38]
    monkeypatch.setattr(document, "part_of_sequence", lambda *_: pytest.fail("a number went the slow way"))
    read(file, texts, np.float32, True)
