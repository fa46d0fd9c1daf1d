"""Our own CSR matrices do what SciPy's do, and stand in for them where there is no SciPy."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from cntk.core.types import csr
from cntk.core.types.csr import CsrMatrix


def matrix(rows: int = 7, columns: int = 12, seed: int = 1) -> tuple[CsrMatrix, Any]:
    """A matrix with elements out of order, some twice, and rows without any; and the array with all zeros."""
    random = np.random.default_rng(seed)
    counts = random.integers(0, 5, rows)
    counts[::3] = 0
    indices = random.integers(0, columns, counts.sum()).astype(np.int32)
    made = csr.csr_of(random.normal(size=len(indices)), indices, counts, columns)
    dense = np.zeros((rows, columns))
    np.add.at(dense, (np.repeat(np.arange(rows), counts), indices), made.data)
    return made, dense


@pytest.mark.parametrize("at_once", [1, 5, 1 << 20])
@pytest.mark.parametrize("shape", [(12,), (12, 1), (12, 5)])
def test_products_are_those_of_the_dense_matrix(monkeypatch: pytest.MonkeyPatch, at_once: int, shape: tuple[int, ...]) -> None:
    monkeypatch.setattr(csr, "TERMS_AT_ONCE", at_once)
    found, dense = matrix()
    right = np.random.default_rng(2).normal(size=shape)
    np.testing.assert_allclose(found @ right, dense @ right, atol=1e-12)


def test_what_it_becomes() -> None:
    found, dense = matrix()
    np.testing.assert_array_equal(found.toarray(), dense)
    np.testing.assert_array_equal(found.T.toarray(), dense.T)
    np.testing.assert_array_equal(found[2:5].toarray(), dense[2:5])
    np.testing.assert_array_equal(found[-1].toarray(), dense[-1:])
    np.testing.assert_array_equal(found[5:2].toarray(), dense[5:2])
    np.testing.assert_array_equal(found.reshape(-1, 4).toarray(), dense.reshape(-1, 4))
    np.testing.assert_array_equal(found.astype(np.float32).toarray(), dense.astype(np.float32))
    copied = found.copy()
    copied.data[:] = 0
    np.testing.assert_array_equal(found.toarray(), dense)
    assert (found.shape, found.ndim, len(found), found.nnz) == ((7, 12), 2, 7, len(found.data))
    with pytest.raises(IndexError, match="contiguous rows, got a step of 2"):
        found[::2]


def test_elements_of_the_same_place_are_added_up() -> None:
    found, dense = matrix()
    found.sum_duplicates()
    np.testing.assert_allclose(found.toarray(), dense)
    places = np.repeat(np.arange(7), np.diff(found.indptr)) * 12 + found.indices
    assert (np.diff(places) > 0).all()
    empty = CsrMatrix(np.empty(0), np.empty(0, np.int32), np.zeros(4, np.int32), 3)
    empty.sum_duplicates()
    assert empty.shape == (3, 3)


PROGRAM = """
import os, sys, tempfile
if sys.argv[1] == "without":
    sys.modules["scipy"] = None
import numpy as np
import cntk as C
from cntk.core.types.csr import csr_matrix_of

C.cntk_py.set_fixed_random_seed(1)
words, tags = 500, 5
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "data.ctf")
    random = np.random.default_rng(3)
    with open(path, "w") as file:
        for sequence in range(40):
            for _ in range(random.integers(1, 6)):
                word = random.integers(words)
                file.write(f"{sequence} |x {word}:1 {(word + 7) % words}:0.5 |y {word % tags}:1\\n")
    streams = C.io.StreamDefs(x=C.io.StreamDef("x", words, is_sparse=True), y=C.io.StreamDef("y", tags, is_sparse=True))
    source = C.io.MinibatchSource(C.io.CTFDeserializer(path, streams), randomize=False)
    x, y = C.sequence.input_variable(words, is_sparse=True), C.sequence.input_variable(tags, is_sparse=True)
    model = C.layers.Sequential([C.layers.Embedding(300), C.layers.Recurrence(C.layers.LSTM(12)), C.layers.Dense(tags)])(x)
    loss = C.cross_entropy_with_softmax(model, y)
    trainer = C.Trainer(model, (loss, loss), [C.momentum_sgd(model.parameters, 0.5, 0.9)])
    for _ in range(5):
        trainer.train_minibatch(source.next_minibatch(60, input_map={x: source.streams.x, y: source.streams.y}))
        print(f"{trainer.previous_minibatch_loss_average:.5f}")
one_hot = C.Value.one_hot([[1, 2], [3]], 6)
s = C.sequence.input_variable(6, is_sparse=True)
print([part.tolist() for part in C.times(s, C.constant(np.arange(12, dtype=np.float32).reshape(6, 2))).eval({s: one_hot})])
v = C.input_variable(4, is_sparse=True)
rows = csr_matrix_of(np.array([1, 2, 3], np.float32), np.array([0, 3, 1]), np.array([0, 2, 3]), 4)
print(C.times(v, C.constant(np.ones((4, 2), np.float32))).eval({v: rows}).tolist())
w = C.parameter(init=np.ones((4, 2), np.float32))
gradient = C.times(v, w).grad({v: rows}, wrt=[w])
print((gradient.toarray() if hasattr(gradient, "toarray") else gradient).tolist())
print(C.Value(rows).asarray().toarray().tolist(), C.NDArrayView.from_csr(rows).shape)
source = C.io.MinibatchSourceFromData({"v": rows})
print(source.next_minibatch(2)[source.streams["v"]].asarray().toarray().tolist())
print(one_hot.as_sequences(s)[0].toarray().tolist())
"""


def test_everything_works_without_scipy_and_gives_the_same() -> None:
    found = {}
    for way in ("with", "without"):
        done = subprocess.run([sys.executable, "-c", PROGRAM, way], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found[way] = done.stdout
    assert found["with"] == found["without"]
    assert len(found["with"].splitlines()) > 10
