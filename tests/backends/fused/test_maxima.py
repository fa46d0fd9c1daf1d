"""Maxima of windows in evaluation: those that NumPy finds, for windows of all sizes, with NaN and infinities among the numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.plugins.ops.pooling import pooling_windows

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
maxima = pytest.importorskip("cntk.backends.fused.maxima")
pytestmark = pytest.mark.usefixtures("three_threads")

GEOMETRIES = [
    ((28, 28), (3, 3), (2, 2), False),
    ((9, 9), (3, 3), (2, 2), True),
    ((40,), (5,), (3,), False),
    ((40,), (4,), (1,), True),
    ((7,), (2,), (2,), True),
    ((41,), (3,), (2,), False),
    ((9,), (2,), (3,), True),
    ((8, 10), (3, 3), (2, 2), False),
    ((8, 9), (2, 3), (3, 4), True),
    ((11, 11), (3, 3), (2, 2), False),
    ((70, 67), (3, 3), (2, 2), True),
    ((8, 64), (2, 2), (2, 2), False),
    ((12, 9), (4, 2), (3, 2), False),
    ((3, 1, 6), (3, 1, 3), (1, 1, 2), False),
    ((5, 7, 36), (2, 3, 3), (2, 1, 2), True),
    ((11, 13), (1, 3), (1, 1), False),
    ((11, 13), (2, 1), (2, 3), True),
    ((5, 7, 6), (2, 2, 2), (1, 1, 1), True),
    ((5, 7, 6), (3, 2, 4), (2, 1, 2), False),
    ((4, 3, 20), (2, 3, 3), (2, 1, 1), True),
    ((33, 31), (7, 6), (4, 5), True),
]


def expected(planes: Any, w: Any) -> Any:
    """The maxima of windows, one by one."""
    padded = np.full((len(planes), *w.padded), -np.inf, planes.dtype)
    padded[(slice(None), *w.inside)] = planes[(slice(None), *w.seen)]
    out = np.empty((len(planes), *w.out), planes.dtype)
    for place in product(*map(range, w.out)):
        window = tuple(slice(at * stride, at * stride + kernel) for at, stride, kernel in zip(place, w.strides, w.kernel, strict=True))
        out[(slice(None), *place)] = padded[(slice(None), *window)].reshape(len(planes), -1).max(axis=1)
    return out


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_maxima_are_numpys(
    geometry: Any, dtype: Any, rectify: bool, number: int, monkeypatch: pytest.MonkeyPatch, bytes_with_an_end: Callable[[int], Any]
) -> None:
    monkeypatch.setattr(thresholds, "pooling_shared", 0)
    threads.set_max_threads(number)
    shape, kernel, strides, pad = geometry
    w = pooling_windows(shape, kernel, strides, (pad,) * len(shape), False)
    random = np.random.default_rng(3)
    drawn = random.standard_normal((7, *shape)).astype(dtype)
    planes = bytes_with_an_end(drawn.nbytes).view(dtype).reshape(drawn.shape)
    planes[...] = drawn
    special = random.integers(0, 12, planes.shape)
    planes[3:][special[3:] == 0] = np.nan
    planes[2:5][special[2:5] == 1] = np.inf
    planes[2:][special[2:] == 2] = -np.inf
    results = (len(planes), *w.out)
    out = bytes_with_an_end(int(np.prod(results)) * drawn.itemsize).view(dtype).reshape(results)
    ctx = Context(backend_named("numpy"), training=False)
    call = maxima.bound_maxima(ctx, out, planes, w, rectify)
    for _ in range(2):
        call()
    wanted = expected(planes, w)
    np.testing.assert_array_equal(out, np.where(wanted < 0, 0, wanted) if rectify else wanted)
