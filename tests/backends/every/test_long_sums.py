"""Errors of sums do not grow with the number of terms: laws of all operators that sum, and of gradients of all that are registered."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cntk.core.common.dtypes import float_types
from cntk.core.extension import plugins
from cntk.core.operators.samples import Sample
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial, describe

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "hostile"))
import long_sums

COPIES = 20_000
CLOSE = 5e-5
"""A fifth of what adding one after another gives."""


def _has_gradient_sums(sample: Sample) -> bool:
    kinds = {operand.kind for operand in sample.operands}
    return kinds == {"batch", "parameter"} and any(o.kind == "parameter" and o.gradient for o in sample.operands)


SAMPLES = [(name, sample) for name in plugins.ops for sample in samples_of(plugins.ops.get(name)) if _has_gradient_sums(sample)]
SAMPLES = [(name, sample) for name, sample in SAMPLES if name != "batch_normalization"]  # its slope vanishes for copies; it has laws


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_gradients_for_copies_of_a_row_are_so_many_times_that_for_one(name: str, sample: Sample) -> None:
    trial = Trial(plugins.ops.get(name), sample, np.float32)
    wanted = [v for operand, v in zip(sample.operands, trial.variables, strict=True) if operand.kind == "parameter" and operand.gradient]

    def gradients(count: int) -> list[Any]:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "(?s).* is given as .*")
            found = trial.result.grad(trial.feed([0] * count), wrt=wanted)
        found = [found[variable] for variable in wanted] if isinstance(found, dict) else [found]
        return [np.asarray(one.to_ndarray() if hasattr(one, "to_ndarray") else one, np.float64) for one in found]

    one, two, many = gradients(1), gradients(2), gradients(COPIES)
    for alone, twice, often in zip(one, two, many, strict=True):
        size = np.abs(alone).max(initial=0)
        if np.abs(twice - 2 * alone).max(initial=0) <= CLOSE * size:  # else samples do not contribute each by itself
            assert np.abs(often / COPIES - alone).max(initial=0) <= CLOSE * size


@pytest.mark.parametrize("equal", [True, False], ids=["equal numbers", "random numbers"])
@pytest.mark.parametrize("dtype", float_types())
@pytest.mark.parametrize("name", long_sums.LAWS)
def test_laws(name: str, dtype: Any, equal: bool) -> None:
    for columns in (1, 3):
        shape = (60_000, columns)
        long_sums.check(name, np.full(shape, 0.1, dtype) if equal else np.random.default_rng(1).random(shape).astype(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("name", long_sums.LAWS)
def test_laws_of_four_million_terms(name: str) -> None:
    long_sums.check(name, np.full((4_000_000, 2), 0.1, np.float32))
