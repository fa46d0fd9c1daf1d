"""Sparse values: whatever is computed with them is what dense ones give, without ever making a wide array."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix, issparse, random_array

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.operators.samples import Operand, Sample, sample
from cntk.core.types.sparse import RowSparse, SparseRows
from cntk.testing import assert_close
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial, describe

ROWS = np.array([[0, 2, 0], [1, 0, 3]], np.float32)
SEQUENCES = [np.array([[0, 2, 0], [1, 0, 3]], np.float32), np.array([[0, 0, 4]], np.float32), np.zeros((1, 3), np.float32)]
BLOCKS = [np.array([[[1, 0, 0], [0, 2, 0]], [[0, 0, 0], [0, 0, 3]]], np.float32), np.array([[[0, 4, 0], [5, 0, 0]]], np.float32)]
WIDE = 2_000_000
MEGABYTE = 2**20


def csr(array: Any) -> Any:
    return csr_matrix(array.reshape(-1, array.shape[-1]))


def as_dense(data: Any) -> Any:
    """Data with arrays in place of CSR matrices."""
    if isinstance(data, list):
        return [as_dense(part) for part in data]
    return data.toarray() if issparse(data) else data


# ---- the law: sparse is dense ----


SPARSE_SAMPLES = [
    (name, s) for name in plugins.ops for s in samples_of(plugins.ops.get(name)) if any(operand.sparse for operand in s.operands)
]


@pytest.mark.parametrize(("name", "given"), SPARSE_SAMPLES, ids=[describe(plugins.ops.get(name), s) for name, s in SPARSE_SAMPLES])
def test_operators_give_what_they_give_for_dense_operands(name: str, given: Sample, device: DeviceDescriptor) -> None:
    function = plugins.ops.get(name)
    dense = [Operand(operand.shape, operand.low, operand.high, kind=operand.kind) for operand in given.operands]
    ours = Trial(function, given, np.float64, device)
    theirs = Trial(function, sample(*dense, call=given.call, **given.attributes), np.float64, device)
    theirs.assign(ours.values)
    for mine, right in zip(ours.evaluate(), theirs.evaluate(), strict=True):
        pairs = zip(mine, right, strict=True) if isinstance(mine, list) else [(mine, right)]
        for part, right_part in pairs:
            assert_close(part, right_part)


# ---- products ----

SHAPES: list[tuple[Any, ...]] = [
    (C.times, (4,), (4, 3), {}),
    (C.times, (2, 4), (4, 3), {}),
    (C.times, (5, 2, 4), (4, 3), {}),
    (C.times, (2, 4), (2, 4, 3), {"infer_input_rank_to_map": 0}),
    (C.times, (4,), (4, 2, 3), {"output_rank": 2}),
    (C.times, (2, 4), (4, 2, 3), {"output_rank": 2}),
    (C.times, (3,), (4,), {}),
    (C.times_transpose, (4,), (3, 4), {}),
    (C.times_transpose, (4,), (4,), {}),
    (C.times_transpose, (2, 4), (3, 4), {}),
    (C.times_transpose, (5, 2, 4), (4,), {}),
]


@pytest.mark.parametrize("per_word", [1, 2], ids=["one-hot", "bags"])
def test_an_embedding_and_the_product_after_it_have_gradients_step_by_step(per_word: int, device: DeviceDescriptor) -> None:
    random = np.random.default_rng(1)
    x = C.sequence.input_variable(9, is_sparse=True)
    table, matrix = (C.parameter(shape, init=C.glorot_uniform(seed=3), device=device) for shape in ((9, 4), (4, 3)))
    loss = C.sequence.reduce_sum(C.reduce_sum(C.sin(C.times(C.times(x, table), matrix)), 0))
    for lengths in ((3, 2), (3, 2), (4, 1), (2, 2)):
        data = []
        for length in lengths:
            words = random.permuted(np.tile(np.arange(9), (length, 1)), axis=1)[:, :per_word]
            weights, ends = random.random(words.size, np.float32), per_word * np.arange(length + 1)
            data.append(csr_matrix((weights, words.ravel(), ends), (length, 9)))
        found = loss.grad({x: data}, wrt=[table, matrix], device=device)
        dense = np.concatenate([part.toarray() for part in data])
        slope = np.cos(dense @ table.value @ matrix.value)
        assert_close(found[table], dense.T @ (slope @ matrix.value.T))
        assert_close(found[matrix], (dense @ table.value).T @ slope)


@pytest.mark.parametrize("kinds", ["batch batch", "batch fixed", "fixed batch", "fixed fixed"])
@pytest.mark.parametrize("which", ["left", "right", "left right"])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(("product", "left", "right", "options"), SHAPES, ids=[f"{f.__name__} {a} {b}" for f, a, b, _ in SHAPES])
def test_products_of_all_kinds(
    product: Any, left: Any, right: Any, options: Any, rows: int, which: str, kinds: str, device: DeviceDescriptor
) -> None:
    generator = np.random.default_rng(0)
    sides, kind_of = ("left", "right"), dict(zip(("left", "right"), kinds.split(), strict=True))
    values = {}
    for side, shape in zip(sides, (left, right), strict=True):
        value = generator.normal(size=(rows, *shape) if kind_of[side] == "batch" else shape)
        values[side] = value * (generator.random(value.shape) < 0.4) if side in which else value
    weights: Any = None
    results = []
    for sparse in (True, False):
        variables, data = {}, {}
        for side in sides:
            is_sparse = sparse and side in which
            if kind_of[side] == "batch":
                variables[side] = x = C.input_variable(values[side].shape[1:], np.float64, needs_gradient=True, is_sparse=is_sparse)
                data[x] = C.Value(C.NDArrayView.from_csr(csr(values[side]), shape=values[side].shape)) if is_sparse else values[side]
            elif is_sparse:
                variables[side] = C.constant(csr(values[side]), shape=values[side].shape)
            else:
                variables[side] = C.parameter(init=values[side])
        f = product(*variables.values(), **options)
        value = f.eval(data, device=device)
        weights = generator.normal(size=value.shape[len(f.dynamic_axes) :]) if weights is None else weights
        wrt = [v for v in variables.values() if not isinstance(v, C.Constant)]
        found = C.element_times(f, weights).grad(data, wrt, device=device) if wrt else {}
        by = found if isinstance(found, dict) else {wrt[0]: found}
        results.append((value, {side: by[v] for side, v in variables.items() if v in by}))
    (ours, our_gradients), (theirs, their_gradients) = results
    assert_close(ours, theirs)
    for side, gradient in our_gradients.items():
        assert_close(gradient, their_gradients[side])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_products_with_a_sparse_constant(dtype: Any, device: DeviceDescriptor) -> None:
    links, x = C.constant(csr(ROWS), dtype=dtype), C.input_variable((3, 4), dtype)
    data = np.random.default_rng(0).normal(size=(5, 3, 4)).astype(dtype)
    assert_close(C.times(links, x).eval({x: data}, device=device), np.einsum("mk,rkn->rmn", ROWS, data.astype(np.float64)).astype(dtype))


# ---- results ----


@pytest.mark.parametrize("op", [C.alias, C.stop_gradient], ids=["alias", "stop_gradient"])
def test_sparse_results_come_as_csr(op: Any, device: DeviceDescriptor) -> None:
    x, s = C.input_variable(3, is_sparse=True), C.sequence.input_variable(3, is_sparse=True)
    with pytest.warns(UserWarning, match="is sparse and is given as scipy.sparse.csr_matrix"):
        found = op(x).eval({x: csr(ROWS)}, device=device)
    assert isinstance(found, csr_matrix)
    np.testing.assert_array_equal(found.toarray(), ROWS)
    with pytest.warns(UserWarning, match="is sparse"):
        sequences = op(s).eval({s: list(map(csr, SEQUENCES))}, device=device)
    assert all(isinstance(part, csr_matrix) for part in sequences)
    for part, right in zip(sequences, SEQUENCES, strict=True):
        np.testing.assert_array_equal(part.toarray(), right)


@pytest.mark.filterwarnings("ignore:.*is sparse:UserWarning")
def test_steps_of_several_axes_come_as_arrays(device: DeviceDescriptor) -> None:
    x, s = C.input_variable((2, 3), is_sparse=True), C.sequence.input_variable((2, 3), is_sparse=True)
    data = list(map(csr, BLOCKS))
    np.testing.assert_array_equal(C.alias(x).eval({x: data[0]}, device=device), BLOCKS[0])
    for part, right in zip(C.alias(s).eval({s: data}, device=device), BLOCKS, strict=True):
        np.testing.assert_array_equal(part, right)


def test_sparse_results_as_values(device: DeviceDescriptor) -> None:
    s = C.sequence.input_variable((2, 3), is_sparse=True)
    value = C.alias(s).eval({s: list(map(csr, BLOCKS))}, device=device, as_numpy=False)
    assert (value.is_sparse, value.shape) == (True, (2, 2, 2, 3))
    again = C.times(s, np.eye(3, dtype=np.float32)).eval({s: value}, device=device)
    for part, right in zip(again, BLOCKS, strict=True):
        np.testing.assert_array_equal(part, right)


@pytest.mark.filterwarnings("ignore:.*is sparse:UserWarning")
def test_results_are_not_the_data_that_was_fed(device: DeviceDescriptor) -> None:
    x, data = C.input_variable(3, is_sparse=True), csr(ROWS)
    C.alias(x).eval({x: data}, device=device).data[:] = 9
    np.testing.assert_array_equal(data.toarray(), ROWS)


@pytest.mark.filterwarnings("ignore:.*is sparse:UserWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cast_keeps_sparse_values_sparse(dtype: Any, device: DeviceDescriptor) -> None:
    x = C.input_variable(3, is_sparse=True)
    found = C.cast(x, dtype).eval({x: csr(ROWS)}, device=device)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.toarray(), ROWS)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (C.straight_through_impl, lambda x: np.where(x > 0, 1, -1)),
        (lambda x: C.reduce_sum(x, 0), lambda x: x.sum(1, keepdims=True)),
        (lambda x: x * np.float32([1, 2, 3]), lambda x: x * [1, 2, 3]),
        (lambda x: x[1:], lambda x: x[:, 1:]),
        (lambda x: C.reshape(x, (3, 1)), lambda x: x[:, :, None]),
        (lambda x: C.splice(x, x), lambda x: np.concatenate((x, x), 1)),
        (lambda x: C.gather(C.constant(np.float32([5, 6, 7, 8])), x), lambda x: np.float32([5, 6, 7, 8])[x.astype(int)]),
    ],
    ids=["straight_through_impl", "reduce_sum", "element_times", "slice", "reshape", "splice", "gather"],
)
def test_other_operators_make_sparse_operands_dense(op: Any, expected: Any, device: DeviceDescriptor) -> None:
    x = C.input_variable(3, is_sparse=True)
    np.testing.assert_array_equal(op(x).eval({x: csr(ROWS)}, device=device), expected(ROWS))


def test_float16_is_multiplied_and_fed_back_as_float32(device: DeviceDescriptor) -> None:
    x, w = C.input_variable(3, np.float16, is_sparse=True), C.parameter(init=np.arange(6).reshape(3, 2), dtype=np.float16)
    product = C.times(x, w)
    assert_close(product.eval({x: csr(ROWS)}, device=device), (ROWS @ w.value).astype(np.float16))
    assert_close(product.grad({x: csr(ROWS)}, [w], device=device), np.repeat(ROWS.sum(0)[:, None], 2, 1).astype(np.float16))
    with pytest.warns(UserWarning, match="is sparse"):
        found = C.alias(x).eval({x: csr(ROWS)}, device=device)
    assert found.dtype == np.float32  # SciPy has no float16
    np.testing.assert_array_equal(found.toarray(), ROWS)


# ---- one_hot, eye_like ----


@pytest.mark.filterwarnings("ignore:.*is sparse:UserWarning")
@pytest.mark.parametrize("shape", [(), (2,), (2, 3)])
def test_sparse_one_hot_vectors(shape: Any, device: DeviceDescriptor) -> None:
    x, s = C.input_variable(shape), C.sequence.input_variable(shape)
    classes = np.random.default_rng(0).uniform(-1.5, 5.5, (4, *shape)).astype(np.float32)
    right = (np.trunc(classes)[..., None] == np.arange(4)).astype(np.float32)
    found = C.one_hot(x, 4, sparse_output=True).eval({x: classes}, device=device)
    assert issparse(found) == (shape == ())
    np.testing.assert_array_equal(as_dense(found), right)
    sequences = C.one_hot(s, 4, sparse_output=True).eval({s: [classes[:1], classes[1:]]}, device=device)
    np.testing.assert_array_equal(np.concatenate(as_dense(sequences)), right)


def test_one_hot_vectors_along_another_axis_are_dense(device: DeviceDescriptor) -> None:
    x = C.input_variable(2)
    f = C.one_hot(x, 3, sparse_output=True, axis=0)
    assert not f.output.is_sparse
    np.testing.assert_array_equal(f.eval({x: np.float32([[2, 0]])}, device=device), [[[0, 1], [0, 0], [1, 0]]])


@pytest.mark.parametrize("rows", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_eye_like(rows: int, dtype: Any, device: DeviceDescriptor) -> None:
    x, fixed = C.input_variable(3, dtype, needs_gradient=True), C.input_variable((rows, 3), dtype, dynamic_axes=[])
    data = np.full((rows, 3), 7, dtype)
    for operand in (x, fixed, C.unpack_batch(x)):
        f = C.eye_like(operand, sparse_output=False)
        argument = f.arguments[0]
        found = f.eval({argument: data}, device=device)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.eye(rows, 3))
        with pytest.warns(UserWarning, match="is sparse"):
            np.testing.assert_array_equal(C.eye_like(operand).eval({argument: data}, device=device).toarray(), np.eye(rows, 3))
    np.testing.assert_array_equal(C.eye_like(x).grad({x: data}, device=device), np.zeros((rows, 3)))


@pytest.mark.parametrize(
    ("operand", "why"),
    [
        (lambda: C.input_variable(()), "must have two axes, counting the batch axis; it has 1"),
        (lambda: C.input_variable((2, 3)), "must have two axes, counting the batch axis; it has 3"),
        (lambda: C.sequence.input_variable(()), "must have no sequence axis"),
    ],
)
def test_what_eye_like_refuses(operand: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"EyeLikeOp.*{why}"):
        C.eye_like(operand())


# ---- constants and parameters ----


def test_a_sparse_constant(device: DeviceDescriptor) -> None:
    constant = C.constant(csr(ROWS), name="links")
    assert (constant.is_sparse, constant.shape, constant.dtype) == (True, (2, 3), np.float32)
    np.testing.assert_array_equal(constant.value.toarray(), ROWS)
    np.testing.assert_array_equal((constant + 1).eval(device=device), ROWS + 1)
    constant.value = 2 * csr(ROWS)
    np.testing.assert_array_equal((constant + 1).eval(device=device), 2 * ROWS + 1)
    (copied,) = C.alias(constant).clone("clone").constants
    assert copied.is_sparse
    np.testing.assert_array_equal(copied.value.toarray(), 2 * ROWS)


def test_a_sparse_constant_of_several_axes() -> None:
    view = C.NDArrayView.from_csr(csr(BLOCKS[0]), shape=(2, 2, 3))
    constant = C.Constant(view)
    assert (constant.is_sparse, constant.shape) == (True, (2, 2, 3))
    np.testing.assert_array_equal(constant.value, BLOCKS[0])
    np.testing.assert_array_equal(C.Constant(C.Value(view)).value, BLOCKS[0])


@pytest.mark.parametrize(("value", "error"), [(ROWS, TypeError), (csr(ROWS[:1]), RuntimeError), (csr(ROWS.T), RuntimeError)])
def test_values_that_a_sparse_constant_refuses(value: Any, error: Any) -> None:
    with pytest.raises(error, match=r"value of Constant\('links'"):
        C.constant(csr(ROWS), name="links").value = value


def test_a_sparse_constant_cannot_be_assigned_to() -> None:
    with pytest.raises(ValueError, match="a sparse constant cannot be assigned to"):
        C.assign(C.constant(csr(ROWS)), ROWS)


@pytest.mark.parametrize("given", [csr(ROWS), C.NDArrayView.from_csr(csr(ROWS)), C.Value(csr(ROWS))], ids=["csr", "view", "value"])
def test_parameters_take_sparse_values_and_are_dense(given: Any) -> None:
    parameter = C.parameter(init=given)
    np.testing.assert_array_equal(parameter.value, ROWS)
    parameter.value = 0 * ROWS
    parameter.set_value(given)
    np.testing.assert_array_equal(parameter.value, ROWS)


# ---- row-sparse gradients ----


def embedding(uses: int, sequence: bool) -> tuple[Any, Any, Any]:
    x = (C.sequence.input_variable if sequence else C.input_variable)(3, is_sparse=True)
    w = C.parameter(init=np.arange(6, dtype=np.float32).reshape(3, 2))
    terms = [C.times(x, w) * (i + 1) for i in range(uses)]
    return x, w, terms[0] if uses == 1 else C.plus(*terms)


@pytest.mark.parametrize("sequence", [False, True], ids=["batch", "sequence"])
@pytest.mark.parametrize("uses", [1, 2, 3])
def test_gradients_of_embeddings_are_row_sparse(uses: int, sequence: bool, device: DeviceDescriptor) -> None:
    x, w, z = embedding(uses, sequence)
    arrays = [np.float32([[0, 2, 0], [0, 1, 0]]), np.float32([[3, 0, 0]])]
    data: Any = list(map(csr, arrays)) if sequence else csr(np.concatenate(arrays))
    right = uses * (uses + 1) / 2 * np.repeat(np.concatenate(arrays).sum(0)[:, None], 2, 1)
    np.testing.assert_array_equal(z.grad({x: data}, [w], device=device), right)
    value = z.grad({x: data}, [w], device=device, as_numpy=False)
    assert (value.is_sparse, value.shape) == (True, (3, 2))
    held = value.asarray()
    np.testing.assert_array_equal(held.toarray(), right)
    np.testing.assert_array_equal(np.diff(held.indptr), [2, 2, 0])


def test_a_dense_term_makes_a_gradient_dense(device: DeviceDescriptor) -> None:
    x, w, z = embedding(1, sequence=False)
    value = (z + C.reduce_sum(w)).grad({x: csr(ROWS)}, [w], device=device, as_numpy=False)
    assert not value.is_sparse
    np.testing.assert_array_equal(value.asarray(), np.repeat(ROWS.sum(0)[:, None], 2, 1) + 4)


def _embedded(x: Any, previous: Any, w: Any, sparse: bool) -> Any:
    """What the state itself chooses is embedded twice."""
    chosen = C.one_hot(C.reshape(C.argmax(previous, 0), ()), 3, sparse_output=sparse)
    return C.times(chosen, w) + C.times(chosen, 2 * w) * previous + C.times(x, w)


RECURRENCES: dict[str, Any] = {
    "beside the loop": lambda x, previous, w, sparse: C.times(x, w) + 0.5 * previous,
    "within the loop": _embedded,
    "weights of the state": lambda x, previous, w, sparse: C.times(x, C.reshape(previous, (3, 1)) * w) + 0.1 * previous,
}


@pytest.mark.parametrize("delay", [C.sequence.past_value, C.sequence.future_value], ids=["past", "future"])
@pytest.mark.parametrize("recurrence", RECURRENCES)
def test_sparse_values_in_recurrences(recurrence: str, delay: Any, device: DeviceDescriptor) -> None:
    weights = np.float32([[1, -1, 2], [0.5, 1, -1], [2, 0, 1]]) / 4
    x, y = (C.sequence.input_variable(3, is_sparse=sparse) for sparse in (True, False))
    results: list[Any] = []
    for variable in (x, y):
        w, state = C.parameter(init=weights), C.placeholder((3,), variable.dynamic_axes)
        z = RECURRENCES[recurrence](variable, delay(state, initial_state=0.5), w, variable.is_sparse)
        z.replace_placeholders({state: z.output})
        found = []
        for order in ([0, 1, 2], [2, 0, 1], [0, 1, 2]):
            data = [SEQUENCES[i] for i in order]
            gradient, value = z.grad({variable: list(map(csr, data)) if variable.is_sparse else data}, [w], [z.output], device=device)
            found += [gradient, *value]
        results.append(found)
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs)


STEPS = [[[0, 1], [1]], [[2, 2, 3]], [[0], [4, 1]], [[3]]]
"""Minibatches of sequences of class numbers."""

LEARNERS: dict[str, Any] = {
    "sgd": C.sgd,
    "momentum_sgd": lambda p, lr: C.momentum_sgd(p, lr, C.momentum_schedule(0.9)),
    "adagrad": C.adagrad,
    "adagrad without average": lambda p, lr: C.adagrad(p, lr, False),
    "adadelta": C.adadelta,
    "l1": lambda p, lr: C.sgd(p, lr, l1_regularization_weight=0.1),
    "clipped elements": lambda p, lr: C.sgd(p, lr, gradient_clipping_threshold_per_sample=0.2),
    "clipped norm": lambda p, lr: C.sgd(p, lr, gradient_clipping_threshold_per_sample=0.2, gradient_clipping_with_truncation=False),
}

MEASURED: dict[str, dict[int, Any]] = {
    "sgd": {
        1: [[0.0, 0.064], [0.616, -0.116], [1.04, -0.1], [1.464, -0.092], [1.44, 0.32]],
        2: [[0.0, 0.03025], [0.641, -0.2985], [1.24, -0.55], [1.5765, -0.48575], [1.64, -0.105]],
    },
    "momentum_sgd": {
        1: [[0.0, 0.09424], [0.27616, 0.22384], [0.464, 0.44], [0.73824, 0.57328], [0.864, 0.842]],
        2: [[0.0, 0.08715], [0.29891, 0.16576], [0.484, 0.395], [0.77987, 0.48159], [0.884, 0.7995]],
    },
    "adagrad": {
        1: [[0.0, 0.1], [0.2, 0.3], [0.92734, -0.02734], [1.48378, -0.17803], [0.8, 0.9]],
        2: [[0.0, 0.1], [0.2, 0.3], [1.19407, -0.29407], [1.6984, -0.4544], [0.8, 0.9]],
    },
    "adagrad without average": {
        1: [[0.0, 0.0], [0.34008, 0.15992], [0.5, 0.4], [0.76919, 0.53095], [0.9, 0.8]],
        2: [[0.0, 0.0], [0.33657, 0.16119], [0.5, 0.4], [0.76805, 0.53146], [0.9, 0.8]],
    },
    "adadelta": {
        1: [[0.0, 0.09991], [0.20007, 0.29993], [0.40004, 0.49996], [0.60009, 0.69991], [0.80004, 0.89996]],
        2: [[0.0, 0.09991], [0.20007, 0.29993], [0.40004, 0.49996], [0.60009, 0.69991], [0.80004, 0.89996]],
    },
    "l1": {
        1: [[0.0, 0.0], [0.528, -0.06], [0.952, -0.048], [1.3868, -0.1492], [1.352, 0.232]],
        2: [[0.0, 0.0], [0.568, -0.2255], [1.167, -0.483], [1.52443, -0.45183], [1.567, -0.098]],
    },
    "clipped elements": {
        1: [[0.0, 0.064], [0.32, 0.18], [0.46, 0.44], [0.68, 0.62], [0.86, 0.84]],
        2: [[0.0, 0.03025], [0.32, 0.18], [0.46, 0.44], [0.68, 0.62], [0.86, 0.84]],
    },
    "clipped norm": {
        1: [[0.0, 0.09604], [0.2526, 0.2474], [0.43515, 0.46705], [0.6411, 0.66232], [0.84314, 0.8609]],
        2: [[0.0, 0.09427], [0.24414, 0.2401], [0.43017, 0.46228], [0.63534, 0.65708], [0.83731, 0.85536]],
    },
}
"""The table after :data:`STEPS`, used once, and used a second time with half the weight, in CNTK 2.7."""


@pytest.mark.parametrize("sequence", [False, True], ids=["batch", "sequence"])
@pytest.mark.parametrize("uses", [1, 2])
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_on_row_sparse_gradients(learner: str, uses: int, sequence: bool) -> None:
    variable = C.sequence.input_variable if sequence else C.input_variable
    x, y = variable(5, is_sparse=True), variable(2)
    w = C.parameter(init=np.arange(10, dtype=np.float32).reshape(5, 2) / 10)
    z = C.times(x, w) if uses == 1 else C.times(x, w) + 0.5 * C.times(x, w)
    trainer = C.Trainer(z, (C.squared_error(z, y), None), [LEARNERS[learner]([w], C.learning_parameter_schedule_per_sample(0.1))])
    for minibatch in STEPS:
        parts = minibatch if sequence else [list(itertools.chain(*minibatch))]
        rows = [csr_matrix(np.eye(5, dtype=np.float32)[part]) for part in parts]
        targets = [np.float32([[n, -0.5 * n] for n in part]) for part in parts]
        trainer.train_minibatch({x: rows, y: targets} if sequence else {x: rows[0], y: targets[0]})
    np.testing.assert_allclose(w.value, MEASURED[learner][uses], atol=2e-5)


def test_sums_of_row_sparse_gradients() -> None:
    generator = np.random.default_rng(0)
    first, second = (RowSparse((6, 2, 2), np.float64) for _ in range(2))
    for gradient, rows in ((first, [0, 2, 5]), (second, [1, 2])):
        gradient.set(np.array(rows), generator.normal(size=(len(rows), 2, 2)))
    right = first.to_dense(np) + second.to_dense(np)
    first.add(np, second)
    assert first.rows.tolist() == [0, 1, 2, 5]
    np.testing.assert_array_equal(first.to_dense(np), right)
    backend = C.cpu().backend
    np.testing.assert_array_equal(first.to_csr(backend).toarray().reshape(6, 2, 2), right)


def test_taking_rows() -> None:
    x = random_array((7, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
    rows = SparseRows((7, 5), np.float64)
    rows.set(x.data, x.indices, x.indptr)
    for index in ([3, 0, 0, 6], [], [5]):
        taken = csr_matrix(rows.take(np, np.array(index, np.intp)), shape=(len(index), 5))
        np.testing.assert_array_equal(taken.toarray(), x.toarray()[index])


# ---- width ----


def wide_rows(count: int, width: int = WIDE, each: int = 3) -> Any:
    columns = np.random.default_rng(0).integers(width, size=count * each)
    return csr_matrix((np.ones(count * each, np.float32), columns, np.arange(0, count * each + 1, each)), shape=(count, width))


def peak_of(call: Any) -> float:
    """Most memory that a call takes, in megabytes."""
    call()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / MEGABYTE
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def table() -> Any:
    return C.parameter((WIDE, 2), init=C.uniform(0.1))


@pytest.mark.parametrize("sequence", [False, True], ids=["batch", "sequence"])
@pytest.mark.parametrize("learner", [C.sgd, lambda p, lr: C.momentum_sgd(p, lr, 0.9), C.adagrad], ids=["sgd", "momentum_sgd", "adagrad"])
def test_training_an_embedding_takes_memory_for_the_rows_used(table: Any, sequence: bool, learner: Any) -> None:
    variable = C.sequence.input_variable if sequence else C.input_variable
    x, y = variable(WIDE, is_sparse=True), variable(2)
    z = C.times(x, table) + C.times(x, table)
    trainer = C.Trainer(z, (C.squared_error(z, y), None), [learner([table], 0.01)])
    counts = (40, 24) if sequence else (64,)
    data: dict[Any, Any] = {x: [wide_rows(n) for n in counts], y: [np.ones((n, 2), np.float32) for n in counts]}
    if not sequence:
        data = {variable: parts[0] for variable, parts in data.items()}
    assert peak_of(lambda: trainer.train_minibatch(data)) < 1


@pytest.mark.filterwarnings("ignore:.*is sparse:UserWarning")
@pytest.mark.parametrize(
    "op",
    [C.alias, lambda x: C.cast(x, np.float64), C.sequence.last, lambda x: C.sequence.slice(x, 0, 2)],
    ids=["alias", "cast", "last", "slice"],
)
def test_sparse_values_are_never_made_dense(op: Any) -> None:
    width = 50_000_000
    x = C.sequence.input_variable(width, is_sparse=True)
    data = [wide_rows(n, width) for n in (5, 3)]
    assert peak_of(lambda: op(x).eval({x: data})) < 2


@pytest.mark.parametrize("side", ["left", "right"])
def test_transposed_weights_are_not_copied(side: str) -> None:
    x, w = C.input_variable(WIDE, is_sparse=True), C.parameter((2, WIDE), init=0.5)
    f = C.times_transpose(x, w) if side == "left" else C.times_transpose(w, x)
    data = wide_rows(64)
    np.testing.assert_array_equal(f.eval({x: data}).reshape(64, 2), np.full((64, 2), 1.5))
    assert peak_of(lambda: f.eval({x: data})) < 1


# ---- gradients of sparse values ----


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x * np.float32([1, 2, 3]),
        lambda x: x * x,
        lambda x: C.tanh(x) + C.times(x, np.eye(3, dtype=np.float32)),
        lambda x: C.cast(C.alias(x), np.float64) * np.array([1.0, 2, 3]),
        lambda x: C.splice(x, C.reduce_sum(x, 0)),
    ],
    ids=["constant", "square", "sum of dense and sparse", "cast", "splice"],
)
@pytest.mark.parametrize("sequence", [False, True], ids=["batch", "sequence"])
def test_gradients_of_sparse_inputs_are_dense_and_right(op: Any, sequence: bool, device: DeviceDescriptor) -> None:
    variable = C.sequence.input_variable if sequence else C.input_variable
    found = []
    for sparse in (True, False):
        x = variable(3, is_sparse=sparse, needs_gradient=True)
        data: Any = SEQUENCES if sequence else ROWS
        if sparse:
            data = list(map(csr, SEQUENCES)) if sequence else csr(ROWS)
        found.append(op(x).grad({x: data}, device=device))
    for ours, theirs in zip(*found, strict=True):
        assert_close(ours, theirs)
