"""Chains of element-wise operators, block by block of rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.thresholds import thresholds
from cntk.core.extension.device import backend_named
from cntk.core.program.program import Program
from cntk.core.run.evaluate import feeds_for, program_for
from cntk.core.run.workspace import start

ROWS = np.random.default_rng(1).uniform(-2, 2, (7, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two rows of three numbers in a block, and no kernel that runs chains."""
    monkeypatch.setattr("cntk.core.program.passes.row_blocking.kernel_of", lambda backend: None)
    monkeypatch.setattr(thresholds, "blocks_of_rows", 1)
    monkeypatch.setattr(NumpyBackend, "block_bytes", 2 * 3 * 4)
    yield
    C.debugging.set_passes()


def chain(x: Any) -> Any:
    return C.tanh(C.sin(x * 2) + C.sigmoid(x)) * C.parameter(3, init=3)


def bound(f: Any, x: Any, training: bool = False) -> Any:
    """A binding of the function for the rows above."""
    wrt = [x] if training else []
    program = program_for(f, f.outputs, None, wrt, f.outputs if training else [], training)
    run = start(program, feeds_for(program, {x: ROWS}))
    run.close()
    return run.binding


def test_a_chain_runs_block_after_block() -> None:
    x = C.input_variable(3)
    steps = bound(chain(x), x).forward_steps
    names = [node.op_name for _, _, node, _, _ in steps]
    assert len(names) == 6 * 4
    assert names[:6] == names[6:12]
    assert [len(arguments[1]) for _, arguments, *_ in steps[::6]] == [2, 2, 2, 1]


def test_a_backend_may_want_no_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NumpyBackend, "block_bytes", None)
    x = C.input_variable(3)
    assert [len(arguments[1]) for _, arguments, *_ in bound(chain(x), x).forward_steps] == [len(ROWS)] * 6


def test_results_and_gradients_are_those_of_whole_arrays() -> None:
    x = C.input_variable(3, needs_gradient=True)
    f = chain(x)
    in_blocks = f.grad({x: ROWS}, wrt=[x, f.parameters[0]], outputs=[f.output])
    assert len(bound(f, x, training=True).backward_steps) > 4
    C.debugging.set_passes([])
    whole = f.grad({x: ROWS}, wrt=[x, f.parameters[0]], outputs=[f.output])
    np.testing.assert_array_equal(in_blocks[1], whole[1])
    for variable in (x, f.parameters[0]):
        np.testing.assert_allclose(in_blocks[0][variable], whole[0][variable], rtol=1e-6)


@pytest.mark.parametrize("large", [ROWS.nbytes, ROWS.nbytes + 1])
def test_small_arrays_are_gone_through_at_once(monkeypatch: pytest.MonkeyPatch, large: int) -> None:
    monkeypatch.setattr(thresholds, "blocks_of_rows", large)
    x = C.input_variable(3)
    assert len(bound(chain(x), x).forward_steps) == (6 * 4 if large == ROWS.nbytes else 6)


def test_two_operators_are_no_chain() -> None:
    x = C.input_variable(3)
    assert len(bound(C.exp(C.sin(x)), x).forward_steps) == 2


@pytest.mark.parametrize(
    "between",
    [lambda x: C.dropout(x, 0.5), lambda x: C.times(x, C.parameter((3, 3))), lambda x: C.reduce_sum(x, 0), lambda x: C.reshape(x, (3, 1))],
    ids=["dropout", "times", "reduce_sum", "reshape"],
)
def test_chains_end_at_operators_of_other_kinds(between: Any) -> None:
    x = C.input_variable(3)
    f = C.exp(C.sin(between(C.exp(C.sin(x)))))
    assert not any(instruction.chain for instruction in program_for(f, f.outputs, training=True).instructions)


def test_sequences_of_other_lengths_in_as_many_rows() -> None:
    x = C.sequence.input_variable(3)
    f = C.sequence.reduce_sum(chain(x))
    for cut in (3, 5, 3):
        found = f.eval({x: [ROWS[:cut], ROWS[cut:]]})
        sums = np.tanh(np.sin(2 * ROWS) + 1 / (1 + np.exp(-ROWS))) * 3
        np.testing.assert_allclose(found, [sums[:cut].sum(0), sums[cut:].sum(0)], rtol=1e-5)


def test_in_checked_mode_messages_tell_the_place_in_the_whole_array() -> None:
    x = C.input_variable(3)
    rows = ROWS.copy()
    rows[5, 1] = np.nan
    C.debugging.set_checked_mode(True)
    try:
        with pytest.raises(ValueError, match=r"first at index \(5, 1\)"):
            chain(x).eval({x: rows})
    finally:
        C.debugging.set_checked_mode(False)


def test_an_error_names_the_operator_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    x = C.input_variable(3)
    f = chain(x)

    def fail(*arguments: Any) -> None:
        raise FloatingPointError("broken")

    monkeypatch.setattr(type(C.sin(x).root_function.op), "forward", fail)
    with pytest.raises(Exception, match=r"(?s)Sin.*test_row_blocking\.py"):
        f.eval({x: ROWS})


def test_the_profiler_names_each_member(tmp_path: Path) -> None:
    x = C.input_variable(3)
    f = chain(x)
    C.debugging.start_profiler(str(tmp_path))
    C.debugging.enable_profiler()
    f.eval({x: ROWS})
    C.debugging.stop_profiler()
    (summary,) = tmp_path.glob("*_summary_.txt")
    assert all(name in summary.read_text() for name in ("Sin", "Tanh", "StableSigmoid"))


def test_what_a_chain_reads_keeps_its_memory_until_the_last_block() -> None:
    x = C.input_variable(3)
    first = C.times(x, C.parameter((3, 3), init=1))
    f = C.reduce_sum(C.relu(C.exp(C.sin(first)) + 1), 0)
    program = Program(f.outputs, backend_named("numpy"))
    chained = [time for time, instruction in enumerate(program.instructions) if instruction.chain]
    assert len(chained) == 4
    read = {program.slots[index].base for time in chained for index in program.instructions[time].inputs}
    assert all(program.slots[index].death >= chained[-1] for index in read if program.slots[index].kind == "computed")


def test_a_chain_does_not_reach_over_a_loop() -> None:
    x = C.sequence.input_variable(3, needs_gradient=True)
    first = C.sin(C.sin(x))
    states = C.layers.Recurrence(lambda s, x: C.tanh(s + x))(C.stop_gradient(x))
    f = C.reduce_sum(C.sequence.reduce_sum(C.sin(C.sin(first * C.sequence.is_first(states)))), 0)
    data = [ROWS[:4], ROWS[4:]]
    in_blocks = f.grad({x: data}, wrt=[x])
    C.debugging.set_passes([])
    for actual, expected in zip(in_blocks, f.grad({x: data}, wrt=[x]), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_chains_go_back_past_parts_of_a_gradient() -> None:
    x = C.input_variable(4, needs_gradient=True)
    whole = C.sin(x)
    parts = [C.sin(C.sin(C.sin(C.slice(whole, 0, i, i + 2)) * 2)) for i in (0, 2)]
    f = C.reduce_sum(C.sin(parts[0]) * C.tanh(parts[1]))
    data = ROWS[:, [0, 1, 2, 0]]
    in_blocks = f.grad({x: data}, wrt=[x])
    C.debugging.set_passes([])
    np.testing.assert_allclose(in_blocks, f.grad({x: data}, wrt=[x]), rtol=1e-6)
