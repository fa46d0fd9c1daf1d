"""Networks trained in float16 and bfloat16: as good as in float32, resumed to the bit, saved and loaded."""

from __future__ import annotations

import gzip
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

HALVES = pytest.mark.parametrize("dtype", [C.bfloat16, np.float16], ids=["bfloat16", "float16"])
TRAINED, EPOCHS, ROWS = 6000, 3, 64


@pytest.fixture(scope="module")
def digits(real_data: Path) -> tuple[Any, Any]:
    """10,000 images of handwritten digits, and their classes."""
    images, labels = (gzip.decompress((real_data / f"mnist-t10k-{part}-ubyte.gz").read_bytes()) for part in ("images-idx3", "labels-idx1"))
    pixels = np.frombuffer(images, np.uint8, offset=16).reshape(-1, 1, 28, 28) / np.float32(256)
    return pixels, np.eye(10, dtype=np.float32)[np.frombuffer(labels, np.uint8, offset=8)]


def network(dtype: Any, shape: tuple[int, ...], layers: list[Any]) -> tuple[Any, Any, Any, Any]:
    """Input, label, logits and loss of a network that computes in a type; the loss is float32."""
    C.cntk_py.reset_random_seed(1)
    with C.default_options(dtype=dtype):
        x, y = C.input_variable(shape), C.input_variable(10)
        z = C.layers.Sequential(layers)(x)
    return x, y, z, C.cross_entropy_with_softmax(C.cast(z, np.float32), C.cast(y, np.float32))


def error_rate(dtype: Any, digits: tuple[Any, Any]) -> float:
    """The share of digits that a small convolutional network trained in a type does not recognise."""
    with C.default_options(dtype=dtype):
        layers = [
            *(C.layers.Convolution2D((5, 5), 6, strides=2, pad=True), C.layers.BatchNormalization(map_rank=1), C.relu),
            *(C.layers.Dense(32, activation=C.relu), C.layers.Dense(10)),
        ]
    x, y, z, loss = network(dtype, (1, 28, 28), layers)
    error = C.classification_error(z, y)
    pixels, classes = (part.astype(dtype) for part in digits)
    learner = C.momentum_sgd(
        z.parameters, C.learning_parameter_schedule(0.1, minibatch_size=ROWS), C.momentum_schedule(0.9, minibatch_size=ROWS)
    )
    trainer = C.Trainer(z, (loss, error), learner)
    order = np.random.default_rng(0)
    for _ in range(EPOCHS):
        for rows in np.split(order.permutation(TRAINED), range(ROWS, TRAINED, ROWS)):
            trainer.train_minibatch({x: pixels[rows], y: classes[rows]})
    return float(trainer.test_minibatch({x: pixels[TRAINED:], y: classes[TRAINED:]}))


def test_digits_are_recognised_as_well_as_in_float32(digits: tuple[Any, Any]) -> None:
    single = error_rate(np.float32, digits)
    assert single < 0.08
    assert error_rate(C.bfloat16, digits) < single + 0.01


def random_minibatch(dtype: Any) -> tuple[Any, Any]:
    random = np.random.default_rng(2)
    return random.normal(size=(32, 6)).astype(dtype), np.eye(10, dtype=dtype)[random.integers(10, size=32)]


def small(dtype: Any) -> tuple[Any, Any, Any, Any, Any]:
    """A small network with its trainer."""
    with C.default_options(dtype=dtype):
        layers = [C.layers.Dense(12, activation=C.tanh, name="hidden"), C.layers.Dropout(0.1, seed=1), C.layers.Dense(10)]
    x, y, z, loss = network(dtype, (6,), layers)
    return x, y, z, loss, C.Trainer(z, loss, C.momentum_sgd(z.parameters, C.learning_parameter_schedule_per_sample(1e-5), 0.9))


@HALVES
def test_updates_that_the_type_would_round_away_add_up(dtype: Any) -> None:
    x, y, z, loss, trainer = small(dtype)
    data, classes = random_minibatch(dtype)
    before = loss.eval({x: data, y: classes}).mean()
    for _ in range(400):
        trainer.train_minibatch({x: data, y: classes})
    assert loss.eval({x: data, y: classes}).mean() < before - 0.02
    assert all(p.value.dtype == dtype for p in z.parameters)


@HALVES
def test_training_goes_on_from_a_checkpoint_to_the_bit(dtype: Any, tmp_path: Path) -> None:
    data, classes = random_minibatch(dtype)

    def steps(made: Any, count: int) -> None:
        for _ in range(count):
            made[-1].train_minibatch({made[0]: data, made[1]: classes})

    straight, stopped, resumed = small(dtype), small(dtype), small(dtype)
    steps(straight, 20)
    steps(stopped, 10)
    stopped[-1].save_checkpoint(str(tmp_path / "trained"), {"numbers": data})
    state = resumed[-1].restore_from_checkpoint(str(tmp_path / "trained"))
    assert state["numbers"].dtype == dtype
    np.testing.assert_array_equal(state["numbers"], data)
    steps(resumed, 10)
    for one, other in zip(straight[2].parameters, resumed[2].parameters, strict=True):
        assert other.value.dtype == dtype
        np.testing.assert_array_equal(one.value, other.value)


@HALVES
def test_models_are_saved_loaded_cloned_and_pickled(dtype: Any, tmp_path: Path) -> None:
    x, _, z, _, _ = small(dtype)
    data = random_minibatch(dtype)[0]
    expected = z.eval({x: data})
    z.save(str(tmp_path / "model"))
    z.save(str(tmp_path / "values"), format="safetensors")
    restored = small(dtype)[2]
    for parameter in restored.parameters:
        parameter.value = np.zeros(parameter.shape, dtype)
    restored.restore(str(tmp_path / "values"))
    for other in (C.load_model(str(tmp_path / "model")), restored, z.clone("clone"), pickle.loads(pickle.dumps(z))):
        assert other.output.dtype is other.hidden.W.dtype is dtype
        found = other.eval({other.arguments[0]: data})
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, expected)


def test_safetensors_files_are_those_of_other_libraries(tmp_path: Path) -> None:
    torch = pytest.importorskip("safetensors.torch", reason="needs PyTorch")
    w = C.parameter((2, 3), init=np.arange(6, dtype=C.bfloat16).reshape(2, 3) / C.bfloat16(8), dtype=C.bfloat16, name="W")
    f = C.times(C.input_variable(2, C.bfloat16), w)
    f.save(str(tmp_path / "values"), format="safetensors")
    found = torch.load_file(str(tmp_path / "values"))["W"]
    assert str(found.dtype) == "torch.bfloat16"
    np.testing.assert_array_equal(found.float().numpy(), w.value)
    torch.save_file({"W": 2 * found}, str(tmp_path / "doubled"))
    f.restore(str(tmp_path / "doubled"))
    np.testing.assert_array_equal(w.value, found.float().numpy() * 2)
