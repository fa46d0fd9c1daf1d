"""Recurrences as one launch for each direction under Numba's simulator: the numbers of the backend ``numpy``, whatever else is in a
minibatch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from recurrent_models import MODELS, attending, compare, gradients, looped, sequences, weights
from simulated import on_the_simulator

import cntk as C
from cntk.backends.recurrences import persistent as persistence
from cntk.core.extension.device import default_device, device
from cntk.core.run import profiling
from cntk.layers import GRU, LSTM, Recurrence, RNNStep
from cntk.testing import assert_close

pytestmark = on_the_simulator

SHORT = (3, 1, 5, 2, 2)
"""Lengths of sequences, more than a block takes."""


@pytest.fixture
def persistent(note: Callable[..., list[Any]]) -> list[Any]:
    """What has been put into one kernel."""
    return note(persistence, "Persistent")


def of_seed(cell: Any, width: int) -> Any:
    """A recurrence with the same weights each time."""
    C.cntk_py.set_fixed_random_seed(3)
    return Recurrence(cell(width))(C.sequence.input_variable(3))


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_operators(name: str, persistent: list[Any]) -> None:
    compare(MODELS[name], sequences(3, np.float32, SHORT), np.float32)
    assert persistent


@pytest.mark.parametrize("cell", [LSTM, GRU, RNNStep], ids=lambda cell: cell.__name__)
def test_cells_of_doubles_are_one_launch_in_each_direction(cell: Any, persistent: list[Any]) -> None:
    compare(lambda x: Recurrence(cell(7))(x), sequences(3, np.float64, SHORT), np.float64)
    assert len(persistent) == 2


def test_long_sums_are_added_in_pieces(persistent: list[Any]) -> None:
    compare(lambda x: Recurrence(RNNStep(70))(x), sequences(3, np.float32, (2, 1)), np.float32)
    assert persistent


def test_float16_runs_step_by_step(persistent: list[Any]) -> None:
    compare(MODELS["plain"], sequences(3, np.float16, SHORT), np.float16)
    assert persistent == []


def test_large_steps_run_step_by_step(persistent: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from cntk.backends.numba_cuda import recurrence

    monkeypatch.setattr(recurrence, "MOST_MULTIPLICATIONS", recurrence.SEQUENCES_AT_ONCE * 4 * 5 * 5 - 1)
    compare(lambda x: Recurrence(LSTM(5))(x), sequences(3, np.float32, SHORT), np.float32)
    assert persistent == []
    monkeypatch.setattr(recurrence, "MOST_MULTIPLICATIONS", recurrence.SEQUENCES_AT_ONCE * 4 * 5 * 5)
    compare(lambda x: Recurrence(LSTM(5))(x), sequences(3, np.float32, SHORT), np.float32)
    assert len(persistent) == 2


def test_what_the_kernel_cannot_do_stays_between(persistent: list[Any]) -> None:
    gradients(attending, sequences(3, np.float32, SHORT), np.float32)
    done = {call.instruction.op.op_name for part in persistent for call in part.calls}
    assert {"Times", "Tanh", "Plus", "PastValue"} <= done
    assert "Softmax" not in done


def test_numbers_do_not_depend_on_company() -> None:
    data = sequences(3, np.float32, (2, 3, 1, 4, 2, 2, 3, 5, 1, 2))
    several = of_seed(GRU, 9).eval(data)
    for number in (0, 5, 7):
        np.testing.assert_array_equal(of_seed(GRU, 9).eval([data[number]])[0], several[number])


def test_one_kernel_serves_minibatches_of_other_lengths(persistent: list[Any]) -> None:
    batches = [sequences(3, np.float32, lengths) for lengths in ((6, 6, 6), (5, 6, 6), (9, 8), (18,))]
    h = of_seed(LSTM, 4)
    found = [h.eval(batch) for batch in batches]
    assert len(persistent) == 1
    with default_device(device("numpy")):
        h = of_seed(LSTM, 4)
        expected = [h.eval(batch) for batch in batches]
    for ones, others in zip(found, expected, strict=True):
        for one, other in zip(ones, others, strict=True):
            assert_close(one, other)


def test_parameters_are_those_of_the_time(persistent: list[Any]) -> None:
    """Matrices that are read by columns are copied for each run."""
    data = sequences(3, np.float32, SHORT)

    def losses() -> list[float]:
        C.cntk_py.set_fixed_random_seed(3)
        x = C.sequence.input_variable(3)
        loss = C.sequence.reduce_sum(C.reduce_sum(C.square(Recurrence(LSTM(5))(x))))
        trainer = C.Trainer(loss, loss, [C.sgd(loss.parameters, C.learning_parameter_schedule_per_sample(0.1))])
        found = []
        for _ in range(3):
            trainer.train_minibatch({x: data})
            found.append(trainer.previous_minibatch_loss_average)
        return found

    found = losses()
    assert len(persistent) == 2
    with default_device(device("numpy")):
        np.testing.assert_allclose(found, losses(), rtol=1e-5)


def test_attributes_are_those_of_the_time(persistent: list[Any]) -> None:
    x = C.sequence.input_variable(3)
    h = looped(lambda h: C.leaky_relu(C.times(h, C.constant(np.eye(3, dtype=np.float32))) - x, 0.5))
    data = [np.ones((2, 3), np.float32)]
    assert_close(h.eval({x: data})[0], np.float32([[-0.5] * 3, [-0.75] * 3]))
    (of,) = {call.instruction.op for call in persistent[0].calls if call.instruction.op.op_name == "LeakyReLU"}
    of.alpha = 0.25
    assert_close(h.eval({x: data})[0], np.float32([[-0.25] * 3, [-0.3125] * 3]))


def test_taking_the_time_names_operators_and_changes_no_number() -> None:
    found = gradients(MODELS["GRU backwards"], sequences(3, np.float32, (3, 1)), np.float32)
    recorder = profiling.Recorder()
    profiling.begin(recorder)
    try:
        timed = gradients(MODELS["GRU backwards"], sequences(3, np.float32, (3, 1)), np.float32)
    finally:
        profiling.end(recorder)
    for name, one in found.items():
        np.testing.assert_array_equal(timed[name], one)
    named = {uid.rstrip("0123456789") for uid, direction in recorder.tallies if direction == profiling.BACKWARD}
    assert {"Times", "StableSigmoid", "Tanh", "ElementTimes", "FutureValue"} <= named


def test_infinite_and_missing_numbers_make_no_warning() -> None:
    x = C.sequence.input_variable(3)
    h = looped(lambda h: C.exp(C.times(h, weights(3, 3)) + x), initial_state=np.inf)
    assert not np.isfinite(h.eval({x: sequences(3, np.float32, (2,))})[0]).all()


def test_kernels_are_bound_once() -> None:
    from cntk.backends.numba_cuda.compiler import Launch

    h, data = of_seed(LSTM, 4), sequences(3, np.float32, (2, 1))
    with mock.patch.object(Launch, "__call__", autospec=True) as launched:
        for _ in range(3):
            h.eval(data)
    assert launched.call_count == 3
    assert len({id(call.args[0]) for call in launched.call_args_list}) == 1
