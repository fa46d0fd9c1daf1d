"""``cntk tune``: from which sizes on compiled loops and threads pay on this machine."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import perf_counter
from typing import NamedTuple

from cntk.core.common.threads import processors
from cntk.core.common.thresholds import NEVER, TABLE, VARIABLE, own_file, thresholds
from cntk.core.storage.trusted import write_trusted

from . import crossover
from .arguments import Parser
from .workloads import WORKLOADS

SECONDS = 100.0
"""Seconds after which no further measurement begins."""


def run(arguments: Sequence[str]) -> int:
    """Measure from which sizes on compiled loops and threads pay here, and keep that for all programs.

    Args:
        arguments: ``--dry-run`` to write nothing, ``--reset`` to go back to the defaults, or ``--help``.

    Returns:
        0, or 1 where nothing can be measured or kept.
    """
    parser = Parser(
        prog="cntk tune",
        description="Measure from which sizes on compiled loops and threads pay on this machine, which takes up to two minutes.",
        epilog="\n".join(["thresholds:", *(f"  {line.name:30} {line.decides}" for line in TABLE.values())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    ways = parser.add_mutually_exclusive_group()
    ways.add_argument("--dry-run", action="store_true", help="print what is measured, and write nothing")
    ways.add_argument("--reset", action="store_true", help="remove what was measured: the defaults hold again")
    parser.add_argument("--json", action="store_true", help="print what was measured, at the end, for programs")
    options = parser.parse_args(arguments)
    path = own_file()
    if path is None:
        return _fail(f"there is no file to keep thresholds in; unset {VARIABLE}=0, or name a file by it")
    if options.reset:
        path.unlink(missing_ok=True)
        print(json.dumps({"removed": str(path)}) if options.json else f"removed {path}; the defaults hold")
        return 0
    why = crossover.why_not()
    if why:
        return _fail(f"{why}: there are no two ways to compare")
    if is_busy():
        print("cntk tune: other programs keep this machine busy; measure again when they do not", file=sys.stderr)
    if not options.json:
        print(HEADING)
    rows = []
    for row in _measured(perf_counter() + SECONDS):
        rows.append(row)
        if not options.json:
            print(row, flush=True)
    if not options.dry_run:
        write(path, {**_kept(), **{row.name: row.new for row in rows if row.is_measured}})
    if options.json:
        print(json.dumps({"file": None if options.dry_run else str(path), "thresholds": [row._asdict() for row in rows]}, indent=2))
    elif not options.dry_run:
        print(f"written to {path}; programs that are started from now on use it")
    return 0


def is_busy() -> bool:
    """Whether other programs have left less than half of the processors idle in the last minute, where the system tells."""
    return hasattr(os, "getloadavg") and os.getloadavg()[0] > processors() / 2


def write(path: Path, values: dict[str, int]) -> None:
    """Write a user's file of thresholds.

    Raises:
        Untrusted: somebody else could put another file in its place.
        OSError: it cannot be written.
    """
    write_trusted(path, [json.dumps({"thresholds": values}, indent=1).encode() + b"\n"])


class Row(NamedTuple):
    """A threshold as it is by default, as it was, and as it was measured; the note says why it was not, or the unit."""

    name: str
    default: int
    old: int
    new: int
    is_measured: bool
    note: str

    def __str__(self) -> str:
        return f"{self.name:30} {_shown(self.default):>12} {_shown(self.old):>12} {_shown(self.new):>12}  {self.note}"


HEADING = f"{'threshold':30} {'default':>12} {'old':>12} {'new':>12}  unit"


def _measured(end: float) -> Iterator[Row]:
    """The thresholds, measured as long as there is time."""
    for name, make in WORKLOADS.items():
        line, old = TABLE[name], getattr(thresholds, name)
        too_late = perf_counter() > end
        if too_late or not crossover.is_measurable(name):
            yield Row(name, line.default, old, old, False, "out of time, call it again" if too_late else "there is one thread")
        else:
            yield Row(name, line.default, old, crossover.found(line, make), True, line.unit)


def _kept() -> dict[str, int]:
    """What was measured earlier."""
    return {name: getattr(thresholds, name) for name, line in TABLE.items() if getattr(thresholds, name) != line.default}


def _shown(size: int) -> str:
    return "never" if size == NEVER else f"{size:,}"


def _fail(message: str) -> int:
    print(f"cntk tune: {message}", file=sys.stderr)
    return 1
