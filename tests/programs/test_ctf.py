"""The reader of CNTK's text format that the examples share, and its minibatches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture
def ctf(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module, imported as a program in the examples folder imports it."""
    monkeypatch.syspath_prepend(root / "examples")
    monkeypatch.delitem(sys.modules, "ctf", raising=False)
    return __import__("ctf")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "data.ctf"


def test_lines_with_one_number_make_a_sequence(ctf: ModuleType, file: Path) -> None:
    file.write_text("7 |x 2:1 |# first |y 0 0.5 |# label\n7 |x 0:3 1:-2\n8\t|x 1:1\t|y 1 2\n8 |x\n", encoding="utf-8")
    streams = ctf.read_ctf(file, x=3, y=2)
    x, y = ([sequence.toarray().tolist() for sequence in streams[name]] for name in "xy")
    assert x == [[[0, 0, 1], [3, -2, 0]], [[0, 1, 0], [0, 0, 0]]]
    assert y == [[[0, 0.5]], [[1, 2]]]
    assert streams["x"][0].dtype == np.float32


def test_lines_without_a_number_are_sequences_of_their_own(ctf: ModuleType, file: Path) -> None:
    file.write_text("|x 1 2\n|x 3 4\n", encoding="utf-8")
    assert [sequence.toarray().tolist() for sequence in ctf.read_ctf(file, x=2)["x"]] == [[[1, 2]], [[3, 4]]]


def test_other_streams_are_passed_over(ctf: ModuleType, file: Path) -> None:
    file.write_text("0 |x 1:1 |other 99:1\n", encoding="utf-8")
    assert list(ctf.read_ctf(file, x=2)) == ["x"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0 |x 1 2", "2 numbers given, expected 3"),
        ("0 |x 3:1", "index 3 given, expected 0 … 2"),
        ("0 |x -1:1", "index -1 given, expected 0 … 2"),
        ("0 |x 1:one", "could not convert string to float: 'one'"),
    ],
)
def test_what_cannot_be_read_is_refused(ctf: ModuleType, file: Path, line: str, message: str) -> None:
    file.write_text(f"0 |x 0:1\n{line}\n", encoding="utf-8")
    with pytest.raises(ValueError, match=f"line 2: stream x: {message}") as caught:
        ctf.read_ctf(file, x=3)
    assert str(file) in str(caught.value)


def test_minibatches_hold_whole_sequences_up_to_their_size(ctf: ModuleType) -> None:
    lengths = [3, 5, 12, 1, 4, 4, 2]
    taken: Iterator[list[int]] = ctf.minibatches(lengths, 10, seed=0)
    minibatches = list(islice(taken, 12))
    sizes = [sum(lengths[i] for i in minibatch) for minibatch in minibatches]
    assert all(size <= 10 or minibatch == [2] for size, minibatch in zip(sizes, minibatches, strict=True))
    order = [i for minibatch in minibatches for i in minibatch]
    assert sorted(order[:7]) == sorted(order[7:14]) == list(range(7))
    assert order[:7] != order[7:14]
    # Each minibatch is full: the first sequence of the next one did not fit.
    assert all(size + lengths[after[0]] > 10 for size, after in zip(sizes, minibatches[1:], strict=False))
