"""Random data for the arguments of functions."""

from __future__ import annotations

import numpy as np

import cntk as C
from cntk.core.values.random_data import FREE, random_data


def test_every_kind_of_argument_has_data_that_a_function_takes() -> None:
    axis = C.Axis("words")
    x, y = C.input_variable((2, C.FreeDimension)), C.sequence.input_variable(3, sequence_axis=axis)
    z, s = C.sequence.input_variable(3), C.input_variable(5, is_sparse=True)
    p = C.input_variable((2, 2), dynamic_axes=[])
    data = random_data([x, y, z, s, p])
    assert data[x].shape == (3, 2, FREE)
    assert data[p].shape == (2, 2)
    assert [len(steps) for steps in data[y]] == [4, 1, 3]
    assert [len(steps) for steps in data[z]] == [3, 4, 1]
    assert data[s].shape == (3, 5)
    assert data[s].toarray().sum(axis=1).tolist() == [1, 1, 1]
    f = C.combine([x * 1, y * 1, z * 1, C.times(s, C.parameter((5, 2))), p * 1])
    found = f.eval(data)
    assert np.array_equal(found[f.outputs[0]], data[x])


def test_type_and_seed() -> None:
    x = C.input_variable(4, dtype=np.float64)
    (data, same, other) = (random_data([x], seed=seed)[x] for seed in (1, 1, 2))
    assert data.dtype == np.float64
    assert np.array_equal(data, same)
    assert not np.array_equal(data, other)
