"""Rows gathered by a compiled loop: those that NumPy takes, and refused where there are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context
from cntk.plugins.ops.slicing import Gather

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
kernel = pytest.importorskip("cntk.backends.fused.gather").GatherKernel
pytestmark = pytest.mark.usefixtures("three_threads")


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "gather_compiled", 0)
    monkeypatch.setattr(thresholds, "rows_shared", 1)


def bound(reference: Any, indices: Any, axis: int = 0) -> tuple[Any, Any]:
    out = np.full(np.take(reference, indices.astype(int), axis).shape, np.nan, reference.dtype)
    return kernel.bind(Gather(axis=axis), Context(backend_named("numpy"), training=False), out, reference, indices), out


@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "of_indices"), [((7,), (5,)), ((1, 3), (4, 2)), ((50, 33), (6, 3, 2)), ((9, 4, 5), (100,))])
def test_rows_are_those_that_numpy_takes(shape: Any, of_indices: Any, dtype: Any, number: int) -> None:
    threads.set_max_threads(number)
    random = np.random.default_rng(4)
    reference, indices = random.random(shape).astype(dtype), random.integers(0, shape[0], of_indices).astype(dtype)
    call, out = bound(reference, indices)
    call()
    np.testing.assert_array_equal(out, np.take(reference, indices.astype(int), 0))
    indices[...] = shape[0] - 0.5  # cut off to whole numbers
    reference += 1
    call()
    np.testing.assert_array_equal(out, np.broadcast_to(reference[-1], out.shape))


def test_what_the_loop_leaves_to_the_operator() -> None:
    matrix, indices = np.ones((4, 6), np.float32), np.zeros(3, np.float32)
    assert bound(matrix, indices, axis=1)[0] is None
    assert bound(matrix.astype(np.float16), indices.astype(np.float16))[0] is None
    assert bound(matrix, indices.astype(np.float64))[0] is None
    assert bound(matrix.T, indices)[0] is None
    thresholds.gather_compiled = 19
    assert bound(matrix, indices)[0] is None


@pytest.mark.parametrize("wrong", [-1, 4, 1e30, np.inf, -np.inf, np.nan])
def test_a_number_without_a_row_is_refused(wrong: float) -> None:
    numbers = C.input_variable(3)
    gathered = C.gather(C.parameter((4, 5), init=1), numbers)
    for data in ([0, wrong, 1], [wrong, 0, 1]):
        with pytest.raises(ValueError, match="Gather: an index is outside 0 … 3"):
            gathered.eval({numbers: np.array([data], np.float32)})
    assert (gathered.eval({numbers: np.array([[0, 3, -0.5]], np.float32)}) == 1).all()
