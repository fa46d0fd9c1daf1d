"""Models go through files and compute the same: ours, and those that CNTK 2.7 has saved (``tests/data/models``)."""

from __future__ import annotations

import contextlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core import plugins
from cntk.core.op import Sample
from cntk.ops.functions import UserFunction, native_user_function, register_native_user_function
from cntk.plugins.formats import reader
from cntk.testing import assert_close
from cntk.testing.samples import Trial

MODELS = Path(__file__).resolve().parents[1] / "data" / "models"
EXPECTED: dict[str, Any] = json.loads((MODELS / "expected.json").read_text(encoding="utf-8"))
"""Of each model data by uid of the input, results, names and uids of parameters, all as CNTK 2.7 gave them."""


def results(function: Any, feed: dict[Any, Any]) -> list[Any]:
    """Values of all outputs; those with dynamic axes by sample."""
    found = function.eval(feed) if feed else function.eval()
    values = [found[output] for output in function.outputs] if isinstance(found, dict) else [found]
    return [list(value) if isinstance(value, list) else [value] for value in values]


def dense(value: Any) -> Any:
    return value.toarray() if hasattr(value, "toarray") else np.asarray(value)


def check_same(one: list[Any], other: list[Any], message: str) -> None:
    for mine, its in zip(one, other, strict=True):
        for a, b in zip(mine, its, strict=True) if isinstance(mine, list) else [(mine, its)]:
            assert dense(a).shape == dense(b).shape, message
            assert_close(dense(a), dense(b), message)


def feed_of(function: Any, expected: dict[str, Any]) -> dict[Any, Any]:
    feed = {}
    for argument in function.arguments:
        data = dict(expected["inputs"])[argument.uid]
        if len(argument.dynamic_axes) == 1:
            feed[argument] = np.array(data, argument.dtype)
        else:
            feed[argument] = [(csr_matrix if expected["sparse"] else np.asarray)(np.array(part, argument.dtype)) for part in data]
    return feed


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("again", [False, True], ids=["theirs", "saved again"])
def test_models_of_cntk_compute_the_same(name: str, again: bool, tmp_path: Path) -> None:
    function = C.load_model(str(MODELS / f"{name}.model"))
    if again:
        function.save(tmp_path / "again")
        function = C.load_model(tmp_path / "again")
    expected = EXPECTED[name]
    found = results(function, feed_of(function, expected))
    for values, right in zip(found, expected["outputs"], strict=True):
        values = values[0] if isinstance(values[0], np.ndarray) and len(values) == 1 and len(right) != 1 else values
        for a, b in zip(values, right, strict=True):
            np.testing.assert_allclose(np.ravel(a), np.ravel(b), rtol=1e-5, atol=1e-6)
    assert [parameter.name for parameter in function.parameters] == expected["names"]
    assert [parameter.uid for parameter in function.parameters] == expected["uids"]


def test_attributes_of_the_user_come_from_cntks_file() -> None:
    function = C.load_model(str(MODELS / "feed_forward.model"))
    assert function.custom_attributes == {"author": "me", "epochs": 3, "rates": [0.5, 0.25], "nested": {"none": None, "flag": True}}
    assert function.find_by_name("hidden").is_block
    assert function.x.shape == (2, 3)


def test_half_precision_from_cntks_file() -> None:
    function = C.load_model((MODELS / "half.model").read_bytes())
    assert function.H.dtype is np.float16
    assert function.half.dtype is np.float16
    np.testing.assert_array_equal(function.H.value, np.array([[1, 2], [3, 4], [0.5, -1]], np.float16))


def cases() -> list[Any]:
    return [
        pytest.param(function, sample, id=f"{name}-{number}")
        for name in sorted(plugins.ops)
        for function in [plugins.ops.get(name)]
        for number, sample in enumerate(getattr(function, "samples", ()))
    ]


@pytest.mark.parametrize("as_blocks", [pytest.param(False, id="operators"), pytest.param(True, id="blocks", marks=pytest.mark.slow)])
@pytest.mark.parametrize(("function", "sample"), cases())
def test_every_operator(function: Any, sample: Sample, as_blocks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where what CNTK makes of others stays what it is in the file, and is not recognised as one of our operators."""
    if as_blocks:
        monkeypatch.setattr(reader, "recognised", lambda *_: None)
    trial = Trial(function, sample, np.float32)
    trial.result.save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    before, shapes = trial.evaluate(), [output.shape for output in trial.result.outputs]
    same = {variable.uid: variable for variable in loaded.inputs}
    trial.result, trial.variables = loaded, [same.get(variable.uid, variable) for variable in trial.variables]
    check_same(trial.evaluate(), before, "loaded and saved")
    assert [output.shape for output in loaded.outputs] == shapes


def recurrent() -> tuple[Any, Any]:
    x = C.sequence.input_variable(3, name="x")
    hidden = C.layers.Recurrence(C.layers.LSTM(4), name="memory")(x)
    return x, C.layers.Dense(2, name="out")(C.sequence.last(hidden))


def test_recurrence_and_its_gradients(tmp_path: Path) -> None:
    x, function = recurrent()
    function.save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    data = [np.random.default_rng(k).normal(size=(k, 3)).astype(np.float32) for k in (3, 1, 5)]
    check_same(results(loaded, {loaded.x: data}), results(function, {x: data}), "recurrence")
    mine = function.grad({x: data}, wrt=list(function.parameters))
    its = loaded.grad({loaded.x: data}, wrt=list(loaded.parameters))
    for a, b in zip(function.parameters, loaded.parameters, strict=True):
        assert a.uid == b.uid
        assert a.name == b.name
        assert_close(its[b], mine[a], a.name)


def test_shared_parameters_stay_shared_and_learn(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x")
    W = C.parameter((2, 2), init=0.5, name="W")
    C.times(C.tanh(C.times(x, W)), W).save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    assert len(loaded.parameters) == 1
    loss = C.reduce_sum(loaded)
    C.Trainer(loaded, (loss, None), [C.sgd(loaded.parameters, 0.5)]).train_minibatch({loaded.x: np.ones((1, 2), np.float32)})
    assert not np.array_equal(loaded.W.value, W.value)


def test_random_operators_go_on_where_they_were(tmp_path: Path) -> None:
    drawn = C.random.uniform((2,), seed=4)
    drawn.eval()
    drawn.save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.eval(), drawn.eval())


def test_two_nodes_with_one_uid(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x")
    (x + C.parameter(2, init=1)).save(tmp_path / "model")
    both = C.load_model(tmp_path / "model") * C.load_model(tmp_path / "model")
    both.parameters[0].value = np.float32([3, 4])
    both.save(tmp_path / "both")
    loaded = C.load_model(tmp_path / "both")
    assert sorted(p.value.tolist() for p in loaded.parameters) == [[1, 1], [3, 4]]


def test_placeholders_and_free_dimensions(tmp_path: Path) -> None:
    x = C.input_variable((C.FreeDimension, 2), name="x")
    (C.tanh(x) + C.placeholder(name="p")).save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    assert [p.name for p in loaded.placeholders] == ["p"]
    assert loaded.x.shape == (C.FreeDimension, 2)
    loaded.replace_placeholder(C.constant(1))
    assert_close(loaded.eval({loaded.x: np.zeros((1, 3, 2), np.float32)}), np.ones((1, 3, 2), np.float32), "free")


class Scaled(UserFunction):
    """A user function with a state."""

    def __init__(self, x: Any, factor: float, name: str = "scaled") -> None:
        super().__init__([x], name=name)
        self.factor = factor

    def infer_outputs(self) -> Any:
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return None, self.factor * x

    def serialize(self) -> dict[str, Any]:
        return {"factor": self.factor, "notes": ["a", 1, None], "array": np.float32([[1, 2]])}

    @staticmethod
    def deserialize(inputs: Any, name: str, state: Any) -> Any:
        assert state["notes"] == ["a", 1, None]
        assert state["array"].tolist() == [[1, 2]]
        return Scaled(inputs[0], state["factor"], name)


def test_user_functions(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x")
    (C.user_function(Scaled(x, 3.0)) + 1).save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    assert isinstance(loaded.scaled, Scaled)
    assert loaded.eval([[1, 2]]).tolist() == [[4, 7]]
    seen = []
    name = f"{Scaled.__module__}.Scaled"
    C.Function.register_udf_deserialize_callback(name, lambda inputs, name, state: seen.append(name) or Scaled(inputs[0], 10.0))
    assert C.load_model(tmp_path / "model").eval([[1, 2]]).tolist() == [[11, 21]]
    assert seen == ["scaled"]
    with pytest.raises(ValueError, match="already"):
        C.Function.register_udf_deserialize_callback(name, lambda *_: None)


def test_user_function_that_is_not_there(tmp_path: Path) -> None:
    made = type("Gone", (Scaled,), {"__module__": "no.such.module"})
    C.user_function(made(C.input_variable(2), 2.0)).save(tmp_path / "model")
    with pytest.raises(RuntimeError, match=r"no\.such\.module.*register_udf_deserialize_callback"):
        C.load_model(tmp_path / "model")


def test_native_user_functions(tmp_path: Path) -> None:
    register_native_user_function("Saved", "Cntk.ExtensibilityExamples-2.7", "CreateUserTimesFunction")
    x = C.input_variable(2, name="x")
    native_user_function("Saved", [C.parameter((2, 2), init=2), x], {"size": 2}, "product").save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    assert loaded.eval([[1, 2]]).tolist() == [[6, 6]]
    assert loaded.product.attributes == {"size": 2}


def test_restore(tmp_path: Path) -> None:
    _, function = recurrent()
    before = [parameter.value for parameter in function.parameters]
    function.save(tmp_path / "model")
    for parameter in function.parameters:
        parameter.value = parameter.value + 1
    function.restore(tmp_path / "model")
    for parameter, value in zip(function.parameters, before, strict=True):
        np.testing.assert_array_equal(parameter.value, value)
    with pytest.raises(ValueError, match="isomorphic"):
        C.tanh(C.input_variable(3)).restore(tmp_path / "model")
    x = C.input_variable(2)
    C.times(x, C.parameter((2, 3))).save(tmp_path / "other")
    with pytest.raises(ValueError, match="isomorphic"):
        C.times(x, C.parameter((2, 4))).restore(tmp_path / "other")


def test_what_cannot_be_saved_or_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not known yet"):
        C.times(C.placeholder(), C.parameter((C.InferredDimension, 3))).save(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="no_such_file"):
        C.load_model(tmp_path / "no_such_file")
    (tmp_path / "garbage").write_bytes(b"garbage")
    with pytest.raises(RuntimeError, match=r"garbage.*byte 0"):
        C.load_model(tmp_path / "garbage")
    for given in (b"garbage", bytearray(b"garbage")):
        with pytest.raises(RuntimeError, match="byte 0"):
            C.load_model(given)
    with pytest.raises(NotImplementedError, match="ONNX"):
        C.tanh(C.input_variable(2)).save(tmp_path / "model", format=C.ModelFormat.ONNX)


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "model"
    function = C.input_variable(2, name="x") + 1
    function.save(path)
    kept = path.read_bytes()
    function.custom_attributes = {"wrong": object()}
    with pytest.raises(TypeError, match="object"):
        function.save(path)
    assert path.read_bytes() == kept
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize("name", ["feed_forward", "lstm", "convolutional", "sequences"])
def test_damaged_files_are_refused(name: str) -> None:
    """Whatever is cut off or changed: a model, or an error that says so."""
    whole, chance = (MODELS / f"{name}.model").read_bytes(), random.Random(1)
    for size in sorted(chance.sample(range(len(whole)), 25)):
        with pytest.raises((ValueError, RuntimeError)):
            C.load_model(whole[:size])
    for _ in range(60):
        damaged = bytearray(whole)
        for _ in range(chance.choice([1, 1, 1, 4])):
            damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
        with contextlib.suppress(ValueError, RuntimeError):
            C.load_model(damaged)
