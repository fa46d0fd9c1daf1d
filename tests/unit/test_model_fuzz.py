"""A few hundred files made wrong; ``tests/fuzz/run.py`` tries as many as one likes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cntk.core import plugins

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fuzz"))
import run as fuzz
from guard import watched
from targets import TARGETS


@pytest.mark.parametrize("name", TARGETS)
def test_readers_refuse_what_is_wrong(name: str, tmp_path: Path) -> None:
    target = TARGETS[name](tmp_path)
    fuzz.warm_up(target, tmp_path / "checkpoint")
    for number in range(100):
        _, outcome = fuzz.trial(target, number, 0, tmp_path / "checkpoint")
        assert not outcome.wrong, f"{name}, file {number}: {outcome.wrong}"


def test_the_guard_sees_what_no_reader_does(tmp_path: Path) -> None:
    assert plugins.model_formats

    def wrong(read: object) -> str:
        return watched(read, "file", 10, True, (ValueError,)).wrong  # type: ignore[arg-type]

    def refuse() -> None:
        raise ValueError("file: byte 3: expected more")

    def burn() -> None:
        bytearray(2**26)

    assert not wrong(refuse)
    assert "import" in wrong(lambda: __import__("antigravity_of_the_fuzzer"))
    assert "open" in wrong(lambda: (tmp_path / "new").write_text("x"))
    assert "os.system" in wrong(lambda: __import__("os").system("true"))
    assert "MiB for 10 bytes" in wrong(burn)
    assert "KeyError" in wrong(lambda: {}["x"])
    assert "does not name the file" in wrong(lambda: int("x"))
