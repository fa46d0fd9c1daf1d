"""Recordings: what a backend with a queue is handed once, and repeats."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension import device as devices
from cntk.core.extension import plugins
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.core.run.recorded import WARM_UPS
from cntk.extend import Elementwise


class QueueBackend(NumpyBackend):
    """NumPy's arrays; what is recorded is kept as calls, which are made again, and numbers are fetched when somebody asks."""

    name = "queue"
    recorded = 0
    repeated = 0
    fetched = 0
    refuses = False

    def later(self, *numbers: Any) -> Callable[[], list[float]]:
        values = list(map(float, numbers))

        def fetch() -> list[float]:
            type(self).fetched += len(values)
            return values

        return fetch

    def record(self, calls: Callable[[], None]) -> Callable[[], None] | None:
        if self.refuses:
            return None
        type(self).recorded += 1

        def repeat() -> None:
            type(self).repeated += 1
            calls()

        return repeat


@pytest.fixture
def queue() -> Iterator[Any]:
    """A device of that backend."""

    class Plugin:
        @hookimpl
        def cntk_register_backends(self, register: Register) -> None:
            register("queue", QueueBackend)

    plugins.register_plugin(Plugin(), "queue")
    QueueBackend.recorded = QueueBackend.repeated = QueueBackend.fetched = 0
    QueueBackend.refuses = False
    before = C.device.use_default_device()
    devices.always_allow_setting_default_device()
    assert C.device.try_set_default_device(C.device.device("queue"))
    yield C.device.device("queue")
    C.device.try_set_default_device(before)
    plugins.unregister_plugin("queue")
    for key in [key for key in devices._instances if key[0] is QueueBackend]:
        del devices._instances[key]


def trainer_of(seed: int = 3) -> tuple[Any, Any, Any]:
    C.cntk_py.set_fixed_random_seed(seed)
    x, y = C.input_variable(5), C.input_variable(3)
    z = C.layers.Dense(3)(C.tanh(C.layers.Dense(4)(x) * 2))
    loss = C.squared_error(C.sigmoid(z) + 1, y)
    return C.Trainer(z, (loss, loss), [C.adam(z.parameters, 0.1, 0.9)]), x, y


def losses_of(minibatches: list[int]) -> list[float]:
    trainer, x, y = trainer_of()
    random, losses = np.random.default_rng(0), []
    for rows in minibatches:
        trainer.train_minibatch({x: random.standard_normal((rows, 5), np.float32), y: random.standard_normal((rows, 3), np.float32)})
        losses.append(trainer.previous_minibatch_loss_average)
    return losses


SIZES = [4, 4, 7, 4, 4, 7, 4, 7, 7, 4]


def test_training_is_the_same_recorded(queue: Any) -> None:
    found = losses_of(SIZES)
    assert QueueBackend.recorded > 0
    assert QueueBackend.repeated >= QueueBackend.recorded
    C.device.try_set_default_device(C.cpu())
    assert losses_of(SIZES) == found


def test_calls_are_recorded_once_for_each_size_when_they_have_been_made_some_times(queue: Any) -> None:
    x = C.input_variable(5)
    f = C.tanh(C.sin(x) * 2) + 1
    for rows in (7, 4):  # what takes more room makes bindings anew
        for _ in range(WARM_UPS):
            f.eval({x: np.ones((rows, 5), np.float32)})
    assert QueueBackend.recorded == 0
    for rows in (4, 7, 4, 7, 4):
        value = np.full((rows, 5), rows, np.float32)
        np.testing.assert_allclose(f.eval({x: value}), np.tanh(np.sin(value) * 2) + 1, rtol=1e-6)
    assert (QueueBackend.recorded, QueueBackend.repeated) == (2, 5)


def test_what_cannot_be_recorded_is_called(queue: Any) -> None:
    QueueBackend.refuses = True
    x = C.input_variable(5)
    f = C.tanh(C.sin(x) * 2)
    for rows in (1, 2, 3, 4, 1, 1, 1, 1):
        value = np.full((rows, 5), rows, np.float32)
        np.testing.assert_allclose(f.eval({x: value}), np.tanh(np.sin(value) * 2), rtol=1e-6)


def test_an_error_of_recording_names_the_first_operator(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(self: Any, calls: Any) -> None:
        raise MemoryError("no room for a graph")

    x = C.input_variable(5)
    f = C.tanh(C.sin(x) * 2)
    for _ in range(WARM_UPS):
        f.eval({x: np.ones((2, 5), np.float32)})
    monkeypatch.setattr(QueueBackend, "record", record)
    with pytest.raises(MemoryError, match=r"Sin.*no room for a graph"):
        f.eval({x: np.ones((2, 5), np.float32)})
    monkeypatch.undo()
    np.testing.assert_allclose(f.eval({x: np.ones((2, 5), np.float32)}), np.full((2, 5), np.tanh(np.sin(1) * 2)), rtol=1e-6)


def test_random_masks_differ_from_step_to_step(queue: Any) -> None:
    x = C.input_variable(50, needs_gradient=True)
    f = C.sin(C.dropout(C.cos(C.sin(x)), 0.5, seed=1))
    masks = {(f.grad({x: np.ones((2, 50), np.float32)}, wrt=[x]) != 0).tobytes() for _ in range(6)}
    assert len(masks) == 6
    assert QueueBackend.recorded > 0


def test_sequences_of_the_same_number_of_rows_are_not_mixed_up(queue: Any) -> None:
    x = C.sequence.input_variable(2)
    f = C.sin(C.sequence.past_value(C.cos(C.sin(x)))) + C.sequence.last(C.tanh(x)) * 0.5
    C.device.try_set_default_device(C.cpu())
    y = C.sequence.input_variable(2)
    expected = C.sin(C.sequence.past_value(C.cos(C.sin(y)))) + C.sequence.last(C.tanh(y)) * 0.5
    C.device.try_set_default_device(queue)
    random = np.random.default_rng(1)
    for lengths in [(3, 5), (4, 4), (5, 3), (4, 4), (1, 7), (2, 6), (3, 5)]:
        data = [random.standard_normal((length, 2)).astype(np.float32) for length in lengths]
        for found, wanted in zip(f.eval({x: data}), expected.eval({y: data}, device=C.cpu()), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_losses_are_fetched_after_the_update(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer, x, y = trainer_of()
    learner = trainer.parameter_learners[0]
    update, fetched = learner.update_arrays, []

    def noted(*arguments: Any) -> bool:
        fetched.append(QueueBackend.fetched)
        return update(*arguments)

    monkeypatch.setattr(learner, "update_arrays", noted)
    for _ in range(3):
        trainer.train_minibatch({x: np.ones((4, 5), np.float32), y: np.ones((4, 3), np.float32)})
    assert fetched == [0, 2, 4]  # a loss and a metric a step
    assert trainer.previous_minibatch_loss_average > 0


def test_sums_of_losses_are_part_of_what_is_recorded(queue: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sums: list[Any] = []
    later = QueueBackend.later

    def noted(self: Any, *numbers: Any) -> Callable[[], list[float]]:
        sums.append(numbers)
        return later(self, *numbers)

    monkeypatch.setattr(QueueBackend, "later", noted)
    losses_of([4] * 6)
    assert [len(numbers) for numbers in sums] == [2] * 6  # a loss and a metric
    assert len({id(number) for numbers in sums for number in numbers}) == 1  # which are one


def test_an_error_names_the_operator_at_fault(queue: Any) -> None:
    class Failing(Elementwise):
        op_name = "FailingInRecording"
        calls = 0

        def forward(self, ctx: Any, out: Any, x: Any) -> None:
            type(self).calls += 1
            if self.calls == 2:
                raise ValueError("no more")
            ctx.xp.copyto(out, x)

    x = C.input_variable(2)
    f = C.sin(Failing()(C.cos(x)))
    f.eval({x: [[1, 2]]})
    with pytest.raises(ValueError, match=r"FailingInRecording.*no more"):
        f.eval({x: [[1, 2]]})
    np.testing.assert_allclose(f.eval({x: [[1, 2]]}), np.sin(np.cos([[1, 2]])), rtol=1e-6)
