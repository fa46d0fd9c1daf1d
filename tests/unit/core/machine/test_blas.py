"""Products on one thread, where threads of the BLAS would wait for one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.machine import blas


@pytest.fixture
def library() -> Iterator[blas.Blas]:
    found = blas.find()
    if found is None or blas.on_one_thread(print) is print:
        pytest.skip("NumPy has no OpenBLAS with threads of its own")
    before = found.get_threads()
    C.device.set_threads(2)
    yield found
    C.device.set_threads(before)


def test_there_is_one_thread_meanwhile(library: blas.Blas) -> None:
    seen: list[int] = []
    blas.on_one_thread(lambda: seen.append(library.get_threads()))()
    assert (seen, library.get_threads()) == ([1], 2)


def test_there_are_as_many_as_before_where_it_fails(library: blas.Blas) -> None:
    def fail() -> None:
        raise ValueError("no product")

    with pytest.raises(ValueError, match="no product"):
        blas.on_one_thread(fail)()
    assert library.get_threads() == 2


def test_nothing_is_set_where_there_is_one_anyway(library: blas.Blas, monkeypatch: pytest.MonkeyPatch) -> None:
    C.device.set_threads(1)
    with monkeypatch.context() as patch:
        patch.setattr(library.library, library.name.format("openblas_set_num_threads"), _never, raising=False)
        blas.on_one_thread(lambda: None)()


def _never(number: int) -> None:
    raise AssertionError(f"set to {number}")


@pytest.mark.parametrize(("sizes", "threads"), [((20, 50, 600), 1), ((20, 50, 100), 2), ((100, 150, 600), 2)])
def test_products_of_functions(library: blas.Blas, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...], threads: int) -> None:
    """Small ones that an OpenBLAS would share are computed alone; smaller ones are left to it, and so are large ones."""
    samples, terms, columns = sizes
    x = C.input_variable(terms, needs_gradient=True)
    function = C.times(x, C.parameter((terms, columns), init=C.glorot_uniform()))
    data = np.random.default_rng(0).random((samples, terms), np.float32)
    wanted = data @ function.parameters[0].value
    seen = _threads_of_products(library, monkeypatch)
    np.testing.assert_allclose(function.eval(data), wanted, rtol=1e-4, atol=1e-6)
    function.grad(data)
    assert seen
    assert set(seen) == {threads}


def _threads_of_products(library: blas.Blas, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What gets the numbers of threads that products have from now on."""
    seen: list[int] = []
    dot, matmul = np.dot, np.matmul

    def noting(product: Any) -> Any:
        def noted(*arguments: Any, **options: Any) -> Any:
            seen.append(library.get_threads())
            return product(*arguments, **options)

        return noted

    monkeypatch.setattr(np, "dot", noting(dot))
    monkeypatch.setattr(np, "matmul", noting(matmul))
    return seen
