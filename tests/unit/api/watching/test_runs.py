"""Runs in a folder: several, restarted, that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntk.plugins.progress.event_file import EventFile, scalar
from cntk.watching.runs import Runs


def write(folder: Path, *steps: int, tag: str = "loss", value: float | None = None) -> EventFile:
    file = EventFile(str(folder))
    for step in steps:
        file.add_summary(step, scalar(tag, step if value is None else value))
    return file


def test_folders_are_runs_and_what_comes_is_added(tmp_path: Path) -> None:
    runs = Runs(str(tmp_path))
    assert not runs.refresh()
    assert runs.names() == []
    file = write(tmp_path, 1, 2)
    write(tmp_path / "a" / "b", 5, tag="metric")
    assert runs.refresh()
    assert runs.names() == ["", str(Path("a", "b"))]
    assert runs.curves["loss"][""].points() == [(1, 1.0), (2, 2.0)]
    assert not runs.refresh()
    file.add_summary(3, scalar("loss", 9.0))
    assert runs.refresh()
    assert runs.curves["loss"][""].points() == [(1, 1.0), (2, 2.0), (3, 9.0)]
    assert runs.notes == []


def test_a_run_that_goes_on_from_a_checkpoint_replaces_what_it_does_again(tmp_path: Path) -> None:
    write(tmp_path, 1, 2, 3, 4, value=1.0)
    again = write(tmp_path, 3, value=2.0)
    runs = Runs(str(tmp_path))
    runs.refresh()
    assert runs.curves["loss"][""].points() == [(1, 1.0), (2, 1.0), (3, 2.0)]
    again.add_summary(4, scalar("loss", 2.0))
    runs.refresh()
    assert runs.curves["loss"][""].points() == [(1, 1.0), (2, 1.0), (3, 2.0), (4, 2.0)]


def test_files_that_vanish_and_damaged_ones_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, 1, 2)
    data = bytearray(Path(file.name).read_bytes())
    data[-3] ^= 1
    Path(file.name).write_bytes(data)
    runs = Runs(str(tmp_path))
    runs.refresh()
    assert runs.curves["loss"][""].points() == [(1, 1.0)]
    assert "is damaged" in runs.notes[0]
    Path(file.name).unlink()
    monkeypatch.setattr(Runs, "_files", lambda self: iter([("", file.name)]))
    runs.refresh()
    assert "No such file" in runs.notes[0]


def test_long_runs_take_little_memory(tmp_path: Path) -> None:
    file = EventFile(str(tmp_path))
    for step in range(1, 5001):
        file.add_summary(step, scalar("loss", 1.0))
    runs = Runs(str(tmp_path))
    runs.refresh()
    assert len(runs.curves["loss"][""]) <= 1000
    assert runs.curves["loss"][""].points()[-1] == (5000, 1.0)
