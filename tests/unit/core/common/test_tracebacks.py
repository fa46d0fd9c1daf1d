"""Tracebacks that end at the user's line."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.tracebacks import answers, end_at_user, full_tracebacks, set_full_tracebacks
from cntk.layers import Dense, Sequential

x = C.input_variable(2, name="x")
y = C.input_variable(2, name="y")
model = Dense(2)(x)
loss = C.squared_error(model, y)
data = np.ones((3, 3), np.float32)


def trainer() -> Any:
    return C.Trainer(model, (loss, loss), [C.sgd(model.parameters, 0.1)])


def frames(mistake: Callable[[], Any]) -> list[traceback.FrameSummary]:
    """The traceback of the error that a function raises, without the frame that catches it."""
    try:
        mistake()
    except Exception as error:
        return list(traceback.extract_tb(error.__traceback__))[1:]
    pytest.fail("there was no error")


@pytest.fixture(autouse=True)
def shortened() -> Iterator[None]:
    set_full_tracebacks(False)
    yield
    set_full_tracebacks(False)


MISTAKES: dict[str, Callable[[], Any]] = {
    "an operator": lambda: C.plus(x, C.input_variable(3)),
    "a layer": lambda: Dense(2, activation="relu"),
    "a layer that is called": lambda: Dense(2)(x, x),
    "an argument that there is not": lambda: Dense(units=2),
    "an operator of Python": lambda: x + C.input_variable(3),
    "eval": lambda: model.eval({x: data}),
    "forward": lambda: model.forward({x: data}),
    "backward": lambda: model.backward(None, data, {x}),
    "grad": lambda: model.grad({x: data}, wrt=model.parameters),
    "clone": lambda: model.clone("copy"),
    "train": lambda: loss.train((data, data), parameter_learners=[C.sgd(model.parameters, 0.1)]),
    "test": lambda: loss.test((data, data)),
    "a learner": lambda: C.adam(model.parameters, 0.1),
    "a trainer": lambda: C.Trainer(model, loss, []),
    "train_minibatch": lambda: trainer().train_minibatch({x: data, y: data}),
    "test_minibatch": lambda: trainer().test_minibatch({x: data, y: data}),
    "an evaluator": lambda: C.Evaluator(loss).test_minibatch({x: data, y: data}),
    "a file": lambda: C.load_model("there is none"),
    "a source": lambda: C.io.MinibatchSource(C.io.CTFDeserializer("none", C.io.StreamDefs(x=C.io.StreamDef("x", 2)))),
    "a name": lambda: C.rellu,
    "an attribute": lambda: model.fit,
    "a function of Python inside": lambda: Sequential([lambda v: v + C.input_variable(3), Dense(2)])(x),
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES.keys())
def test_an_explained_error_shows_lines_of_the_user_alone(mistake: Callable[[], Any]) -> None:
    shown = frames(mistake)
    assert shown
    assert {frame.filename for frame in shown} == {__file__}


@pytest.mark.parametrize("mistake", [MISTAKES["eval"], MISTAKES["train"]], ids=["eval", "train"])
def test_all_frames_are_there_for_who_wants_them(mistake: Callable[[], Any]) -> None:
    few = frames(mistake)
    set_full_tracebacks(True)
    assert len(frames(mistake)) > len(few) + 2
    set_full_tracebacks(False)
    C.debugging.set_checked_mode(True)
    assert len(frames(mistake)) > len(few) + 2


class Failing(C.ops.functions.UserFunction):
    """An operator of the user's that fails."""

    def __init__(self, operand: Any) -> None:
        super().__init__([operand])

    def forward(self, argument: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        raise KeyError("mine")

    def infer_outputs(self) -> list[Any]:
        return [C.output_variable(2, np.float32, self.inputs[0].dynamic_axes)]


def test_the_users_own_line_in_an_operator_stays() -> None:
    with pytest.raises(RuntimeError, match="KeyError: 'mine'") as caught:
        C.user_function(Failing(x)).eval({x: data[:, :2]})
    told = caught.value.__cause__
    assert told is not None
    assert traceback.extract_tb(told.__traceback__) == []
    mine = told.__cause__
    assert isinstance(mine, KeyError)
    last = traceback.extract_tb(mine.__traceback__)[-1]
    assert (last.filename, last.name) == (__file__, "forward")


def ours(source: str, **names: Any) -> Callable[..., Any]:
    """The function *f* of a module of the package."""
    space: dict[str, Any] = {"__name__": "cntk.made_up", **names}
    exec(source, space)
    return space["f"]  # type: ignore[no-any-return]


def test_an_error_by_accident_keeps_all_frames() -> None:
    inner = ours("def f(): return None.nothing")
    assert [frame.name for frame in frames(answers(ours("def f(): return g()", g=inner)))] == ["call", "f", "f"]


def test_an_error_of_another_library_keeps_all_frames() -> None:
    assert [frame.name for frame in frames(answers(ours("def f(): return g(3)", g=int.from_bytes)))] == ["call", "f"]


def test_an_inner_boundary_does_not_hide_that_an_error_explains_itself() -> None:
    inner = answers(ours("def f(): raise ValueError('mistaken')"))
    assert frames(answers(ours("def f(): return g()", g=inner))) == []


def test_an_error_without_traceback_is_left_alone() -> None:
    error = ValueError("not raised")
    end_at_user(error)
    assert error.__traceback__ is None
    assert vars(error) == {}


def test_the_switch_comes_from_the_environment(tmp_path: Path) -> None:
    program = "import cntk as C\nC.layers.Dense(2, activation='relu')"
    (tmp_path / "program.py").write_text(program)
    lengths = {}
    for value in ("0", "1"):
        environment = {"CNTK_FULL_TRACEBACKS": value, "PATH": "", "HOME": str(tmp_path)}
        process = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True)
        lengths[value] = process.stderr.count("  File ")
        assert process.stderr.splitlines()[-1].startswith("TypeError: Dense: activation must be a function")
    assert lengths["0"] == 1
    assert lengths["1"] > 3


def test_the_switch_is_one_of_the_process() -> None:
    assert C.debugging.set_full_tracebacks is set_full_tracebacks
    set_full_tracebacks(True)
    assert full_tracebacks.value
