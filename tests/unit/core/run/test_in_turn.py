"""Bound loops that follow one another: one call, the bits of single ones, and errors that name the operator at fault."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.program.chains import one_by_one
from cntk.core.run import profiling
from cntk.core.run.in_turn import InTurn

loops = pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
in_turn = pytest.importorskip("cntk.core.machine.in_turn")
if in_turn.assembly.why_not():
    pytest.skip(in_turn.assembly.why_not(), allow_module_level=True)

IMAGES = np.random.default_rng(0).standard_normal((3, 1, 20, 20)).astype(np.float32)


def network() -> C.Function:
    x = C.input_variable((1, 20, 20))
    layers = [
        C.layers.Convolution2D((3, 3), 16, activation=C.relu, pad=True, name="first"),
        C.layers.MaxPooling((2, 2), (2, 2)),
        C.layers.Convolution2D((3, 3), 16, activation=C.relu, name="second"),
        C.layers.Dense(64, activation=C.relu),
    ]
    return C.layers.Sequential(layers)(x)


def steps_of(bound: Any) -> list[Any]:
    return bound._run.binding.forward_steps


def joined(bound: Any) -> InTurn:
    (found,) = [step[0] for step in steps_of(bound) if isinstance(step[0], InTurn)]
    return found


@pytest.mark.usefixtures("three_threads")
def test_loops_are_called_at_once_and_give_the_bits_of_single_calls() -> None:
    f = network()
    bound = f.bind(IMAGES.shape)
    assert len(joined(bound)._steps) >= 4
    found = bound(IMAGES).copy()
    for number in (1, 3, 2):
        threads.set_max_threads(number)
        np.testing.assert_array_equal(bound(IMAGES), found)
    steps_of(bound)[:] = [*one_by_one(steps_of(bound))]
    assert not any(isinstance(step[0], InTurn) for step in steps_of(bound))
    np.testing.assert_array_equal(bound(IMAGES), found)
    np.testing.assert_array_equal(f.eval(IMAGES), found)


def test_the_profiler_sees_each_operator() -> None:
    bound = network().bind(IMAGES.shape)
    expected = sorted(step[2].uid for step in one_by_one(steps_of(bound)))
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        bound(IMAGES)
    finally:
        profiling.end(recorder)
    assert sorted({uid for uid, _ in recorder.tallies}) == sorted(set(expected))


def test_an_error_names_the_operator_whose_loop_has_failed() -> None:
    bound = network().bind(IMAGES.shape)
    call = joined(bound)
    step, native = call._natives[-1]
    native.row[0] = 1
    with pytest.raises(RuntimeError, match=f"{step[2].op_name}.*failed: out of memory"):
        bound(IMAGES)
    assert call.at_fault is step[2]
    assert np.isfinite(bound(IMAGES)).all()


def test_what_follows_a_failure_is_not_called() -> None:
    called: list[int] = []

    def native(number: int, fails: bool) -> Any:
        row = ctypes.create_string_buffer(8)

        def function(_: int) -> None:
            called.append(number)
            row[0] = bytes([fails])

        compiled = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(function)
        return loops.Native(lambda: (compiled, row), row, RuntimeError)

    natives = [native(0, False), native(1, True), native(2, False)]
    run = in_turn.in_turn(natives)
    assert [run(), run()] == [1, 1]
    assert called == [0, 1] * 2
    assert natives[1].row[0] == b"\0"
    assert in_turn.in_turn(natives[::2])() == -1
    assert called[4:] == [0, 2]
