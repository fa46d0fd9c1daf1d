"""The order that a seed chooses."""

from __future__ import annotations

import numpy as np
import pytest

from cntk.core.common.thresholds import thresholds
from cntk.readers import shuffle as module
from cntk.readers.compiled import loops
from cntk.readers.shuffle import shuffle


def shuffled(count: int, seed: int) -> list[int]:
    order = np.arange(count)
    shuffle(order, seed)
    return order.tolist()


@pytest.mark.parametrize(
    ("seed", "expected"),
    [(0, [4, 7, 3, 9, 1, 2, 8, 6, 5, 0]), (1, [1, 2, 8, 6, 5, 7, 0, 9, 3, 4]), (2, [8, 5, 7, 3, 6, 4, 9, 1, 0, 2])],
)
def test_it_is_that_of_cntk(seed: int, expected: list[int]) -> None:
    assert shuffled(10, seed) == expected


def test_what_is_compiled_gives_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 300)
    plain = shuffled(1000, 7)
    if loops("compiled_shuffle") is None:
        pytest.skip("compiled loops are switched off")
    monkeypatch.setattr(thresholds, "shuffle_compiled", 1000)
    assert shuffled(1000, 7) == plain
    assert sorted(plain) == list(range(1000))
