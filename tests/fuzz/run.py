"""Gives readers files that are wrong, and tells what they should not have done.

    python tests/fuzz/run.py [--reader models] [--count 50000] [--seed 1] [--keep FOLDER]

A reader may give a result or raise a documented error that names the file and a place.  It may not take more than 50 times the file's
size in memory, 16 MiB aside, nor 5 seconds; it may import, run and write nothing.  ``--keep`` keeps the files of complaints.
"""

from __future__ import annotations

import argparse
import codecs
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from guard import Outcome, watched
from mutations import mutated
from targets import TARGETS, Target

from cntk.core import plugins

ROOM = 2**30
"""Bytes of address space that the process may take beyond what it has at first."""


def trial(target: Target, number: int, seed: int, path: Path) -> tuple[bytes, Outcome]:
    """Make the file of this number, and have it read."""
    data = mutated(target.seeds, random.Random(f"{target.name} {seed} {number}"), target.structured)
    path.with_name(path.name + target.suffix).write_bytes(data)
    return data, watched(lambda: target.read(str(path)), str(path), len(data), number % 10 == 0, target.documented)


def warm_up(target: Target, path: Path) -> None:
    """Have everything imported that reading takes."""
    for name in plugins.model_formats:
        plugins.model_formats.get(name)
    codecs.lookup("utf-16-le")
    for seed in target.seeds:
        path.with_name(path.name + target.suffix).write_bytes(seed)
        target.read(str(path))


def limit_memory() -> None:
    """Let the process grow by :data:`ROOM` at most."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    limit = pages * resource.getpagesize() + ROOM
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def main() -> None:
    """Run the trials; exit with 1 where there is a complaint."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--reader", choices=TARGETS, default="models")
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, help="a folder for files that a reader did wrong with")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = TARGETS[chosen.reader](Path(folder))
        path = Path(folder) / ("checkpoint" if target.suffix else "file")
        warm_up(target, path)
        limit_memory()
        complaints: Counter[str] = Counter()
        kinds: Counter[str] = Counter()
        slowest, begin = (0.0, 0), time.perf_counter()
        for number in range(chosen.count):
            data, outcome = trial(target, number, chosen.seed, path)
            kinds[type(outcome.error).__name__ if outcome.error else "read"] += 1
            slowest = max(slowest, (outcome.seconds, number))
            if outcome.wrong:
                if not complaints[outcome.wrong[:60]]:
                    print(f"file {number}: {outcome.wrong}", flush=True)
                complaints[outcome.wrong[:60]] += 1
                if chosen.keep:
                    chosen.keep.mkdir(parents=True, exist_ok=True)
                    (chosen.keep / f"{target.name}-{chosen.seed}-{number}").write_bytes(data)
        took = time.perf_counter() - begin
    outcomes = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common())
    seconds, number = slowest
    print(f"{target.name}: {chosen.count} files in {took:.0f} s: {outcomes}; {complaints.total()} complaints")
    print(f"slowest: file {number}, {seconds:.2f} s")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
