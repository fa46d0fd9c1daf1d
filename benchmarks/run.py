"""Compares opencntk with CNTK 2.7 and PyTorch on this machine, and writes the table in docs/performance.md.

    python benchmarks/run.py [--rounds 5] [--only mlp ...] [--no-page]

CNTK 2.7 takes part where the environment variable CNTK27 names a program that runs a Python script on it, PyTorch (for the CPU)
where it is installed.  Each measurement is taken in a process of its own; one round takes each once, in turns, so that whatever
else the machine does strikes all alike; the table tells the medians of all rounds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import machine
import table
from figures import FIGURES, Figure

WORKER = Path(__file__).with_name("worker.py")
PAGE = WORKER.parents[1] / "docs" / "performance.md"

ENVIRONMENT = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
"""Of the processes measured in: modules are imported from bytecode, as they are where a package is installed."""


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
        Framework("NumPy", "numpy", sys.executable),
    ]


def measure(figure: Figure, framework: Framework) -> list[float]:
    """Take one measurement in a process of its own.

    Raises:
        RuntimeError: the process failed.
    """
    command = [str(framework.program), str(WORKER), figure.measure, figure.workload, framework.module]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return [float(number) for number in done.stdout.splitlines()[-1].split()]


def measure_all(figures: Sequence[Figure], rounds: int) -> Iterator[tuple[tuple[str, str], list[float]]]:
    """All measurements of all rounds, by figure and framework, and with them the machine's own rates."""
    for number in range(1, rounds + 1):
        yield ("machine", "rates"), [machine.multiplication_rate(), machine.copy_rate()]
        for figure in figures:
            if figure.measure == "memory" and number < rounds:
                continue  # the same every time
            for framework in frameworks():
                if framework.program is None or framework.module not in figure.modules:
                    continue
                numbers = measure(figure, framework)
                print(f"round {number}: {figure.title}: {framework.name} {table.shown(figure, numbers)}", file=sys.stderr)
                yield (figure.title, framework.name), numbers


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmarks, print the table and write it into the page."""
    parser = argparse.ArgumentParser(description="Compare opencntk with CNTK 2.7 and PyTorch.")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", metavar="WORKLOAD", help="workloads to run; all where left out")
    parser.add_argument("--no-page", action="store_true", help=f"leave {PAGE.name} as it is")
    options = parser.parse_args(arguments)

    figures = [figure for figure in FIGURES if not options.only or figure.workload in options.only]
    before = machine.description()
    results = table.Results(options.rounds)
    for key, numbers in measure_all(figures, options.rounds):
        results.add(key, numbers)
    text = table.page(figures, [framework.name for framework in frameworks()], results, before)
    print(text)
    if not options.no_page:
        table.write(PAGE, text)


if __name__ == "__main__":
    main()
