"""Folds over axes: what NumPy's reductions give, whatever the axes and however long."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy import folds
from cntk.backends.cupy.places import Along

TOLERANCES = {C.bfloat16: 8e-2, np.float16: 1e-2, np.float32: 1e-6, np.float64: 1e-14}
REFERENCES: dict[str, tuple[Any, Any]] = {
    "total": (folds.TOTAL, np.sum),
    "greatest": (folds.GREATEST, np.max),
    "least": (folds.LEAST, np.min),
    "log of total": (folds.LOG_TOTAL, lambda x, axis: np.log(np.sum(np.exp(x), axis=axis))),
    "place of greatest": (folds.PLACE_OF_GREATEST, lambda x, axis: np.argmax(x.reshape(*x.shape[: min(axis)], -1), axis=-1)),
}


def folded(rule: Any, x: Any, axes: tuple[int, ...], scale: float = 1.0, out_type: Any = None) -> Any:
    """The fold of an array over axes."""
    along = [Along(length, stride // x.itemsize) for length, stride in zip(x.shape, x.strides, strict=True)]
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    out = HostBackend().empty([x.shape[axis] for axis in kept], out_type or x.dtype)
    outputs, terms = ([along[axis] for axis in some] or [Along(1, 0)] for some in (kept, sorted(axes)))
    for call in folds.bound(HostBackend(), rule, x, out, outputs, terms, scale):
        call()
    return out


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.parametrize(
    ("shape", "axes", "dtype"),
    [
        ((3, 5), (1,), np.float64),
        ((5, 3), (0,), np.float32),
        ((1,), (0,), np.float32),
        ((2, 3, 4, 5), (2, 3), np.float16),
        ((2, 3, 4, 5), (2, 3), C.bfloat16),
        ((300, 2), (0,), np.float32),
        ((3, 1000), (1,), np.float16),
        ((3, 1000), (1,), C.bfloat16),
    ],
)
def test_folds_are_numpys(name: str, shape: Any, axes: Any, dtype: Any, on_host: list[str]) -> None:
    rule, reference = REFERENCES[name]
    if name == "place of greatest" and axes != tuple(range(min(axes), len(shape))):
        axes = (len(shape) - 1,)
    x = array(np.random.default_rng(1).uniform(-2, 2, shape), dtype)
    expected = reference(np.asarray(x, np.float64), axes)
    scale = 0.25 if name == "total" else 1.0
    np.testing.assert_allclose(folded(rule, x, axes, scale), (expected * scale).astype(dtype), rtol=TOLERANCES[dtype], atol=1e-6)


@pytest.mark.parametrize("name", REFERENCES)
def test_long_folds_come_in_pieces(name: str, on_host: list[str]) -> None:
    rule, reference = REFERENCES[name]
    x = array(np.random.default_rng(2).normal(size=(2, 30011)), np.float32)
    np.testing.assert_allclose(folded(rule, x, (1,)), reference(np.asarray(x, np.float64), (1,)), rtol=1e-6)
    assert any("fold_pieces" in text for text in on_host)


@pytest.mark.parametrize("where", [0, 17, 30010])
@pytest.mark.parametrize("name", ["greatest", "least", "place of greatest"])
def test_nan_is_found_wherever_it_is(name: str, where: int, on_host: list[str]) -> None:
    rule, reference = REFERENCES[name]
    x = array(np.random.default_rng(2).normal(size=(1, 30011)), np.float32)
    x[0, where] = np.nan
    np.testing.assert_array_equal(folded(rule, x, (1,)), reference(np.asarray(x), (1,)))


def test_the_first_of_equal_places_counts(on_host: list[str]) -> None:
    x = np.full((3, 30011), -np.inf, np.float32)
    x[1, [700, 900, 29000]] = 2
    np.testing.assert_array_equal(folded(folds.PLACE_OF_GREATEST, array(x), (1,)), [0, 700, 0])


def test_infinite_logits(on_host: list[str]) -> None:
    rows = [[-np.inf, 1, -np.inf], [-np.inf] * 3, [1000, 0, -1000], [np.nan, 1, 2], [np.inf, 0, np.inf]]
    np.testing.assert_array_equal(folded(folds.LOG_TOTAL, array(rows, np.float64), (1,)), [1, -np.inf, 1000, np.nan, np.inf])


def test_nothing_folds_to_the_start(on_host: list[str]) -> None:
    assert folded(folds.TOTAL, array(np.empty((0, 3)), np.float32), (0,)).tolist() == [0, 0, 0]
    assert folded(folds.TOTAL, array(np.empty((0, 3)), np.float32), (1,)).shape == (0,)


def test_broadcast_axes_are_counted_as_often_as_they_repeat(on_host: list[str]) -> None:
    x = np.lib.stride_tricks.as_strided(array([1.5, 2]), (1 << 16, 2), (0, 8), subok=True)
    np.testing.assert_array_equal(folded(folds.TOTAL, x, (0,)), [1.5 * 2**16, 2**17])
