"""Plain minibatches: data that needs no conversion, and differs from minibatch to minibatch in nothing but the number of samples.

Most training is fed with them.  The conditions are computed once for a program; other minibatches, and invalid ones, go
through :mod:`~cntk.core.values.feed`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..graph.variable import Variable
from ..types.csr import is_csr, is_usual
from ..types.layout import Layout
from ..types.spec import BATCH
from .feed import Feed


class FastFeeds:
    """A plain minibatch, as the data of each input; iterating gives it as feeds.

    Attributes:
        samples: number of samples, at least one.
        data: an array or a CSR matrix for each input.
    """

    __slots__ = ("data", "samples")

    def __init__(self, samples: int, data: Sequence[Any]) -> None:
        self.samples, self.data = samples, data

    def __iter__(self) -> Iterator[Feed]:
        layout = Layout(self.samples)
        return (Feed(data, data.shape[1:], layout) for data in self.data)


class FastInputs:
    """A program's inputs, with what plain data is for each: an array or a CSR matrix of the input's type, one row a sample.

    Args:
        variables: the inputs.

    Attributes:
        all_plain: whether every input can be fed so: all are on the batch axis alone, and their shapes are known.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        specs = [variable.spec for variable in variables]
        self.all_plain = bool(specs) and all(spec.axes == BATCH and spec.is_concrete for spec in specs)
        self._kinds = [(v, v.is_sparse, np.dtype(v.dtype), v.spec.shape) for v in variables]

    def feeds(self, arguments: Any) -> FastFeeds | None:
        """The minibatch that a user gives, as a dictionary by input or as one input's data; None where it is not plain."""
        if not self.all_plain:
            return None
        if type(arguments) is not dict:
            arguments = {self._kinds[0][0]: arguments}
        if len(arguments) != len(self._kinds):
            return None
        found, samples = [], None
        for variable, sparse, dtype, wanted in self._kinds:
            data = arguments.get(variable)
            if not (is_csr(data) if sparse else type(data) is np.ndarray):
                return None
            shape = data.shape
            rows = shape[:1]
            if shape[1:] != wanted or (samples is not None and rows != samples):
                return None
            if sparse and not is_usual(data):
                return None
            if (data.data if sparse else data).dtype != dtype:
                return None
            samples = rows
            found.append(data)
        return FastFeeds(samples[0], found) if samples and samples[0] else None
