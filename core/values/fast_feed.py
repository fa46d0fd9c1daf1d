"""Plain minibatches: data that needs no conversion, and differs from minibatch to minibatch in nothing but the number of samples, and
of steps where all sequences have as many.

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
from .feed import Feed, by_step


class FastFeeds:
    """A plain minibatch, as the data of each input; iterating gives it as feeds.

    Attributes:
        samples: number of samples, at least one.
        steps: number of steps of each sequence, at least one, by input; 0 for inputs without a sequence axis.  Empty if no input has one.
        data: an array or a CSR matrix for each input, with a row for each sample or, step by step, for each step.
        key: all that its size is known by, for inputs of one function.
    """

    __slots__ = ("data", "key", "samples", "steps")

    def __init__(self, samples: int, data: Sequence[Any], steps: tuple[int, ...] = ()) -> None:
        self.samples, self.data, self.steps = samples, data, steps
        self.key: Any = (samples, steps) if steps else samples

    def __iter__(self) -> Iterator[Feed]:
        steps = self.steps or (0,) * len(self.data)
        layouts = {count: Layout(self.samples, [count] * self.samples if count else None) for count in steps}
        return (Feed(data, data.shape[1:], layouts[count]) for data, count in zip(self.data, steps, strict=True))


class FastInputs:
    """A program's inputs, with what plain data is for each: an array or a CSR matrix of the input's type, one row a sample, or an array
    of sequences of one length.

    Args:
        variables: the inputs.

    Attributes:
        all_plain: whether every input can be fed so, with samples: all are on the batch axis alone, and their shapes are known.
    """

    def __init__(self, variables: Sequence[Variable]) -> None:
        specs = [variable.spec for variable in variables]
        self.all_plain = bool(specs) and all(spec.axes == BATCH and spec.is_concrete for spec in specs)
        self._kinds = [(v, v.is_sparse, np.dtype(v.dtype), v.spec.shape or (), len(v.spec.axes or ())) for v in variables]
        self._are_fast = bool(specs) and all(
            spec.is_concrete and (spec.axes == BATCH or (len(spec.axes or ()) == 2 and not spec.sparse)) for spec in specs
        )

    def feeds(self, arguments: Any) -> FastFeeds | None:
        """The minibatch that a user gives, as a dictionary by input or as one input's data; None where it is not plain."""
        if not self._are_fast:
            return None
        if type(arguments) is not dict:
            arguments = {self._kinds[0][0]: arguments}
        if len(arguments) != len(self._kinds):
            return None
        found: list[Any] = []
        steps: list[int] = []
        samples = 0
        for variable, sparse, dtype, wanted, axes in self._kinds:
            data = arguments.get(variable)
            if not (is_csr(data) if sparse else type(data) is np.ndarray):
                return None
            shape = data.shape
            if len(shape) != axes + len(wanted) or shape[axes:] != wanted or 0 in shape[:axes] or (found and shape[0] != samples):
                return None
            if sparse and not is_usual(data):
                return None
            if (data.data if sparse else data).dtype != dtype:
                return None
            samples = shape[0]
            if not self.all_plain:
                steps.append(shape[1] if axes == 2 else 0)
            found.append(by_step(data.reshape(-1, *wanted), samples, shape[1]) if axes == 2 else data)
        return FastFeeds(samples, found, tuple(steps))
