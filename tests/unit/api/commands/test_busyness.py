"""What the doctor says of a busy machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from cntk.commands import busyness


def told(monkeypatch: pytest.MonkeyPatch, folder: Path, load: float | None, cores: int = 4, **environment: str) -> list[str]:
    monkeypatch.setattr(busyness, "processors", lambda: cores)
    monkeypatch.setattr(busyness, "load_average", lambda: load)
    monkeypatch.setattr(busyness.os, "cpu_count", lambda: 4)
    return list(busyness.lines(environment, folder))


def test_a_quiet_machine_needs_no_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert told(monkeypatch, tmp_path, 0.5) == ["4 cores", "threads of the BLAS: 4, as no variable says", "load 0.5"]


def test_a_busy_machine_is_told_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    *_, load = told(monkeypatch, tmp_path, 9.25)
    assert load.startswith("load 9.2: others keep the 4 cores busy")
    assert "OMP_NUM_THREADS=1" in load


def test_who_has_set_threads_gets_no_advice_on_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _, threads, load = told(monkeypatch, tmp_path, 9.25, OMP_NUM_THREADS="1")
    assert threads == "threads of the BLAS: 1, as OMP_NUM_THREADS says"
    assert "OMP_NUM_THREADS" not in load


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_the_limit_of_a_container(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert busyness.quota_in(tmp_path) == quota


def test_a_container_with_fewer_processors_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("150000 100000\n")
    assert "the container may use 1.5 of these: set OMP_NUM_THREADS=1, so that no threads wait for their turn" in told(
        monkeypatch, tmp_path, 0
    )


def test_a_process_that_is_bound_to_few_cores_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert told(monkeypatch, tmp_path, None, cores=2) == [
        "2 cores of 4, to which the process is bound",
        "threads of the BLAS: 2, as no variable says",
    ]
