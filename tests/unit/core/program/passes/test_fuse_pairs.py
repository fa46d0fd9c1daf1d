"""Embeddings and the products that follow them in one operator: when, and that the numbers stay the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.run import profiling
from cntk.core.run.evaluate import program_for
from cntk.testing import assert_close

WORDS, EMBEDDING = 20, 6
JOINED = ["EmbeddedTimes"]


def parameter(rows: int, columns: int, dtype: Any = np.float32) -> Any:
    return C.parameter((rows, columns), init=C.glorot_uniform(seed=rows + columns), dtype=dtype)


def names(f: Any) -> list[str]:
    return [instruction.op.op_name for instruction in program_for(f, f.outputs).instructions]


def one_hot(length: int, random: Any) -> Any:
    return csr_matrix((np.ones(length), random.integers(0, 9, length), np.arange(length + 1)), (length, WORDS))


def weighted(length: int, random: Any) -> Any:
    rows = one_hot(length, random)
    rows.data = random.standard_normal(length)
    return rows


def bags(length: int, random: Any) -> Any:
    return csr_matrix((random.random((length, WORDS)) < 0.3) * random.standard_normal((length, WORDS)))


@pytest.mark.parametrize("columns", [(8,), (8, 3)], ids=["one product", "two products"])
@pytest.mark.parametrize("rows", [one_hot, weighted, bags])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_those_of_one_product_after_the_other(rows: Any, columns: tuple[int, ...], dtype: Any) -> None:
    random = np.random.default_rng(3)
    data = [rows(length, random).astype(dtype) for length in (4, 7, 2)]
    with C.default_options(dtype=dtype):
        x = C.sequence.input_variable(WORDS, is_sparse=True, dtype=dtype)
        table = parameter(WORDS, EMBEDDING, dtype)
        matrices = [parameter(EMBEDDING, width, dtype) for width in columns]
        vectors = C.times(x, table)
        loss = C.sequence.reduce_sum(C.splice(*[C.reduce_sum(C.sin(C.times(vectors, matrix)), 0) for matrix in matrices]))
    found: list[Any] = []
    for passes in (None, []):
        C.debugging.set_passes(passes)
        assert names(loss).count("EmbeddedTimes") == (len(columns) if passes is None else 0)
        gradients, value = loss.grad({x: data}, wrt=[table, *matrices], outputs=[loss.output])
        found.append([value, *(g.toarray() if hasattr(g, "toarray") else g for g in gradients.values())])
    for joined, apart in zip(*found, strict=True):
        assert_close(np.asarray(joined), np.asarray(apart))


def test_a_product_is_of_words_that_occur() -> None:
    x = C.sequence.input_variable(WORDS, is_sparse=True)
    f = C.times(C.times(x, parameter(WORDS, EMBEDDING)), parameter(EMBEDDING, 8))
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        f.eval({x: [csr_matrix(np.eye(WORDS, dtype=np.float32)[[3, 3, 5, 3]]), csr_matrix(np.eye(WORDS, dtype=np.float32)[[5]])]})
    finally:
        profiling.end(recorder)
    assert [tally.flop for tally in recorder.tallies.values()] == [2 * 2 * EMBEDDING * 8]


def test_what_others_read_too_is_computed() -> None:
    x = C.sequence.input_variable(WORDS, is_sparse=True)
    vectors = C.times(x, parameter(WORDS, EMBEDDING))
    product = C.times(vectors, parameter(EMBEDDING, 8))
    assert names(product) == JOINED
    assert names(C.combine(product, vectors)) == ["Times", "Times"]
    assert "EmbeddedTimes" not in names(C.splice(product, C.tanh(vectors)))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: C.times_transpose(C.times(x, parameter(WORDS, EMBEDDING)), parameter(8, EMBEDDING)),
        lambda x: C.times(C.times(x, parameter(WORDS, EMBEDDING)), C.reshape(C.times(x, parameter(WORDS, 12)), (EMBEDDING, 2))),
        lambda x: C.times(C.times(x, C.parameter((WORDS, 2, 3), init=1), output_rank=2), C.parameter((2, 3, 4), init=1)),
        lambda x: C.times(C.times(C.sequence.last(x), parameter(WORDS, EMBEDDING)), C.parameter(EMBEDDING, init=1)),
    ],
    ids=["transposed", "a matrix at each step", "tensors", "a vector"],
)
def test_other_products_stay_apart(f: Any) -> None:
    assert "EmbeddedTimes" not in names(f(C.sequence.input_variable(WORDS, is_sparse=True)))


def test_the_gradient_of_the_words_themselves() -> None:
    x = C.sequence.input_variable(WORDS, is_sparse=True, needs_gradient=True)
    loss = C.sequence.reduce_sum(C.reduce_sum(C.sin(C.times(C.times(x, parameter(WORDS, EMBEDDING)), parameter(EMBEDDING, 8))), 0))
    data = [one_hot(length, np.random.default_rng(1)).astype(np.float32) for length in (3, 5)]
    joined = loss.grad({x: data}, wrt=[x])
    C.debugging.set_passes([])
    for found, expected in zip(joined, loss.grad({x: data}, wrt=[x]), strict=True):
        assert_close(found, expected)
