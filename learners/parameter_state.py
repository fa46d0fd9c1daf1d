"""The state of a learner for each parameter: smoothed gradients and temporary arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.common.dtypes import is_half
from ..core.types.sparse import RowSparse, RowsPlace
from .options import Preparation

if TYPE_CHECKING:
    from ..core.graph.variable import Parameter

FOLLOWED_NONE = -1
"""Version of the parameter for a master that has not been synchronised with it."""


class Part:
    """A parameter to update, or some of its rows, with the arrays that the update needs.

    Attributes:
        xp: array namespace.
        w, g: parameter and gradient, of the same shape.
        states: the smoothed gradients.
        work: temporary arrays of the gradient's shape.
        rows: indices of the rows; None for the whole parameter.
        place: where gradient and indices are for every minibatch, with room for more, if they stay there; for a kernel.
        is_copy: whether *w* and *states* are copies of the *rows*, to be written back; otherwise those rows are updated in place.
        bound: a kernel's cache of what it has bound to these arrays, for the next update of the same arrays.
        coefficients, preparation: the learner's values for a kernel.
    """

    coefficients: Sequence[float]
    preparation: Preparation

    __slots__ = ("bound", "coefficients", "g", "is_copy", "place", "preparation", "rows", "states", "w", "work", "xp")

    def __init__(
        self,
        xp: Any,
        w: Any,
        g: Any,
        states: Sequence[Any],
        work: Sequence[Any],
        is_copy: bool,
        rows: Any = None,
        place: RowsPlace | None = None,
    ) -> None:
        self.xp, self.w, self.g, self.states, self.work, self.is_copy, self.rows = xp, w, g, states, work, is_copy, rows
        self.place = place
        self.bound: Any = None


class ParameterState:
    """State of a learner for one parameter.

    A float16 or bfloat16 parameter has a *master* copy in float32, to which updates are applied and which is then rounded to the
    parameter: applied to the parameter itself, updates of less than about a two-thousandth of it, or a two-hundredth, would be lost.
    Changes made to the parameter elsewhere are copied to the master.

    Attributes:
        parameter: the parameter.
        dtype: compute type: the parameter's, but float32 for types of 16 bits, in which squares of gradients underflow or updates are lost.
        states: the smoothed gradients, in the order of the learner's ``state_names``.
        work: temporary arrays of the parameter's shape.
        has_master: whether the parameter has a master.
        master: the master; None if there is none, or before the first update, which creates it.

    Args:
        states, work: number of state arrays and of temporary arrays.
        row_work: number of temporary arrays that an update of some rows needs.
        keeps_gradients: whether updates leave gradients unmodified.
        takes_rows: whether updates of some rows are passed the whole parameter.
    """

    __slots__ = (
        *("_dense", "_filled", "_keeps_gradients", "_row_work", "_takes_rows", "_version", "_whole", "_wide_gradient"),
        *("dtype", "has_master", "master", "parameter", "states", "work"),
    )

    def __init__(self, parameter: Parameter, states: int, work: int, row_work: int, keeps_gradients: bool, takes_rows: bool) -> None:
        self.has_master = is_half(parameter.dtype)
        self.dtype = np.float32 if self.has_master else parameter.dtype
        self.parameter, self._row_work, self._keeps_gradients = parameter, row_work, keeps_gradients
        self._takes_rows = takes_rows
        self.states, self.work = self._arrays(states), self._arrays(work)
        self._whole = Part(parameter.backend.xp, None, None, self.states, self.work, is_copy=False)
        self.master: Any = None
        self._version = FOLLOWED_NONE
        self._wide_gradient: Any = None
        self._dense: Any = None
        self._filled: Any = None
        self.reset()

    def _arrays(self, count: int) -> list[Any]:
        return [self.parameter.backend.empty(self.parameter.shape, self.dtype) for _ in range(count)]

    def reset(self) -> None:
        """Set the smoothed gradients to 0."""
        with self.parameter.backend.guard():
            for state in self.states:
                state[...] = 0

    # ---- the values that updates change ----

    @property
    def values(self) -> Any:
        """The array to which updates are applied: the parameter's, or its master once it exists."""
        return self.parameter.array if self.master is None else self.master

    def follow(self) -> None:
        """Copy those elements of the parameter to the master that have been changed elsewhere and are no longer its rounding."""
        parameter = self.parameter
        if not self.has_master or (self._version == parameter.version and not parameter.is_volatile):
            return
        if self.master is None:
            (self.master,) = self._arrays(1)
            self.master[...] = parameter.array
        else:
            changed = parameter.array != self.master.astype(parameter.dtype)
            parameter.backend.xp.copyto(self.master, parameter.array, where=changed)
        self._version = parameter.version

    def publish(self, rows: Any = None) -> None:
        """Round the master, if there is one, to the parameter or to some of its rows."""
        if self.master is not None:
            if rows is None:
                self.parameter.array[...] = self.master
            else:
                self.parameter.array[rows] = self.master[rows]

    def take_values(self, values: Any) -> None:
        """Set the parameter, and its master if there is one, to values from a host array."""
        self.follow()
        self.parameter.value = values
        if self.master is not None:
            self.restore_master(values)

    def restore_master(self, master: Any) -> None:
        """Restore the master from a host array; with None it is created from the parameter."""
        self._version = FOLLOWED_NONE
        if master is None or not self.has_master:
            self.master = None
            return
        if self.master is None:
            (self.master,) = self._arrays(1)
        self.parameter.backend.load(self.master, master)

    # ---- updates ----

    def part(self, gradient: Any, lazily: bool) -> Part:
        """Return the part that an update with *gradient* changes; if *lazily*, only the rows present in a row-sparse gradient."""
        if self.has_master:
            self.follow()
        if type(gradient) is RowSparse:
            if lazily:
                return self._rows(gradient)
            gradient = self._densified(gradient)
        whole = self._whole
        if self.has_master:
            if self._wide_gradient is None:
                (self._wide_gradient,) = self._arrays(1)
            self._wide_gradient[...] = gradient
            whole.w, whole.g = self.master, self._wide_gradient
        else:
            whole.g = gradient
            if whole.w is None:
                whole.w = self.parameter.array
        return whole

    def take_back(self, part: Part) -> None:
        """Write an updated :meth:`part` that is a copy back to the parameter and its states."""
        self.values[part.rows] = part.w
        for state, changed in zip(self.states, part.states, strict=True):
            state[part.rows] = changed

    def _rows(self, gradient: RowSparse) -> Part:
        xp, rows, values = self.parameter.backend.xp, gradient.rows, self.values
        g = gradient.values.astype(self.dtype, copy=False)
        work = [xp.empty_like(g) for _ in range(self._row_work)]
        if self._takes_rows:
            place = gradient.place if g.dtype == gradient.dtype else None
            return Part(xp, values, g, self.states, work, is_copy=False, rows=rows, place=place)
        return Part(xp, values.take(rows, axis=0), g, [state.take(rows, axis=0) for state in self.states], work, is_copy=True, rows=rows)

    def _densified(self, gradient: RowSparse) -> Any:
        """Return a row-sparse gradient as a dense array, in a buffer that is reused."""
        if self._dense is None:
            self._dense = self.parameter.backend.empty(self.parameter.shape, self.parameter.dtype)
        changed = self._filled if self._keeps_gradients and self._filled is not None else ...
        self._dense[changed] = 0
        self._dense[gradient.rows] = gradient.values
        self._filled = gradient.rows.copy()
        return self._dense
