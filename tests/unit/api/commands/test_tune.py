"""``cntk tune``: which threshold follows from which times, and where it is kept."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cntk.cli import main
from cntk.commands import crossover, tune
from cntk.commands.crossover import chosen, found, timed
from cntk.commands.workloads import WORKLOADS
from cntk.core.common import threads
from cntk.core.common.thresholds import TABLE, VARIABLE, overridden, read_file, thresholds

SIZES = [1, 4, 16, 64, 256]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where thresholds are kept; each is measured in no time."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "thresholds.json"))
    monkeypatch.setattr(crossover, "why_not", lambda: "")
    monkeypatch.setattr(threads, "max_threads", lambda: 2)
    monkeypatch.setattr(crossover, "found", lambda line, make: 2 * line.default)
    return tmp_path / "thresholds.json"


@pytest.mark.parametrize(
    ("pays_from", "expected"), [(0, 1), (4, 4), (16, 16), (100, 256), (300, 1024)], ids=["always", "earlier", "as usual", "later", "never"]
)
def test_the_second_way_is_taken_from_where_it_is_faster(pays_from: int, expected: int) -> None:
    seconds = [(2.0, 1.0) if size >= pays_from else (1.0, 2.0) for size in SIZES]
    assert chosen(SIZES, 2, seconds) == expected


def test_noise_changes_nothing() -> None:
    assert chosen(SIZES, 2, [(1.0, 1.1), (1.0, 0.99), (1.0, 1.01), (1.1, 1.0), (1.2, 1.0)]) == 16


def test_both_ways_are_timed_under_their_threshold() -> None:
    def make(size: int) -> Callable[[], None]:
        made_for = thresholds.softmax_compiled

        def call() -> None:
            assert thresholds.softmax_compiled == made_for
            time.sleep(0.004 if made_for else 0.001)

        return call

    slow, fast = timed("softmax_compiled", make, 10)
    assert slow > fast
    assert thresholds.softmax_compiled == TABLE["softmax_compiled"].default
    assert found(TABLE["softmax_compiled"], make) == TABLE["softmax_compiled"].default // 16


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_are_called_at_any_size(name: str) -> None:
    for size in (1, 3000):
        for way in (0, 1 << 62):
            with overridden(**{name: way}):
                WORKLOADS[name](size)()


@pytest.mark.parametrize("name", WORKLOADS)
def test_workloads_ask_for_their_threshold(name: str) -> None:
    pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
    asked = []

    class Noted(type(thresholds)):  # type: ignore[misc]
        __slots__ = ()

        def __getattribute__(self, attribute: str) -> Any:
            asked.append(attribute)
            return super().__getattribute__(attribute)

    kind = type(thresholds)
    thresholds.__class__ = Noted
    try:
        WORKLOADS[name](TABLE[name].default)()
    finally:
        thresholds.__class__ = kind
    assert name in asked


def test_what_is_measured_is_kept_until_it_is_reset(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with overridden(ctf_compiled=5):
        assert main(["tune"]) == 0
    assert read_file(file) == {"ctf_compiled": 5, **{name: 2 * TABLE[name].default for name in WORKLOADS}}
    printed = capsys.readouterr().out
    assert f"{'softmax_compiled':30} {'16,384':>12} {'16,384':>12} {'32,768':>12}  elements\n" in printed
    assert f"written to {file}" in printed
    assert main(["doctor"]) == 0
    assert f"thresholds are those of {file}, 0 of which" in capsys.readouterr().out  # this process was started before
    assert main(["tune", "--reset"]) == 0
    assert not file.exists()
    assert main(["tune", "--reset"]) == 0
    assert main(["doctor"]) == 0
    assert "cntk tune measures those of this machine" in capsys.readouterr().out


def test_a_dry_run_writes_nothing(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tune", "--dry-run"]) == 0
    assert "32,768" in capsys.readouterr().out
    assert not file.exists()


def test_nothing_is_begun_too_late_nor_shared_by_one_thread(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "max_threads", lambda: 1)
    assert main(["tune"]) == 0
    assert set(read_file(file)) == {name for name in WORKLOADS if not name.endswith("_shared")}
    assert "there is one thread" in capsys.readouterr().out
    monkeypatch.setattr(tune, "SECONDS", -1)
    file.unlink()
    assert main(["tune"]) == 0
    assert "out of time" in capsys.readouterr().out
    assert read_file(file) == {}


def test_without_a_file_or_loops_there_is_nothing_to_tune(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crossover, "why_not", lambda: "Numba is missing")
    assert main(["tune"]) == 1
    assert "Numba is missing" in capsys.readouterr().err
    monkeypatch.setenv(VARIABLE, "0")
    assert main(["tune"]) == 1
    assert f"unset {VARIABLE}=0" in capsys.readouterr().err
    assert not file.exists()


@pytest.mark.parametrize(("load", "is_busy"), [(0.2, False), (1.5, True)])
def test_a_busy_machine_is_told(
    file: Path, load: float, is_busy: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tune, "processors", lambda: 2)
    monkeypatch.setattr(os, "getloadavg", lambda: (load, 0.0, 0.0), raising=False)
    assert main(["tune", "--dry-run"]) == 0
    assert ("measure again" in capsys.readouterr().err) == is_busy
