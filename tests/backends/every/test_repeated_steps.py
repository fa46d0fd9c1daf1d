"""Steps that a device repeats give what the same steps give one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.extension import plugins
from cntk.core.extension.backend import Asynchronous
from cntk.core.extension.device import DeviceDescriptor, cpu, default_device
from cntk.core.run.recurrence import LoopSchedule
from cntk.core.types.sparse import RowSparse
from cntk.extend import Elementwise
from cntk.layers import (
    GRU,
    LSTM,
    BatchNormalization,
    Convolution2D,
    Dense,
    Dropout,
    MaxPooling,
    Recurrence,
    RNNStep,
    Sequential,
    SequentialConvolution,
)
from cntk.learners.sgd_learner import SGD

STEPS = 9
SIZES = [6, 6, 6, 4, 6, 4, 4, 6, 4]
LENGTHS = {6: [(2, 2, 5, 3, 3, 2), (4, 2, 5, 2, 2, 2)], 4: [(2, 5, 2, 3), (2, 5, 3, 2)]}
"""Lengths of so many sequences, which have as many steps in all, and the longest as many, but lie otherwise."""


def dense() -> tuple[Any, tuple[int, ...]]:
    return Sequential([Dense(7, activation=C.relu), Dropout(0.4, seed=3), Dense(5, activation=C.tanh), Dense(3)]), (5,)


def convolutional() -> tuple[Any, tuple[int, ...]]:
    parts = [Convolution2D((3, 3), 4, activation=C.relu, pad=True), MaxPooling((2, 2), strides=2), Dense(3)]
    return Sequential(parts), (2, 6, 6)


def normalised() -> tuple[Any, tuple[int, ...]]:
    """Features with places and without, whose running statistics are moved; a bias before them would have no gradient but rounding."""
    image = [Convolution2D((3, 3), 4, pad=True, bias=False), BatchNormalization(map_rank=1, normalization_time_constant=20), C.relu]
    return Sequential([*image, Dense(6, bias=False), BatchNormalization(normalization_time_constant=-1), C.tanh, Dense(3)]), (2, 6, 6)


def copied() -> tuple[Any, tuple[int, ...]]:
    """What only moves elements, and losses that are no chains."""
    dense = Dense(3)

    def model(x: Any) -> Any:
        image = C.pad(C.depth_to_space(C.reshape(Dense(16)(x), (4, 2, 2)), 2), [(0, 0), (1, 1), (1, 1)], mode=C.ops.REFLECT_PAD)
        smaller = C.crop_manual(C.space_to_depth(image, 2), C.reshape(Dense(4)(x), (1, 2, 2)), 1, 1)
        joined = C.splice(C.transpose(smaller, (1, 0, 2)), C.slice(C.swapaxes(smaller, 0, 1), 2, 0, 1), axis=2)
        difference = C.squared_error(C.alias(dense(x)), C.slice(C.reshape(joined, (-1,)), 0, 2, 5))
        return dense(x) + C.sigmoid(difference) * C.binary_cross_entropy(C.sigmoid(dense(x)), C.stop_gradient(C.sigmoid(dense(x))))

    return model, (5,)


def picked() -> tuple[Any, tuple[int, ...]]:
    """An embedding, and of each sequence the last step."""
    return Sequential([Dense(4, bias=False), C.sequence.last, Dense(3)]), (5,)


def marked() -> tuple[Any, tuple[int, ...]]:
    """Steps, slices of two and marks of ends, along a static axis."""
    embedding, dense = Dense(4), Dense(3)

    def model(x: Any) -> Any:
        steps, mask = C.sequence.unpack(embedding(x) * (C.sequence.is_first(x) - 2 * C.sequence.is_last(x)), -1).outputs
        ends = C.sequence.unpack(C.sequence.slice(embedding(x), -2, 0), 0, no_mask_output=True)
        return dense(C.reduce_sum(C.tanh(steps), axis=0)) + C.reduce_max(C.sin(ends)) * C.reduce_sum(C.cos(mask))

    return model, (5,)


def summed() -> tuple[Any, tuple[int, ...]]:
    """Sums, maxima and a softmax over steps."""
    embedding, dense = Dense(4), Dense(3)

    def model(x: Any) -> Any:
        steps = embedding(x)
        return dense(C.tanh(C.sequence.reduce_sum(steps * C.sequence.softmax(steps)) + C.sequence.reduce_max(C.sin(steps))))

    return model, (5,)


def repeated() -> tuple[Any, tuple[int, ...]]:
    """Values that are repeated along sequences, by name and because they meet steps."""
    embedding, dense = Dense(4), Dense(3)

    def model(x: Any) -> Any:
        steps = C.tanh(embedding(x))
        apart = (steps - C.sequence.first(steps)) * C.sequence.broadcast_as(C.sequence.last(steps), steps)
        return dense(C.sequence.reduce_sum(C.sin(apart)))

    return model, (5,)


def delayed() -> tuple[Any, tuple[int, ...]]:
    """Earlier and later steps, with numbers, learnt states and states of each sequence beside them."""
    embedding, dense, other, state = Dense(4), Dense(3), Dense(3), C.parameter(4, init=C.glorot_uniform())

    def model(x: Any) -> Any:
        steps = C.tanh(embedding(x))
        learnt = C.sequence.past_value(C.sequence.future_value(steps, C.sequence.last(steps), 2), state, 3)
        beside = C.sequence.past_value(steps) - C.sequence.future_value(steps, 0.5, 3) + learnt
        ahead = C.sequence.future_value(x, C.sequence.first(x))
        return dense(C.sequence.reduce_sum(beside * steps)) + other(C.sequence.reduce_sum(ahead))

    return model, (5,)


def convolved() -> tuple[Any, tuple[int, ...]]:
    """Windows along sequences, with padding and without."""
    layers = [SequentialConvolution(3, 4, pad=True), C.tanh, SequentialConvolution(2, 3, pad=False), C.sequence.reduce_max, Dense(3)]
    return Sequential(layers), (5,)


def chosen() -> tuple[Any, tuple[int, ...]]:
    """Steps that data choose, of which there are as many as sequences."""
    embedding, dense = Dense(4), Dense(3)

    def model(x: Any) -> Any:
        steps = C.tanh(embedding(x))
        return dense(C.sequence.last(C.sin(C.sequence.gather(steps, C.sequence.is_first(x))) + 1) + C.sequence.last(C.cos(steps)))

    return model, (5,)


def recurrent() -> tuple[Any, tuple[int, ...]]:
    return Sequential([Dense(4), Recurrence(RNNStep(4)), C.sequence.last, Dense(3)]), (5,)


def bidirectional() -> tuple[Any, tuple[int, ...]]:
    """Layers of cells in both directions."""
    there, back, cells, dense = Recurrence(LSTM(3)), Recurrence(GRU(4), go_backwards=True), Recurrence(GRU(5)), Dense(3)
    return Sequential([Dense(4), lambda x: C.splice(there(x), back(x)), cells, C.sequence.last, dense]), (5,)


def begun() -> tuple[Any, tuple[int, ...]]:
    """Recurrences that begin with learnt states, with those of each sequence, and several steps back."""
    embedding, dense, learnt = Dense(4), Dense(3), Recurrence(RNNStep(4), initial_state=C.parameter(4, init=C.glorot_uniform()))
    weight = C.parameter((4, 4), init=C.glorot_uniform())

    def model(x: Any) -> Any:
        steps, before = embedding(x), C.placeholder()
        h = C.tanh(learnt(steps) + C.times(C.sequence.past_value(before, C.sequence.last(C.stop_gradient(steps)), 3), weight))
        return dense(C.sequence.last(h.replace_placeholders({before: h.output})))

    return model, (5,)


OF_SEQUENCES = {
    "picked": picked,
    "marked": marked,
    "summed": summed,
    "repeated": repeated,
    "delayed": delayed,
    "convolved": convolved,
    "recurrent": recurrent,
    "bidirectional": bidirectional,
    "begun": begun,
}
"""Those whose work depends on how sequences lie through index arrays alone."""

MODELS = {"dense": dense, "convolutional": convolutional, "normalised": normalised, "copied": copied, "chosen": chosen, **OF_SEQUENCES}


def trained(make: Callable[[], tuple[Any, tuple[int, ...]]], learner: Callable[..., Any]) -> tuple[list[float], list[Any]]:
    """Losses of each step, and parameters and constants after the last one."""
    C.cntk_py.set_fixed_random_seed(5)
    layers, shape = make()
    of_sequences = make not in (dense, convolutional, normalised, copied)
    x = C.sequence.input_variable(shape) if of_sequences else C.input_variable(shape)
    y = C.input_variable(3)
    z = layers(x)
    trainer = C.Trainer(z, (C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)), learner(z.parameters))
    random, losses = np.random.default_rng(1), []
    for step in range(STEPS):
        rows = SIZES[step]
        values: Any = random.standard_normal((rows, *shape), np.float32)
        if of_sequences:
            values = [random.standard_normal((length, *shape), np.float32) for length in random.permutation(LENGTHS[rows][step % 2])]
        trainer.train_minibatch({x: values, y: np.eye(3, dtype=np.float32)[random.integers(0, 3, rows)]})
        losses.append(trainer.previous_minibatch_loss_average)
    return losses, [variable.value for variable in (*z.parameters, *z.constants)]


@pytest.fixture
def graphs(device: DeviceDescriptor, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the backend has recorded; None where it refused."""
    found: list[Any] = []
    backend: Any = type(device.backend)
    if isinstance(device.backend, Asynchronous):
        record = backend.record

        def noted(self: Any, calls: Callable[[], None]) -> Any:
            found.append(record(self, calls))
            return found[-1]

        monkeypatch.setattr(backend, "record", noted)
    return found


def adam(parameters: Any) -> Any:
    return C.adam(parameters, C.learning_parameter_schedule([0.1, 0.05, 0.01], epoch_size=12), 0.9)


def momentum(parameters: Any) -> Any:
    return C.momentum_sgd(parameters, 0.05, 0.9, l2_regularization_weight=0.01)


def assert_that_of_the_host(train: Callable[[], tuple[list[float], list[Any]]], device: DeviceDescriptor) -> None:
    """Losses and parameters that a training comes to on a device are those of the CPU."""
    with default_device(device):
        found, reached = train()
    with default_device(cpu()):
        losses, values = train()
    np.testing.assert_allclose(found, losses, rtol=1e-4, atol=1e-5)
    for value, expected in zip(reached, values, strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-3, atol=1e-4)


def has_graphs(device: DeviceDescriptor) -> bool:
    """Whether a device has kernels, and records them."""
    return isinstance(device.backend, Asynchronous) and ("Chain", device.backend.name) in plugins.engines


@pytest.mark.parametrize("learner", [adam, momentum])
@pytest.mark.parametrize("model", MODELS)
def test_training_is_that_of_the_host(model: str, learner: Callable[..., Any], device: DeviceDescriptor) -> None:
    assert_that_of_the_host(lambda: trained(MODELS[model], learner), device)


@pytest.mark.parametrize("model", MODELS)
def test_repeated_steps_are_those_one_by_one_to_the_bit(
    model: str, device: DeviceDescriptor, graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend: Any = device.backend
    if not isinstance(backend, Asynchronous):
        pytest.skip("the backend records nothing")
    with default_device(device):
        found, reached = trained(MODELS[model], adam)
        monkeypatch.setattr(type(backend), "record", lambda *_: None)
        losses, values = trained(MODELS[model], adam)
    has_kernels = ("Chain", backend.name) in plugins.engines
    assert any(graphs) or not has_kernels
    if has_kernels and (model in OF_SEQUENCES or model in ("copied", "normalised")):
        assert len(list(filter(None, graphs))) == 2 * len(LENGTHS)  # each direction is one for each size, however sequences lie
    assert found == losses
    for value, expected in zip(reached, values, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_sparse_targets_of_any_number_of_entries_are_those_of_repeated_steps(device: DeviceDescriptor, graphs: list[Any]) -> None:
    def trained_on_sparse() -> tuple[list[float], list[Any]]:
        C.cntk_py.set_fixed_random_seed(5)
        x, y = C.input_variable(5), C.input_variable(3, is_sparse=True)
        z = Dense(3)(C.tanh(Dense(4)(x)))
        trainer = C.Trainer(z, (C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)), adam(z.parameters))
        random, losses = np.random.default_rng(1), []
        for entries in (4, 3, 4, 4, 7, 5, 8, 4, 6):  # five are more than there is room for at first
            target = np.zeros(12, np.float32)
            target[random.choice(12, entries, replace=False)] = random.uniform(0.1, 1, entries)
            trainer.train_minibatch({x: random.standard_normal((4, 5), np.float32), y: csr_matrix(target.reshape(4, 3))})
            losses.append(trainer.previous_minibatch_loss_average)
        return losses, [parameter.value for parameter in z.parameters]

    assert_that_of_the_host(trained_on_sparse, device)
    if has_graphs(device):
        assert len(list(filter(None, graphs))) == 4


def sgd(parameters: Any) -> Any:
    return C.sgd(parameters, 0.05)


def clipped(parameters: Any) -> Any:
    return C.sgd(parameters, 0.05, gradient_clipping_threshold_per_sample=0.1, gradient_clipping_with_truncation=False)


def bag(x: Any) -> Any:
    return Sequential([Dense(4, activation=C.relu), Dense(3)])(x)


def shared(x: Any) -> Any:
    """A matrix whose gradient is a sum of two."""
    matrix = C.parameter((20, 3), init=C.glorot_uniform())
    return C.times(x, matrix) + C.sin(C.times(x * 1, matrix)) + C.times(x, matrix)


def embedded(x: Any) -> Any:
    return Sequential([Dense(4, bias=False), Dense(3)])(x)


@pytest.mark.parametrize("learner", [sgd, momentum, adam, clipped])
@pytest.mark.parametrize("model", [bag, shared, embedded])
def test_sparse_rows_of_any_number_of_entries_are_those_of_repeated_steps(
    model: Callable[[Any], Any], learner: Callable[..., Any], device: DeviceDescriptor, graphs: list[Any]
) -> None:
    def trained_on_sparse() -> tuple[list[float], list[Any]]:
        C.cntk_py.set_fixed_random_seed(5)
        x, y = C.input_variable(20, is_sparse=True), C.input_variable(3)
        z = model(x)
        trainer = C.Trainer(z, (C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)), learner(z.parameters))
        random, losses = np.random.default_rng(1), []
        for entries in (14, 13, 14, 0, 16, 15, 18, 14, 30, 16):  # 18 are more than there is room for at first
            rows = np.zeros(80, np.float32)
            rows[random.choice(80, entries, replace=False)] = random.uniform(0.1, 1, entries)
            y_rows = np.eye(3, dtype=np.float32)[random.integers(0, 3, 4)]
            trainer.train_minibatch({x: csr_matrix(rows.reshape(4, 20)), y: y_rows})
            losses.append(trainer.previous_minibatch_loss_average)
        return losses, [parameter.value for parameter in z.parameters]

    assert_that_of_the_host(trained_on_sparse, device)
    if has_graphs(device) and model is not shared:
        assert len(list(filter(None, graphs))) == 4


def test_rows_of_a_gradient_that_others_set_are_those_of_the_next_repeated_step(
    device: DeviceDescriptor, monkeypatch: pytest.MonkeyPatch
) -> None:
    update = SGD.update_arrays

    def exchanged(self: Any, gradients: Any, *others: Any) -> Any:
        for gradient in gradients:
            if isinstance(gradient, RowSparse):  # as sums over workers are
                gradient.set(gradient.rows.copy(), gradient.values.copy())
        return update(self, gradients, *others)

    def losses() -> list[float]:
        C.cntk_py.set_fixed_random_seed(5)
        x, y = C.input_variable(20, is_sparse=True), C.input_variable(3)
        z = bag(x)
        trainer, random, found = C.Trainer(z, C.squared_error(z, y), sgd(z.parameters)), np.random.default_rng(1), []
        for _ in range(6):
            words = csr_matrix((np.ones(8, np.float32), random.integers(0, 20, 8), range(0, 10, 2)), (4, 20))
            trainer.train_minibatch({x: words, y: np.ones((4, 3), np.float32)})
            found.append(trainer.previous_minibatch_loss_average)
        return found

    monkeypatch.setattr(SGD, "update_arrays", exchanged)
    with default_device(device):
        found = losses()
    monkeypatch.setattr(SGD, "update_arrays", update)
    with default_device(cpu()):
        np.testing.assert_allclose(found, losses(), rtol=1e-4)


def test_a_recurrence_that_is_refused_runs_between_graphs(
    device: DeviceDescriptor, graphs: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    with default_device(device):
        losses, values = trained(bidirectional, adam)
        graphs.clear()
        monkeypatch.setattr(LoopSchedule, "work", refuse)
        found, reached = trained(bidirectional, adam)
    if isinstance(device.backend, Asynchronous) and ("Recurrence", device.backend.name) in plugins.engines:
        assert None in graphs
        assert len(list(filter(None, graphs))) > 2 * len(LENGTHS)
    assert found == losses
    for value, expected in zip(reached, values, strict=True):
        np.testing.assert_array_equal(value, expected)


def test_gradients_start_from_what_is_given_in_repeated_steps(device: DeviceDescriptor) -> None:
    with default_device(device):
        x = C.input_variable(3, needs_gradient=True)
        f = C.sin(C.transpose(C.reshape(C.cos(x), (1, 3)), (1, 0)))
        value = np.float32([[0.5, 1, 2]])
        slope = np.cos(np.cos(value)) * -np.sin(value)
        for seed in [None] * 4 + [2.0, 3.0, None, 0.5, 0.25, 0.125, 5.0, None, None, None, None]:
            if seed is None:
                found = f.grad({x: value}, wrt=[x])
            else:
                state, _ = f.forward({x: value}, [f.output], {f.output})
                found = f.backward(state, {f.output: np.full((1, 3, 1), seed, np.float32)}, {x})[x]
            np.testing.assert_allclose(found, slope * (1 if seed is None else seed), rtol=1e-5)


def test_a_loss_scale_that_changes_shows_in_repeated_steps(device: DeviceDescriptor) -> None:
    def losses() -> list[float]:
        C.cntk_py.set_fixed_random_seed(5)
        x, y = C.input_variable(5), C.input_variable(3)
        z = Dense(3)(C.tanh(Dense(4)(x)))
        scale = C.train.LossScale(init_scale=4.0, growth_interval=3)
        trainer = C.Trainer(z, C.squared_error(z, y), adam(z.parameters), loss_scale=scale)
        random, found = np.random.default_rng(1), []
        for _ in range(10):
            trainer.train_minibatch({x: random.standard_normal((4, 5), np.float32), y: random.standard_normal((4, 3), np.float32)})
            found.append(trainer.previous_minibatch_loss_average)
        assert scale.value > 4
        return found

    with default_device(device):
        found = losses()
    with default_device(cpu()):
        np.testing.assert_allclose(found, losses(), rtol=1e-4)


class Waiting(Elementwise):
    """Says that it may be recorded, and waits for the device."""

    op_name = "WaitingInRecording"

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        ctx.backend.to_numpy(x)
        ctx.xp.copyto(out, x)

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, x: Any) -> None:
        ctx.xp.copyto(grads[0], grad)


def test_a_call_that_is_refused_comes_between_repeated_ones(device: DeviceDescriptor, graphs: list[Any]) -> None:
    with default_device(device):
        x = C.input_variable((2, 3), needs_gradient=True)

        def parts(x: Any) -> Any:
            return C.sin(C.transpose(C.cos(x), (1, 0)))

        f = parts(Waiting()(parts(Waiting()(Waiting()(parts(x))))))
        for number in range(5):
            value = np.full((1, 2, 3), number, np.float32)
            gradient, found = f.grad({x: value}, wrt=[x], outputs=[f.output])
            once, twice = np.sin(np.cos(value)), np.sin(np.cos(np.sin(np.cos(value))))
            np.testing.assert_allclose(found, np.sin(np.cos(twice)).transpose(0, 2, 1), rtol=1e-5)
            slopes = [np.cos(np.cos(y)) * -np.sin(y) for y in (value, once, twice)]
            np.testing.assert_allclose(gradient, slopes[0] * slopes[1] * slopes[2], rtol=1e-4, atol=1e-6)
    if isinstance(device.backend, Asynchronous):
        assert len(list(filter(None, graphs))) == 4  # of values three, of gradients one


def test_changed_attributes_show_in_repeated_steps(device: DeviceDescriptor) -> None:
    with default_device(device):
        x = C.input_variable(1000, needs_gradient=True)
        dropout = C.dropout(C.cos(C.sin(x)), 0.2, seed=1)
        f, data, masks = C.sin(dropout), {x: np.ones((2, 1000), np.float32)}, []
        kept = []
        for rate, seed in [(0.2, 1)] * 5 + [(0.7, 1)] * 5 + [(0.7, 2)] * 5 + [(0.7, 1)] * 5:
            dropout.set_attribute("dropoutRate", rate)
            if dropout.root_function.attributes["rngSeed"] != seed:
                dropout.set_attribute("rngSeed", seed)
            gradient, value = f.grad(data, wrt=[x], outputs=[f.output])
            masks.append(gradient == 0)
            kept.append(np.array_equal(gradient == 0, value == 0))
    assert all(abs(mask.mean() - 0.2) < 0.06 for mask in masks[:5])
    assert all(abs(mask.mean() - 0.7) < 0.06 for mask in masks[5:])
    assert all(kept)  # both directions draw the same
    assert len({mask.tobytes() for mask in masks}) == len(masks)


def test_changed_attributes_of_a_recurrence_show_in_repeated_steps_of_all_sizes(device: DeviceDescriptor) -> None:
    with default_device(device):
        x, before = C.sequence.input_variable(3), C.placeholder()
        step = C.leaky_relu(C.times(C.sequence.past_value(before), C.constant(np.eye(3, dtype=np.float32))) - x, 0.5)
        h = step.replace_placeholders({before: step.output})
        (of,) = [node.op for node in C.logging.depth_first_search(h, lambda node: getattr(node, "op_name", "") == "LeakyReLU")]
        sizes: list[tuple[int, ...]] = [(3,), (2, 2)]
        for alpha in (0.5, 0.25, 0.5):
            of.alpha = alpha
            for lengths in sizes * 4:
                found = h.eval({x: [np.ones((length, 3), np.float32) for length in lengths]})
                for rows in found:
                    np.testing.assert_array_equal(rows[:2], np.float32([[-alpha] * 3, [-alpha * (1 + alpha)] * 3]))


def test_recurrences_go_on_in_the_next_minibatch_between_repeated_steps(device: DeviceDescriptor) -> None:
    with default_device(device):
        x, before = C.sequence.input_variable(()), C.placeholder()
        step = C.sequence.past_value(before, 0.5) + x
        h = step.replace_placeholders({before: step.output})
        found = []
        for number, new in enumerate([None] * 5 + [True, False, None, None, True, False]):
            data = [np.float32([number, number])]
            found.append(float(h.eval({x: data if new is None else (data, [new])})[0][-1]))
    assert found == [2 * number + 0.5 + (2 * (number - 1) if number in (6, 10) else 0) for number in range(11)]


def test_sequences_that_continue_others_are_not_those_of_repeated_steps(device: DeviceDescriptor) -> None:
    with default_device(device):
        x = C.sequence.input_variable(())
        f = C.sin(C.sequence.past_value(C.cos(x), 9))
        found = []
        for number, new in enumerate([None] * 5 + [True, False, None, None, True, False]):
            data = [np.float32([number, number + 0.5])]
            found.append(float(f.eval({x: data if new is None else (data, [new])})[0][0]))
    assert found == pytest.approx([np.sin(np.cos(5.5 if number == 6 else 9.5) if number in (6, 10) else 9) for number in range(11)])
