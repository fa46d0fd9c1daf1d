"""Compares kernels with the operators that they replace: the same numbers, whatever the size.

Kernels take over where there is much to do.  So samples are tried with many rows, around and far above the sizes from which on kernels
do, and with few rows once more as if these sizes were zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from cntk.core.common.shape import size_of
from cntk.core.common.thresholds import TABLE, all_set_to, thresholds
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.extension.registry import Registry
from cntk.core.operators.samples import Sample
from cntk.testing.gradients import Projection
from cntk.testing.samples import ROWS, Trial, describe
from cntk.testing.tolerances import GRADIENTS, VALUES, assert_close

MOST_ELEMENTS, MOST_ROWS = 2**18, 2**12
"""Elements of an operand, and rows, with which samples are tried at most."""


def check_kernels(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None = None) -> None:
    """Require that kernels and chains give the results and gradients that the operators' own methods give.

    Args:
        function: the public operator function.
        sample: the call; with samples on the batch axis it is tried with many, whose number :func:`row_counts` tells.
        device: where to compute; the default device where None.

    Raises:
        AssertionError: they differ.
    """
    *around, most = row_counts(sample) or [ROWS]
    with all_set_to(0):
        _compare_values(function, sample, device, ROWS)
        _compare_gradients(function, sample, device, ROWS)
    for rows in (*around, most):
        _compare_values(function, sample, device, rows)
    _compare_gradients(function, sample, device, most)


@contextmanager
def without_kernels() -> Iterator[None]:
    """Let operators compute by their own methods in the programs that are compiled meanwhile.

    >>> from cntk.testing.kernels import without_kernels
    >>> with without_kernels():
    ...     C.softmax([1, 1]).eval()
    array([0.5, 0.5], dtype=float32)
    """
    with patch.object(plugins, "kernels", Registry("kernel")), patch.object(plugins, "engines", Registry("engine")):
        yield


def row_counts(sample: Sample) -> list[int]:
    """Rows of a call's largest operand with one less and one more than as many elements as there are at each threshold, and with most."""
    widths = [size_of(np.shape(of.shape) if isinstance(of.shape, np.ndarray) else of.shape) for of in sample.operands if of.kind == "batch"]
    if not widths or any(operand.kind == "sequence" for operand in sample.operands):
        return []
    width = max(*widths, 1)
    sizes = {getattr(thresholds, name) for name in TABLE if name.endswith("_compiled")}  # on how many threads changes no bit
    around = {size // width + more for size in sizes if size < MOST_ELEMENTS for more in (-1, 1)}
    most = min(MOST_ELEMENTS // width, MOST_ROWS)
    return sorted({rows for rows in around if ROWS < rows < most} | {most})


def _compare_values(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None, rows: int) -> None:
    found, right = _by_both(lambda: Trial(function, sample, np.float32, device, rows).evaluate())
    for one, its_right in zip(found, right, strict=True):
        for actual, expected in zip(one, its_right, strict=True) if isinstance(one, list) else [(one, its_right)]:
            assert_close(actual, expected, _by_a_kernel(function, sample, rows), VALUES[np.float32])


def _compare_gradients(function: Callable[..., Any], sample: Sample, device: DeviceDescriptor | None, rows: int) -> None:
    wanted = [i for i, operand in enumerate(sample.operands) if operand.gradient and not operand.sparse]
    if wanted:
        found, right = _by_both(lambda: Projection(Trial(function, sample, np.float64, device, rows)).gradients(wanted))
        for i in wanted:
            assert_close(found[i], right[i], f"{_by_a_kernel(function, sample, rows)}: gradient of operand {i}", GRADIENTS)


def _by_a_kernel(function: Callable[..., Any], sample: Sample, rows: int) -> str:
    return f"{describe(function, sample)} with {rows} rows, by a kernel,"


def _by_both(compute: Callable[[], Any]) -> tuple[Any, Any]:
    """The results of kernels, and of operators."""
    found = compute()
    with without_kernels():
        return found, compute()
