"""Tries at random what no test says, for as long as one likes, and tells the command that repeats what went wrong.

    python tests/hostile/run.py [--seconds 75] [--seed 1] [--jobs 2] [--cases COUNT] [--json FILE] [NAME ...]
    python tests/hostile/run.py [--seed 1] --case NAME NUMBER
    python tests/hostile/run.py --list

The seconds are divided among the trials, which are the modules of this folder that have a function ``trial``.  Each runs in a process of
its own; one that crashes, hangs or takes memory without end is a complaint as well.  The exit status is 1 where there are complaints.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from cases import generator, load
from found import HERE, Trial, find_trials
from supervisor import Outcome, supervise

SHOWN = 5
"""Complaints of a trial that are shown; all are in the file of ``--json``."""


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("names", nargs="*", metavar="NAME", help="trials to run, all unless there are some")
    parser.add_argument("--seconds", type=float, default=75, help="that all of it may take")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="trials that run at the same time")
    parser.add_argument("--cases", type=int, default=sys.maxsize, help="of each trial, at most")
    parser.add_argument("--json", type=Path, help="a file for the outcome")
    parser.add_argument("--case", nargs=2, metavar=("NAME", "NUMBER"), help="try this case alone, in this process")
    parser.add_argument("--list", action="store_true", help="show the trials")
    parser.add_argument("--folder", type=Path, default=HERE, help="where the trials are")
    chosen = parser.parse_args()
    trials = find_trials(chosen.folder)
    unknown = {*chosen.names, *(chosen.case or [])[:1]} - {*trials}
    if unknown:
        parser.error(f"there is no trial {', '.join(sorted(unknown))}; there are {', '.join(trials)}")
    if chosen.list:
        for trial in trials.values():
            print(f"{trial.name:20} {trial.what}")
    elif chosen.case:
        try_one(trials[chosen.case[0]], chosen.seed, int(chosen.case[1]))
    else:
        picked = [trials[name] for name in chosen.names or trials]
        outcomes = try_all(picked, chosen.seconds, chosen.seed, chosen.jobs, chosen.cases)
        if chosen.json:
            chosen.json.write_text(json.dumps([vars(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
        sys.exit(any(outcome.complaints for outcome in outcomes))


def try_one(trial: Trial, seed: int, number: int) -> None:
    """Try one case, so that its error ends this process and a debugger can be used; the files that it makes stay."""
    module = load(str(trial.folder), trial.name)
    folder = tempfile.mkdtemp(prefix=f"{trial.name}-{number}-")
    os.chdir(folder)
    tempfile.tempdir = folder
    print(f"{trial.name} {number}, seed {seed}; its files are in {folder}", flush=True)
    if hasattr(module, "begin"):
        module.begin()
    print(module.trial(generator(seed, trial.name, number)) or "no complaint")


def try_all(trials: list[Trial], seconds: float, seed: int, jobs: int, cases: int) -> list[Outcome]:
    """Try all, so many at the same time, and show what becomes of each as soon as it is known."""
    each = seconds * min(jobs, len(trials)) / sum(trial.share for trial in trials)
    outcomes = []
    print(f"{'trial':20} {'cases':>9} {'complaints':>10} {'seconds':>8} {'peak MiB':>9}")
    with ThreadPoolExecutor(jobs) as pool:
        longest_first = sorted(trials, key=lambda trial: -trial.share)
        running = [pool.submit(supervise, trial, each * trial.share, seed, cases) for trial in longest_first]
        for done in as_completed(running):
            outcomes.append(done.result())
            show(outcomes[-1], seed)
    return sorted(outcomes, key=lambda outcome: outcome.name)


def show(outcome: Outcome, seed: int) -> None:
    """Print the line of a trial, its complaints and what repeats them."""
    if outcome.left_out:
        print(f"{outcome.name:20} left out: {outcome.left_out}", flush=True)
        return
    peak = f"{outcome.peak / 2**20:.0f}" if outcome.peak else "-"
    print(f"{outcome.name:20} {outcome.cases:9} {len(outcome.complaints):10} {outcome.seconds:8.0f} {peak:>9}")
    for number, what in outcome.complaints[:SHOWN]:
        repeat = f"--case {outcome.name} {number}" if isinstance(number, int) else outcome.name
        print(f"  case {number}: {what}\n  to repeat it: python tests/hostile/run.py --seed {seed} {repeat}")
    if len(outcome.complaints) > SHOWN:
        print(f"  and {len(outcome.complaints) - SHOWN} more: {', '.join(str(number) for number, _ in outcome.complaints[SHOWN:][:20])}")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
