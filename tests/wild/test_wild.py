"""Complete programs as users of CNTK wrote them print here, unmodified, what CNTK 2.7 printed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from harness import EXPECTED, PROGRAMS, agree, differences, printed


NEEDED = {"image_map_classification": "PIL"}
"""Packages that are not required, and that a program cannot do without."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_print_what_cntk_printed(name: str) -> None:
    if name in NEEDED:
        pytest.importorskip(NEEDED[name], reason=f"{name} needs {NEEDED[name]}")
    text = printed([sys.executable], name, os.environ)
    found = differences(text, (EXPECTED / f"{name}.txt").read_text())
    assert not found, "\n".join(found)


def test_whole_numbers_and_words_must_be_equal_and_decimals_to_the_last_digit() -> None:
    assert not differences("loss = 0.123 * 64, done\n", "loss =  0.124 * 64, done\n")
    assert differences("loss = 0.123\n", "loss = 0.125\n") == ["line 1: 'loss = 0.123', expected 'loss = 0.125'"]
    assert differences("step 3\n", "step 4\n")
    assert differences("gain 3.0\n", "loss 3.0\n")
    assert differences("one\n", "one\ntwo\n") == ["1 lines, expected 2"]


@pytest.mark.parametrize(("ours", "theirs"), [("1.0e-7", "1.1e-7"), ("-0.00", "0.00"), ("123456.7", "123457.0")])
def test_numbers_that_differ_by_rounding_agree(ours: str, theirs: str) -> None:
    assert agree(ours, theirs)


@pytest.mark.parametrize(("ours", "theirs"), [("1.0e-7", "1.2e-7"), ("-0.02", "0.02"), ("10", "11"), ("0.5", "0.502")])
def test_numbers_that_differ_do_not(ours: str, theirs: str) -> None:
    assert not agree(ours, theirs)
