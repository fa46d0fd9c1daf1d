"""Compares opencntk with CNTK 2.7, PyTorch and JAX on this machine, and writes the table in docs/performance.md.

    python benchmarks/run.py [--rounds 5] [--only mlp ...] [--no-page]

CNTK 2.7 takes part where the environment variable CNTK27 names a program that runs a Python script on it, PyTorch (for the CPU)
where it is installed, in the mode that turns out fastest, and so does JAX where it is installed.  Workloads on real data are left out
where CNTK_TEST_DATA does not name a folder that holds it.  Each measurement is taken in a process of its own; one round takes each
once, in turns, so that whatever else the machine does strikes all alike; the table tells the medians of all rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import machine
import table
from data import data_file
from figures import FIGURES, LARGE, Figure
from torch_mode import EAGER

WORKER = Path(__file__).with_name("worker.py")
PAGE = WORKER.parents[1] / "docs" / "performance.md"

ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "CNTK_WAIT_FOR_LOOPS": "1"}
"""Of the processes measured in: modules are imported from bytecode, as they are where a package is installed, and loops are there."""


class Framework(NamedTuple):
    """A framework: its name, the module that is imported, and the program that runs scripts on it, None where it is not present."""

    name: str
    module: str
    program: str | None


def frameworks() -> list[Framework]:
    """What is compared, opencntk first."""
    torch = sys.executable if find_spec("torch") else None
    return [
        Framework("opencntk", "cntk", sys.executable),
        Framework("CNTK 2.7", "cntk", os.environ.get("CNTK27")),
        Framework("PyTorch", "torch", torch),
        Framework("JAX", "jax", sys.executable if find_spec("jax") else None),
        Framework("NumPy", "numpy", sys.executable),
    ]


def measure(figure: Figure, framework: Framework, mode: str = EAGER) -> list[float]:
    """Take one measurement in a process of its own, PyTorch's in one of its modes.

    Raises:
        RuntimeError: the process failed.
    """
    command = [str(framework.program), str(WORKER), figure.measure, figure.workload, framework.module]
    environment = {**ENVIRONMENT, "TORCH_MODE": mode}
    if framework.program != sys.executable:
        environment.pop("PYTHONPATH", None)  # it is this interpreter's
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return [float(number) for number in done.stdout.splitlines()[-1].split()]


def best_mode(figure: Figure, framework: Framework) -> str:
    """The mode in which PyTorch is fastest."""
    modes = figure.torch_modes if framework.module == "torch" else (EAGER,)
    if len(modes) == 1:
        return modes[0]
    medians = {mode: measure(figure, framework, mode)[-1] for mode in modes}
    print(f"{figure.title}: {framework.name} by mode: {medians}", file=sys.stderr)
    return min(medians, key=lambda mode: medians[mode])


def measure_all(figures: Sequence[Figure], results: table.Results) -> None:
    """Take all measurements of all rounds, and with them the machine's own rates."""
    for number in range(1, results.rounds + 1):
        results.add(("machine", "rates"), [machine.multiplication_rate(), machine.copy_rate()])
        for figure in figures:
            if figure.unit == "MB" and number < results.rounds:
                continue  # the same every time
            for framework in frameworks():
                if framework.program is None or framework.module not in figure.modules:
                    continue
                key = figure.title, framework.name
                if key in results.failures:
                    continue
                try:
                    if key not in results.modes:
                        results.modes[key] = best_mode(figure, framework)
                    numbers = measure(figure, framework, results.modes[key])
                except RuntimeError as failure:  # the other measurements, which take an hour, are not lost by it
                    print(failure, file=sys.stderr)
                    results.failures.append(key)
                    continue
                print(f"round {number}: {figure.title}: {framework.name} {table.shown(figure, numbers)}", file=sys.stderr)
                results.add(key, numbers)


def is_of(workload: str, names: Iterable[str]) -> bool:
    """Whether a workload is one of those named, or in a module named."""
    return any(name in (workload, workload.partition(":")[0]) for name in names)


def present(figures: Iterable[Figure]) -> Iterator[Figure]:
    """Those whose data is present; tells of the others."""
    for figure in figures:
        if not figure.file or os.path.exists(data_file(figure.file)):
            yield figure
        else:
            print(f"left out: {figure.title}; it wants {figure.file} in the folder that CNTK_TEST_DATA names", file=sys.stderr)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks, print the table and write it into the page."""
    parser = argparse.ArgumentParser(description="Compare opencntk with CNTK 2.7 and PyTorch.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="workloads to run; all where left out")
    parser.add_argument("--no-page", action="store_true", help=f"leave {PAGE.name} as it is")
    options = parser.parse_args(arguments)

    figures = list(present(figure for figure in [*FIGURES, *LARGE] if not options.only or is_of(figure.workload, options.only)))
    before = machine.description()
    results = table.Results(options.rounds)
    measure_all(figures, results)
    text = table.page(figures, [framework.name for framework in frameworks()], results, before)
    print(text)
    if not options.no_page:
        table.write(PAGE, text)
    if results.failures:
        sys.exit("failed, as told above: " + "; ".join(f"{title}, {name}" for title, name in results.failures))


if __name__ == "__main__":
    main()
