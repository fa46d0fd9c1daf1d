"""Models give the same results with and without each pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.thresholds import thresholds
from cntk.core.extension.device import DeviceDescriptor
from cntk.core.program.passes import available
from cntk.layers import LSTM, BatchNormalization, Convolution2D, Dense, Dropout, Embedding, LayerNormalization, MaxPooling, Recurrence
from cntk.testing import assert_close


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Chains run in blocks of a few rows."""
    monkeypatch.setattr(thresholds, "blocks_of_rows", 1)
    monkeypatch.setattr(NumpyBackend, "block_bytes", 64)
    yield
    C.debugging.set_passes()


def dense(x: Any) -> Any:
    return C.layers.Sequential([Dense(5, activation=C.relu), Dropout(0.5, seed=7), Dense(4, activation=C.sigmoid), Dense(3)])(x)


def convolutional(x: Any) -> Any:
    image = C.reshape(x, (1, 4, 4))
    layers = [Convolution2D((3, 3), 2, pad=True), BatchNormalization(map_rank=1), C.relu, MaxPooling((2, 2)), Dense(3, activation=C.tanh)]
    return C.layers.Sequential(layers)(image)


def residual_of_images(x: Any) -> Any:
    def normalised(image: Any, strides: int = 1) -> Any:
        return BatchNormalization(map_rank=1)(Convolution2D((3, 3), 2, strides=strides, pad=True)(image))

    image = C.relu(normalised(C.reshape(x, (1, 4, 4))))
    image = C.relu(normalised(image) + image)
    image = C.relu(normalised(image, 2) + normalised(image, 2))
    return Dense(3)(MaxPooling((2, 2))(C.relu(image + 1)))


def residual(x: Any) -> Any:
    for _ in range(2):
        x = LayerNormalization()(x + Dense(16, activation=C.elu)(C.tanh(x) * 2 - C.tanh(x)))
    return Dense(3)(x)


def gelu(x: Any) -> Any:
    return Dense(3)(0.5 * x * (1 + C.tanh(0.7978845608 * (x + 0.044715 * x * x * x))))


def recurrent(x: Any) -> Any:
    return Dense(3)(C.sequence.last(Recurrence(LSTM(4))(C.tanh(Dense(4)(x) * 2) + 1)))


def attending(x: Any) -> Any:
    keys, query = Dense(4)(x), C.sequence.last(Dense(4)(x))
    weights = C.sequence.softmax(C.reduce_sum(keys * C.sequence.broadcast_as(query, keys), 0))
    return Dense(3)(C.sequence.reduce_sum(weights * Embedding(4)(x)))


MODELS: list[Callable[[Any], Any]] = [dense, convolutional, residual_of_images, residual, gelu, recurrent, attending]
OF_SEQUENCES = {recurrent, attending}


def results(build: Callable[[Any], Any], device: DeviceDescriptor) -> list[Any]:
    """Value of the model, loss of a training pass and all gradients, of a model that is built again."""
    C.cntk_py.set_fixed_random_seed(3)
    random = np.random.default_rng(4)
    data = random.uniform(-1, 1, (6, 16)).astype(np.float32)
    target = np.eye(3, dtype=np.float32)[[0, 2, 1, 1, 0, 2]]
    sequential = build in OF_SEQUENCES
    x = C.sequence.input_variable(16, needs_gradient=True) if sequential else C.input_variable(16, needs_gradient=True)
    y = C.input_variable(3)
    model = build(x)
    loss = C.cross_entropy_with_softmax(model, y)
    feed = {x: [data[:3], data[3:4], data[4:]] if sequential else data, y: target[:3] if sequential else target}
    wrt = [x, *loss.parameters]
    gradients, value = loss.grad(feed, wrt=wrt, outputs=[loss.output], device=device)
    of_inputs = gradients[x] if sequential else [gradients[x]]
    return [model.eval({x: feed[x]}, device=device), value, *of_inputs, *(gradients[parameter] for parameter in wrt[1:])]


@pytest.mark.parametrize("name", [*available(), "all"])
@pytest.mark.parametrize("build", MODELS, ids=lambda build: build.__name__)
def test_results_are_those_without_passes(build: Callable[[Any], Any], name: str, device: DeviceDescriptor) -> None:
    C.debugging.set_passes([])
    expected = results(build, device)
    C.debugging.set_passes(None if name == "all" else [name])
    for actual, right in zip(results(build, device), expected, strict=True):
        assert_close(actual, right)


def test_a_part_within_what_runs_together_can_be_asked_for(device: DeviceDescriptor) -> None:
    x = C.input_variable(16)
    model = C.layers.Sequential([Dense(4, activation=C.relu, name="first"), Dense(3, activation=C.tanh, name="second")])(x)
    data = np.random.default_rng(1).uniform(-1, 1, (5, 16)).astype(np.float32)
    model.eval({x: data}, device=device)
    for name in ("first", "second"):
        block = model.find_by_name(name)
        found = model.forward({x: data}, [block.output, model.output], device=device)[1]
        alone = C.combine([block.output]).eval({x: data}, device=device)
        assert_close(found[block.output], alone)


def test_a_training_goes_on_as_before_from_a_checkpoint(device: DeviceDescriptor, tmp_path: Any) -> None:
    data = np.random.default_rng(1).uniform(-1, 1, (8, 16)).astype(np.float32)
    target = np.eye(3, dtype=np.float32)[[0, 2, 1, 1, 0, 2, 0, 1]]

    def trained(path: str, steps: int, start: bool) -> list[Any]:
        C.cntk_py.set_fixed_random_seed(3)
        x, y = C.input_variable(16), C.input_variable(3)
        model = dense(x)
        learner = C.momentum_sgd(model.parameters, 0.1, 0.9)
        trainer = C.Trainer(model, C.cross_entropy_with_softmax(model, y), [learner])
        if not start:
            trainer.restore_from_checkpoint(path)
        for _ in range(steps):
            trainer.train_minibatch({x: data, y: target}, device=device)
        if start:
            trainer.save_checkpoint(path)
        return [parameter.value for parameter in model.parameters]

    whole = trained(str(tmp_path / "whole"), 4, True)
    trained(str(tmp_path / "half"), 2, True)
    np.testing.assert_equal(trained(str(tmp_path / "half"), 2, False), whole)
