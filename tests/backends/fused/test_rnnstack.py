"""Stacks of recurrent layers with their steps on tapes: the numbers of the operator's own steps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
recurrence = pytest.importorskip("cntk.backends.fused.recurrence")

HIDDEN = 20
NEVER = 2**62


@pytest.fixture(autouse=True)
def shared_by_three_threads(three_threads: None) -> None:
    thresholds.elements_shared = 1


def results(kind: str, dtype: Any, lengths: tuple[int, ...], **attributes: Any) -> list[Any]:
    """Values of a stack, and the gradients of its operand and weights."""
    random = np.random.default_rng(1)
    data = [random.standard_normal((length, 7)).astype(dtype) for length in lengths]
    with C.default_options(dtype=dtype):
        x = C.sequence.input_variable(7, dtype=dtype, needs_gradient=True)
        weights = C.parameter((C.InferredDimension, HIDDEN), init=C.glorot_uniform(seed=1), dtype=dtype)
        h = C.optimized_rnnstack(x, weights, HIDDEN, recurrent_op=kind, **attributes)
        loss = C.sequence.reduce_sum(C.reduce_sum(C.sin(h), 0))
    gradients, values = loss.grad({x: data}, wrt=[x, weights], outputs=[h.output])
    return [np.concatenate(values), np.concatenate(gradients[x]), gradients[weights]]


@pytest.mark.parametrize("attributes", [{"num_layers": 1}, {"num_layers": 2, "bidirectional": True}], ids=["one layer", "two, both ways"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("kind", ["lstm", "gru", "rnnTanh", "rnnReLU"])
def test_numbers_are_those_of_the_operator(kind: str, dtype: Any, attributes: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[Any] = []
    run = recurrence.Tape.run
    monkeypatch.setattr(recurrence.Tape, "run", lambda self, *arguments: (runs.append(self), run(self, *arguments)))
    found = []
    for worthwhile in (0, NEVER):
        monkeypatch.setattr(thresholds, "recurrence_compiled", worthwhile)
        found.append(results(kind, dtype, (4, 1, 9, 2, 9, 3, 5), **attributes))
        assert len(runs) == 2 * attributes["num_layers"] * (1 + attributes.get("bidirectional", False))
    for taped, stepped in zip(*found, strict=True):
        assert_close(taped, stepped)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_numbers_do_not_depend_on_threads(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "recurrence_compiled", 0)
    several = results(kind, np.float32, (7, 3, 9, 9, 1, 30, 2, 8, 8, 8, 11, 4, 5), num_layers=1, bidirectional=True)
    threads.set_max_threads(1)
    alone = results(kind, np.float32, (7, 3, 9, 9, 1, 30, 2, 8, 8, 8, 11, 4, 5), num_layers=1, bidirectional=True)
    for found, expected in zip(several, alone, strict=True):
        np.testing.assert_array_equal(found, expected)
