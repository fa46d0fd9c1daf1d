"""Recordings: sequences of calls that an asynchronous backend captures once and then replays as one, without Python in between.

Consecutive calls are recorded together if each enqueues the same work regardless of the arrays' contents and of the layout of rows:
element-wise operators, operators whose class says ``Traits(recordable=True)``, kernels that say ``recordable = True``, bound calls
that are :class:`~cntk.core.extension.kernel.Repeatable`, and recurrences whose kernel is.  All other calls are made one by one between the
recordings, and so is one that the backend refuses to record.  The contents of index arrays that calls ask their contexts for may differ
(:mod:`~cntk.core.run.index_buffers`), as may those of sparse inputs that kernels with ``recordable_sparse = True`` read
(:mod:`~cntk.core.run.placed_rows`), and which rows a gradient has that they write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import is_
from typing import TYPE_CHECKING, Any

from ..common.switches import recorders
from ..extension.kernel import Repeatable
from ..program.chains import FusedCall
from ..types.sparse import RowSparse, RowsPlace, SparseRows
from .placed_rows import PlacedRows, Places

if TYPE_CHECKING:
    from ..extension.backend import Asynchronous
    from ..graph.nodes import Primitive
    from ..program.slots import Instruction
    from .binding import Step
    from .index_buffers import IndexBuffers
    from .recurrence import LoopPass

WARM_UPS = 2
"""Number of ordinary runs before calls are recorded, in which kernels are compiled and scratch memory is allocated."""


Repeatables = Mapping[Callable[..., None], bool]
"""The calls that enqueue the same work whenever their arrays are the same; and whether that holds for sparse inputs with other contents."""


class Recording:
    """A sequence of calls that is recorded after a number of warm-up runs.

    Args:
        backend: the backend that records.
        calls: the calls.
        buffers: the index arrays that calls ask for.
        made: how many warm-up runs there have been.
    """

    def __init__(self, backend: Asynchronous, calls: Sequence[Step | LoopPass], buffers: IndexBuffers, made: int = 0) -> None:
        self._backend, self._buffers, self._made = backend, buffers, made
        self._calls: Sequence[Step | LoopPass | Recording] = calls
        self._node = _node_of(calls[0])
        self._is_split = self._has_indices = self._is_ready = False
        self._reached = 0
        self._replay: Callable[[], None] | None = None
        bound = [(one, _node_of(call)) for call in calls if (one := _repeatable(call)) is not None]
        self._bound = [one for one, _ in bound]
        self._sparse = [rows for call in calls if isinstance(call, tuple) for rows in _sparse_in(call[1]) if isinstance(rows, PlacedRows)]
        self._places: list[Places | None] = []
        self._gradients: dict[RowSparse, RowsPlace] = {}
        self._prepare: list[Step] = [(one.prepare, (), node, None, ()) for one, node in bound]

    def steps(self) -> Iterator[Step]:
        """Yield the replay of the calls, or the calls themselves while they are not recorded or are being profiled."""
        self._is_ready = False
        if not recorders.value and not self._is_split:
            yield self._get_ready, (), self._node, None, ()
        if self._is_ready:
            yield from self._prepare
            yield self._replay, (), self._node, None, ()  # type: ignore[misc]
            return
        self._made += 1
        for call in self._calls:
            if isinstance(call, tuple):
                yield call
            else:
                yield from call.steps()

    def _get_ready(self) -> None:
        """Record the calls if it is time, and have the index arrays of the minibatch brought to what was recorded."""
        if not all(one.holds() for one in self._bound) or self._has_moved():
            self._replay, self._made = None, 0
        if self._replay is None and self._made >= WARM_UPS:
            self._record()
        self._is_ready = self._replay is not None and (not self._has_indices or self._buffers.fill())
        if self._is_ready:
            for gradient, place in self._gradients.items():  # others may have set it to sums over workers
                gradient.set_place(place)

    def _has_moved(self) -> bool:
        """Whether sparse inputs lie elsewhere than when the calls were recorded."""
        return self._replay is not None and not all(map(is_, self._places, (rows.places for rows in self._sparse)))

    def _record(self) -> None:
        if not self._buffers.place():
            return
        self._reached = len(self._calls)
        self._places = [rows.places for rows in self._sparse]
        with self._buffers.recording() as has_indices:
            self._replay = self._backend.record(self._work)
            self._has_indices = has_indices()
        if self._replay is None:
            self._split()
            return
        gradients = (rows for call in self._calls if isinstance(call, tuple) for rows in _sparse_in(call[1]) if isinstance(rows, RowSparse))
        self._gradients = {rows: rows.place for rows in gradients if rows.place is not None}

    def _work(self) -> None:
        for number, call in enumerate(self._calls):
            self._reached = number
            one = _repeatable(call)
            if one is None:
                call[0](*call[1])  # type: ignore[index]
            else:
                one.work()
        self._reached = len(self._calls)

    def _split(self) -> None:
        """Record what comes before and after the call that was refused; all are made one by one if nobody knows which it was."""
        before, refused, after = (self._calls[part] for part in _around(self._reached))
        if refused:
            self._calls = [*self._recorded(before), *refused, *self._recorded(after)]
        self._is_split, self._bound, self._prepare = True, [], []

    def _recorded(self, calls: Sequence[Any]) -> Sequence[Any]:
        return [Recording(self._backend, calls, self._buffers, self._made)] if _is_worthwhile(calls) else calls


def recorded(backend: Asynchronous, steps: Iterable[Any], repeatable: Repeatables, buffers: IndexBuffers) -> list[Any]:
    """Return the steps with each run of consecutive recordable steps replaced by a recording.

    Args:
        backend: the backend that records.
        steps: the steps.
        repeatable: the calls that are.
        buffers: the index arrays that the steps ask for.
    """
    found: list[Any] = []
    for can_be, group in groupby(steps, key=lambda step: _is_recordable(step, repeatable)):
        calls = list(group)
        found.extend([Recording(backend, calls, buffers)] if can_be and _is_worthwhile(calls) else calls)
    return found


def repeatable_calls(instructions: Iterable[Instruction]) -> Repeatables:
    """Return the methods of instructions that are."""
    found: dict[Callable[..., None], bool] = {}
    for instruction in instructions:
        if instruction.op.traits.recordable:
            found.update(dict.fromkeys((instruction.op.forward, instruction.op.backward), False))
        if _has_recordable_kernel(instruction):
            takes_sparse = getattr(instruction.kernel, "recordable_sparse", False)
            found.update(dict.fromkeys((instruction.forward, instruction.backward), takes_sparse))
    return found


def is_repeatable(instruction: Instruction) -> bool:
    """Whether any of its methods hands over the same work whenever it is called with the same arrays."""
    return instruction.op.traits.recordable or _has_recordable_kernel(instruction)


def _has_recordable_kernel(instruction: Instruction) -> bool:
    return getattr(instruction.kernel, "recordable", False)


def _is_recordable(step: Any, repeatable: Repeatables) -> bool:
    if _repeatable(step) is not None:
        return True
    if not isinstance(step, tuple) or isinstance(step[0], FusedCall):
        return False
    call, arguments, *_ = step
    takes_sparse = repeatable.get(call)
    return takes_sparse is not None and all(takes_sparse and isinstance(rows, (PlacedRows, RowSparse)) for rows in _sparse_in(arguments))


def _is_worthwhile(calls: Sequence[Any]) -> bool:
    """Whether there is more than one call to be recorded together; a loop is several."""
    return len(calls) > 1 or any(not isinstance(call, tuple) for call in calls)


def _repeatable(step: Any) -> Repeatable | None:
    call = step[0] if isinstance(step, tuple) else step
    if isinstance(call, FusedCall):
        return call.repeatable
    return call if isinstance(call, Repeatable) else None


def _node_of(step: Any) -> Primitive:
    node: Primitive = step[2] if isinstance(step, tuple) else step.node
    return node


def _around(number: int) -> tuple[slice, slice, slice]:
    """What comes before an item, the item, and what comes after it."""
    return slice(number), slice(number, number + 1), slice(number + 1, None)


def _sparse_in(arguments: Iterable[Any]) -> Iterator[SparseRows | RowSparse]:
    for item in arguments:
        if isinstance(item, (SparseRows, RowSparse)):
            yield item
        elif isinstance(item, (tuple, list)):
            yield from _sparse_in(item)
