"""Row-sparse gradients: a workspace keeps that of the latest minibatch, and not one for each size."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.types.sparse import RowSparse

WORDS, WIDTH = 5000, 300


def minibatch(samples: int) -> Any:
    return C.Value.one_hot(np.random.default_rng(samples).integers(0, WORDS, samples).tolist(), WORDS)


def test_gradients_of_other_sizes_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[weakref.ref[Any]] = []
    store = RowSparse.set

    def noted(self: RowSparse, rows: Any, values: Any) -> None:
        found.append(weakref.ref(values))
        store(self, rows, values)

    monkeypatch.setattr(RowSparse, "set", noted)
    x = C.input_variable(WORDS, is_sparse=True)
    loss = C.reduce_sum(C.square(C.layers.Embedding(WIDTH)(x)), axis=0)
    trainer = C.Trainer(loss, (loss, None), C.sgd(loss.parameters, C.learning_parameter_schedule(1e-3)))
    for samples in (70, 60, 50, 60, 40):  # memory for the largest serves all
        trainer.train_minibatch({x: minibatch(samples)})
    gc.collect()
    alive = [values() for values in found if values() is not None]
    assert len(found) >= 5
    assert len(alive) <= 1
