"""What backward passes start from."""

from __future__ import annotations

import numpy as np

from cntk.core.run.seeding import Seeding


def test_it_holds_as_long_as_the_number_is_the_same() -> None:
    gradients = [np.zeros(2), np.zeros(3)]
    seeding = Seeding(gradients)
    seeding.number = 2.0
    assert not seeding.holds()
    seeding()
    assert [gradient.tolist() for gradient in gradients] == [[2, 2], [2, 2, 2]]
    assert seeding.holds()
    seeding.number = 4.0
    assert not seeding.holds()
    seeding.work()
    assert gradients[0].tolist() == [4, 4]
    assert seeding.holds()


def test_gradients_that_somebody_else_writes_are_left_alone() -> None:
    gradient = np.array([3.0])
    seeding = Seeding([gradient])
    seeding.number = 1.0
    seeding()
    gradient[:] = 3
    seeding.number = None
    assert not seeding.holds()
    seeding()
    assert gradient.tolist() == [3]
    assert seeding.holds()
