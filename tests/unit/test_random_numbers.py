"""The generators of random numbers: known numbers, and pieces of a stream that fit together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from cntk.core.dtypes import FLOAT_TYPES
from cntk.core.random import Stream, philox_uniform
from cntk.core.twister import Twister


def test_the_twister_is_the_standard_one() -> None:
    """The 10000th number for the seed 5489 is in the C++ standard; the first ones for 98052 are in CNTK's documentation."""
    assert Twister(5489).uniform(10000)[-1] == 9981545732273789042 / 2**64
    np.testing.assert_allclose(Twister(98052).uniform(6), [0.931785, 0.814722, 0.479606, 0.937468, 0.004351, 0.185131], atol=1e-6)


def test_pieces_of_the_twister_are_its_stream() -> None:
    pieces, whole = Twister(3), Twister(3).uniform(1000)
    sizes = [1, 311, 1, 0, 500, 187]
    np.testing.assert_array_equal(np.concatenate([pieces.uniform(size) for size in sizes]), whole)
    assert pieces.draws == 1000


@pytest.mark.parametrize("dtype", FLOAT_TYPES)
@pytest.mark.parametrize("start", [0, 1, 3, 4, 7, 8, 9, 30])
def test_uniform_numbers_from_a_place_on(start: int, dtype: Any) -> None:
    whole, rest = np.empty(40, dtype), np.empty(40 - start, dtype)
    philox_uniform(whole, 5, 2)
    philox_uniform(rest, 5, 2, start)
    np.testing.assert_array_equal(rest, whole[start:])


def test_a_stream_gives_every_place_once() -> None:
    stream = Stream(1)
    with ThreadPoolExecutor(4) as pool:
        firsts = sorted(pool.map(lambda _: stream.take(3), range(500)))
    assert firsts == list(range(0, 1500, 3))
    assert stream.next() == 1500
    assert stream.draws == 1501
