"""What a learner holds for one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.types.sparse import RowSparse
from .options import Preparation

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter


class Part:
    """A parameter, or some of its rows, with all that an update needs.

    Attributes:
        xp: array namespace.
        w, g: parameter and gradient, of one shape.
        states: the smoothed gradients.
        work: temporary arrays of the gradient's shape.
        rows: numbers of the rows, None where it is the whole parameter.
        is_copy: whether *w* and *states* are copies, to be taken back; where there are *rows* and they are none, those rows in them change.
        coefficients, preparation: what the learner says for a kernel.
        bound: what a kernel has bound to these arrays, for the next update of the same; the kernel's own.
    """

    coefficients: Sequence[float]
    preparation: Preparation

    __slots__ = ("bound", "coefficients", "g", "is_copy", "preparation", "rows", "states", "w", "work", "xp")

    def __init__(self, xp: Any, w: Any, g: Any, states: Sequence[Any], work: Sequence[Any], is_copy: bool, rows: Any = None) -> None:
        self.xp, self.w, self.g, self.states, self.work, self.is_copy, self.rows = xp, w, g, states, work, is_copy, rows
        self.bound: Any = None


class Slot:
    """What a learner holds for one parameter.

    Attributes:
        parameter: the parameter.
        dtype: the type to compute in: the parameter's, but float32 for float16, in which squares of gradients vanish.
        states: the smoothed gradients, in the order of the learner's ``state_names``.
        work: temporary arrays of the parameter's shape.

    Args:
        states, work: how many there are.
        row_work: how many temporary arrays an update of some rows needs.
        keeps_gradients: whether updates leave gradients as they are.
        takes_rows: whether updates of some rows take the parameter whole.
    """

    __slots__ = (
        *("_dense", "_filled", "_keeps_gradients", "_row_work", "_takes_rows", "_whole", "_wide"),
        *("dtype", "parameter", "states", "work"),
    )

    def __init__(self, parameter: Parameter, states: int, work: int, row_work: int, keeps_gradients: bool, takes_rows: bool) -> None:
        widens = parameter.dtype == np.float16
        self.dtype = np.float32 if widens else parameter.dtype
        self.parameter, self._row_work, self._keeps_gradients = parameter, row_work, keeps_gradients
        self._takes_rows = takes_rows and not widens
        self.states, self.work, self._wide = self._arrays(states), self._arrays(work), self._arrays(2 if widens else 0)
        self._whole = Part(parameter.backend.xp, None, None, self.states, self.work, is_copy=widens)
        self._dense: Any = None
        self._filled: Any = None
        self.reset()

    def _arrays(self, count: int) -> list[Any]:
        return [self.parameter.backend.empty(self.parameter.shape, self.dtype) for _ in range(count)]

    def reset(self) -> None:
        """Forget all gradients."""
        for state in self.states:
            state[...] = 0

    def part(self, gradient: Any, lazily: bool) -> Part:
        """What an update with *gradient* changes; *lazily* only the rows that are present in a row-sparse one."""
        parameter = self.parameter
        if type(gradient) is RowSparse:
            if lazily:
                return self._rows(gradient)
            gradient = self._densified(gradient)
        whole = self._whole
        if whole.is_copy:
            whole.w, whole.g = self._wide
            whole.w[...], whole.g[...] = parameter.array, gradient
        else:
            whole.g = gradient
            if whole.w is None:
                whole.w = parameter.array
        return whole

    def take_back(self, part: Part) -> None:
        """Store what an update has done to a :meth:`part` that is a copy."""
        if part is self._whole:
            self.parameter.array[...] = part.w
            return
        self.parameter.array[part.rows] = part.w
        for state, changed in zip(self.states, part.states, strict=True):
            state[part.rows] = changed

    def _rows(self, gradient: RowSparse) -> Part:
        xp, rows = self.parameter.backend.xp, gradient.rows
        g = gradient.values.astype(self.dtype, copy=False)
        work = [xp.empty_like(g) for _ in range(self._row_work)]
        if self._takes_rows:
            return Part(xp, self.parameter.array, g, self.states, work, is_copy=False, rows=rows)
        w = self.parameter.array.take(rows, axis=0).astype(self.dtype, copy=False)
        return Part(xp, w, g, [state.take(rows, axis=0) for state in self.states], work, is_copy=True, rows=rows)

    def _densified(self, gradient: RowSparse) -> Any:
        """The whole of a row-sparse gradient, in an array that is kept for it."""
        if self._dense is None:
            self._dense = self.parameter.backend.empty(self.parameter.shape, self.parameter.dtype)
        changed = self._filled if self._keeps_gradients and self._filled is not None else ...
        self._dense[changed] = 0
        self._dense[gradient.rows] = gradient.values
        self._filled = gradient.rows.copy()
        return self._dense
