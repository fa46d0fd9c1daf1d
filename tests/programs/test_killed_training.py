"""A training that is killed again and again ends with the parameters of one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROGRAM = Path(__file__).with_name("resumable.py")
SAMPLES = 4000


def start(folder: Path, samples: int = SAMPLES) -> subprocess.Popen[str]:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(PROGRAM), str(folder), str(samples)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return output.split()[-1]


def kill_after(process: subprocess.Popen[str], seconds: float) -> bool:
    """Kill a training some time after it has begun; whether it was still running."""
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    time.sleep(seconds)
    running = process.poll() is None
    process.send_signal(signal.SIGKILL)
    process.communicate()
    return running


def check(folder: Path, kills: int, seed: int, samples: int = SAMPLES) -> int:
    """Train undisturbed, and again with so many kills at random instants; the number of kills that hit."""
    alone, disturbed = folder / "alone", folder / "disturbed"
    alone.mkdir()
    disturbed.mkdir()
    begun = time.perf_counter()
    expected = finish(start(alone, samples))
    whole = time.perf_counter() - begun
    instants = random.Random(seed)
    hits = sum(kill_after(start(disturbed, samples), instants.uniform(0, 4 * whole / (kills + 4))) for _ in range(kills))
    assert finish(start(disturbed, samples)) == expected
    left = {file.name for file in disturbed.iterdir()}
    assert {"data.ctf", "model", "model.ckp"} <= left
    assert not [name for name in left if name.endswith((".tmp", ".new"))]
    return hits


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill a process")
def test_a_killed_training_ends_as_one_left_alone(tmp_path: Path) -> None:
    assert check(tmp_path, kills=5, seed=1) >= 3


if __name__ == "__main__":
    print(check(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])), "kills while training ran; the results are equal")
