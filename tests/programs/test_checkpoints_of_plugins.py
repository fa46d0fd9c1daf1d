"""Checkpoints of models with operators of one's own: training goes on as if it had not stopped, and what cannot be saved is not trained."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.twister import Twister
from cntk.core.extension.hookspecs import hookimpl
from cntk.core.extension.plugins import register_plugin, unregister_plugin
from cntk.core.operators.elementwise import Elementwise
from cntk.plugins.ops.drawing import Drawing

X = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]


class Blur(Drawing):
    """``x`` with noise that goes on from minibatch to minibatch."""

    op_name = "Blur"
    stream_type = Twister
    by_rows = False

    def infer(self, x: Any) -> Any:
        return x.but()

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        ctx.xp.add(x, self.width * self._stream.normal(x.size).reshape(x.shape).astype(x.dtype), out=out)

    def backward(self, ctx: Any, grad: Any, grads: Any, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(grads[0], grad)


class Through(Elementwise):
    """``function(x)``, by a function that no file can hold."""

    op_name = "Through"
    passes_gradient = (0,)
    runs = 0

    def forward(self, ctx: Any, out: Any, x: Any) -> None:
        type(self).runs += 1
        out[...] = self.function(x)


class Training:
    """A model of one weight behind an operator."""

    def __init__(self, make: Any) -> None:
        C.cntk_py.set_fixed_random_seed(1)
        x, y = C.input_variable(1), C.input_variable(1)
        self.w = C.parameter(1, init=0.5)
        self.loss = C.squared_error(make()(x) * self.w, y)

    def run(self, *callbacks: Any, epochs: int = 1) -> None:
        learners = [C.sgd([self.w], 0.1)]
        self.loss.train((X, 2 * X), parameter_learners=learners, minibatch_size=4, max_epochs=epochs, callbacks=callbacks)


def test_training_goes_on_with_the_states_of_operators(tmp_path: Path) -> None:
    values = []
    for stops in ((3,), (1, 2, 3)):
        config = C.CheckpointConfig(str(tmp_path / f"model{len(stops)}"), frequency=32)
        for epochs in stops:
            training = Training(lambda: Blur(width=0.1, rng_seed=5))
            training.run(config, epochs=epochs)
        values.append(training.w.value.tolist())
    assert values[0] == values[1]


def test_what_cannot_be_saved_is_refused_before_the_first_minibatch(tmp_path: Path) -> None:
    training = Training(lambda: Through(function=np.sin))
    Through.runs = 0
    message = r"nothing has been trained, since no checkpoint could hold the model: Through '\w+' cannot be saved: the argument 'function'"
    with pytest.raises(TypeError, match=message):
        training.run(C.CheckpointConfig(str(tmp_path / "model")))
    assert Through.runs == 0
    assert list(tmp_path.iterdir()) == []
    training.run(C.CheckpointConfig(None))
    assert Through.runs > 0


def test_a_session_refuses_it_as_well(tmp_path: Path) -> None:
    training = Training(lambda: Through(function=np.sin))
    trainer = C.Trainer(None, training.loss, C.sgd([training.w], 0.1))
    with pytest.raises(TypeError, match="no checkpoint could hold the model"):
        C.training_session(trainer, (X, X), 4, max_samples=8, checkpoint_config=C.CheckpointConfig(str(tmp_path / "model")))
    assert C.training_session(trainer, (X, X), 4, max_samples=8) is not None


class Pickles:
    """A format that holds whatever can be pickled."""

    holds_functions = True

    @staticmethod
    def recognises(data: Any) -> bool:
        return bytes(data[:6]) == b"PICKLE"

    @staticmethod
    def write(function: Any) -> list[bytes]:
        return [b"PICKLE", pickle.dumps(function)]

    @staticmethod
    def read(data: Any, device: Any, source: str) -> Any:
        return pickle.loads(bytes(data[6:]))


def test_a_format_of_a_plugin_takes_what_cntks_does_not_hold(tmp_path: Path) -> None:
    class Plugin:
        @staticmethod
        @hookimpl
        def cntk_register_model_formats(register: Any) -> None:
            register("pickles", Pickles)

    path = tmp_path / "model"
    register_plugin(Plugin, "pickles")
    try:
        training = Training(lambda: Through(function=np.sin))
        training.run(C.CheckpointConfig(str(path)))
        assert path.read_bytes().startswith(b"PICKLE")
        resumed = Training(lambda: Through(function=np.sin))
        trainer = C.Trainer(None, resumed.loss, C.sgd([resumed.w], 0.1))
        trainer.restore_from_checkpoint(str(path))
        assert resumed.w.value.tolist() == training.w.value.tolist() != [0.5]
    finally:
        unregister_plugin("pickles")
    plain = Training(lambda: C.tanh)
    plain.run(C.CheckpointConfig(str(tmp_path / "plain")))
    assert not (tmp_path / "plain").read_bytes().startswith(b"PICKLE")
