"""Measures opencntk on a GPU beside PyTorch, and runs the tests of backends there: one command of at most nine minutes.

    python benchmarks/gpu.py [--plan] [--minutes 9] [--out gpu.json] [--only mlp ...] [--without-tests] [--without-compiled]

It needs the project, CuPy and, to compare with, PyTorch; it installs nothing.  ``--plan`` says what it would run and needs no GPU.  Each
measurement is taken in a process of its own (``gpu_worker.py``), in the order of the plan, with a share of the time that is left; what did
not fit, or could not be done, is named in the results with the reason.  They are written after each measurement, so that nothing is lost
where the command is ended.

Without a GPU it ends with an error that says what is missing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gpu_plan import COMPILED, TESTS, Job, plan, share

ROOT = Path(__file__).resolve().parents[1]


def main(arguments: Sequence[str]) -> int:
    """Take the measurements; 0 where there was a GPU to take them on."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plan", action="store_true", help="say what would be run, and end")
    parser.add_argument("--minutes", type=float, default=9.0, help="how long it may take in all")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"), help="file of the results")
    parser.add_argument("--only", nargs="+", default=(), metavar="WORKLOAD", help="workloads, such as mlp")
    parser.add_argument("--without-tests", action="store_true", help="take measurements alone")
    parser.add_argument("--without-compiled", action="store_true", help="leave out torch.compile, which takes most of the time")
    given = parser.parse_args(arguments)
    ends = time.monotonic() + 60 * given.minutes - 5  # the last process has to end, and the results to be written
    jobs = [job for job in plan(given.only, not given.without_tests) if not (given.without_compiled and COMPILED in job.ways)]
    try:
        described = described_gpu()
    except (ValueError, ImportError) as error:
        show(jobs, given.minutes)
        if given.plan:
            print("there is no GPU here, so that none of this can be run")
            return 0
        print(f"error: nothing can be measured: {error}\n`cntk doctor` says what to install", file=sys.stderr)
        return 1
    if given.plan:
        show(jobs, given.minutes)
        return 0
    results = Results(given.out, described)
    for number, job in enumerate(jobs):
        results.add(run(job, share(jobs[number:], ends - time.monotonic())))
    print(f"results are in {given.out}; left out: {len(results.content['left_out'])}")
    return 0


def described_gpu() -> dict[str, Any]:
    """What there is to measure on.

    Raises:
        ValueError: there is no GPU, or nothing can compute on it.
    """
    import cntk as C

    device = C.device.gpu(0)
    versions = {name: version_of(name) for name in ("cntk", "cupy", "torch", "numba", "numpy")}
    return {"backend": device.backend.describe(), "properties": str(C.device.get_gpu_properties(device)), "versions": versions}


def version_of(module: str) -> str | None:
    """Version of a module's package; None where it is not installed."""
    if find_spec(module) is None:
        return None
    from importlib.metadata import packages_distributions, version

    return version(packages_distributions()[module][0])


def run(job: Job, seconds: float) -> list[dict[str, Any]]:
    """What a process of its own finds, or why there is nothing, for each of the job's rows."""
    rows = job.rows()
    why = job.why_not()
    if not why and seconds < job.least:
        why = f"no time: {seconds:.0f} s are left for it, it needs {job.least:.0f}"
    if why:
        return [{**row, "left_out": why} for row in rows]
    began, found = time.monotonic(), list[dict[str, Any]]()
    while len(found) < len(rows):  # a process that a workload has ended is followed by one for the others
        number = len(found) // len(job.ways)
        left = seconds - (time.monotonic() - began)
        if number and left < job.least:
            found.extend([{"left_out": f"no time: {left:.0f} s were left for it"}] * (len(rows) - len(found)))
            break
        found.extend(found_by(Job(job.ways, job.figures[number:]), left))
        found.extend([{"left_out": "it failed beside what comes before"}] * (-len(found) % len(job.ways)))
    print(f"  {job.ways[0]}: {time.monotonic() - began:.1f} s", flush=True)
    return [{**row, **one} for row, one in zip(rows, found, strict=True)]


def found_by(job: Job, seconds: float) -> list[dict[str, Any]]:
    """What one process finds, up to the measurement that it could not end, with the reason."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "found.json")
        try:
            done = subprocess.run(job.command(path, seconds), cwd=ROOT, capture_output=True, text=True, check=False, timeout=seconds + 5)
            why = f"it failed: {(done.stdout + done.stderr)[-2000:]}"
        except subprocess.TimeoutExpired:
            why = f"no time: it was ended after {seconds:.0f} s"
        found: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return found if len(found) == len(job.rows()) else [*found, {"left_out": why}]


def show(jobs: Sequence[Job], minutes: float) -> None:
    """Print what would be run."""
    print(f"in {minutes:g} minutes, in this order, as long as there is time; a process for each paragraph:")
    for job in jobs:
        print()
        for row in job.rows():
            print(f"  {row['workload']:22} {row['way']:14} {row['title']}{'; left out: ' + job.why_not() if job.why_not() else ''}")


class Results:
    """The results so far, and their file.

    Args:
        path: the file.
        described: what they were measured on.
    """

    def __init__(self, path: Path, described: dict[str, Any]) -> None:
        self.path = path
        self.content: dict[str, Any] = {"measured_on": described, "tests": None, "rows": [], "left_out": []}

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Note what a job has found, and write everything."""
        for row in rows:
            if "left_out" in row:
                self.content["left_out"].append(row)
            elif row["way"] == TESTS:
                self.content["tests"] = row
            else:
                self.content["rows"].append(row)
            median = f"{row['median_ms']:.4f} ms, {row['kernels']} kernels" if "median_ms" in row else ""
            print(f"{row['workload']} {row['way']}: {row.get('left_out') or median or row.get('totals')}", flush=True)
        self.path.write_text(json.dumps(self.content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
