"""Recurrences in one compiled call: the same numbers as step by step, whatever the number of threads and what else is in a minibatch."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common import threads
from cntk.core.common.thresholds import thresholds
from cntk.core.run import profiling
from cntk.core.run.evaluate import set_checked_mode
from cntk.layers import GRU, LSTM, Recurrence, RNNStep
from cntk.testing import assert_close

pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
recurrence = pytest.importorskip("cntk.backends.fused.recurrence")
pytestmark = pytest.mark.usefixtures("three_threads")

Model = Callable[[Any], Any]
LENGTHS = (4, 1, 9, 2, 9, 3, 5)
NEVER = 2**62
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tapes for small recurrences too."""
    monkeypatch.setattr(thresholds, "recurrence_compiled", 0)
    monkeypatch.setattr(thresholds, "elements_shared", 1)


@pytest.fixture
def taped(note: Callable[..., list[Any]]) -> list[Any]:
    """What has been put on tapes."""
    return note(recurrence, "Taped")


def sequences(width: int, dtype: Any = np.float32, lengths: tuple[int, ...] = LENGTHS) -> list[Any]:
    random = np.random.default_rng(5)
    return [random.standard_normal((length, width)).astype(dtype) for length in lengths]


def looped(step: Model, **delay: Any) -> Any:
    """The recurrence h = step(h'), with h' the value a step before."""
    before = C.placeholder()
    h = step(C.sequence.delay(before, **delay))
    return h.replace_placeholders({before: h.output})


def attending(x: Any) -> Any:
    R, S = (C.parameter((3, 3), init=C.glorot_uniform()) for _ in range(2))
    return looped(lambda h: C.tanh(x + C.times(C.softmax(C.times(h, R)), S)))


def delayed(steps: int) -> Model:
    def gated(x: Any, R: Any, first: int) -> Any:
        return looped(lambda h: C.sigmoid(x - C.slice(C.times(h, R), 0, first, first + 3)), time_step=steps)

    def model(x: Any) -> Any:
        R = C.parameter((3, 4), init=C.glorot_uniform())
        return gated(x, R, 0) * gated(x, R, 1)

    return model


def spliced(x: Any) -> Any:
    R, b = C.parameter((6, 3), init=C.glorot_uniform()), C.parameter((), init=0.3)
    return looped(lambda h: C.relu(0.5 - C.times(C.splice(h - b, b - x), R)), initial_state=C.parameter(3, init=0.1))


MODELS: dict[str, Model] = {
    "plain": lambda x: Recurrence(RNNStep(5, activation=C.relu))(x),
    "LSTM": lambda x: Recurrence(LSTM(37))(x),
    "LSTM with everything": lambda x: Recurrence(LSTM(5, cell_shape=6, use_peepholes=True, enable_self_stabilization=True))(x),
    "GRU": lambda x: Recurrence(GRU(5))(x),
    "GRU backwards": lambda x: Recurrence(GRU(5), go_backwards=True)(x),
    "transposed": lambda x: looped(lambda h: C.tanh(x + C.times_transpose(h, C.parameter((3, 3), init=C.glorot_uniform())))),
    "two steps back": delayed(2),
    "three steps ahead": delayed(-3),
    "what tapes cannot do between": attending,
    "side by side": spliced,
}


def gradients(model: Model, data: list[Any], dtype: Any) -> tuple[Any, dict[str, Any]]:
    """The sum of squares of a model's values, and its gradients."""
    C.cntk_py.set_fixed_random_seed(3)
    with C.default_options(dtype=dtype):
        x = C.sequence.input_variable(3, dtype=dtype, needs_gradient=True, name="x")
        h = model(x)
        loss = C.sequence.reduce_sum(C.reduce_sum(h * h))
    found, value = loss.grad({x: data}, wrt=[x, *loss.parameters], outputs=[loss.output])
    named = {f"{i} {v.name}": found[v] for i, v in enumerate((x, *loss.parameters))}
    return value, {name: np.concatenate(g) if isinstance(g, list) else g for name, g in named.items()}


@both_types
@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_operators(name: str, dtype: Any, monkeypatch: pytest.MonkeyPatch, taped: list[Any]) -> None:
    value, found = gradients(MODELS[name], sequences(3, dtype), dtype)
    assert taped
    monkeypatch.setattr(thresholds, "recurrence_compiled", NEVER)
    right, expected = gradients(MODELS[name], sequences(3, dtype), dtype)
    assert_close(value, right, name)
    assert found.keys() == expected.keys()
    for variable, gradient in found.items():
        assert_close(gradient, expected[variable], f"{name}: {variable}")


@pytest.mark.parametrize("name", ["LSTM", "GRU", "GRU backwards"])
def test_loops_of_cells_are_on_one_tape(name: str, taped: list[Any]) -> None:
    gradients(MODELS[name], sequences(3), np.float32)
    assert len(taped) == 2  # one for each direction


def test_what_tapes_cannot_do_stays_between_them(taped: list[Any]) -> None:
    gradients(attending, sequences(3), np.float32)
    done = [call.instruction.op.op_name for part in taped for call in part.calls]
    assert {"Times", "Tanh", "Plus", "PastValue"} <= set(done)
    assert "Softmax" not in done


@both_types
def test_numbers_do_not_depend_on_threads_or_company(dtype: Any) -> None:
    random = np.random.default_rng(1)
    x = C.sequence.input_variable(50, dtype=dtype)
    R = C.parameter((50, 50), init=(0.2 * random.standard_normal((50, 50))).astype(dtype))
    h = looped(lambda h: C.tanh(x + C.times(h, R)))
    data = sequences(50, dtype, (7, 3, 9, 9, 1, 30, 2, 8, 8, 8, 11, 4, 5))
    together = h.eval({x: data})
    threads.set_max_threads(1)
    alone = h.eval({x: data})
    for row, sequence in enumerate(data):
        np.testing.assert_array_equal(together[row], alone[row])
        np.testing.assert_array_equal(together[row], h.eval({x: [sequence]})[0])
    back = h.eval({x: data[::-1]})[::-1]
    np.testing.assert_array_equal(np.concatenate(together), np.concatenate(back))


@pytest.mark.parametrize("lengths", [(9,), (7, 3), (5, 4, 4, 1)])
def test_threads_share_the_products_of_few_sequences(lengths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    x = C.sequence.input_variable(5)
    f, data = Recurrence(LSTM(70))(x), {x: sequences(5, lengths=lengths)}
    found = []
    for number, least in ((1, 0), (3, 0), (3, NEVER)):
        threads.set_max_threads(number)
        monkeypatch.setattr(thresholds, "product_row_shared", least)
        found.append(f.eval(data))
        f = f.clone("share")
        x = f.arguments[0]
        data = {x: next(iter(data.values()))}
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(one, other)


def test_evaluation_packs_matrices_once_and_training_in_each_run(monkeypatch: pytest.MonkeyPatch) -> None:
    tape = pytest.importorskip("cntk.backends.fused.tape")
    packed: list[Any] = []
    monkeypatch.setattr(tape, "blocks_of", lambda matrix, address, made=tape.blocks_of: packed.append(matrix) or made(matrix, address))
    x = C.sequence.input_variable(5)
    f = Recurrence(RNNStep(6))(x)
    for lengths in (LENGTHS, LENGTHS, (3, 2)):
        f.eval({x: sequences(5, lengths=lengths)})
    assert len(packed) == 1
    one = next(p for p in f.parameters if p.shape == (6, 6))
    before = f.eval({x: sequences(5)})
    one.value = 2 * one.value
    after = f.eval({x: sequences(5)})
    assert len(packed) == 2
    assert not np.array_equal(before[0], after[0])
    anew = f.clone("share")
    np.testing.assert_array_equal(after[0], anew.eval({anew.arguments[0]: sequences(5)})[0])
    f.grad({x: sequences(5)}, wrt=[one])
    assert len(packed) > 3


def test_repeated_calls_follow_threads_and_parameters() -> None:
    x = C.sequence.input_variable(3)
    h = Recurrence(LSTM(37))(x)
    data = np.random.default_rng(6).standard_normal((13, 4, 3)).astype(np.float32)
    bound, before = h.bind((13, 4, 3)), threads.max_threads()
    expected = np.array(h.eval({x: data}))
    try:
        for number in (before, 1, 2):
            threads.set_max_threads(number)
            for _ in range(2):
                np.testing.assert_array_equal(bound(data), expected)
    finally:
        threads.set_max_threads(before)
    h.H.value = 2 * h.H.value
    np.testing.assert_array_equal(bound(data), h.eval({x: data}))
    assert (np.array(bound(data)) != expected).any()


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
    value, found = gradients(MODELS["GRU"], sequences(3), np.float32)
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        timed, same = gradients(MODELS["GRU"], sequences(3), np.float32)
    finally:
        profiling.end(recorder)
    np.testing.assert_array_equal(timed, value)
    for name, gradient in found.items():
        np.testing.assert_array_equal(gradient, same[name])
    named = {uid.rstrip("0123456789") for uid, direction in recorder.tallies if direction == profiling.BACKWARD}
    assert {"Times", "StableSigmoid", "Tanh", "ElementTimes", "PastValue"} <= named


def test_checked_mode_changes_no_number() -> None:
    value, _ = gradients(MODELS["GRU"], sequences(3), np.float32)
    set_checked_mode(True)
    try:
        checked, _ = gradients(MODELS["GRU"], sequences(3), np.float32)
    finally:
        set_checked_mode(False)
    np.testing.assert_array_equal(checked, value)


def test_checked_mode_names_the_operator() -> None:
    x = C.sequence.input_variable(3)
    h = looped(lambda h: C.tanh(x) * C.times(h, C.parameter((3, 3), init=C.glorot_uniform())), initial_state=np.inf)
    set_checked_mode(True)
    try:
        with pytest.raises(ValueError, match=r"Times.* produced NaN"):
            h.eval({x: sequences(3)})
    finally:
        set_checked_mode(False)


def test_a_subclass_computes_itself(taped: list[Any]) -> None:
    class Twice(type(C.tanh(C.placeholder()).root_function.op)):  # type: ignore[misc]
        def forward(self, ctx: Any, y: Any, x: Any) -> None:
            super().forward(ctx, y, x)
            y *= 2

    x = C.sequence.input_variable(3)
    h = looped(lambda h: Twice()(C.times(h, C.constant(np.eye(3, dtype=np.float32))) + x))
    assert_close(h.eval({x: [np.ones((1, 3), np.float32)]})[0], np.full((1, 3), 2 * np.tanh(1), np.float32))
    assert taped


def test_without_loops_operators_compute(monkeypatch: pytest.MonkeyPatch, taped: list[Any]) -> None:
    monkeypatch.setattr(recurrence, "are_usable", lambda: False)
    gradients(MODELS["GRU"], sequences(3), np.float32)
    assert not taped


def test_small_recurrences_do_without_numba() -> None:
    program = (
        "import sys, numpy as np, cntk as C\n"
        "x = C.sequence.input_variable(3)\n"
        "h = C.layers.Recurrence(C.layers.LSTM(5))(x)\n"
        "h.eval({x: [np.ones((10, 3), np.float32)] * 8})\n"
        "assert 'llvmlite' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
