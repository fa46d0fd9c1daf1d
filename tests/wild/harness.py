"""Running the programs of this folder, and comparing what they print.

A program runs in a process of its own, in an empty folder outside the checkout.  What two programs print is the same when their words
are the same and their numbers agree: whole numbers exactly, numbers with decimals to one unit of the last digit printed, or to
``ROUNDING`` of the number where that is more.  Times and speeds are left out.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("harness", "old_libraries", "record", "test_wild"))
LONGEST = 300
"""Seconds that a program may take."""
ROUNDING = 1e-5
"""What float32, which has seven digits, loses in sums and in some dozen updates.  A program that trains longer prints fewer digits."""
NUMBER = re.compile(r"[-+]?(?<![\w.])\d+(?:\.\d*)?(?:[eE][-+]?\d+)?(?![\w])|[-+]?(?<![\w.])\.\d+(?:[eE][-+]?\d+)?(?![\w])")
TIMES = re.compile(r"\d+\.\d+s \(\s*[\d.]+ samples/s\)|\d+\.\d+ seconds")


def printed(command: Sequence[str], name: str, environment: Mapping[str, str]) -> str:
    """What a program prints when a command runs it; an error shows all of its output."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.run(
            [*command, str(HERE / f"{name}.py")],
            cwd=folder,
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=LONGEST,
        )
    if process.returncode:
        raise RuntimeError(f"{name}.py ended with {process.returncode}\n{process.stdout}\n{process.stderr}")
    return without_times(process.stdout)


def without_times(text: str) -> str:
    """The lines of a text, without what differs between two runs of one program."""
    lines = [TIMES.sub("<time>", line).rstrip() for line in text.splitlines()]
    return "\n".join(line for line in lines if line) + "\n"


def differences(ours: str, theirs: str) -> list[str]:
    """The lines that are not the same, both texts of each."""
    pairs = list(zip(ours.splitlines(), theirs.splitlines(), strict=False))
    found = [f"line {i}: {a!r}, expected {b!r}" for i, (a, b) in enumerate(pairs, 1) if not same(a, b)]
    counts = len(ours.splitlines()), len(theirs.splitlines())
    return found + ([f"{counts[0]} lines, expected {counts[1]}"] if counts[0] != counts[1] else [])


def same(ours: str, theirs: str) -> bool:
    """Whether the words of two lines are the same and their numbers agree; spaces do not matter."""
    if words(ours) != words(theirs):
        return False
    return all(map(agree, NUMBER.findall(ours), NUMBER.findall(theirs)))


def words(line: str) -> str:
    return "".join(NUMBER.sub("#", line).split())


def agree(ours: str, theirs: str) -> bool:
    """Whether two printed numbers are the same but for rounding.

    >>> agree("0.123", "0.124"), agree("0.123", "0.125"), agree("3", "4"), agree("1234567.0", "1234568.0")
    (True, False, False, True)
    """
    if not set(".eE") & set(theirs):
        return ours == theirs
    return abs(float(ours) - float(theirs)) <= max(1.001 * last_digit(theirs), ROUNDING * abs(float(theirs)))


def last_digit(number: str) -> float:
    """One unit of the last digit of a printed number."""
    mantissa, _, exponent = number.lower().partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
