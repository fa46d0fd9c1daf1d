"""Recurrences as one launch for each direction: the numbers of the backend ``numpy``, whatever the grid and what else is in a minibatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from recurrent_models import LENGTHS, MODELS, attending, compare, gradients, looped, sequences, weights
from shares import ALL
from standin import host_backend, nvrtc

import cntk as C
from cntk.backends.cupy import compiler, recurrence
from cntk.backends.cupy.compiler import OPTIONS
from cntk.backends.cupy.recurrence_grid import Room
from cntk.backends.recurrences.plan import Plan
from cntk.core.extension import plugins
from cntk.core.extension.device import cpu, default_device
from cntk.core.extension.hookspecs import hookimpl
from cntk.core.run import profiling
from cntk.core.run.evaluate import set_checked_mode
from cntk.layers import GRU, LSTM, Recurrence, RNNStep
from cntk.testing import assert_close

pytestmark = pytest.mark.usefixtures("host_gpu")

MEMORY = 232448
"""Bytes of shared memory of a block, as an H100 has them."""

MOST_REGISTERS = 255
"""What a thread may have at most: one block on a multiprocessor is all that is wanted."""

SIZES = [(width, dtype) for width in (1, 7, 33, 130) for dtype in (C.bfloat16, np.float16, np.float32, np.float64)]
"""Widths of cells, and their types."""


@pytest.fixture
def persistent(note: Callable[..., list[Any]]) -> list[Any]:
    """What has been put into one kernel."""
    return note(recurrence, "RepeatablePersistent")


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The grids that recurrences have been launched with."""
    grids: list[Any] = []
    bound = compiler.Kernel.bound

    def noted(kernel: Any, grid: Any, *given: Any, **options: Any) -> Any:
        if kernel.name == "recurrence":
            grids.append(grid)
        return bound(kernel, grid, *given, **options)

    monkeypatch.setattr(compiler.Kernel, "bound", noted)
    return grids


def launch_with(monkeypatch: pytest.MonkeyPatch, blocks: int, groups: int, rows: int, memory: int = MEMORY) -> None:
    """Have recurrences launched with so many blocks, no more than there are units."""

    def grid(plan: Plan, size: int, *_: Any) -> Any:
        room = Room(plan, size, memory)
        return room.grid(min(blocks, room.most_blocks), groups, rows)

    monkeypatch.setattr(recurrence, "grid_for", grid)


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_operators(name: str, persistent: list[Any]) -> None:
    compare(MODELS[name], sequences(3), np.float32)
    assert persistent


@pytest.mark.parametrize("name", MODELS)
def test_a_block_for_each_column_finds_what_others_have_written(name: str, launched: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    launch_with(monkeypatch, 64, 1, 4)
    compare(MODELS[name], sequences(3), np.float32)
    assert any(blocks > 1 for blocks, _ in launched)


@pytest.mark.parametrize(("width", "dtype"), [case for case in SIZES if ALL or case[0] == 33 or case[1] is np.float32])
@pytest.mark.parametrize("cell", [LSTM, GRU, RNNStep], ids=lambda cell: cell.__name__)
def test_cells_of_all_sizes_and_types_are_one_launch_in_each_direction(
    cell: Any, width: int, dtype: Any, launched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    launch_with(monkeypatch, 3, 1, 8)
    compare(lambda x: Recurrence(cell(width))(x), sequences(3, dtype), dtype)
    assert launched == [(min(width, 3), 1)] * 2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize(("width", "rows", "memory"), [(130, 4, 64 << 10), (90, 2, 48 << 10)])
def test_blocks_without_room_for_matrices_bring_them_in_every_step(
    width: int, rows: int, memory: int, dtype: Any, on_host: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def model(x: Any) -> Any:
        return Recurrence(LSTM(width))(x)

    launch_with(monkeypatch, 4, 1, 8)
    held = gradients(model, sequences(3, dtype), dtype)
    launch_with(monkeypatch, 3, 2, rows, memory)
    compare(model, sequences(3, dtype), dtype)
    for name, one in gradients(model, sequences(3, dtype), dtype).items():
        np.testing.assert_array_equal(one, held[name])
    assert ["#define HOLDS 1" in text for text in on_host if "recurrence(" in text] == [True, True, False, False]


@pytest.mark.parametrize(("cell", "waits"), [(LSTM, 1), (GRU, 2), (RNNStep, 1)])
def test_blocks_wait_for_each_other_as_often_as_products_follow_one_another(cell: Any, waits: int, on_host: list[str]) -> None:
    gradients(lambda x: Recurrence(cell(20))(x), sequences(3), np.float32)
    assert [text.count("barrier.wait();") for text in on_host if "recurrence(" in text] == [waits, waits]


@pytest.mark.parametrize(("owner", "name"), [(recurrence, "MOST_MULTIPLICATIONS"), (host_backend.HostBackend, "blocks_together")])
def test_large_steps_and_drivers_that_do_not_launch_it_do_without(
    owner: Any, name: str, launched: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, name, 0)
    compare(MODELS["LSTM"], sequences(3), np.float32)
    assert launched == []


def test_what_the_kernel_cannot_do_stays_between(persistent: list[Any]) -> None:
    gradients(attending, sequences(3), np.float32)
    done = {call.instruction.op.op_name for part in persistent for call in part.calls}
    assert {"Times", "Tanh", "Plus", "PastValue"} <= done
    assert "Softmax" not in done


def test_numbers_do_not_depend_on_the_grid_or_company(monkeypatch: pytest.MonkeyPatch, launched: list[Any]) -> None:
    data = sequences(3, np.float32, (7, 3, 9, 9, 1, 30, 2, 8, 8, 8, 11, 4, 5) * 11)
    whole = evaluated(data)
    for blocks, groups, rows in ((2, 3, 4), (33, 1, 32), (4, 5, 8)):
        launch_with(monkeypatch, blocks, groups, rows)
        for one, other in zip(evaluated(data), whole, strict=True):
            np.testing.assert_array_equal(one, other)
    assert launched[1:] == [(2, 3), (33, 1), (4, 5)]
    alone = [evaluated([data[number]])[0] for number in (0, 5, 140)]
    for number, one in zip((0, 5, 140), alone, strict=True):
        np.testing.assert_array_equal(one, whole[number])


def evaluated(data: list[Any]) -> list[Any]:
    found: list[Any] = of_seed().eval(data)
    return found


def of_seed() -> Any:
    """A recurrence with the same weights each time."""
    C.cntk_py.set_fixed_random_seed(3)
    return Recurrence(GRU(33))(C.sequence.input_variable(3))


def test_one_kernel_serves_minibatches_of_other_lengths(persistent: list[Any], launched: list[Any]) -> None:
    batches = [sequences(3, np.float32, lengths) for lengths in ((7, 1, 9, 2, 9, 3, 5), LENGTHS, (9, 9, 9, 7), (33,))]
    h = of_seed()
    found = [h.eval(batch) for batch in batches]
    assert len(launched) == len(batches)
    assert len(persistent) == 1
    with default_device(cpu()):
        h = of_seed()
        expected = [h.eval(batch) for batch in batches]
    for ones, others in zip(found, expected, strict=True):
        for one, other in zip(ones, others, strict=True):
            assert_close(one, other)


def test_attributes_are_those_of_the_time(persistent: list[Any]) -> None:
    x = C.sequence.input_variable(3)
    h = looped(lambda h: C.leaky_relu(C.times(h, C.constant(np.eye(3, dtype=np.float32))) - x, 0.5))
    data = [np.ones((2, 3), np.float32)]
    assert_close(h.eval({x: data})[0], np.float32([[-0.5] * 3, [-0.75] * 3]))
    (of,) = {call.instruction.op for call in persistent[0].calls if call.instruction.op.op_name == "LeakyReLU"}
    of.alpha = 0.25
    assert_close(h.eval({x: data})[0], np.float32([[-0.25] * 3, [-0.3125] * 3]))


def test_sequences_go_on_in_the_next_minibatch() -> None:
    x = C.sequence.input_variable(3)
    h = MODELS["LSTM"](x)
    whole = sequences(3, np.float32, (8, 8))
    at_once = h.eval({x: whole})
    first = h.eval({x: ([s[:5] for s in whole], [True, True])})
    then = h.eval({x: ([s[5:] for s in whole], [False, False])})
    for a, b, right in zip(first, then, at_once, strict=True):
        assert_close(np.concatenate([a, b]), right)


def test_taking_the_time_names_operators_and_changes_no_number() -> None:
    found = gradients(MODELS["GRU backwards"], sequences(3), np.float32)
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        timed = gradients(MODELS["GRU backwards"], sequences(3), np.float32)
    finally:
        profiling.end(recorder)
    for name, one in found.items():
        np.testing.assert_array_equal(timed[name], one)
    named = {uid.rstrip("0123456789") for uid, direction in recorder.tallies if direction == profiling.BACKWARD}
    assert {"Times", "StableSigmoid", "Tanh", "ElementTimes", "FutureValue"} <= named


def test_checked_mode_changes_no_number_and_names_the_operator() -> None:
    found = gradients(MODELS["GRU"], sequences(3), np.float32)
    x = C.sequence.input_variable(3)
    h = looped(lambda h: C.tanh(x) * C.times(h, weights(3, 3)), initial_state=np.inf)
    set_checked_mode(True)
    try:
        checked = gradients(MODELS["GRU"], sequences(3), np.float32)
        with pytest.raises(ValueError, match=r"Times.* produced NaN"):
            h.eval({x: sequences(3)})
    finally:
        set_checked_mode(False)
    assert_close(checked["value"], found["value"])


def test_a_subclass_computes_itself(persistent: list[Any]) -> None:
    class Twice(type(C.tanh(C.placeholder()).root_function.op)):  # type: ignore[misc]
        def forward(self, ctx: Any, y: Any, x: Any) -> None:
            super().forward(ctx, y, x)
            y *= 2

    x = C.sequence.input_variable(3)
    h = looped(lambda h: Twice()(C.times(h, C.constant(np.eye(3, dtype=np.float32))) + x))
    assert_close(h.eval({x: [np.ones((1, 3), np.float32)]})[0], np.full((1, 3), 2 * np.tanh(1), np.float32))
    assert persistent


def test_kernels_of_operators_are_not_passed_over(persistent: list[Any]) -> None:
    class Twice:
        @staticmethod
        def forward(op: Any, ctx: Any, out: Any, x: Any) -> None:
            np.multiply(np.tanh(x), 2, out=out)

        @staticmethod
        def backward(op: Any, ctx: Any, grad: Any, grads: Any, out: Any, x: Any) -> None:
            raise NotImplementedError

    class Plugin:
        @hookimpl
        def cntk_register_kernels(self, register: Any) -> None:
            register("cntk.plugins.ops.activation:Tanh", host_backend.HostBackend.name, Twice)

    plugins.register_plugin(Plugin(), "twice")
    try:
        x = C.sequence.input_variable(3)
        h = looped(lambda h: C.tanh(C.times(h, C.constant(np.eye(3, dtype=np.float32)))) + x)
        assert_close(h.eval({x: [np.ones((2, 3), np.float32)]})[0], np.float32([[1] * 3, [1 + 2 * np.tanh(1)] * 3]))
    finally:
        plugins.unregister_plugin("twice")
    assert persistent


@pytest.mark.slow
@pytest.mark.skipif(bool(nvrtc.unavailable()), reason=nvrtc.unavailable())
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("name", ["LSTM", "GRU", "LSTM with everything", "two delays", "side by side"])
def test_no_kernel_spills(name: str, dtype: Any, on_host: list[str]) -> None:
    gradients(MODELS[name], sequences(3, dtype, (2, 1)), dtype)
    texts = [text for text in on_host if "recurrence(" in text]
    assert texts
    for report in (one for text in texts for one in nvrtc.reports(text, OPTIONS)):
        assert report.spills == 0, report.text
        assert 0 < report.registers <= MOST_REGISTERS, report.text
