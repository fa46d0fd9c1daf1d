"""Model files cross over between opencntk and CNTK 2.7, in both directions, and compute the same.

    CNTK27=path/of/a/program/that/runs/a/script/on/CNTK/2.7 python tests/crossing/run.py [--keep FOLDER] [NAME ...]

Each model of the zoo is saved by one program and loaded by the other, which compares values, names and uids of parameters.  So is each
sample of each operator, and what is read of ONNX files, from here to there.
Differences are shown as parts of what is allowed: 1e-5 of the value, and 1e-6.
``--keep`` keeps the files of CNTK, for the tests in ``tests/data/models``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from zoo import MODELS

HERE = Path(__file__).parent
BATCH, LONGEST = 40, 60
"""Models in a process, and seconds that it may take."""
PASSED = "0123456789o"
"""What begins the outcome of a trial that went well: a number, or ``ok``."""


def outcomes(program: Sequence[str], script: str, arguments: Sequence[str], names: Sequence[str]) -> dict[str, str]:
    """What a script prints of each name.  One that ends the whole process, or never ends, is told, and the rest goes on in a new one."""
    found: dict[str, str] = {}
    while left := [name for name in names if name not in found]:
        printed, ending = run([*program, str(HERE / script), *arguments, *left[:BATCH]])
        lines = [line.split("\t", 1) for line in printed.splitlines() if "\t" in line]
        found |= {name: outcome for name, outcome in lines if name in left}
        missing = [name for name in left[:BATCH] if name not in found]
        if missing:
            found[missing[0]] = ending
    return found


def run(command: Sequence[str]) -> tuple[str, str]:
    """What a process prints, and how it ended; with it end those that it has started."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    ending = ""
    try:
        printed, _ = process.communicate(timeout=LONGEST)
    except subprocess.TimeoutExpired:
        ending = f"no end within {LONGEST} seconds"
        os.killpg(process.pid, signal.SIGKILL)
        printed, _ = process.communicate()
    return printed.decode(errors="replace"), ending or f"the process ended with {process.returncode}"


def passed(outcome: str) -> bool:
    return outcome[:1] in PASSED


def main() -> None:
    """Print the tables; exit with 1 where a model of the zoo does not cross over."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])  # type: ignore[union-attr]
    parser.add_argument("--keep", type=Path, help="a folder for the files of CNTK")
    parser.add_argument("names", nargs="*", help="models of the zoo; all of them, and operators too, where none is named")
    chosen = parser.parse_args()
    theirs = os.environ.get("CNTK27")
    if not theirs:
        sys.exit("CNTK27 names no program that runs a Python script on CNTK 2.7")
    ours = [sys.executable, "-W", "ignore"]
    with tempfile.TemporaryDirectory() as folder:
        zoo(ours, [theirs], Path(folder), chosen.names or sorted(MODELS))
        if chosen.keep:
            chosen.keep.mkdir(parents=True, exist_ok=True)
            for path in (Path(folder) / "theirs").iterdir():
                shutil.copy(path, chosen.keep)
        if not chosen.names:
            with_data(ours, [theirs], Path(folder) / "operators", "samples.py", "sample of an operator")
            with_data(ours, [theirs], Path(folder) / "onnx", "onnx_files.py", "ONNX file")


def zoo(ours: Sequence[str], theirs: Sequence[str], folder: Path, names: Sequence[str]) -> None:
    """Send the zoo in both directions."""
    columns = []
    for saver, loader, place in ((ours, theirs, "ours"), (theirs, ours, "theirs")):
        there = folder / place
        there.mkdir()
        saved = outcomes(saver, "trial.py", ["save", str(there)], names)
        checked = outcomes(loader, "trial.py", ["check", str(there)], [name for name in saved if passed(saved[name])])
        columns.append(saved | checked)
    print("| model | from here to CNTK 2.7 | from CNTK 2.7 to here |\n| --- | ---: | ---: |")
    for name in sorted(columns[0] | columns[1]):
        print(f"| {name} | {columns[0].get(name, 'missing')} | {columns[1].get(name, 'missing')} |")
    well = [[passed(outcome) for outcome in column.values()] for column in columns]
    print(f"\n{sum(well[0])} of {len(well[0])} models cross over to CNTK 2.7, {sum(well[1])} of {len(well[1])} from there\n")


def with_data(ours: Sequence[str], theirs: Sequence[str], folder: Path, script: str, what: str) -> None:
    """Send the models of a script, which are saved together with their data, to CNTK; a line for each that does not come out the same."""
    folder.mkdir()
    printed = subprocess.run([*ours, str(HERE / script), str(folder)], capture_output=True, text=True, check=True).stdout
    saved = dict(line.split("\t", 1) for line in printed.splitlines() if "\t" in line)
    names = sorted(path.stem for path in folder.glob("*.npz"))
    checked = outcomes(theirs, "trial.py", ["check_with_data", str(folder)], names)
    print(f"| {what} | from here to CNTK 2.7 |\n| --- | --- |")
    for name, outcome in sorted((saved | checked).items()):
        if not passed(outcome):
            print(f"| {name} | {outcome.partition('[CALL STACK]')[0][:200]} |")
    print(f"\n{sum(map(passed, checked.values()))} of {len(saved | checked)} come out the same\n")


if __name__ == "__main__":
    main()
