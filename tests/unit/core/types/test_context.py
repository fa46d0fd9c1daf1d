"""Contexts: temporary memory that is shared, memory that is kept, and sums over what was broadcast."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from cntk.core.extension.device import backend_named
from cntk.core.types.context import Context, StepContext
from cntk.core.types.layout import Layout

NUMPY = backend_named("numpy")


def test_a_second_call_allocates_nothing() -> None:
    context = Context(NUMPY, False)
    assert context.scratch("a", (2, 3), np.float32) is context.scratch("a", (2, 3), np.float32)
    assert context.keep("a", (2, 3), np.float32) is context.keep("a", (2, 3), np.float32)


def test_instructions_share_temporary_memory_by_its_name() -> None:
    pool: dict[object, object] = {}
    one, other = Context(NUMPY, False, pool), Context(NUMPY, False, pool)
    large = one.scratch("a", (4, 4), np.float64)
    assert np.shares_memory(large, other.scratch("a", (3,), np.float32))
    assert not np.shares_memory(large, other.scratch("b", (3,), np.float32))
    grown = other.scratch("a", (100,), np.float64)
    assert grown.shape == (100,)
    assert not np.shares_memory(large, grown)


def test_what_is_kept_belongs_to_one_instruction_name_and_size() -> None:
    pool: dict[object, object] = {}
    one, other = Context(NUMPY, True, pool), Context(NUMPY, True, pool)
    arrays = [
        one.keep("a", (3,), np.float32),
        one.keep("b", (3,), np.float32),
        one.keep("a", (2,), np.float32),
        other.keep("a", (3,), np.float32),
    ]
    arrays.append(one.scratch("a", (3,), np.float32))
    for place, array in enumerate(arrays):
        array[...] = place
    assert [array.tolist() for array in arrays] == [[place] * len(array) for place, array in enumerate(arrays)]


def test_steps_of_a_recurrence_keep_nothing_and_share_the_rest() -> None:
    whole, layout = Context(NUMPY, True), Layout(2, [3, 1])
    whole.layouts, whole.layout = [layout, None], layout
    step = StepContext.for_rows(whole, Layout(2))
    assert (step.training, step.layout, step.layouts) == (True, Layout(2), [Layout(2), None])
    assert np.shares_memory(whole.scratch("a", (3,), np.float32), step.scratch("a", (3,), np.float32))
    with pytest.raises(RuntimeError, match=r"forward keeps 'mask' for backward, .* by_rows = False"):
        step.keep("mask", (3,), np.float32)


@pytest.mark.parametrize("target", [(4, 2, 3), (4, 1, 3), (1, 1, 3), (3,), (2, 3), (1, 3), (2, 1), (), (1,), (1, 1, 1)])
def test_sums_over_what_was_broadcast(target: tuple[int, ...]) -> None:
    full = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    context, found = Context(NUMPY, False), np.full(target, np.nan, np.float32)
    padded = (1,) * (3 - len(target)) + target
    axes = tuple(axis for axis in range(3) if padded[axis] == 1)
    for scale in (1, 2):  # in the same arrays again
        np.multiply(np.arange(24, dtype=np.float32).reshape(4, 2, 3), scale, out=full)
        context.sum_to(full, found)
        assert_array_equal(found, full.sum(axis=axes, keepdims=True).reshape(target))
    elsewhere = np.zeros(target, np.float32)
    context.sum_to(full, elsewhere)
    assert_array_equal(elsewhere, found)


def test_index_arrays_are_where_the_host_has_them() -> None:
    context, layout = Context(NUMPY, False), Layout(2, [1, 2])
    assert context.index(layout, "order") is layout.order
    made = np.arange(3)
    assert context.brought(made) is made
