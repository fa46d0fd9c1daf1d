"""Run the programs of this folder on CNTK 2.7 and keep what they print, which the tests expect of ours.

CNTK27=path/of/a/program/that/runs/a/script/on/CNTK/2.7 python tests/wild/record.py [NAME ...]
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from harness import EXPECTED, PROGRAMS, printed
from old_libraries import preloaded


def main() -> None:
    """Record the programs that are named, or all."""
    theirs = os.environ.get("CNTK27")
    if not theirs:
        sys.exit("CNTK27 names no program that runs a Python script on CNTK 2.7")
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LD_PRELOAD": preloaded(theirs, Path(folder))}
        for name in sys.argv[1:] or PROGRAMS:
            text = printed([theirs], name, environment)
            (EXPECTED / f"{name}.txt").write_text(text)
            print(f"{name}: {len(text.splitlines())} lines")


if __name__ == "__main__":
    main()
