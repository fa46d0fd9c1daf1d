"""Loops for dense products: the numbers of NumPy's products, the same bits whatever the number of threads, and what they are used for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cntk as C
from cntk.backends.fused import dense
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.common.thresholds import NEVER, thresholds
from cntk.core.extension.device import backend_named
from cntk.core.run.evaluate import program_for
from cntk.core.types.context import Context
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
cut_back = pytest.importorskip("cntk.backends.fused.cut_back")
panels = pytest.importorskip("cntk.backends.fused.panels")
bound_calls = pytest.importorskip("cntk.backends.fused.packed").bound_calls
products = pytest.importorskip("cntk.backends.fused.products")
pool = pytest.importorskip("cntk.core.machine.pool")
pytestmark = pytest.mark.usefixtures("three_threads")

TYPES = [np.float32, np.float64]


@pytest.fixture
def used(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Loops for products of any size; notes the results' shapes when they are bound."""
    shapes: list[Any] = []
    bound = dense.Products.bound

    def noted(ctx: Context, left: Any, right: Any, out: Any, *rest: Any) -> Any:
        shapes.append(out.shape)
        return bound(ctx, left, right, out, *rest)

    monkeypatch.setattr(dense.Products, "bound", noted)
    for name in ("product_compiled", "product_stack_compiled", "product_sides", "product_cut", "product_considered"):
        monkeypatch.setattr(thresholds, name, 1)
    monkeypatch.setattr(dense, "MOST_WASTED", np.inf)
    return shapes


def context() -> Context:
    return Context(backend_named("numpy"), training=True)


def numbers(shape: tuple[int, ...], way: str, dtype: Any, seed: int) -> Any:
    """An array that lies in memory in some way."""
    whole = np.random.default_rng(seed).standard_normal((shape[0], shape[1] + 3, shape[2] + 5)).astype(dtype)
    if way == "turned":
        return np.ascontiguousarray(whole[:, : shape[1], : shape[2]].swapaxes(1, 2)).swapaxes(1, 2)
    part = whole[:, 1 : 1 + shape[1], 2 : 2 + shape[2]]
    return part if way == "part" else np.ascontiguousarray(part)


WAYS = st.sampled_from(["contiguous", "part", "turned"])
SIZES = st.one_of(st.integers(1, 20), st.integers(30, 70))


@settings(deadline=None, max_examples=80)
@given(
    sizes=st.tuples(st.integers(1, 5), SIZES, st.one_of(SIZES, st.just(1100)), SIZES), ways=st.tuples(WAYS, WAYS, WAYS),
    dtype=st.sampled_from(TYPES), most=st.sampled_from([1, 2**19]),
)  # fmt: skip
def test_products_are_numpys_whatever_the_threads(sizes: Any, ways: Any, dtype: Any, most: int) -> None:
    count, m, depth, n = sizes
    left, right = numbers((count, m, depth), ways[0], dtype, 1), numbers((count, depth, n), ways[1], dtype, 2)
    found = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(panels, "PANELS_BYTES", most)
        for number in (1, 2, 3):
            threads.set_max_threads(number)
            out = numbers((count, m, n), ways[2], dtype, 3)
            products.bound(context(), left, right, out)()
            found.append(out)
    expected = np.matmul(left.astype(np.float64), right.astype(np.float64))
    assert np.abs(found[0] - expected).max() <= 4 * depth * np.finfo(dtype).eps * np.abs(expected).max()
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_more_threads_than_there_is_memory_for_do_not_help() -> None:
    left, right = numbers((1, 300, 90), "contiguous", np.float32, 1)[0], numbers((1, 90, 200), "contiguous", np.float32, 2)[0]
    out, slots = np.empty((300, 200), np.float32), []
    threads.set_max_threads(1)
    call = products.bound(context(), left, right, out)
    threads.set_max_threads(5)
    share = pool.Pool.share

    def noted(self: Any, function: Any, argument: Any, number: int) -> None:
        slots.append(number)
        share(self, function, argument, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool.Pool, "share", noted)
        call()
    assert slots == []
    np.testing.assert_allclose(out, left @ right, atol=1e-4)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rectify", [False, True])
@pytest.mark.parametrize("depth", [3, 1500])
def test_bias_and_rectifier_follow_the_whole_sum(dtype: Any, rectify: bool, depth: int) -> None:
    left, right = numbers((1, 21, depth), "part", dtype, 1)[0], numbers((1, depth, 75), "contiguous", dtype, 2)[0]
    bias, out = numbers((1, 1, 75), "contiguous", dtype, 3)[0, 0], np.empty((21, 75), dtype)
    products.bound(context(), left, right, out, After(bias, rectify=rectify))()
    expected = left @ right + bias
    np.testing.assert_allclose(out, np.maximum(expected, 0) if rectify else expected, atol=1e-3 if dtype == np.float32 else 1e-10)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("depth", [256, 1500])
@pytest.mark.parametrize("m", [1, 5, 48, 131])
def test_rows_whose_elements_lie_apart_are_copied_and_give_the_same_bits(
    m: int, depth: int, dtype: Any, bytes_with_an_end: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(products, "GATHERS_ROWS", True)
    left, right = numbers((1, m, depth), "contiguous", dtype, 1)[0], numbers((1, depth, 150), "contiguous", dtype, 2)[0]
    bias, residual = numbers((1, 1, 150), "contiguous", dtype, 3)[0, 0], numbers((1, m, 150), "contiguous", dtype, 4)[0]
    turned = bytes_with_an_end(left.nbytes).view(dtype).reshape(depth, m).T
    turned[...] = left
    assert products._tiles(context(), turned, right) is not None
    assert products._tiles(context(), left, right) is None
    expected, found, into_columns = np.empty((m, 150), dtype), np.empty((m, 150), dtype), np.empty((150, m), dtype).T
    for number in (1, 3):
        threads.set_max_threads(number)
        for after in (After(), After(bias, residual, True)):
            products.bound(context(), left, right, expected, after)()
            call = products.bound(context(), turned, right, found, after)
            for _ in range(2):
                found[...] = np.nan
                call()
                np.testing.assert_array_equal(found, expected)
        products.bound(context(), left, right, expected)()
        products.bound(context(), turned, right, into_columns)()
        np.testing.assert_allclose(into_columns, expected, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("m", "depth", "n"), [(130, 90, 75), (64, 1024, 128), (97, 300, 33)])
@pytest.mark.parametrize("way", ["contiguous", "part", "turned"])
def test_columns_that_several_blocks_of_rows_meet_are_packed_once(m: int, depth: int, n: int, way: str, dtype: Any) -> None:
    left, right = numbers((1, m, depth), way, dtype, 1)[0], numbers((1, depth, n), way, dtype, 2)[0]
    by_row, by_column = numbers((1, 1, n), "contiguous", dtype, 3)[0, 0], numbers((1, 1, m), "contiguous", dtype, 4)[0, 0]
    residual, packed = numbers((1, m, n), "contiguous", dtype, 5)[0], []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products.packed, "bound_calls", lambda *given: packed.append(given) or bound_calls(*given))
        for gathers in (False, True):
            patch.setattr(products, "GATHERS_ROWS", gathers)
            for after, of_rows in ((After(), False), (After(by_row, residual, True), False), (After(by_column, rectify=True), True)):
                found = []
                for number in (1, 4):
                    threads.set_max_threads(number)
                    found.append(np.full((m, n), np.nan, dtype))
                    call = products.bound(context(), left, right, found[-1], after, of_rows)
                    call()
                    call()
                np.testing.assert_array_equal(*found)
                into_columns = np.full((n, m), np.nan, dtype).T
                if after.residual is None:
                    products.bound(context(), left, right, into_columns, after, of_rows)()
                    np.testing.assert_allclose(into_columns, found[0], rtol=1e-3, atol=1e-3 if dtype == np.float32 else 1e-10)
    assert len(packed) >= 6


def test_a_row_does_not_depend_on_the_others() -> None:
    left, right = numbers((1, 60, 40), "contiguous", np.float32, 1)[0], numbers((1, 40, 64), "contiguous", np.float32, 2)[0]
    whole, some = np.empty((60, 64), np.float32), np.empty((7, 64), np.float32)
    products.bound(context(), left, right, whole)()
    products.bound(context(), left[20:27].copy(), right, some)()
    np.testing.assert_array_equal(some, whole[20:27])


def test_what_is_not_a_number_stays_so() -> None:
    left, right = np.ones((8, 2), np.float32), np.ones((2, 32), np.float32)
    left[3, 1] = np.nan
    out = np.empty((8, 32), np.float32)
    products.bound(context(), left, right, out, After(np.zeros(32, np.float32), rectify=True))()
    assert np.isnan(out[3]).all()
    assert (np.delete(out, 3, 0) == 2).all()


# ---- in programs ----


def dense_layer(x: Any, activation: Any) -> Any:
    return C.layers.Dense(33, activation=activation, init=C.glorot_uniform(seed=1), init_bias=0.1)(x)


def attention(x: Any, turn: Any) -> Any:
    """A product of parts of a value for each row, and of the result with a third part."""
    queries, keys, values = (C.slice(x, -1, 8 * i, 8 * (i + 1)) for i in range(3))
    return C.times(C.softmax(C.times(queries, turn(keys)), axis=-1), values)


MODELS = {
    "bias": (lambda x: dense_layer(x, None), (24,)),
    "bias and rectifier": (lambda x: dense_layer(x, C.relu), (24,)),
    "bias and another activation": (lambda x: dense_layer(x, C.tanh), (24,)),
    "matrices of rows": (lambda x: C.layers.Dense(33, map_rank=1, activation=C.relu, init=C.glorot_uniform(seed=1))(x), (5, 24)),
    "attention": (lambda x: attention(x, lambda k: C.transpose(k, (1, 0))), (5, 24)),
    "attention with axes swapped": (lambda x: attention(x, C.swapaxes), (5, 24)),
    "transposed parameter": (lambda x: C.times_transpose(x, C.parameter((33, 24), init=C.glorot_uniform(seed=1))), (24,)),
    "one matrix for all rows": (lambda x: C.times(C.parameter((7, 5), init=C.glorot_uniform(seed=1)), x), (5, 24)),
}


def computed(name: str, dtype: Any, rows: int = 9) -> list[Any]:
    """The value of a model, and the gradients of operand and parameters."""
    build, shape = MODELS[name]
    with C.default_options(dtype=dtype):
        x = C.input_variable(shape, dtype=dtype, needs_gradient=True)
        model = build(x)
        weights = np.random.default_rng(4).standard_normal(model.shape).astype(dtype)
        root = C.reduce_sum(model * C.constant(weights))
    data = np.random.default_rng(2).standard_normal((rows, *shape)).astype(dtype)
    found = []
    for _ in range(2):  # the second time what has been bound is called
        gradients = root.grad({x: data}, wrt=[x, *model.parameters])
        found = [model.eval({x: data}), *(gradients.values() if isinstance(gradients, dict) else [gradients])]
    return found


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("dtype", TYPES)
def test_values_and_gradients_are_those_without_loops(name: str, dtype: Any, used: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thresholds, "attention_apart", 0)
    fused = computed(name, dtype)
    assert used
    monkeypatch.setattr(thresholds, "product_considered", NEVER)
    C.debugging.set_passes([])
    try:
        plain = computed(name, dtype)
    finally:
        C.debugging.set_passes()
    for ours, own in zip(fused, plain, strict=True):
        size = np.abs(own).max()
        assert_close(ours / size, own / size)


@pytest.mark.parametrize("name", MODELS)
def test_threads_change_no_bit(name: str, used: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_back, "SUMMED", 4)
    shared = computed(name, np.float32, rows=50)
    threads.set_max_threads(1)
    for one, other in zip(computed(name, np.float32, rows=50), shared, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("activation", "width", "operators"),
    [
        (None, 64, ["Times"]),
        (C.relu, 64, ["Times"]),
        (C.tanh, 64, ["Times", "Tanh"]),
        (C.relu, 40, ["Times", "Plus", "ReLU"]),
        (C.relu, 8, ["Times", "Plus", "ReLU"]),
    ],
    ids=["bias", "rectifier", "another activation", "half a panel empty", "few columns"],
)
def test_a_product_takes_what_follows_where_panels_are_filled(activation: Any, width: int, operators: list[str]) -> None:
    model = C.layers.Dense(width, activation=activation)(C.input_variable(3))
    assert [instruction.op.op_name for instruction in program_for(model, model.outputs).instructions] == operators


def test_a_transposition_before_a_product_is_part_of_it() -> None:
    x = C.input_variable((3, 4))
    product = C.times(x, C.transpose(x, (1, 0)))
    assert [instruction.op.op_name for instruction in program_for(product, product.outputs).instructions] == ["TransposeTimes"]
    values = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(product.eval({x: values}), values @ values.swapaxes(1, 2))


@pytest.mark.parametrize("name", ["left", "both", "parameter", "three axes"])
def test_other_transpositions_stay(name: str) -> None:
    x, cube = C.input_variable((3, 3)), C.input_variable((3, 2, 3))
    turned = C.transpose(x, (1, 0))
    model = {
        "left": C.times(turned, x),
        "both": C.times(turned, turned),
        "parameter": C.times(x, C.transpose(C.parameter((3, 3)), (1, 0))),
        "three axes": C.times(x, C.transpose(cube, (2, 1, 0)), output_rank=2),
    }[name]
    program = program_for(model, model.outputs, training=True)
    assert "TransposeAxes" in [instruction.op.op_name for instruction in program.instructions]


def test_arrays_that_come_and_go_are_not_kept(used: list[Any]) -> None:
    x = C.input_variable((5, 24), needs_gradient=True)
    model = C.reduce_sum(attention(x, C.swapaxes))
    for rows in (1, 2, 3, 4, 5, 3, 1):
        data = np.random.default_rng(rows).standard_normal((rows, 5, 24)).astype(np.float32)
        before = model.grad({x: data})
        np.testing.assert_array_equal(model.grad({x: data}), before)


def test_small_products_load_no_loops() -> None:
    program = """
import sys, numpy as np, cntk as C
x = C.input_variable(64)
y = C.layers.Dense(64, activation=C.relu)(x)
y.grad({x: np.ones((32, 64), np.float32)}, wrt=list(y.parameters))
print('llvmlite' in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "False"
