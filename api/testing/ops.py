"""The contract of an operator, checked on the samples that it carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntk.core.device import DeviceDescriptor
from cntk.core.dtypes import FLOAT_TYPES
from cntk.core.op import Sample
from cntk.testing.gradients import check_gradients
from cntk.testing.samples import Trial, describe
from cntk.testing.tolerances import VALUES, assert_close


def check_op(function: Callable[..., Any], device: DeviceDescriptor | None = None) -> None:
    """Check an operator on every sample that it carries.

    For each sample: results are right, or the same in every element type where the sample does not say what is right; they have
    the element type of the operands; a row's result does not depend on the other rows; gradients agree with finite differences.

    Args:
        function: the public operator function, marked with ``operator``.
        device: where to compute; the default device where None.

    Raises:
        AssertionError: it does not conform, carries no sample or has no example in its docstring.

    >>> from cntk.testing import check_op
    >>> check_op(C.sigmoid)
    """
    check_documented(function)
    for sample in samples_of(function):
        for dtype in types_of(sample):
            check_values(function, sample, dtype, device)
        check_rows(function, sample, device)
        check_gradients(function, sample, device)


def samples_of(function: Callable[..., Any]) -> tuple[Sample, ...]:
    """The samples an operator function carries."""
    return getattr(function, "samples", ())


def types_of(sample: Sample) -> list[Any]:
    """The element types a sample is tried in: all, but float16 with sparse operands, which SciPy cannot hold."""
    sparse = any(operand.sparse for operand in sample.operands)
    return [dtype for dtype in FLOAT_TYPES if not (sparse and dtype is np.float16)]


def check_documented(function: Callable[..., Any]) -> None:
    """Require at least one sample, and an example in the docstring."""
    name = getattr(function, "__name__", repr(function))
    if not samples_of(function):
        raise AssertionError(f"{name} carries no sample; mark it with @operator(sample(...))")
    if ">>>" not in (function.__doc__ or ""):
        raise AssertionError(f"{name} has no example (>>>) in its docstring")


def check_values(function: Callable[..., Any], sample: Sample, dtype: Any, device: DeviceDescriptor | None = None) -> None:
    """Require the right results, of the operands' element type."""
    trial = Trial(function, sample, dtype, device)
    found = trial.evaluate()
    expected = trial.expected() or _in_double(function, sample, trial, device)
    for actual, right in zip(found, expected, strict=True):
        message = f"{describe(function, sample)} in {np.dtype(dtype).name}"
        if actual.dtype != dtype:
            raise AssertionError(f"{message}: the result is of type {actual.dtype}")
        assert_close(actual, right, message)


def _in_double(function: Callable[..., Any], sample: Sample, trial: Trial, device: DeviceDescriptor | None) -> list[Any]:
    """The results that the same values give in double precision."""
    double = Trial(function, sample, np.float64, device)
    double.assign(trial.values)
    return double.evaluate()


def check_rows(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that each row of a result is what the row's operands alone give."""
    trial = Trial(function, sample, np.float32, device)
    together = trial.evaluate()
    for index, output in enumerate(trial.result.outputs):
        if not output.dynamic_axes or not any(operand.kind == "batch" for operand in sample.operands):
            continue
        for row in range(trial.rows):
            alone = trial.evaluate(slice(row, row + 1))[index]
            message = f"{describe(function, sample)}: row {row} alone gives another result than among {trial.rows} rows"
            assert_close(alone, together[index][row : row + 1], message, VALUES[np.float32])
