"""Who computes what of a recurrence, and where blocks wait: as seldom as possible, and never too seldom."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

import numpy as np
import pytest
from standin.host_backend import array

from cntk.backends.cupy import recurrence_text
from cntk.backends.cupy.recurrence_grid import grid_for
from cntk.backends.recurrences import plan as plans
from cntk.backends.recurrences.operations import Formula, Operand, Operation, Product
from cntk.backends.recurrences.plan import Plan, Wait
from cntk.core.formulas.formula import operands, tanh


def rows(width: int, count: int = 6) -> Operand:
    """Rows of their own."""
    return of(array(np.zeros((count, width)), np.float32))


def of(data: Any, shift: int = 0) -> Operand:
    return Operand(data, data.data.ptr, data.strides[0] // data.itemsize, data.shape[1], shift)


def part(whole: Operand, first: int, width: int) -> Operand:
    """Columns of rows."""
    return of(whole.array[:, first : first + width])


def matrix(depth: int, width: int) -> Operand:
    data = array(np.zeros((depth, width)), np.float32)
    return Operand(data, data.data.ptr, 0, data.size)


def formula(z: Operand, *reads: Operand) -> Formula:
    symbols = operands(len(reads))
    return Formula(z, tanh(sum(symbols[1:], symbols[0])), dict(zip(symbols, reads, strict=True)))


def delay(z: Operand, x: Operand, back: int = 1) -> Formula:
    (symbol,) = operands(1)
    return Formula(z, symbol, {symbol: x._replace(shift=-back)}, -back)


def product(z: Operand, x: Operand) -> Product:
    return Product(z, x, matrix(x.width, z.width), x.width, z.width, 1)


def text_of(plan: Plan, passing: Set[int] = frozenset()) -> str:
    return recurrence_text.text(np.float32, plan, grid_for(plan, 4, 6, 132, 232448, True), passing)


def waits(*operations: Operation) -> list[Wait]:
    return [phase.wait for phase in Plan(operations).phases]


def test_a_cell_waits_once_for_the_grid() -> None:
    before, gates, h = rows(8), rows(32), rows(8)
    parts = [part(gates, 8 * i, 8) for i in range(4)]
    cell = delay(before, h), product(gates, before), formula(h, *parts)
    plan = Plan(cell)
    assert [phase.wait for phase in plan.phases] == [Wait.NOBODY, Wait.GRID, Wait.BLOCK]
    assert {member.unit for member in plan.members} == {8}


def test_a_product_of_a_product_waits_for_both() -> None:
    before, one, other, h = (rows(8) for _ in range(4))
    assert waits(delay(before, h), product(one, before), product(other, one), formula(h, other)) == [
        Wait.NOBODY,
        Wait.GRID,
        Wait.GRID,
        Wait.BLOCK,
    ]


def test_what_the_next_step_overwrites_has_been_read() -> None:
    h, x, total = rows(8), rows(8), rows(8)
    later = total._replace(shift=1)
    symbol, sum_of = operands(2)
    adds = Formula(later, sum_of + symbol, {sum_of: later, symbol: h}, 1)
    assert waits(product(h, total), adds, formula(x, total)) == [Wait.GRID, Wait.BLOCK]
    assert waits(formula(h, x), delay(x, h, 2), product(total, x))[-1] == Wait.GRID


def test_columns_that_do_not_line_up_wait_for_the_grid() -> None:
    whole, z = rows(40), rows(20)
    assert waits(formula(whole, rows(40)), formula(z, part(whole, 20, 20))) == [Wait.NOBODY]
    assert waits(formula(whole, rows(40)), formula(z, part(whole, 13, 20))) == [Wait.NOBODY, Wait.GRID]
    assert waits(formula(rows(37), rows(37)), formula(rows(20), rows(20))) == [Wait.NOBODY, Wait.NOBODY]
    assert Plan((formula(rows(37), rows(37)), formula(rows(20), rows(20)))).members[1].unit == 20


def test_numbers_of_rows_are_read_by_all() -> None:
    number, z = rows(1), rows(40)
    assert waits(formula(number, rows(1)), formula(z, rows(40), number)) == [Wait.NOBODY, Wait.GRID]


def test_a_step_after_the_next_needs_no_more_than_one_barrier() -> None:
    h, earlier, z, x = (rows(8) for _ in range(4))
    number = of(h.array[:, 3:4], -2)  # columns of others, two steps ago
    assert waits(formula(z, x, number), product(h, z), formula(earlier, h)) == [Wait.NOBODY, Wait.GRID, Wait.BLOCK]


def test_a_barrier_behind_what_is_written_serves_the_next_step_too() -> None:
    h, z, w, x = (rows(8) for _ in range(4))
    number = of(h.array[:, 3:4], -1)  # columns of others, a step ago
    assert waits(formula(z, x, number), formula(h, x), product(w, h)) == [Wait.NOBODY, Wait.GRID]
    assert waits(formula(z, x, number), product(w, x), formula(h, x)) == [Wait.GRID, Wait.NOBODY, Wait.NOBODY]


def test_overlapping_memory_has_no_plan() -> None:
    memory = array(np.zeros(100), np.float32)
    wide, narrow = memory[:60].reshape(6, 10), memory[30:60].reshape(6, 5)
    assert plans.of([formula(of(wide), rows(10)), formula(of(narrow), rows(5))]) is None
    z = rows(8)
    assert plans.of([product(z, z)]) is None
    shifted = rows(16)
    assert plans.of([formula(part(shifted, 0, 8), part(shifted, 4, 8))]) is None


def test_more_memories_than_arguments_have_no_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [formula(rows(2), rows(2)) for _ in range(3)]
    assert plans.of(many) is not None
    monkeypatch.setattr(plans, "MOST_MEMORIES", 5)
    assert plans.of(many) is None


def test_texts_do_not_depend_on_a_minibatch_or_on_where_its_memory_is() -> None:
    def text(*numbers: int) -> str:
        memory = array(np.zeros(4000), np.float32)
        before, gates, h = (of(memory[1000 * number :][:160].reshape(20, 8)) for number in numbers)
        return text_of(Plan((delay(before, h), product(gates, before), formula(h, gates))))

    assert text(0, 1, 2) == text(2, 0, 1)


def test_what_registers_hold_is_not_written() -> None:
    x, y, z, w = (rows(8) for _ in range(4))
    plan = Plan((formula(y, x), formula(z, y), product(w, z)))
    memory = {name: one.target.memory for name, one in zip("yzw", plan.members, strict=True)}
    passing = plan.within([y.array, z.array])
    assert passing == {memory["y"], memory["z"]}
    text = text_of(plan, passing)
    assert f"store(x{memory['y']}[" not in text
    assert f"store(x{memory['z']}[" in text


def test_memories_reach_from_the_first_columns_to_the_last() -> None:
    whole, z = rows(20), rows(8)
    plan = Plan((formula(z, part(whole, 4, 8)), formula(rows(8), part(whole, 12, 8))))
    memory = plan.memories[plan.members[0].reads[0].memory]
    assert plan.members[1].reads[0].memory == plan.members[0].reads[0].memory
    assert memory.address == memory.array.data.ptr == whole.address + 4 * whole.itemsize
    assert memory.size == 5 * 20 + 16
    assert [columns.offset for member in plan.members for columns in member.reads] == [0, 8]
