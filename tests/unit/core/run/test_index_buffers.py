"""Index arrays at places that stay, filled for each minibatch."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.run.index_buffers import IndexBuffers, RecordableContext
from cntk.core.types.layout import Layout


class CountingBackend(NumpyBackend):
    """Counts what is copied to the device."""

    def __init__(self) -> None:
        super().__init__()
        self.loads = 0

    def load(self, array: Any, data: Any) -> None:
        self.loads += 1
        super().load(array, data)


BACKEND = CountingBackend()


def context(buffers: IndexBuffers, layout: Layout) -> RecordableContext:
    made = RecordableContext(buffers, BACKEND, True)
    tell(buffers, layout, made)
    return made


def tell(buffers: IndexBuffers, layout: Layout, *contexts: RecordableContext) -> None:
    """Another minibatch comes."""
    for ctx in contexts:
        ctx.layout, ctx.layouts = layout, [layout]
    buffers.outdate()


def recorded(buffers: IndexBuffers, ask: Any) -> Any:
    """What calls get that are made as they are at first, and then recorded."""
    ask()
    assert buffers.place()
    with buffers.recording() as was_asked:
        found = ask()
        assert was_asked()
    return found


def doubled(ctx: Any) -> Any:
    return ctx.layout.lengths * 2


def test_arrays_stay_where_they_are_and_hold_those_of_the_minibatch() -> None:
    buffers = IndexBuffers(BACKEND)
    ctx = context(buffers, Layout(3, [1, 2, 3]))
    order, twice = recorded(buffers, lambda: (ctx.index(ctx.layout, "order"), ctx.index_from(doubled)))
    for lengths in ([1, 2, 3], [3, 1, 2], [2, 3, 1]):
        layout = Layout(3, lengths)
        tell(buffers, layout, ctx)
        before = BACKEND.loads
        assert buffers.fill()
        assert buffers.fill()
        assert BACKEND.loads == before + 1  # both at once, and once for each minibatch
        assert order.tolist() == layout.order.tolist()
        assert twice.tolist() == [2 * length for length in lengths]


def test_calls_that_are_not_recorded_get_arrays_of_their_own() -> None:
    buffers = IndexBuffers(BACKEND)
    ctx = context(buffers, Layout(2, [1, 2]))
    kept = recorded(buffers, lambda: ctx.index(ctx.layout, "order"))
    assert not np.shares_memory(kept, ctx.index(ctx.layout, "order"))
    with buffers.recording() as was_asked:
        assert not was_asked()


def test_who_asks_for_one_array_shares_it_as_long_as_it_is_one() -> None:
    buffers = IndexBuffers(BACKEND)
    layout = Layout(2, [1, 2])
    one, other = context(buffers, layout), context(buffers, layout)
    first, second = recorded(buffers, lambda: (one.index(one.layouts[0], "order"), other.index(other.layout, "order")))
    assert first is second
    tell(buffers, Layout(2, [2, 1]), one, other)
    assert buffers.fill()
    tell(buffers, Layout(2, [1, 2]), one)
    assert not buffers.fill()
    tell(buffers, one.layout, other)
    assert buffers.fill()


def test_arrays_of_other_shapes_do_not_fit() -> None:
    buffers = IndexBuffers(BACKEND)
    ctx = context(buffers, Layout(2, [1, 2]))
    starts = recorded(buffers, lambda: ctx.index(ctx.layout, "alive"))
    tell(buffers, Layout(2, [3, 0]), ctx)
    assert not buffers.fill()
    tell(buffers, Layout(2, [2, 1]), ctx)
    assert buffers.fill()
    assert starts.tolist() == [2, 1]


def test_what_cannot_be_made_is_left_to_the_operator() -> None:
    def short(ctx: Any) -> Any:
        if ctx.layout.samples == 1:
            raise ValueError("too few")
        return ctx.layout.lengths

    buffers = IndexBuffers(BACKEND)
    ctx = context(buffers, Layout(1, [3]))
    buffers.array(ctx, short)
    assert not buffers.place()
    with pytest.raises(ValueError, match="too few"):
        ctx.index_from(short)
    tell(buffers, Layout(2, [2, 1]), ctx)
    assert buffers.place()
    assert buffers.fill()
    tell(buffers, Layout(1, [3]), ctx)
    assert not buffers.fill()


def test_a_stage_has_the_arrays_of_those_before() -> None:
    first = IndexBuffers(BACKEND)
    second = IndexBuffers(BACKEND, first.stages)
    layout = Layout(2, [1, 2])
    before, after = context(first, layout), context(second, layout)
    ends = recorded(second, lambda: (before.index(before.layout, "order"), after.index(after.layout, "rank")))
    layout = Layout(2, [2, 1])
    tell(first, layout, before)
    tell(second, layout, after)
    assert second.fill()
    assert [end.tolist() for end in ends] == [layout.order.tolist(), layout.rank.tolist()]


def test_contexts_do_not_keep_arrays() -> None:
    buffers = IndexBuffers(BACKEND)
    ctx = context(buffers, Layout(2, [1, 2]))
    recorded(buffers, lambda: ctx.index(ctx.layout, "order"))
    gone = weakref.ref(buffers)
    gc.disable()
    try:
        del buffers
        assert gone() is None
    finally:
        gc.enable()
