"""Signatures of loops: what each letter stands for, in both types."""

from __future__ import annotations

import numpy as np
import pytest

from cntk.core.machine.signatures import ARRAYS, kinds_of


@pytest.mark.parametrize("is_double", [False, True])
def test_real_numbers_are_those_of_the_loop(is_double: bool) -> None:
    real, bits = kinds_of("R3 W1", is_double)
    assert np.dtype(real.split(":")[0]) == (np.float64 if is_double else np.float32)
    assert np.dtype(bits.split(":")[0]).itemsize == np.dtype(real.split(":")[0]).itemsize
    assert real.split(":")[1:] == ["3", "C"]
    assert kinds_of("r d q ?", is_double) == ["d" if is_double else "f", "d", "q", "?"]


@pytest.mark.parametrize("letter", ARRAYS)
def test_other_arrays_are_the_same_in_both_types(letter: str) -> None:
    assert kinds_of(f"{letter}2", False) == kinds_of(f"{letter}2", True) == [f"{ARRAYS[letter]}:2:C"]
    assert np.dtype(ARRAYS[letter]).str.replace("?", "b") in (ARRAYS[letter], "|b1")


def test_order_and_tuples_stay() -> None:
    assert kinds_of("(3) q R1 (2)", False) == ["(3)", "q", "<f4:1:C", "(2)"]
    assert kinds_of("", False) == []
