"""Sparse operands are dense ones: what an operator gives does not depend on how the numbers of an operand are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cntk.core.common.shape import as_shape
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.operators.samples import Operand, Sample
from cntk.testing.gradients import Projection
from cntk.testing.samples import Trial, Values, as_sequences, describe
from cntk.testing.tolerances import assert_close


def check_sparse_operands(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that a call gives the same with an operand stored as CSR rows, for samples and for steps of sequences, in double precision.

    Values are compared, and the gradients of the other operands.  Numbers may be zero where the sample's range says so.  Nothing is
    required where results depend on chance; an operator that takes no sparse operand there says so.

    Raises:
        AssertionError: it gives something else.
    """
    for given in _kinds(sample):
        for i, operand in enumerate(given.operands):
            if operand.kind in ("batch", "sequence") and not operand.sparse and _has_axes(operand):
                _check_operand(function, given, i, device)


def _kinds(sample: Sample) -> Iterator[Sample]:
    """The call on samples, and on sequences."""
    yield sample
    for sequences, _ in as_sequences(sample):
        yield sequences
        return


def _has_axes(operand: Operand) -> bool:
    return operand.shape.ndim > 0 if isinstance(operand.shape, np.ndarray) else as_shape(operand.shape) != ()


def _check_operand(function: Callable[..., Any], sample: Sample, i: int, device: DeviceDescriptor | None) -> None:
    stored = [_stored_sparse(operand) if j == i else operand for j, operand in enumerate(sample.operands)]
    other = Sample(stored, sample.attributes, sample.call, None)
    name = describe(function, other)
    try:
        dense = Trial(function, sample, np.float64, device)
    except (ValueError, TypeError, RuntimeError):
        return  # it takes no sequence axis, of which check_on_sequences wants to know the reason
    dense.assign([_thinned(sample.operands[i], value) if j == i else value for j, value in enumerate(dense.values)])
    right = dense.evaluate()
    if not all(np.array_equal(*pair, equal_nan=True) for pair in _pairs(right, dense.evaluate())):
        return
    try:
        sparse = Trial(function, other, np.float64, device)
    except (ValueError, TypeError, RuntimeError) as error:
        if "sparse" not in str(error).partition("[built at")[0]:
            raise AssertionError(f"{name} is refused, but not for its sparse operand: {error}") from error
        return
    sparse.assign(dense.values)
    for mine, theirs in _pairs(sparse.evaluate(), right):
        assert_close(mine, theirs, name)
    wanted = [j for j, operand in enumerate(other.operands) if operand.gradient and not operand.sparse]
    if not wanted:
        return
    expected, again, gradients = (Projection(trial).gradients(wanted) for trial in (dense, dense, sparse))
    for j in wanted:
        if np.array_equal(again[j], expected[j], equal_nan=True):
            assert_close(gradients[j], expected[j], f"{name}: gradient of operand {j}")


def _stored_sparse(operand: Operand) -> Operand:
    return Operand(operand.shape, operand.low, operand.high, sparse=True, kind=operand.kind)


def _thinned(operand: Operand, value: Any) -> Any:
    """The numbers with about half of them zero, where they may be."""
    if isinstance(operand.shape, np.ndarray) or not operand.gradient or not operand.low <= 0 <= operand.high:
        return value
    return value * (np.random.default_rng(6).random(value.shape) < 0.5)


def _pairs(one: list[Values], other: list[Values]) -> Iterator[tuple[Any, Any]]:
    """Results that belong together; those of sequences one by one."""
    for mine, theirs in zip(one, other, strict=True):
        yield from zip(mine, theirs, strict=True) if isinstance(mine, list) else [(mine, theirs)]
