"""What is known of NumPy's BLAS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cntk.core.machine import blas


@pytest.mark.parametrize(
    ("parallel", "name", "shares"),
    [(1, b"Haswell", True), (1, b"Zen", True), (1, b"SkylakeX", False), (0, b"Haswell", False), (2, b"Haswell", False)],
)
def test_which_share_small_products(monkeypatch: pytest.MonkeyPatch, parallel: int, name: bytes, shares: bool) -> None:
    monkeypatch.setattr(blas, "find", lambda: _library(openblas_get_parallel=lambda: parallel, openblas_get_corename=lambda: name))
    assert blas.shares_small_products.__wrapped__() == shares


def test_others_share_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for library in (None, _library(), _library(openblas_get_parallel=lambda: 1)):
        monkeypatch.setattr(blas, "find", lambda library=library: library)
        assert not blas.shares_small_products.__wrapped__()


def _library(**functions: Callable[..., Any]) -> blas.Blas:
    return blas.Blas(lambda: 2, type("Library", (), {name: staticmethod(function) for name, function in functions.items()}), "{}")
