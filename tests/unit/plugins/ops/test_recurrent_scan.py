"""Scans of packed sequences: every row is computed once, after the one it goes on from."""

from __future__ import annotations

import numpy as np
import pytest

from cntk.core.types.layout import Layout
from cntk.plugins.ops.recurrent_scan import Scan, of_sequences


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("lengths", [[1], [4], [2, 3, 1], [3, 3], [1, 5, 1, 2, 5]])
def test_states_are_carried_along_each_sequence(lengths: list[int], backwards: bool) -> None:
    """Counting steps by a scan gives each row's place in its sequence, from the end where it goes backwards."""
    layout = Layout(len(lengths), lengths)
    scan = Scan(layout, backwards)
    counts = np.zeros((layout.rows, 1))
    for step in scan.steps:
        assert (counts[step.rows] == 0).all()
        counts[step.rows] = 1
        counts[step.rows][: step.carried] += counts[step.before]
    places = layout.step_of_row
    right = layout.lengths[layout.sequence_of_row] - places if backwards else places + 1  # type: ignore[index]
    np.testing.assert_array_equal(counts[:, 0], right)
    carried = np.full((layout.rows, 1), np.nan)
    scan.carry(np, counts, carried)
    np.testing.assert_array_equal(carried, counts - 1)


def test_samples_are_sequences_of_one_step() -> None:
    assert of_sequences(Layout(3)) == Layout(3, [1, 1, 1])
    layout = Layout(2, [2, 1])
    assert of_sequences(layout) is layout
