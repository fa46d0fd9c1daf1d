"""The benchmarks run: each workload takes its first step, and the table is put into its page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "benchmarks" / "worker.py"


WORKLOADS = ["logistic_regression", "mlp", "convolution", "inference", "tagger", "bidirectional", "bag_of_words", "learners:adam"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_takes_a_step(workload: str) -> None:
    done = subprocess.run([sys.executable, str(WORKER), "first_call", workload, "cntk"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) > 0


def test_every_large_graph_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WORKER.parent))
    import compiling

    for make in compiling.GRAPHS:
        assert len(compiling.seconds(make, 60)) == len(compiling.STAGES)


def test_the_page_has_a_place_for_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(WORKER.parent))
    import table

    page = tmp_path / "performance.md"
    page.write_text((ROOT / "docs" / "performance.md").read_text(encoding="utf-8"), encoding="utf-8")
    table.write(page, "| a table |")
    text = page.read_text(encoding="utf-8")
    assert "| a table |" in text
    assert text.count(table.BEGIN) == text.count(table.END) == 1
    assert text.endswith((ROOT / "docs" / "performance.md").read_text(encoding="utf-8").partition(table.END)[2])
