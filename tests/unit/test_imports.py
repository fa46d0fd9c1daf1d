"""``import cntk`` is light: it imports nothing heavy and takes little longer than NumPy alone."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("numba", "cupy", "scipy", "mpi4py", "onnx", "matplotlib", "sklearn", "PIL", "tensorboard", "mlflow")
ALLOWED_SECONDS = 0.150
ROUNDS = 15


def run(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_nothing_heavy_is_imported() -> None:
    loaded = run(f"import sys, cntk; print([name for name in {HEAVY!r} if name in sys.modules])")
    assert loaded.strip() == "[]"


def import_seconds(module: str) -> float:
    """Seconds of processor time, which does not count what other processes take."""
    return float(run(f"import time; start = time.process_time(); import {module}; print(time.process_time() - start)"))


def test_import_time() -> None:
    """The best of some rounds counts: what else the machine does only ever adds to the time."""
    numpy = cntk = float("inf")
    for _ in range(ROUNDS):
        numpy, cntk = min(numpy, import_seconds("numpy")), min(cntk, import_seconds("cntk"))
        if cntk - numpy < ALLOWED_SECONDS:
            return
    raise AssertionError(f"import cntk took {cntk:.3f} s, import numpy {numpy:.3f} s")
