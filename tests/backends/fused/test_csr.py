"""Compiled products with CSR rows: the numbers of dense products, whatever else is in the minibatch and however many threads there are."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.common.thresholds import thresholds
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
fused = pytest.importorskip("cntk.backends.fused.csr")
pytestmark = pytest.mark.usefixtures("three_threads")

TYPES = pytest.mark.parametrize(("dtype", "index"), [(np.float32, np.int32), (np.float64, np.int64)])


@st.composite
def csr_rows(draw: Any) -> tuple[list[list[int]], int]:
    """Columns of each row, repeated ones and empty rows among them, and how many columns there are."""
    width = draw(st.sampled_from([1, 5, 2048, 2049, 5_000_000]))
    column = st.one_of(st.integers(0, width - 1), st.integers(0, min(width, 3) - 1))
    return draw(st.lists(st.lists(column, max_size=6), max_size=25)), width


def arrays(rows: list[list[int]], dtype: Any, index: Any) -> tuple[Any, Any, Any]:
    indices = np.array([column for row in rows for column in row], index)
    indptr = np.cumsum([0, *map(len, rows)]).astype(index)
    return np.random.default_rng(0).normal(size=len(indices)).astype(dtype), indices, indptr


def dense_rows(parts: Any, columns: Any) -> Any:
    """The rows as a dense matrix that has only some columns."""
    data, indices, indptr = parts
    array = np.zeros((len(indptr) - 1, len(columns)))
    places = np.searchsorted(columns, indices)
    np.add.at(array, (np.repeat(np.arange(len(array)), np.diff(indptr)), places), data)
    return array


@TYPES
@settings(deadline=None, max_examples=50)
@given(case=csr_rows(), shared=st.sampled_from([1, 2**62]))
def test_products_are_those_of_dense_matrices(dtype: Any, index: Any, case: Any, shared: int) -> None:
    (rows, width), random = case, np.random.default_rng(1)
    parts = arrays(rows, dtype, index)
    present = np.unique(parts[1])
    right = dense_rows(parts, present)
    grad = random.normal(size=(len(rows), 3)).astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(thresholds, "rows_shared", shared)
        numbers, sums = fused.Csr.transposed_product(parts, width, grad)
        assert numbers.tolist() == present.tolist()
        assert_close(sums, (right.T @ grad).astype(dtype))

        weights = random.normal(size=(len(present), 3)).astype(dtype)
        compact = parts[0], np.searchsorted(present, parts[1]).astype(index), parts[2]
        out = np.full((len(rows), 3), np.nan, dtype)
        fused.Csr.product(compact, weights, out)
        assert_close(out, (right @ weights).astype(dtype))


def test_a_row_does_not_depend_on_those_beside_it() -> None:
    random = np.random.default_rng(0)
    rows = [random.integers(0, 50, size).tolist() for size in random.integers(0, 9, 40)]
    data, indices, indptr = arrays(rows, np.float32, np.int32)
    weights = random.normal(size=(50, 33)).astype(np.float32)
    out = np.empty((40, 33), np.float32)
    fused.Csr.product((data, indices, indptr), weights, out)
    for first, last in ((0, 40), (3, 4), (10, 31)):
        start, stop = indptr[first], indptr[last]
        some = np.empty((last - first, 33), np.float32)
        fused.Csr.product((data[start:stop], indices[start:stop], indptr[first : last + 1] - start), weights, some)
        assert some.tobytes() == out[first:last].tobytes()


# ---- in training ----


def bags(random: Any, dtype: Any, one_hot: bool, rows: int = 12, width: int = 30) -> Any:
    dtype = np.float32 if dtype is np.float16 else dtype  # SciPy has no float16
    if one_hot:
        return csr_matrix((np.ones(rows, dtype), random.integers(0, width, rows), np.arange(rows + 1)), (rows, width))
    array = random.normal(size=(rows, width)) * (random.random((rows, width)) < 0.2)
    array[3] = 0
    return csr_matrix(array.astype(dtype))


def trained(case: str, dtype: Any, one_hot: bool) -> Any:
    """The parameter after some steps of training."""
    random = np.random.default_rng(0)
    shape = {"two output axes": (30, 2, 3), "transposed": (4, 30)}.get(case, (30, 4))
    x, w = C.input_variable(30, dtype, is_sparse=True), C.parameter(init=random.normal(size=shape).astype(dtype))
    product = C.times_transpose(x, w) if case == "transposed" else C.times(x, w, output_rank=len(shape) - 1)
    loss = C.reduce_sum(C.square(product + (C.times(2 * x, w) if case == "two uses" else 0)))
    if case == "dense gradient":
        loss = loss + C.reduce_sum(w)
    trainer = C.Trainer(product, loss, [C.momentum_sgd([w], 0.01, 0.9)])
    for _ in range(3):
        trainer.train_minibatch({x: bags(random, dtype, one_hot)})
    return w.value


@pytest.mark.parametrize("one_hot", [False, True], ids=["bags", "one hot"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("case", ["plain", "two uses", "two output axes", "transposed", "dense gradient"])
def test_training_is_the_same_with_and_without(case: str, dtype: Any, one_hot: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = trained(case, dtype, one_hot)
    monkeypatch.setattr(thresholds, "sparse_product_compiled", 1)
    assert_close(trained(case, dtype, one_hot), expected)


PROGRAM = """
import sys
import numpy as np
import cntk as C
from scipy.sparse import csr_matrix
x, w = C.input_variable({width}, is_sparse=True), C.parameter(({width}, 4))
data = csr_matrix(([1.0, 2.0], [5, 7], [0, 1, 2]), (2, {width}), dtype=np.float32)
z = C.times(x, w)
z.eval({{x: data}})
before = "llvmlite" in sys.modules
C.Trainer(z, C.reduce_sum(z), [C.sgd([w], 0.1)]).train_minibatch({{x: data}})
print(before, "llvmlite" in sys.modules, w.value[5, 0], w.value[7, 0])
"""


@pytest.mark.parametrize(("width", "loads"), [(2**15 - 1, False), (2**15, True)])
def test_only_the_training_of_large_parameters_loads_numba(width: int, loads: bool) -> None:
    before, after, five, seven = in_a_process(PROGRAM.format(width=width)).split()
    assert (before, after) == ("False", str(loads))
    np.testing.assert_allclose([float(five), float(seven)], [-0.05, -0.1], rtol=1e-6)


def in_a_process(program: str) -> str:
    """What a program prints."""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
