"""The generators of random numbers: known numbers, and pieces of a stream that fit together."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cntk.core.common.random import Stream
from cntk.core.common.twister import Twister


def test_the_twister_is_the_standard_one() -> None:
    """The 10000th number for the seed 5489 is in the C++ standard; the first ones for 98052 are in CNTK's documentation."""
    assert Twister(5489).uniform(10000)[-1] == 9981545732273789042 / 2**64
    np.testing.assert_allclose(Twister(98052).uniform(6), [0.931785, 0.814722, 0.479606, 0.937468, 0.004351, 0.185131], atol=1e-6)


def test_pieces_of_the_twister_are_its_stream() -> None:
    pieces, whole = Twister(3), Twister(3).uniform(1000)
    sizes = [1, 311, 1, 0, 500, 187]
    np.testing.assert_array_equal(np.concatenate([pieces.uniform(size) for size in sizes]), whole)
    assert pieces.draws == 1000


def test_normal_numbers_of_the_twister_are_those_of_cntk() -> None:
    """Measured on CNTK 2.7: among them one of a tail, the 218th, and one that comes after many that took several words."""
    numbers = Twister(9).normal(200_000)
    right = [0.9523461249186429, -1.3794997223928447, 3.5413077351473516, 0.553166721063095, -0.7827489020237531]
    np.testing.assert_array_equal(numbers[[0, 1, 217, 218, 199_999]], right)


def test_limited_normal_numbers_of_the_twister_are_those_of_cntk() -> None:
    numbers = Twister(9).normal(20_000, limit=2) * 0.5
    np.testing.assert_array_equal(numbers[[0, 1, 19_999]], [0.47617306245932145, -0.6897498611964223, -0.3002686658251984])
    everything = Twister(9).normal(21_000)
    np.testing.assert_array_equal(numbers[:20_000], 0.5 * everything[np.abs(everything) <= 2][:20_000])


@pytest.mark.parametrize("limit", [np.inf, 1.0])
def test_pieces_of_normal_numbers_are_one_stream(limit: float) -> None:
    pieces, whole = Twister(3), Twister(3).normal(50_000, limit)
    sizes = [1] * 300 + [0, 7, 311, 40_000, 9_000, 382]
    np.testing.assert_array_equal(np.concatenate([pieces.normal(size, limit) for size in sizes]), whole)
    assert pieces.draws == 50_000


def test_a_stream_gives_every_number_once() -> None:
    stream = Stream(1)
    with ThreadPoolExecutor(4) as pool:
        numbers = sorted(pool.map(lambda _: stream.next(), range(500)))
    assert numbers == list(range(500))
    assert stream.draws == 500
