"""The bytes of a file, read when they are looked at."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from cntk.core.storage import file_bytes
from cntk.core.storage.file_bytes import FileBytes


@pytest.fixture
def content(tmp_path: Path) -> bytes:
    data = np.random.default_rng(0).bytes(1000)
    (tmp_path / "file").write_bytes(data)
    return data


@pytest.mark.parametrize("block", [1, 7, 1000, 4096])
def test_places_and_stretches_are_those_of_the_bytes(block: int, content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", block)
    with open(tmp_path / "file", "rb", buffering=0) as file:
        found = FileBytes(file)
        assert len(found) == len(content)
        for begin, end in ((0, 4), (500, 500), (997, 1200), (3, 990), (20, 21), (1000, 1000), (0, 1000)):
            assert bytes(found[begin:end]) == content[begin:end]
        assert [found[place] for place in (0, 999, 1, 500)] == [content[place] for place in (0, 999, 1, 500)]
        with pytest.raises(IndexError):
            found[1000]


def test_a_file_that_becomes_shorter_is_an_error(content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_bytes, "BLOCK", 16)
    with open(tmp_path / "file", "rb", buffering=0) as file:
        found = FileBytes(file)
        held = found[0:100]
        os.truncate(tmp_path / "file", 50)
        assert bytes(held) == content[:100]
        with pytest.raises(EOFError, match="expected 200 bytes from byte 10 on, found 40; the file became shorter"):
            found[10:210]
