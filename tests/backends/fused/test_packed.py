"""Products with parameters that are packed once: the bits of other products, and packed again when they change."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.fused.followers import After
from cntk.core.common import threads
from cntk.core.extension.device import backend_named
from cntk.core.run.evaluate import program_for
from cntk.core.types.context import Context

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
packed = pytest.importorskip("cntk.backends.fused.packed")
products = pytest.importorskip("cntk.backends.fused.products")
pytestmark = pytest.mark.usefixtures("three_threads")
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def numbers(*shape: int, dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def product(ctx: Context, left: Any, right: Any, *followers: Any) -> Any:
    out = np.full((len(left), right.shape[1] + 3), 7, left.dtype)
    packed.bound(left, packed.panels(ctx, 1, right), out[:, 1:-2], After(*followers))()
    assert (out[:, [0, -2, -1]] == 7).all()
    return out[:, 1:-2]


def unpacked(left: Any, right: Any, *followers: Any) -> Any:
    out = np.empty((len(left), right.shape[1]), left.dtype)
    products.bound(Context(backend_named("numpy"), training=True), left, right, out, After(*followers))()
    return out


@both_types
@pytest.mark.parametrize("depth", [1, 37, 1024, 2500])
@pytest.mark.parametrize("n", [1, 7, 16, 33, 64, 130])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 6, 7, 64, 131])
def test_products_have_the_bits_of_others_whatever_the_threads(m: int, n: int, depth: int, dtype: Any, unchanging: Context) -> None:
    left, right = numbers(m, depth, dtype=dtype), numbers(depth, n + 2, dtype=dtype, seed=1)[:, :n]
    bias = numbers(n, dtype=dtype, seed=2)
    for followers in ((), (bias,), (bias, None, True), (None, None, True)):
        expected = unpacked(left, right, *followers)
        for number in (1, 3):
            threads.set_max_threads(number)
            np.testing.assert_array_equal(product(unchanging, left, right, *followers), expected)
    exact = left.astype(np.float64) @ right + bias
    np.testing.assert_allclose(product(unchanging, left, right, bias), exact, atol=1e-3 if dtype == np.float32 else 1e-11)


@both_types
def test_operands_lie_as_they_like(dtype: Any, unchanging: Context) -> None:
    turned, matrix = numbers(37, 60, dtype=dtype).T, numbers(70, 37, dtype=dtype).T
    np.testing.assert_array_equal(
        product(unchanging, turned, matrix), product(unchanging, np.ascontiguousarray(turned), np.ascontiguousarray(matrix))
    )


def test_what_is_not_finite_stays_so_where_it_is(unchanging: Context) -> None:
    left, right = numbers(8, 40, dtype=np.float32), numbers(40, 50, dtype=np.float32)
    left[3, 2], right[5, 7] = np.nan, np.inf
    bias = numbers(50, dtype=np.float32)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(
            np.isnan(product(unchanging, left, right, bias, None, True)), np.isnan(np.maximum(left @ right + bias, 0))
        )


def dense(width: int = 160) -> Any:
    x = C.input_variable(200, name="x")
    return C.layers.Sequential([C.layers.Dense(width, activation=C.relu), C.layers.Dense(width)])(x)


ROWS = numbers(300, 200, dtype=np.float32)


def test_a_program_packs_once_for_all_sizes_and_runs() -> None:
    f = dense()
    for rows in (300, 40, 5, 300):
        f.eval(ROWS[:rows])
    program = program_for(f, f.outputs)
    made = [one for source in program.prepared._watched for one in source.made.values()]
    assert sorted(one.operand.shape for one in made) == [(160, 160), (200, 160)]


def test_changes_are_seen_in_the_next_call() -> None:
    f = dense()
    bound = f.bind((300, 200))
    y = C.input_variable(160)
    trainer = C.Trainer(f, (C.squared_error(f, y), None), [C.sgd(f.parameters, 1e-4)])
    last = None
    for step in range(6):
        if step % 2:
            for parameter in f.parameters:
                parameter.value = parameter.value * 1.5
        else:
            trainer.train_minibatch({f.arguments[0]: ROWS, y: np.ones((300, 160), np.float32)})
        found = f.eval(ROWS)
        assert last is None or (found != last).any()
        np.testing.assert_array_equal(found, f.clone("clone").eval(ROWS))
        np.testing.assert_array_equal(found, bound(ROWS))
        last = found


def test_training_packs_nothing_to_keep() -> None:
    f = dense()
    program = program_for(f, f.outputs, wrt=f.parameters, gradient_roots=f.outputs, training=True)
    assert program.prepared is None


def test_threads_evaluate_the_same_function() -> None:
    f, sizes = dense(), [300, 7, 64, 33, 2, 128]
    alone = {rows: f.eval(ROWS[:rows]) for rows in sizes}
    with ThreadPoolExecutor(4) as pool:
        for rows, found in pool.map(lambda rows: (rows, f.eval(ROWS[:rows])), sizes * 6):
            np.testing.assert_array_equal(found, alone[rows])


@both_types
@pytest.mark.parametrize("m", range(1, 9))
def test_no_panel_is_read_that_there_is_not(m: int, dtype: Any, bytes_with_an_end: Callable[[int], Any], unchanging: Context) -> None:
    for n in (20, 40, 80, 112):
        left, right = numbers(m, 37, dtype=dtype), numbers(37, n, dtype=dtype, seed=1)
        made = packed.panels(unchanging, 1, right)
        last = bytes_with_an_end(made.nbytes).view(dtype)
        last[...] = made
        out = np.empty((m, n), dtype)
        packed.bound(left, last, out)()
        np.testing.assert_array_equal(out, product(unchanging, left, right))


@both_types
@pytest.mark.parametrize("depth", [32, 1024, 2500])
@pytest.mark.parametrize(("m", "n"), [(200, 49), (97, 1), (256, 196)])
def test_threads_that_share_rows_write_the_same_bits(m: int, n: int, depth: int, dtype: Any) -> None:
    left, right, bias = numbers(m, depth, dtype=dtype), numbers(depth, n, dtype=dtype, seed=1), numbers(m, dtype=dtype, seed=2)
    residual, ctx = numbers(m, n, dtype=dtype, seed=3), Context(backend_named("numpy"), training=False)
    for after in (After(), After(bias), After(bias, rectify=True), After(bias, residual, True), After(rectify=True)):
        expected, out = np.empty((2, m, n), dtype)
        products.bound(ctx, left, right, expected, after, of_rows=True)()
        call = packed.bound_by_rows(ctx, left, right, out, after)
        for _ in range(2):
            out[...] = 7
            call()
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("columns", [8, 10, 31])
def test_matrices_of_few_columns_are_packed_where_rows_are_many(columns: int) -> None:
    x = C.input_variable(200, name="x")
    f = C.layers.Dense(columns)(x)
    rows = numbers(-(-(10**6) // (200 * columns)), 200, dtype=np.float32)
    found = f.eval(rows)
    made = [one for source in program_for(f, f.outputs).prepared._watched for one in source.made.values()]
    assert [one.operand.shape for one in made] == [(200, columns)]
    np.testing.assert_allclose(found, rows.astype(float) @ f.W.value + f.b.value, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(f.bind(rows.shape)(rows), found)
    program = program_for(few := C.layers.Dense(7)(x), few.outputs)
    few.eval(rows)
    assert not [one for source in program.prepared._watched for one in source.made.values()]
