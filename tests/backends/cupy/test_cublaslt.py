"""Products by cuBLASLt: how arrays that lie in any order are told to it, what is launched, and what cannot be."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from standin.cublaslt import Cublaslt as StandIn
from standin.host_backend import STREAM, HostArray, HostBackend, with_libraries

from cntk.backends.cupy import cublaslt, libraries
from cntk.backends.cupy.cublaslt import Bias, Cublaslt, Sums
from cntk.core.common import switches

ROUNDING = {"bfloat16": 8 * 2e-2, "float16": 2e-2, "float32": 1e-5, "float64": 1e-13}


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    made = StandIn()
    with with_libraries(monkeypatch, cublasLt=made):
        yield made


@pytest.fixture
def library(standin: StandIn) -> Cublaslt:
    return Cublaslt(libraries.load(libraries.CUBLASLT), HostBackend())


def numbers(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, shape).astype(dtype).view(HostArray)


def laid(shape: tuple[int, ...], how: str, dtype: Any, seed: int) -> Any:
    """An array whose elements lie row by row, column by column, in every second column, or with room behind each row."""
    *stack, rows, columns = shape
    if how == "columns":
        return numbers(*stack, columns, rows, dtype=dtype, seed=seed).swapaxes(-1, -2)
    if how == "part":
        return numbers(*stack, rows, columns + 3, dtype=dtype, seed=seed)[..., 1 : columns + 1]
    if how == "scattered":
        return numbers(*stack, rows, 2 * columns, dtype=dtype, seed=seed)[..., ::2]
    return numbers(*shape, dtype=dtype, seed=seed)


sizes = st.sampled_from([1, 2, 3, 8, 33])
orders = st.sampled_from(["rows", "columns", "part"])


@settings(deadline=None)
@given(
    m=sizes,
    k=sizes,
    n=sizes,
    count=st.sampled_from([0, 0, 1, 2, 5]),
    single=st.sampled_from(["neither", "left", "right"]),
    hows=st.tuples(orders, orders, orders),
    dtype=st.sampled_from(sorted(ROUNDING)),
)
def test_operands_and_results_that_lie_in_any_order(
    m: int, k: int, n: int, count: int, single: str, hows: tuple[str, str, str], dtype: str
) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch, with_libraries(monkeypatch, cublasLt=StandIn()):
        library = Cublaslt(libraries.load(libraries.CUBLASLT), HostBackend())
        stack = (count,) if count else ()
        left = laid(((*stack, m, k), (m, k))[single == "left"], hows[0], dtype, 1)
        right = laid(((*stack, k, n), (k, n))[single == "right"], hows[1], dtype, 2)
        out = laid((*stack, m, n), hows[2], dtype, 3)
        around = out.base.copy() if isinstance(out.base, np.ndarray) else None
        call = library.bound(left, right, out)
        assert call is not None
        call()
        np.testing.assert_allclose(out, np.matmul(left.astype(float), right.astype(float)), atol=k * ROUNDING[dtype])
        if hows[2] == "part" and around is not None:
            np.testing.assert_array_equal(out.base[..., 0], around[..., 0])
            np.testing.assert_array_equal(out.base[..., n + 1 :], around[..., n + 1 :])


def test_a_call_reads_what_the_arrays_hold_then(library: Cublaslt) -> None:
    left, right, out = numbers(4, 3), numbers(3, 5), numbers(4, 5)
    call = library.bound(left, right, out)
    assert call is not None
    for factor in 1, 2:
        left *= factor
        call()
        np.testing.assert_allclose(out, left @ right, rtol=1e-5)


def test_a_call_launches_and_does_nothing_else(library: Cublaslt, standin: StandIn) -> None:
    call = library.bound(numbers(4, 3), numbers(3, 5), numbers(4, 5))
    assert call is not None
    standin.calls.clear()
    call()
    ((name, arguments),) = standin.calls
    assert name == "cublasLtMatmul"
    assert arguments[-2:] == (cublaslt.WORKSPACE, STREAM)


def test_algorithms_are_asked_for_once_for_arrays_that_lie_alike(library: Cublaslt, standin: StandIn) -> None:
    kept = [[numbers(64, 64) for _ in range(3)] for _ in range(4)]
    alignments = {tuple(min(array.data.ptr & -array.data.ptr, 256) for array in arrays) for arrays in kept}
    for left, right, out in kept:
        library.bound(left, right, out)
    assert len(standin.named("cublasLtMatmulAlgoGetHeuristic")) == len(alignments)
    assert len(standin.named("cublasLtCreate")) == 1


@pytest.mark.parametrize("is_cut", [False, True])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_a_bias_and_a_rectifier_are_part_of_the_launch(library: Cublaslt, standin: StandIn, dtype: str, is_cut: bool) -> None:
    left, right, out = numbers(6, 3, dtype=dtype), numbers(3, 5, dtype=dtype), numbers(6, 5, dtype=dtype)
    bias = numbers(5, dtype=dtype, seed=9)
    call = library.bound(left, right, out, Bias(bias, is_cut))
    assert call is not None
    standin.calls.clear()
    call()
    wanted = left.astype(float) @ right.astype(float) + bias
    np.testing.assert_allclose(out, np.maximum(wanted, 0) if is_cut else wanted, atol=ROUNDING[dtype])
    assert [name for name, _ in standin.calls] == ["cublasLtMatmul"]


def test_products_with_vectors_of_their_own_do_not_get_into_each_others_way(library: Cublaslt) -> None:
    left, right = numbers(6, 3), numbers(3, 4)
    biases = [numbers(4, seed=seed) for seed in (1, 2)]
    outs = [numbers(6, 4) for _ in biases]
    calls = [library.bound(left, right, out, Bias(bias, False)) for out, bias in zip(outs, biases, strict=True)]
    for call in calls:
        assert call is not None
        call()
    for out, bias in zip(outs, biases, strict=True):
        np.testing.assert_allclose(out, left @ right + bias, rtol=1e-5)


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_sums_of_the_right_operands_columns(library: Cublaslt, how: str) -> None:
    left, right, out = numbers(7, 6).T, numbers(7, 5), laid((6, 5), how, np.float32, 0)
    sums = numbers(5)
    call = library.bound(left, right, out, Sums(sums))
    assert call is not None
    call()
    np.testing.assert_allclose(out, left @ right, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(sums, right.sum(0), rtol=1e-5)


def test_what_has_no_algorithm_is_not_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    standin = StandIn(refuses=(cublaslt.EPILOGUE_RELU_BIAS,))
    with with_libraries(monkeypatch, cublasLt=standin):
        library = Cublaslt(libraries.load(libraries.CUBLASLT), HostBackend())
        arrays = numbers(6, 3), numbers(3, 4), numbers(6, 4)
        assert library.bound(*arrays, Bias(numbers(4), True)) is None
        assert library.bound(*arrays, Bias(numbers(4), False)) is not None


@pytest.mark.parametrize(
    ("left", "right", "out"),
    [
        (laid((4, 3), "scattered", "f", 0), numbers(3, 5), numbers(4, 5)),
        (numbers(4, 3), numbers(3, 5), laid((4, 5), "scattered", "f", 0)),
        (np.broadcast_to(numbers(3), (4, 3), subok=True), numbers(3, 5), numbers(4, 5)),  # its rows lie over one another
        (numbers(2, 4, 3), numbers(3, 3, 5), numbers(2, 4, 5)),
        (numbers(4, 3), numbers(3, 5, dtype=np.float64), numbers(4, 5)),
        (numbers(4, 3).astype(np.int32), numbers(3, 5).astype(np.int32), numbers(4, 5).astype(np.int32)),
        (numbers(4, 0), numbers(0, 5), numbers(4, 5)),
        (numbers(4, 3)[::-1], numbers(3, 5), numbers(4, 5)),
        (numbers(2, 2, 4, 3), numbers(2, 2, 3, 5), numbers(2, 2, 4, 5)),
    ],
)
def test_what_the_library_cannot_be_told_of_is_not_bound(library: Cublaslt, left: Any, right: Any, out: Any) -> None:
    assert library.bound(left, right, out) is None


def test_nothing_is_launched_for_results_without_elements(library: Cublaslt, standin: StandIn) -> None:
    call = library.bound(numbers(0, 3), numbers(3, 5), numbers(0, 5))
    assert call is not None
    call()
    assert standin.named("cublasLtMatmul") == []


def test_sums_of_halves_are_in_float32(library: Cublaslt) -> None:
    left, right, out = np.full((1, 4096), 1, np.float16), np.full((4096, 1), 0.1, np.float16), numbers(1, 1, dtype=np.float16)
    wide = numbers(1, 1)
    for target in out, wide:
        call = library.bound(left.view(HostArray), right.view(HostArray), target)
        assert call is not None
        call()
    np.testing.assert_allclose(wide[0, 0], 4096 * float(np.float16(0.1)), rtol=1e-6)
    assert out[0, 0] == np.float16(wide[0, 0])


@pytest.mark.parametrize(("math", "is_exact"), [("ieee", True), ("tf32", False)])
def test_a_switch_lets_float32_be_rounded_before_it_is_multiplied(library: Cublaslt, math: str, is_exact: bool) -> None:
    switches.math.value = math
    left, right = np.full((2, 2), 1 + 2.0**-20, np.float32).view(HostArray), np.eye(2, dtype=np.float32).view(HostArray)
    out = numbers(2, 2)
    call = library.bound(left, right, out)
    assert call is not None
    call()
    assert (out[0, 0] == left[0, 0]) is np.bool_(is_exact)


def test_a_failure_says_what_was_called_and_with_what(library: Cublaslt, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        RuntimeError, match=r"cublasLtMatrixLayoutCreate failed with CUBLAS_STATUS_INVALID_VALUE \(7\) when given \(.*, 0, 5, 3, 2\)"
    ):
        library._layout(cublaslt.Matrix(5, 3, 2, 0, False, "float32", 256), 1)


def test_descriptions_go_with_those_who_use_them(standin: StandIn) -> None:
    library: Cublaslt | None = Cublaslt(libraries.load(libraries.CUBLASLT), HostBackend())
    assert library is not None
    call = library.bound(numbers(4, 3), numbers(3, 5), numbers(4, 5), Bias(numbers(5), False))
    made = sum(what is not None for what in standin.objects.values())
    call = None
    gc.collect()
    assert sum(what is not None for what in standin.objects.values()) == made - 1
    library = None
    gc.collect()
    assert all(what is None for what in standin.objects.values()), call
