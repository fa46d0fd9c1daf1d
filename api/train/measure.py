"""Averages over a minibatch, without training."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.core.graph.function import Function
from cntk.core.graph.variable import Variable
from cntk.core.run.evaluate import feeds_for, program_for
from cntk.core.run.workspace import start
from cntk.plugins.distributed.base import Transport
from cntk.train.totals import Total


def measure(
    function: Function, metric: Variable, arguments: Any, device: Any = None, transport: Transport | None = None
) -> tuple[float, int]:
    """Average of *metric* over a minibatch, and the number of samples it is the average of.

    Args:
        function: what the metric is part of.
        metric: what is averaged.
        arguments: the data; with a *transport*, ``{}`` for none.
        device: where to compute; the default device where None.
        transport: what connects this worker with others that measure, too, and whose samples count.
    """
    is_empty = transport is not None and isinstance(arguments, dict) and not arguments
    total, samples = (0.0, 0) if is_empty else _sum_of(function, metric, arguments, device)
    if transport is not None:
        sums = np.array([total, samples], np.float64)
        transport.sum(sums, "sums of a test")
        total, samples = float(sums[0]), int(sums[1])
    return total / samples if samples else 0.0, samples


def _sum_of(function: Function, metric: Variable, arguments: Any, device: Any) -> tuple[float, int]:
    program = program_for(function, [metric], device)
    run = start(program, feeds_for(program, arguments, function))
    try:
        with run.guard():
            run.forward()
            total = Total(program, metric)
            return total.of(run), total.samples(run)
    finally:
        run.close()
