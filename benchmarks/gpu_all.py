"""Everything that a GPU can tell in some minutes: ``python benchmarks/gpu_all.py [--minutes 4.5] [--first 0] [--out FOLDER]``.

First, all at once, what need not be timed: the tests of operators in several processes, compute-sanitizer on small trainings, long runs,
and each workload once, so that its kernels are compiled.  Then, on the quiet machine, measurements beside PyTorch, and real data.  The
folder has a file for each part, which is written as the part goes on; a part that the time ends leaves what it has.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from gpu_plan import TESTED, parallel

FOLDER = Path(__file__).resolve().parent
WORKLOADS = (
    *("mlp", "logistic_regression", "convolution", "inference", "tagger", "bidirectional", "bag_of_words", "resnet"),
    *("sequence_to_sequence", "transformer", "atis", "gru", "embedding", "wide_transformer", "ragged_transformer", "resnet50"),
)
AT_ONCE, BESIDE = 4, 9
"""So many workloads compile at once, beside tests in so many processes."""

TOGETHER, MEASURED, HOST = 0.32, 0.53, 0.04
"""Shares of the time for what runs at once, for measurements, and for what the host does; the rest is for real data."""


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=4.5, help="how long it may take in all")
    parser.add_argument("--first", type=int, default=0, help="the test to begin with, where earlier runs came so far")
    parser.add_argument("--out", type=Path, default=Path("gpu"), help="folder of the results")
    given = parser.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    began, seconds = time.monotonic(), 60 * given.minutes - 5
    together = began + TOGETHER * seconds
    running = [Part(given.out, name, command) for name, command in at_once(given.out, TOGETHER * seconds, given.first)]
    compile_workloads(given.out, together)
    for part in running:
        part.end(together)
    measure = [FOLDER / "gpu.py", "--without-tests", "--without-compiled", "--minutes", MEASURED * seconds / 60, "--only", *WORKLOADS]
    Part(given.out, "gpu", [sys.executable, *measure, "--out", given.out / "gpu.json"]).end(together + MEASURED * seconds)
    host = [sys.executable, FOLDER / "gpu_host.py", "--out", given.out / "host.json"]
    Part(given.out, "host", host).end(together + (MEASURED + HOST) * seconds)
    checks = [sys.executable, FOLDER / "gpu_checks.py", "--only", "queries", "digits", "pronunciation", "--out", given.out / "real.json"]
    Part(given.out, "real", checks).end(began + seconds)


class Part:
    """A process of its own, whose output goes into a file.

    Args:
        out: the folder.
        name: of the file.
        command: what is run.
    """

    def __init__(self, out: Path, name: str, command: Sequence[object]) -> None:
        self.name = name
        with Path(out, f"{name}.log").open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen([*map(str, command)], stdout=log, stderr=subprocess.STDOUT, start_new_session=True)

    def end(self, when: float) -> None:
        """Wait for it, at most until then."""
        try:
            said = self.process.wait(max(0.1, when - time.monotonic()))
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            said = "ended, as its time was over"
        print(f"{self.name}: {said}", flush=True)


def at_once(out: Path, seconds: float, first: int) -> list[tuple[str, list[object]]]:
    """What need not be timed, by name."""
    long_runs = [FOLDER / "gpu_checks.py", "--only", "repeated", "memory", "too_large", "--out", out / "long_runs.json"]
    options = [
        *("-q", "-W", "default", "-p", "gpu_tests", "-p", "no:cacheprovider", "-o", f"pythonpath=tests {FOLDER.name}"),
        *parallel(BESIDE),
    ]
    counted = ["--gpu-totals", out / "tests.json", "--gpu-seconds", seconds - 12, "--gpu-from", first]
    found: list[tuple[str, list[object]]] = [
        ("long_runs", [sys.executable, *long_runs]),
        ("tests", [sys.executable, "-m", "pytest", TESTED[0], *options, *counted]),
    ]
    if shutil.which("compute-sanitizer") is not None:
        for tool in ("memcheck", "racecheck"):
            found.append((tool, ["compute-sanitizer", "--tool", tool, "--error-exitcode", 9, sys.executable, FOLDER / "gpu_small.py"]))
    return found


def compile_workloads(out: Path, when: float) -> None:
    """Take some steps of each workload, which leaves compiled kernels on the disk."""
    waiting, running = list(WORKLOADS), list[Part]()
    while (waiting or running) and time.monotonic() < when:
        running = [part for part in running if part.process.poll() is None]
        while waiting and len(running) < AT_ONCE:
            name = waiting.pop(0)
            found = out / f"compiled_{name}.json"
            running.append(Part(out, f"compiled_{name}", [sys.executable, FOLDER / "gpu_worker.py", name, "opencntk", found, 1]))
        time.sleep(0.2)
    for part in running:
        part.end(when)
    print(json.dumps({"not_compiled": waiting}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
