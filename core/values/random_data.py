"""Random data for the arguments of a function, to try it with."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..common.shape import FreeDimension
from ..graph.variable import Variable
from ..types.axis import Axis
from ..types.csr import csr_matrix_of

FREE = 8
"""Size of static axes that have none of their own."""


def random_data(arguments: Iterable[Variable], lengths: Sequence[int] = (4, 1, 3), seed: int = 0) -> dict[Variable, Any]:
    """Numbers from -1 to 1 for each argument; for sparse ones CSR matrices of rows in which one element is 1.

    Args:
        arguments: the arguments.
        lengths: steps of the sequences of a minibatch, as many as it has samples; those on a second sequence axis have the same
            lengths in another order.
        seed: of the numbers.

    Returns:
        By argument its data: an array ``(samples, *static)``, or a CSR matrix ``(samples, elements)``; for sequences a list of such of
        ``(steps, *static)``; ``static`` without dynamic axes.

    >>> from cntk.core.values.random_data import random_data
    >>> x = C.sequence.input_variable(2)
    >>> [steps.shape for steps in random_data([x])[x]]
    [(4, 2), (1, 2), (3, 2)]
    """
    random = np.random.default_rng(seed)
    turned: dict[Axis, Any] = {}
    found: dict[Variable, Any] = {}
    for argument in arguments:
        axes = argument.spec.axes or ()
        for axis in axes[1:]:
            turned.setdefault(axis, np.roll(lengths, len(turned)).tolist())
        if len(axes) > 1:
            found[argument] = [_values(argument, (count,), random) for count in turned[axes[1]]]
        else:
            found[argument] = _values(argument, (len(lengths),) if axes else (), random)
    return found


def _values(argument: Variable, rows: Sequence[int], random: np.random.Generator) -> Any:
    shape = tuple(FREE if size == FreeDimension else size for size in argument.spec.dims)
    if argument.spec.sparse:
        count, width = math.prod(rows), math.prod(shape)
        ones = np.ones(count, argument.spec.dtype or np.float32)
        return csr_matrix_of(ones, random.integers(width, size=count), np.arange(count + 1), width)
    return random.uniform(-1, 1, (*rows, *shape)).astype(argument.spec.dtype or np.float32)
