"""Models go through files and compute the same: ours, and those that CNTK 2.7 has saved (``tests/data/models``)."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import random
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.core.operators.samples import Sample
from cntk.ops.functions import UserFunction, native_user_function, register_native_user_function
from cntk.plugins.formats import reader
from cntk.plugins.formats.wire import NDShape, read_dictionary, write_dictionary
from cntk.testing import assert_close
from cntk.testing.samples import Trial

TESTS = Path(__file__).resolve().parents[1]
MODELS = TESTS / "data" / "models"
"""Models of the zoo as CNTK 2.7 has saved them; ``tests/crossing/run.py --keep`` makes them anew."""

sys.path.insert(0, str(TESTS / "crossing"))
import trial as crossing  # noqa: E402
import zoo  # noqa: E402

lists_of_samples = pytest.mark.filterwarnings("ignore:(?s).*was given a list of .* samples:UserWarning")


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


def test_every_model_of_the_zoo_is_there_as_cntk_saved_it() -> None:
    assert {path.stem for path in MODELS.glob("*.model")} == {path.stem for path in MODELS.glob("*.npz")} == set(zoo.MODELS)


@lists_of_samples
@pytest.mark.parametrize("name", zoo.MODELS)
def test_models_of_cntk_compute_the_same(name: str, tmp_path: Path) -> None:
    """Names and uids of parameters are the same too; and all that once more where we have saved the model again."""
    crossing.check(str(MODELS), name)
    C.load_model(str(MODELS / f"{name}.model")).save(tmp_path / f"{name}.model")
    shutil.copy(MODELS / f"{name}.npz", tmp_path)
    crossing.check(str(tmp_path), name)


@pytest.mark.slow
@lists_of_samples
@pytest.mark.parametrize("name", zoo.MODELS)
def test_models_of_ours_compute_the_same(name: str, tmp_path: Path) -> None:
    crossing.save(str(tmp_path), name)
    crossing.check(str(tmp_path), name)


@pytest.mark.slow
def test_models_cross_over_to_cntk() -> None:
    if not os.environ.get("CNTK27"):
        pytest.skip("CNTK27 names no program that runs a Python script on CNTK 2.7")
    names = ["dense_softmax", "decoder_with_attention", "strided_windows", "best_few"]
    done = subprocess.run([sys.executable, str(TESTS / "crossing" / "run.py"), *names], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "4 of 4 models cross over to CNTK 2.7, 4 of 4 from there" in done.stdout


def test_attributes_of_the_user_come_from_cntks_file() -> None:
    function = C.load_model(str(MODELS / "dense_softmax.model"))
    assert function.custom_attributes == {"author": "me", "epochs": 3, "rates": [0.5, 0.25], "nested": {"none": None, "flag": True}}
    assert function.find_by_name("hidden").is_block
    assert function.x.shape == (2, 3)


def test_half_precision_from_cntks_file() -> None:
    function = C.load_model((MODELS / "half_precision.model").read_bytes())
    assert function.W.dtype is np.float16
    assert function.x.dtype is np.float16
    np.testing.assert_array_equal(function.W.value, np.array([[1, 2], [3, 4], [0.5, -1]], np.float16))


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
    trial.result.restore(tmp_path / "model")
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


@pytest.mark.parametrize("distribution", [C.random.uniform, C.random.normal, C.random.gumbel], ids=["uniform", "normal", "gumbel"])
def test_random_operators_go_on_where_they_were(distribution: Any, tmp_path: Path) -> None:
    drawn = distribution((997,), seed=4)
    for _ in range(3):
        drawn.eval()
    drawn.save(tmp_path / "model")
    C.load_model(tmp_path / "model").save(tmp_path / "again")
    loaded = C.load_model(tmp_path / "again")
    for _ in range(2):
        np.testing.assert_array_equal(loaded.eval(), drawn.eval())


def operators(function: Any) -> list[str]:
    return [node.op_name for node in C.logging.depth_first_search(function.root_function, lambda node: hasattr(node, "op_name"))]


@pytest.mark.parametrize(
    "build",
    [
        lambda x: C.convolution(C.parameter((3, 2, 3), init=1), x, auto_padding=[False, True], sequential=True),
        lambda x: C.convolution(C.parameter((3, 2, 2), init=1), x, strides=(1, 2), auto_padding=[False], sequential=True),
        lambda x: C.reduce_sum(C.splice(x, x, axis=C.Axis.new_leading_axis()), axis=1, keepdims=False),
        lambda x: C.argmax(C.splice(x, x, axis=C.Axis.new_leading_axis()), axis=0),
        lambda x: C.combine(C.top_k(C.splice(x, x, axis=C.Axis.new_leading_axis()), 1, axis=0).outputs),
    ],
)
def test_operators_that_files_spell_out_are_recognised(build: Any, tmp_path: Path) -> None:
    function = build(C.sequence.input_variable(2, name="x"))
    function.save(tmp_path / "model")
    assert operators(C.load_model(tmp_path / "model")) == operators(function)


def test_parts_of_a_convolution_along_sequences_are_no_results(tmp_path: Path) -> None:
    whole = C.convolution(C.parameter((3, 2, 3), init=1), C.sequence.input_variable(2), auto_padding=[False, True], sequential=True)
    with pytest.raises(ValueError, match="within a convolution along sequences"):
        C.tanh(whole.root_function.inputs[0]).save(tmp_path / "model")


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


def test_operators_whose_block_depends_on_the_shape_of_a_placeholder_say_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"MeanVarianceNormalization .*needs the shape of an operand that is not known yet; give the plac"):
        C.mean_variance_normalization(C.placeholder()).save(tmp_path / "model")


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


def saved_as(path: Path, module: str, name: str) -> Path:
    """A model with a user function of a class that says that it is from elsewhere."""
    made = type(name, (Scaled,), {"__module__": module})
    C.user_function(made(C.input_variable(2), 2.0)).save(path)
    return path


def test_files_import_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "decoy_module.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = saved_as(tmp_path / "model", "decoy_module", "Decoy")
    for read in (C.load_model, lambda path: C.tanh(C.input_variable(2)).restore(path)):
        with pytest.raises(RuntimeError, match=r"'decoy_module' has not been imported.*import the module.*deserialize_callback"):
            read(path)
    assert "decoy_module" not in sys.modules
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("module", "name"), [("os", "system"), ("subprocess", "Popen"), ("builtins", "eval"), (__name__, "Missing")])
def test_only_user_functions_are_made_anew(module: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=f"'{module}' has no subclass of UserFunction called '{name}'"):
        C.load_model(saved_as(tmp_path / "model", module, name))


def test_user_functions_without_deserialize_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = type("Undone", (UserFunction,), {"__module__": __name__})
    monkeypatch.setattr(sys.modules[__name__], "Undone", made, raising=False)
    with pytest.raises(RuntimeError, match="does not define deserialize"):
        C.load_model(saved_as(tmp_path / "model", __name__, "Undone"))


def test_native_user_functions(tmp_path: Path) -> None:
    register_native_user_function("Saved", "Cntk.ExtensibilityExamples-2.7", "CreateUserTimesFunction")
    x = C.input_variable(2, name="x")
    native_user_function("Saved", [C.parameter((2, 2), init=2), x], {"size": 2}, "product").save(tmp_path / "model")
    loaded = C.load_model(tmp_path / "model")
    assert loaded.eval([[1, 2]]).tolist() == [[6, 6]]
    assert loaded.product.attributes == {"size": 2}


def test_restoring_puts_parameters_back(tmp_path: Path) -> None:
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


def test_formats_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError, match=r"'nonsense'; there are plugins for .*CNTKv2, ONNX, onnx, safetensors.*cntk doctor"):
        C.tanh(C.input_variable(2)).save(tmp_path / "model", format="nonsense")
    with pytest.raises(NotImplementedError, match="nonsense"):
        C.load_model(tmp_path / "model", format="nonsense")
    with pytest.raises(TypeError, match="got int 1"):
        C.tanh(C.input_variable(2)).save(tmp_path / "model", format=1)
    C.tanh(C.input_variable(2)).save(tmp_path / "model", format="CNTKv2")
    assert C.load_model(tmp_path / "model", format="CNTKv2").eval([[0, 0]]).tolist() == [[0, 0]]


def zipped() -> bytes:
    with zipfile.ZipFile(held := io.BytesIO(), "w") as archive:
        archive.writestr("a", "b")
    return held.getvalue()


STRANGE = [
    (b"", "an empty file"),
    (b"Once upon a time\n", "text, which begins with 'Once upon a time'"),
    (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
    (zipped(), "a zip archive"),
    (pickle.dumps({"W": [1, 2]}), "a Python pickle"),
    (b"\x89HDF\r\n\x1a\n" + bytes(8), "an HDF5 file"),
    (b"\x1f\x8b\x08" + bytes(9), "compressed with gzip"),
    (bytes(50), "nothing but zeros"),
]


@pytest.mark.parametrize(("data", "kind"), STRANGE, ids=[kind for _, kind in STRANGE])
def test_files_that_are_something_else(data: bytes, kind: str, tmp_path: Path) -> None:
    path = tmp_path / "strange"
    path.write_bytes(data)
    for read in (C.load_model, C.tanh(C.input_variable(2)).restore):
        with pytest.raises(RuntimeError, match=f"{path} is not a model file of CNTK 2, or damaged: byte .*it seems to be {kind}"):
            read(str(path))
    for given in (data, bytearray(data)):
        with pytest.raises(RuntimeError, match=f"<{len(data)} bytes> is not a model file .*{kind}"):
            C.load_model(given)


def test_what_is_no_file(tmp_path: Path) -> None:
    function = C.tanh(C.input_variable(2))
    for read in (C.load_model, function.restore):
        with pytest.raises(ValueError, match=f"cannot read the file '{tmp_path}/none': No such file"):
            read(tmp_path / "none")
        with pytest.raises(ValueError, match=f"'{tmp_path}' is a directory"):
            read(tmp_path)
        with pytest.raises(ValueError, match="cannot load int 3; expected the path of a file, or its content"):
            read(3)


def test_the_state_of_a_checkpoint_is_no_model(tmp_path: Path) -> None:
    state = C.cntk_py.Dictionary(kind="a checkpoint", learners=[])
    state.save(tmp_path / "model.ckp")
    with pytest.raises(RuntimeError, match=r"holds no function, but a dictionary with 'kind', 'learners'.*restore_from_checkpoint"):
        C.load_model(tmp_path / "model.ckp")


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


@pytest.mark.parametrize("name", ["dense_softmax", "lstm", "small_network", "ends_and_reductions", "strided_windows"])
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


def test_a_block_that_says_it_is_large_takes_no_memory(tmp_path: Path) -> None:
    """A reader compares a block with what it would be made of; that has a number for each pair of channels here."""
    x = C.input_variable((3, 2, 2), name="x")
    C.local_response_normalization(x, 1, 1.0, 0.1, 0.5).save(tmp_path / "model")
    found = read_dictionary((tmp_path / "model").read_bytes())
    for record in found["inputs"]:
        if record["shape"] == (3, 2, 2):
            record["shape"] = NDShape((2**30, 2, 2))
    (tmp_path / "model").write_bytes(b"".join(write_dictionary(found)))
    with pytest.raises(RuntimeError, match="cannot be read"):
        C.load_model(tmp_path / "model")
