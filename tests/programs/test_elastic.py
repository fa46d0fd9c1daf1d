"""Training goes on with another number of workers, and each sample is learnt from as often as it should be."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

HERE = Path(__file__).parent
COUNT, SWEEPS = 100, 3
SAMPLES = {"sequences": SWEEPS * sum(number * number % 7 + 1 for number in range(COUNT)), "arrays": SWEEPS * COUNT}


def trained(kind: str, place: Path, run: int, workers: int, killed_at: int) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(workers), "--with", "tcp", str(HERE / "elastic_training.py")]
    return subprocess.run(
        [*command, kind, str(place), str(run), str(killed_at)],
        env={**inherited, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def notes(place: Path, run: int, workers: int) -> list[list[list[int]]]:
    """What each worker has noted of a run: samples of all workers before a minibatch, and what it read."""
    files = [(place / f"read.{run}.{rank}").read_text(encoding="utf-8") for rank in range(workers)]
    return [[[int(word) for word in line.split()] for line in file.splitlines()] for file in files]


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("sequences", (2, 4, 2)),
        ("arrays", (3, 1, 3)),
    ],
)
def test_nothing_is_learnt_twice_or_left_out_when_a_job_is_killed_and_goes_on_with_more_workers_or_fewer(
    tmp_path: Path, kind: str, sizes: tuple[int, ...]
) -> None:
    total = SAMPLES[kind]
    kills = [total // 4, 2 * total // 3, 0]
    for run, (workers, killed_at) in enumerate(zip(sizes, kills, strict=True)):
        done = trained(kind, tmp_path, run, workers, killed_at)
        assert (done.returncode == 0) == (killed_at == 0), done.stderr
    runs = [notes(tmp_path, run, workers) for run, workers in enumerate(sizes)]
    begun = [found[0][0][0] for found in runs]  # how far the checkpoint was that a run went on from
    assert begun[0] == 0
    assert all(0 < killed_at - start <= 80 for start, killed_at in zip(begun[1:], kills[:2], strict=True))
    learnt: Counter[int] = Counter()
    for found, until in zip(runs, [*begun[1:], total], strict=True):
        learnt.update(number for worker in found for seen, *read in worker if seen < until for number in read)
    assert learnt == dict.fromkeys(range(COUNT), SWEEPS)
    assert all(worker[-1] == [total] for worker in runs[-1])
