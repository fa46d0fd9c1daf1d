"""Compiled loops draw the numbers that NumPy draws, to the last bit, whatever is drawn before and after."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.threads import set_max_threads
from cntk.core.common.thresholds import NEVER, overridden
from cntk.core.common.twister import MIDDLE, SIZE, Twister

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)

from cntk.backends.fused.twister import WORDS, TwisterLoops

LENGTHS = [1, MIDDLE - 1, MIDDLE, SIZE, SIZE + 1, 5000, WORDS - 1, WORDS, 2 * WORDS + 3]


def both(seed: int) -> tuple[Twister, Twister]:
    return Twister(seed, TwisterLoops()), Twister(seed)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_array_is_filled_and_the_next_one_goes_on(length: int, dtype: Any) -> None:
    ours, theirs = both(length)
    for count in (length, 700, 1, length):
        found, wanted = np.empty(count, dtype), np.empty(count, dtype)
        ours.fill_uniform(found, 0.3, -0.15)
        theirs.fill_uniform(wanted, 0.3, -0.15)
        np.testing.assert_array_equal(found, wanted)
    assert (ours.draws, ours.words) == (theirs.draws, theirs.words)


def test_kinds_of_numbers_follow_one_another() -> None:
    ours, theirs = both(3)
    for draw in (
        lambda t: t.normal(1000), lambda t: t.uniform(77), lambda t: t.whole(900, 13), lambda t: t.normal(70000, limit=2),
        lambda t: filled(t, 500), lambda t: t.skip(12345), lambda t: filled(t, 40000),
    ):  # fmt: skip
        np.testing.assert_array_equal(draw(ours), draw(theirs))


def filled(stream: Twister, count: int) -> Any:
    values = np.empty(count, np.float32)
    stream.fill_uniform(values, 2, -1)
    return values


def test_numpy_goes_on_from_the_state_that_loops_leave() -> None:
    ours, theirs = both(9)
    for stream in (ours, theirs):
        filled(stream, 1234)
    np.testing.assert_array_equal(Twister.from_checkpoint(ours.create_checkpoint()).uniform(999), theirs.uniform(999))


@pytest.mark.parametrize(
    "init",
    [lambda: C.glorot_uniform(seed=5), lambda: C.uniform(0.5, seed=5), lambda: C.he_normal(seed=5), lambda: C.truncated_normal(1, seed=5)],
    ids=["glorot_uniform", "uniform", "he_normal", "truncated_normal"],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_initial_values_are_the_same_with_loops_and_without(init: Callable[[], Any], dtype: Any) -> None:
    def values() -> Any:
        return C.parameter((300, 251), init=init(), dtype=dtype).value

    with overridden(initial_values_compiled=NEVER):
        wanted = values()
    with overridden(initial_values_compiled=0):
        np.testing.assert_array_equal(values(), wanted)


def test_threads_change_no_bit() -> None:
    found = []
    for threads in (1, 2, 3):
        set_max_threads(threads)
        with overridden(elements_shared=0):
            found.append(filled(Twister(2, TwisterLoops()), 2 * WORDS + 5))
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
