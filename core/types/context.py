"""The context that an operator gets beside its arrays while a program runs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from .layout import Index, Layout

if TYPE_CHECKING:
    from ..extension.backend import Array, Backend


Prepare = Callable[..., "Array"]

MOST_BOUND = 4
"""Calls that an instruction keeps bound: those of a product's two gradients, and as many more where arrays alternate."""


class Context:
    """The surroundings of one instruction, bound to one size of minibatch and kept from call to call.

    Attributes:
        xp: the backend's array namespace (NumPy's names).
        backend: the backend itself, for random numbers and kernels of its own.
        training: whether the pass is a training pass (dropout drops, batch normalisation uses the minibatch).
        layouts: layout of each operand, None for one without dynamic axes; refreshed before every pass.
        layout: layout of the result, None when it has no dynamic axes.
        state: any object, kept from forward to the backward step that belongs to it.
        prepare: for each operand what makes the arrays of :meth:`prepared`, None where they cannot be had; empty where none can.
    """

    __slots__ = (
        "_bound", "_kept", "_last_sum", "_parts", "_pool", "_scratch", "backend", "layout", "layouts", "prepare", "state", "training", "xp",
    )  # fmt: skip

    def __init__(self, backend: Backend, training: bool, pool: dict[Any, Any] | None = None) -> None:
        self.backend = backend
        self.xp = backend.xp
        self.training = training
        self.layouts: Sequence[Layout | None] = ()
        self.layout: Layout | None = None
        self.state: Any = None
        self.prepare: Sequence[Prepare | None] = ()
        self._pool = {} if pool is None else pool
        self._scratch: dict[Any, Any] = {}
        self._kept: dict[Any, Any] = {}
        self._parts: dict[str, Context] = {}
        self._bound: dict[Any, Callable[[], Any]] = {}
        self._last_sum: tuple[Any, Any, Callable[[], Any]] | None = None  # most calls are with the same arrays

    def scratch(self, key: str, shape: Sequence[int], dtype: Any) -> Any:
        """An uninitialised array that is valid until the method returns; instructions share its memory.

        Args:
            key: its name; arrays that are needed at the same time have different ones.
            shape: its shape, such as ``(rows, *static)``.
            dtype: its element type.
        """
        slot = (key, shape, dtype)
        array = self._scratch.get(slot)
        if array is None:
            array = self._scratch[slot] = self._from_pool(key, tuple(shape), dtype)
        return array

    def keep(self, key: str, shape: Sequence[int], dtype: Any) -> Any:
        """An array of this instruction's own that keeps its contents from forward to backward and to the next call.

        Args:
            key: its name.
            shape: its shape, such as ``(rows, *static)``.
            dtype: its element type.
        """
        slot = (key, shape, dtype)
        array = self._kept.get(slot)
        if array is None:
            array = self._kept[slot] = self.backend.empty(tuple(shape), dtype)
        return array

    def bound(self, places: Hashable, bind: Callable[[], Callable[[], Any]]) -> Callable[[], Any]:
        """What *bind* returns, or has returned for the same *places* before: a call that is bound to arrays.

        Args:
            places: where the arrays lie, their shapes and strides, and whatever else the call depends on.
            bind: binds it.
        """
        call = self._bound.get(places)
        if call is None:
            if len(self._bound) >= MOST_BOUND:
                del self._bound[next(iter(self._bound))]  # the one that was bound first
            call = self._bound[places] = bind()
        return call

    def part(self, name: str, layouts: Sequence[Layout | None]) -> Context:
        """The context of a part of the instruction's work, which another operator's methods do: with a state and arrays of its own.

        Args:
            name: tells the parts apart.
            layouts: layout of each operand of that operator; its result has the instruction's.
        """
        part = self._parts.get(name)
        if part is None:
            part = self._parts[name] = Context(self.backend, self.training, self._pool)
        part.layouts, part.layout = layouts, self.layout
        return part

    def seldom_changes(self, operand: int) -> bool:
        """Whether arrays can be :meth:`prepared` of an operand."""
        return bool(self.prepare) and self.prepare[operand] is not None

    def prepared(self, operand: int, array: Any, name: str, shape: Sequence[int], dtype: Any, make: Callable[[Any, Any], None]) -> Any:
        """An array made of an operand that seldom changes, such as a parameter outside training; calls and threads share it.

        Args:
            operand: number of the operand.
            array: its array, or a view of that, as *make* gets it.
            name: tells what is made of it.
            shape: shape of the array that is made.
            dtype: its element type.
            make: called with the array to fill and *array*, now and whenever the operand has changed.

        Returns:
            The array, always filled; None for an operand that may be another in each call.
        """
        prepare = self.prepare[operand] if self.seldom_changes(operand) else None
        return None if prepare is None else prepare(array, name, tuple(shape), dtype, make)

    def index(self, layout: Layout, name: str) -> Array:
        """An index array of a layout to pick rows by: on the backend's device, where it is brought once.

        Args:
            layout: the layout.
            name: the array's name, such as ``"sequence_of_row"``.
        """
        return self.backend.index(layout, name)

    def index_from(self, make: Callable[[Context], Index]) -> Array:
        """An index array that depends on the context's layouts alone: on the backend's device, to be read only.

        A device that repeats recorded calls has it made anew for each minibatch, as those of :meth:`index`.

        Args:
            make: makes the array on the host, given the context; the same function at each call.
        """
        (array,) = self.backend.on_device(make(self))
        return array

    def brought(self, index: Index) -> Array:
        """An index array that was made on the host, to pick rows by: on the backend's device, to be read only.

        Args:
            index: the array.
        """
        (array,) = self.backend.on_device(index)
        return array

    def sum_to(self, full: Any, target: Any) -> None:
        """Sum *full* over the axes along which *target* was broadcast to its shape, into *target*.

        Args:
            full: an array ``(rows, *static)``.
            target: array to write to, which broadcasts to *full*: ``(rows, *static)`` with dimensions of 1, or without rows.
        """
        last = self._last_sum
        if last is None or last[0] is not full or last[1] is not target:
            last = self._last_sum = full, target, self._summing(full, target)
        last[2]()

    def _summing(self, full: Any, target: Any) -> Callable[[], Any]:
        axes, shape = _axes_to_sum(full.shape, target.shape)
        return self.backend.summing(full, axes, target if shape is None else target.reshape(shape))

    def _from_pool(self, key: str, shape: tuple[int, ...], dtype: Any) -> Any:
        nbytes = self.backend.nbytes(shape, dtype)
        held = self._pool.get(key)
        if held is None or held.nbytes < nbytes:
            self._pool.pop(key, None)
            try:
                held = self._pool[key] = self.backend.allocate(nbytes)
            except MemoryError as error:
                raise MemoryError(f"{nbytes:,} bytes of temporary memory cannot be had; {error}") from None
        return self.backend.view(held, 0, shape, dtype)


class StepContext(Context):
    """The context of an instruction in a recurrence, which its steps share: nothing can be kept in it."""

    __slots__ = ()

    @classmethod
    def for_rows(cls, whole: Context, layout: Layout) -> StepContext:
        """A context like *whole* for some rows of what has rows there."""
        made = cls(whole.backend, whole.training, whole._pool)
        made.layouts, made.layout = [None if known is None else layout for known in whole.layouts], layout
        return made

    def keep(self, key: str, shape: Sequence[int], dtype: Any) -> Any:
        """Raise an error: steps would overwrite what others keep."""
        raise RuntimeError(f"forward keeps '{key}' for backward, which its class must declare for recurrences: by_rows = False")


@lru_cache(maxsize=1024)
def _axes_to_sum(full: tuple[int, ...], target: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Axes to sum over, and the target's shape with all of them; None where it has them, or lacks only axes that are summed over."""
    missing = len(full) - len(target)
    shape = (1,) * missing + target
    axes = tuple(axis for axis in range(len(full)) if shape[axis] == 1 and (full[axis] != 1 or axis < missing))
    return axes, None if not missing or axes == tuple(range(missing)) else shape
