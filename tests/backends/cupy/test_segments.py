"""Sums of runs of rows as CUDA texts: NumPy's, however wide the rows and long the runs."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import segments
from cntk.core.common.dtypes import limits_of

pytestmark = pytest.mark.usefixtures("on_host")


@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("shape", [(), (3,), (5, 7), (130,)], ids=str)
def test_sums_of_runs(shape: Any, dtype: Any) -> None:
    starts = np.array([2, 5, 5, 6, 700, 701])
    values = np.random.default_rng(0).normal(size=(703, *shape)).astype(dtype)
    for places, result in ((np.int32, dtype), (np.int64, np.float64)):
        out = HostBackend().empty((5, *shape), result)
        segments.bound(array(values), array(starts, places), out)()
        expected = np.array([values[a:b].sum(axis=0, dtype=np.float64) for a, b in pairwise(starts)])
        np.testing.assert_allclose(out, expected.astype(result), rtol=2 * float(limits_of(result).eps), atol=1e-12)


def test_a_run_has_the_same_sum_in_any_company() -> None:
    values = np.random.default_rng(0).normal(size=(5000, 3)).astype(np.float32)
    alone, among = HostBackend().empty((1, 3), np.float32), HostBackend().empty((3, 3), np.float32)
    segments.bound(array(values[1000:3000]), array([0, 2000], np.int32), alone)()
    segments.bound(array(values), array([0, 1000, 3000, 5000], np.int32), among)()
    np.testing.assert_array_equal(alone[0], among[1])


def test_no_runs_and_no_columns() -> None:
    for shape in ((0, 3), (2, 0)):
        out = HostBackend().empty(shape, np.float32)
        segments.bound(array(np.zeros((4, shape[1])), np.float32), array(np.arange(shape[0] + 1), np.int32), out)()
