"""Tries cases of one trial, one after the other; the process that ``supervisor.py`` starts.

    python tests/hostile/cases.py FOLDER NAME SEED FIRST SECONDS COUNT DESCRIPTOR

Each case is told to the descriptor, a line of JSON when it begins and another when it has ended, so that the case is known which ends the
process, or never ends.
"""

from __future__ import annotations

import faulthandler
import importlib
import json
import os
import signal
import sys
import time
import traceback
import zlib
from types import ModuleType

import numpy as np


def load(folder: str, name: str) -> ModuleType:
    """Import a trial; it may import its neighbours by their names."""
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)


def generator(seed: int, name: str, number: int) -> np.random.Generator:
    """What the case of this number is drawn from."""
    return np.random.default_rng([seed, zlib.crc32(name.encode()), number])


def run(module: ModuleType, name: str, seed: int, first: int, seconds: float, count: int, descriptor: int) -> None:
    """Try cases from number *first* on, until the seconds are over or there were so many; one at least."""

    def tell(event: str, number: int | str, what: str = "") -> None:
        os.write(descriptor, json.dumps([event, number, what]).encode() + b"\n")

    end = time.monotonic() + seconds
    number = first
    if hasattr(module, "begin"):
        module.begin()
    while number == first or (time.monotonic() < end and number - first < count):
        tell("begin", number)
        try:
            tell("end", number, module.trial(generator(seed, name, number)) or "")
        except Exception as error:
            tell("complaint", number, complaint(error))
        number += 1
    if hasattr(module, "finish"):
        tell("begin", "finish")
        try:
            tell("end", "finish", module.finish() or "")
        except Exception as error:
            tell("complaint", "finish", complaint(error))


def complaint(error: Exception) -> str:
    """What a trial has raised, and where unless that is the trial's own comparison."""
    text = f"{error}" if type(error) is AssertionError else "".join(traceback.format_exception_only(error)).strip()
    where = traceback.extract_tb(error.__traceback__)[-1]
    return f"{text}  ({os.path.basename(where.filename)}:{where.lineno})"


def main() -> None:
    """Run what the command line says."""
    folder, name, seed, first, seconds, count, descriptor = sys.argv[1:]
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=True, chain=False)
    run(load(folder, name), name, int(seed), int(first), float(seconds), int(count), int(descriptor))


if __name__ == "__main__":
    main()
