"""The silence of passes: no warnings within, and whatever was set before outside."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from cntk.backends.numpy import silence as module
from cntk.backends.numpy.silence import silence


def divide() -> None:
    np.float32(1) / np.float32(0)


@pytest.mark.parametrize("is_found", [True, False])
def test_nothing_is_told_within_and_as_before_behind_it(is_found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert module._FOUND is not None
    if not is_found:
        monkeypatch.setattr(module, "_FOUND", None)
    with np.errstate(all="raise"):
        with warnings.catch_warnings(), silence():
            warnings.simplefilter("error")
            divide()
            with silence():
                divide()
            divide()
            with np.errstate(all="raise"), pytest.raises(FloatingPointError):
                divide()
            divide()
        with pytest.raises(FloatingPointError):
            divide()


def test_it_ends_with_an_error() -> None:
    with np.errstate(all="raise"):
        with pytest.raises(KeyError), silence():
            raise KeyError
        with pytest.raises(FloatingPointError):
            divide()
