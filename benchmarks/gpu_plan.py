"""What is run on a GPU, in which order, and how much of the time each may take."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from data import data_file
from figures import FIGURES, LARGE, Figure

FOLDER = Path(__file__).resolve().parent

TESTS, OURS, EAGER, GRAPH, COMPILED = "tests", "opencntk", "torch", "torch graph", "torch compiled"
"""Ways: the tests of backends; a workload here; and in PyTorch as it is, as a CUDA graph made by hand, and compiled."""

OURS_FAST, GRAPH_FAST = "opencntk TF32", "torch graph TF32"
"""Ways in which float32 may be rounded to TF32 before products, and engines of convolutions are chosen by their times."""

TESTED = ("tests/backends/every", "tests/backends/cupy")
"""Folders of the tests that are run; the rest is about kernels for the CPU."""

WORTHWHILE = 10**9
"""Operations of a step from which on matrix units matter."""

MOST_PROCESSES = 14
"""So many processes share the GPU in tests."""

LEAST = {TESTS: 30.0, OURS: 10.0, OURS_FAST: 10.0, EAGER: 10.0, GRAPH_FAST: 10.0, COMPILED: 40.0}
"""Seconds without which a process of a way need not be begun: imports, the GPU's context, compilation."""

WEIGHTS = {TESTS: 16.0, OURS: 1.0, OURS_FAST: 1.0, EAGER: 1.0, GRAPH_FAST: 1.0, COMPILED: 4.0}
"""How much of the time that is left a workload of a way may take, beside others."""


class Job(NamedTuple):
    """A process that takes measurements.

    Attributes:
        ways: how each workload is run.
        figures: the workloads, with what they tell.
    """

    ways: tuple[str, ...]
    figures: tuple[Figure, ...] = ()

    @property
    def least(self) -> float:
        """Seconds that it needs at least."""
        return LEAST[self.ways[0]]

    @property
    def weight(self) -> float:
        """How much of the time it may take, beside others."""
        return WEIGHTS[self.ways[0]] * max(1, len(self.figures))

    def rows(self) -> list[dict[str, Any]]:
        """What is told of each measurement beside its result: with arithmetic and bytes that no program does without."""
        return [
            {"workload": figure.workload, "way": way, "title": figure.title, "flop": figure.flop, "bytes": figure.nbytes}
            for figure in self.figures
            for way in self.ways
        ] or [{"workload": "tests/backends", "way": TESTS, "title": "tests of backends on the GPU"}]

    def why_not(self) -> str:
        """Why it cannot be run; empty where it can."""
        if TESTS in self.ways:
            return "" if find_spec("pytest") else "pytest is not installed"
        files = [figure.file for figure in self.figures if figure.file and not Path(data_file(figure.file)).exists()]
        if files:
            return f"the environment variable CNTK_TEST_DATA names no folder with {files[0]}"
        return "PyTorch is not installed" if not {OURS, OURS_FAST} & set(self.ways) and find_spec("torch") is None else ""

    def command(self, found: Path, seconds: float) -> list[str]:
        """What to start, which leaves its results in the file *found* within some seconds."""
        if TESTS in self.ways:
            return [
                *(sys.executable, "-m", "pytest", *TESTED, "-q", "-p", "gpu_tests", "-p", "no:cacheprovider", *parallel()),
                *("-o", f"pythonpath=tests {FOLDER.name}", "--gpu-totals", str(found), "--gpu-seconds", str(max(5.0, seconds - 15.0))),
            ]
        workloads = ",".join(figure.workload for figure in self.figures)
        return [sys.executable, str(FOLDER / "gpu_worker.py"), workloads, ",".join(self.ways), str(found), str(seconds)]


def parallel(most: int = MOST_PROCESSES) -> list[str]:
    """Options by which pytest runs tests in several processes, and ends one that hangs, as far as its plugins are installed."""
    processes = ["-n", str(min(most, os.cpu_count() or 1)), "--max-worker-restart", "100"] if find_spec("xdist") else []
    return processes + (["--timeout", "100", "--timeout-method", "thread"] if find_spec("pytest_timeout") else [])


def plan(only: Iterable[str] = (), with_tests: bool = True) -> list[Job]:
    """All jobs in their order: tests, then this package, then PyTorch; compilation, which takes long, last.

    Args:
        only: modules of workloads, all where there are none.
        with_tests: whether tests are run.
    """
    modules: dict[str, list[Figure]] = {}
    for figure in (*FIGURES, *LARGE):
        if figure.measure == "step_time":
            modules.setdefault(figure.workload.partition(":")[0], []).append(figure)
    unknown = set(only) - modules.keys()
    if unknown:
        raise SystemExit(f"error: there are no workloads {sorted(unknown)}; there are {', '.join(modules)}")
    chosen = [figures for module, figures in modules.items() if not only or module in only]
    compared = [[figure for figure in figures if "torch" in figure.modules] for figures in chosen]
    compiled = [figure for figures in compared for figure in figures if len(figure.torch_modes) > 1]
    by_matrix_units = tuple(figure for figure in compiled if figure.flop >= WORTHWHILE)
    ours, theirs = tuple(chain(*chosen)), tuple(chain(*compared))
    return [
        *([Job((TESTS,))] if with_tests else ()),
        *([Job((OURS,), ours)] if ours else ()),
        *([Job((EAGER, GRAPH), theirs)] if theirs else ()),
        *([Job((OURS_FAST,), by_matrix_units), Job((GRAPH_FAST,), by_matrix_units)] if by_matrix_units else ()),
        *(Job((COMPILED,), (figure,)) for figure in compiled),
    ]


def share(jobs: Sequence[Job], seconds: float) -> float:
    """How long the first of *jobs* may take, if all are to have their turn in *seconds*."""
    possible = [job for job in jobs if not job.why_not()]
    if not possible or jobs[0] is not possible[0]:
        return 0.0
    part = jobs[0].weight / sum(job.weight for job in possible)
    return max(0.0, min(seconds, max(seconds * part, jobs[0].least)))
