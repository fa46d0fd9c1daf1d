"""CSR matrices whose arrays are incompatible are refused wherever they come in, and no other memory is read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.types.csr import CsrMatrix, fault_of

ROWS, WIDTH, EACH = 40, 50, 5

Damage = Callable[[Any], None]


def whole(made: Any) -> Any:
    """A matrix of some kind, with the same number of elements in each row."""
    random = np.random.default_rng(0)
    data, indices = np.ones(ROWS * EACH, np.float32), np.sort(random.integers(WIDTH, size=(ROWS, EACH))).ravel().astype(np.int32)
    return made(data, indices, np.arange(ROWS + 1, dtype=np.int32) * EACH)


def ours(data: Any, indices: Any, starts: Any) -> Any:
    return CsrMatrix(data, indices, starts, WIDTH)


def of_scipy(name: str) -> Callable[..., Any]:
    def make(data: Any, indices: Any, starts: Any) -> Any:
        sparse = pytest.importorskip("scipy.sparse")
        return getattr(sparse, name)((data, indices, starts), shape=(ROWS, WIDTH))

    return make


KINDS = {"ours": ours, "matrix": of_scipy("csr_matrix"), "array": of_scipy("csr_array")}


def pointer(row: int, value: Any) -> Damage:
    def damage(matrix: Any) -> None:
        matrix.indptr[row] = value

    return damage


def index(value: int) -> Damage:
    def damage(matrix: Any) -> None:
        matrix.indices[7] = value

    return damage


def replaced(name: str, make: Callable[[Any], Any]) -> Damage:
    def damage(matrix: Any) -> None:
        setattr(matrix, name, make(getattr(matrix, name)))

    return damage


DAMAGES: dict[str, tuple[Damage, str]] = {
    "pointer far behind": (pointer(20, 10**9), "indptr falls from 1000000000 to 105 behind row 20"),
    "pointer far before": (pointer(20, -(10**8)), "indptr falls from 95 to -100000000 behind row 19"),
    "pointer that falls": (pointer(20, ROWS * EACH - 1), "indptr falls from 199 to 105 behind row 20"),
    "pointer a little off": (pointer(20, 94), "indptr falls from 95 to 94 behind row 19"),
    "first pointer below": (pointer(0, -50000), "indptr begins with -50000; expected 0"),
    "first pointer above": (pointer(0, 1), "indptr begins with 1; expected 0"),
    "last pointer above": (pointer(-1, 10**9), "indptr ends with 1000000000; expected so many numbers in data and indices, got 200"),
    "last pointer below": (pointer(-1, -1), "indptr ends with -1"),
    "all pointers negative": (replaced("indptr", lambda starts: -starts), "indptr ends with -200"),
    "fewer pointers": (replaced("indptr", lambda starts: starts[:-1]), "indptr has 40 numbers; expected 41 for 40 rows"),
    "more pointers": (replaced("indptr", lambda starts: np.append(starts, starts[-1])), "indptr has 42 numbers"),
    "no pointers": (replaced("indptr", lambda starts: starts[:0]), "indptr has 0 numbers"),
    "pointers of another type": (replaced("indptr", lambda starts: starts.astype(np.float64)), "indptr is float64"),
    "pointers of another order": (replaced("indptr", lambda starts: starts.astype(">i4")), "indptr is >i4; expected int32 or int64"),
    "pointers in rows": (replaced("indptr", lambda starts: starts[None]), "indptr is ndarray"),
    "a list of pointers": (replaced("indptr", lambda starts: starts.tolist()), "indptr is list"),
    "fewer values": (replaced("data", lambda data: data[:100]), "expected so many numbers in data and indices, got 100 and 200"),
    "fewer indices": (replaced("indices", lambda indices: indices[:100]), "got 200 and 100"),
    "more values": (replaced("data", lambda data: np.append(data, data)), "got 400 and 200"),
    "no values": (replaced("data", lambda data: None), "data is NoneType"),
    "values in rows": (replaced("data", lambda data: data[:, None]), "data is ndarray"),
    "index too large": (index(WIDTH), r"the indices of a CSR matrix must lie in 0 … 49, got \d+ … 50"),
    "index negative": (index(-1), "must lie in 0 … 49, got -1"),
    "index far away": (index(2**31 - 1), "must lie in 0 … 49"),
    "indices of another type": (replaced("indices", lambda indices: indices.astype(np.float32)), "indices is float32"),
    "indices of another order": (replaced("indices", lambda indices: indices.astype(">i4")), "indices is >i4"),
}
DAMAGED = pytest.mark.parametrize(("damage", "why"), DAMAGES.values(), ids=DAMAGES)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


def damaged(kind: Any, damage: Damage) -> Any:
    matrix = whole(kind)
    damage(matrix)
    return matrix


def test_nothing_is_wrong_with_a_whole_matrix(kind: Any) -> None:
    assert fault_of(whole(kind)) == ""
    for other in (np.int64, np.uint8, np.uint64):
        matrix = whole(kind)
        matrix.indices, matrix.indptr = matrix.indices.astype(other), matrix.indptr.astype(other)
        assert fault_of(matrix) == ""


def test_pointers_that_rise_beyond_their_type_and_come_back() -> None:
    entries = 1000
    starts = np.append((np.arange(0, 2**32 + entries, entries) % 2**32).astype(np.uint32).view(np.int32), np.int32(entries))
    assert (starts[1:] - starts[:-1]).view(np.uint32).max() == entries, "each row is one that could be"
    matrix = CsrMatrix(np.ones(entries, np.float32), np.zeros(entries, np.int32), starts, WIDTH)
    assert "indptr falls from 2147483000 to -2147483296" in fault_of(matrix)


def product() -> tuple[Any, Any]:
    x = C.input_variable(WIDTH, is_sparse=True, name="words")
    return x, C.times(x, C.parameter((WIDTH, 8), init=C.glorot_uniform(seed=1)))


@DAMAGED
def test_a_batch(kind: Any, damage: Damage, why: str) -> None:
    x, z = product()
    matrix = damaged(kind, damage)
    trainer = C.Trainer(z, C.reduce_sum(z), [C.sgd(z.parameters, 0.1)])
    for call in (
        lambda: z.eval({x: matrix}),
        lambda: z.grad({x: matrix}, wrt=z.parameters),
        lambda: z.eval(matrix),
        lambda: trainer.train_minibatch({x: matrix}),
        lambda: z.eval({x: [whole(kind), matrix]}),
    ):
        with pytest.raises(ValueError, match=rf"Input\('words'.*{why}"):
            call()


@DAMAGED
def test_damaged_sequences_are_refused_by_name(kind: Any, damage: Damage, why: str) -> None:
    x = C.sequence.input_variable(WIDTH, is_sparse=True, name="words")
    z = C.times(x, C.parameter((WIDTH, 8)))
    matrix = damaged(kind, damage)
    for call in (
        lambda: z.eval({x: matrix}),
        lambda: z.eval({x: [matrix, whole(kind)]}),
        lambda: z.eval({x: [matrix]}),
        lambda: z.eval({x: ([matrix, whole(kind)], [True, False])}),
        lambda: C.Value.create(x, [matrix, whole(kind)]),
    ):
        with pytest.raises(ValueError, match=rf"Input\('words'.*{why}"):
            call()


@DAMAGED
def test_dense_inputs_values_and_constants(kind: Any, damage: Damage, why: str) -> None:
    dense = C.input_variable(WIDTH, name="dense")
    matrix = damaged(kind, damage)
    for call in (
        lambda: (dense * 1).eval({dense: matrix}),
        lambda: C.Value.create(dense, matrix),
        lambda: C.Value(matrix),
        lambda: C.NDArrayView.from_csr(matrix),
        lambda: C.NDArrayView.from_csr(matrix, borrow=True),
        lambda: C.NDArrayView.from_data(matrix),
        lambda: C.constant(matrix),
        lambda: C.io.MinibatchSourceFromData({"a": matrix}),
        lambda: C.io.MinibatchSourceFromData({"a": ([matrix], C.layers.typing.Sequence[C.layers.typing.Tensor[WIDTH]])}),
    ):
        with pytest.raises(ValueError, match=why):
            call()


@DAMAGED
def test_data_that_function_train_takes(kind: Any, damage: Damage, why: str) -> None:
    _, z = product()
    with pytest.raises(ValueError, match=why):
        C.squared_error(z, C.input_variable(8)).train((damaged(kind, damage), np.ones((ROWS, 8), np.float32)), [C.sgd(z.parameters, 0.1)])


@DAMAGED
def test_streams_of_users(kind: Any, damage: Damage, why: str) -> None:
    class Own(C.io.UserDeserializer):
        def stream_infos(self) -> list[Any]:
            return [C.io.StreamInformation("words", 0, "sparse", np.float32, (WIDTH,))]

        def num_chunks(self) -> int:
            return 1

        def get_chunk(self, chunk_id: int) -> dict[str, Any]:
            return {"words": damaged(kind, damage)}

    with pytest.raises(RuntimeError, match=why):
        C.io.MinibatchSource([Own()], randomize=False, max_sweeps=1).next_minibatch(10)


def test_a_matrix_that_changes_after_it_was_given_is_checked_again(kind: Any) -> None:
    x, z = product()
    matrix = whole(kind)
    value = C.Value(C.NDArrayView.from_csr(matrix, borrow=True))
    expected = z.eval({x: matrix})
    assert np.array_equal(z.eval({x: value}), expected)
    matrix.indptr[20] = 10**9
    for data in (matrix, value):
        with pytest.raises(ValueError, match="indptr falls"):
            z.eval({x: data})


def test_what_lies_behind_the_last_row_does_not_count(kind: Any) -> None:
    x = C.input_variable(WIDTH, is_sparse=True)
    z = C.cross_entropy_with_softmax(C.times(x, C.parameter((WIDTH, WIDTH), init=C.glorot_uniform(seed=1))), x)
    longer, matrix = whole(kind), whole(kind)
    longer.data, longer.indices = np.append(longer.data, np.float32([9] * 3)), np.append(longer.indices, np.int32([4, -1, 10**9]))
    assert np.array_equal(z.eval({x: longer}), z.eval({x: matrix}))
    assert np.array_equal(z.eval({x: [longer, matrix]}), z.eval({x: [matrix, matrix]}))
    assert np.array_equal(C.constant(longer).asarray().toarray(), matrix.toarray())


def rows_of_one_axis() -> Iterator[Any]:
    sparse = pytest.importorskip("scipy.sparse")
    made = sparse.coo_array(np.float32([0, 1, 2]))
    yield sparse.csr_array(made) if hasattr(made, "coords") else pytest.skip("this SciPy has no sparse arrays of one axis")


def test_a_row_of_one_axis_is_named() -> None:
    (row,) = rows_of_one_axis()
    x = C.input_variable(3, is_sparse=True)
    with pytest.raises(ValueError, match=re.escape("expected CSR rows, which have two axes, got the shape (3,)")):
        C.times(x, C.parameter((3, 2))).eval({x: row})
