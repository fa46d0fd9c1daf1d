"""Pickles and copies of functions and of what goes with them: what they compute, and what stays shared."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.extension import plugins
from cntk.layers.typing import Sequence, Tensor
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial

rng = np.random.default_rng(1)
Way = Callable[[Any], Any]


def pickled(item: Any, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(item, protocol))


either_way = pytest.mark.parametrize("way", [pickled, copy.deepcopy], ids=["pickle", "deepcopy"])


def floats(*shape: int) -> Any:
    return rng.random(shape).astype(np.float32)


def sequences(width: int) -> list[Any]:
    return [floats(steps, width) for steps in (3, 1, 4)]


class Twice(C.ops.functions.UserFunction):
    """Two times the operand, plus what an attribute says."""

    def __init__(self, x: Any, more: Any = None, name: str = "twice") -> None:
        super().__init__([x], name=name)
        self.more = more

    def infer_outputs(self) -> list[Any]:
        x = self.inputs[0]
        return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]

    def forward(self, x: Any, device: Any = None, outputs_to_retain: Any = None) -> Any:
        return None, 2 * x + (0 if self.more is None else self.more["shift"])

    def backward(self, state: Any, gradient: Any) -> Any:
        return 2 * gradient

    def clone(self, cloned_inputs: Any) -> Any:
        return Twice(*cloned_inputs, more=self.more, name=self.name)


class Scaled(Twice):
    """One that says how it is stored."""

    def serialize(self) -> Any:
        return {"stored": self.more["shift"]}

    @staticmethod
    def deserialize(inputs: Any, name: str, state: Any) -> Any:
        return Scaled(inputs[0], {"shift": state["stored"] + 1}, name)


# ---- functions -----------------------------------------------------------------------------------


def dense_network() -> Any:
    x = C.input_variable(3, name="x")
    return C.layers.Sequential([C.layers.Dense(4, activation=C.relu), C.layers.Dense(2, name="last")])(x), floats(5, 3)


def image_network() -> Any:
    x = C.input_variable((1, 8, 8))
    layers = [C.layers.Convolution2D((3, 3), 4, pad=True), C.layers.BatchNormalization(), C.layers.MaxPooling((2, 2)), C.layers.Dense(3)]
    return C.layers.Sequential(layers)(x), floats(2, 1, 8, 8)


def recurrence() -> Any:
    x = C.sequence.input_variable(3)
    layers = [C.layers.Recurrence(C.layers.LSTM(4)), C.layers.Recurrence(C.layers.GRU(2), go_backwards=True), C.layers.LayerNormalization()]
    return C.layers.Sequential(layers)(x), sequences(3)


def convolution_along_sequences() -> Any:
    return C.layers.SequentialConvolution((2,), 4, pad=True)(C.sequence.input_variable(3)), sequences(3)


def gathered_steps() -> Any:
    x = C.sequence.input_variable(())
    return C.sequence.gather(x, C.greater(x, 0.5)), [np.float32([1, 0, 1])]


def float16() -> Any:
    with C.default_options(dtype=np.float16):
        return C.layers.Dense(2)(C.input_variable(3)), np.ones((2, 3), np.float16)


def float64() -> Any:
    x = C.input_variable(3, dtype=np.float64)
    return C.times(x, C.parameter((3, 2), init=C.glorot_uniform(), dtype=np.float64)), np.ones((2, 3))


def sparse_constant() -> Any:
    links = C.constant(csr_matrix(np.eye(3, dtype=np.float32)))
    return C.times(C.input_variable(3), C.times(links, C.parameter((3, 2), init=1))), floats(2, 3)


def sparse_input() -> Any:
    return C.layers.Embedding(3)(C.input_variable(5, is_sparse=True)), csr_matrix(np.eye(5, dtype=np.float32)[:2])


def several_outputs() -> Any:
    x = C.input_variable(3)
    return C.combine([2 * x, x + 1, x]), floats(2, 3)


def typed_block() -> Any:
    @C.BlockFunction("Typed", "inst")
    def f(x: Tensor[3]) -> Any:  # type: ignore[valid-type]
        return x * 2

    return f(C.input_variable(3)), floats(2, 3)


def user_function() -> Any:
    return C.user_function(Twice(C.input_variable(3), {"shift": 5})) + 1, floats(2, 3)


FUNCTIONS = [
    *(dense_network, image_network, recurrence, convolution_along_sequences, gathered_steps, float16, float64, sparse_constant),
    *(sparse_input, several_outputs, typed_block, user_function),
]


def assert_equal_results(found: Any, expected: Any) -> None:
    if hasattr(expected, "toarray"):
        found, expected = found.toarray(), expected.toarray()
    if isinstance(expected, (dict, list)):
        values = (list(one.values()) if isinstance(one, dict) else one for one in (found, expected))
        for one, other in zip(*values, strict=True):
            assert_equal_results(one, other)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.filterwarnings("ignore:.*list of 3 samples")
@either_way
@pytest.mark.parametrize("make", FUNCTIONS)
def test_functions(make: Any, way: Way) -> None:
    function, data = make()
    made, argument = way((function, function.arguments[0]))
    assert made.arguments == (argument,)
    assert made.name == function.name
    assert argument is not function.arguments[0]
    assert not set(made.parameters) & set(function.parameters)
    assert_equal_results(made.eval(data), function.eval(data))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_protocol_keeps_results(protocol: int) -> None:
    function, data = dense_network()
    assert_equal_results(pickled(function, protocol).eval(data), function.eval(data))


SAMPLES = [(name, sample) for name in plugins.ops for sample in samples_of(plugins.ops.get(name))[:1]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_every_operator(name: str, sample: Any) -> None:
    trial = Trial(plugins.ops.get(name), sample, np.float32)
    made = copy.copy(trial)
    made.result, made.variables = pickled((trial.result, trial.variables))
    for found, expected in zip(made.result.outputs, trial.result.outputs, strict=True):
        assert (found.spec, found.uid) == (expected.spec, expected.uid)
    root, expected_root = made.result.root_function, trial.result.root_function
    assert (root.op_name, root.op.attributes.keys()) == (expected_root.op_name, expected_root.op.attributes.keys())
    assert_equal_results(made.evaluate(), trial.evaluate())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[name for name, _ in SAMPLES])
def test_every_operator_of_operands_that_are_not_known(name: str, sample: Any) -> None:
    trial = Trial(plugins.ops.get(name), sample, np.float32)
    places = [C.placeholder() for _ in trial.variables]
    try:
        result = sample.build(plugins.ops.get(name), places)
    except (ValueError, TypeError):
        return  # it wants to know operands when it is applied
    bound = dict(zip(places, trial.variables, strict=True))
    made, made_places = pickled((result, places))
    result.replace_placeholders({old: new for old, new in bound.items() if old in result.placeholders})
    made.replace_placeholders({old: new for old, new in zip(made_places, trial.variables, strict=True) if old in made.placeholders})
    other = copy.copy(trial)
    trial.result, other.result = result, made
    assert_equal_results(other.evaluate(), trial.evaluate())


LAYERS: dict[str, Callable[[], Any]] = {
    "Dense": lambda: C.layers.Dense(3),
    "Recurrence": lambda: C.layers.Recurrence(C.layers.LSTM(4)),
    "Convolution": lambda: C.layers.Convolution2D((3, 3), 4),
    "BatchNormalization": C.layers.BatchNormalization,
    "Attention": lambda: C.layers.AttentionModel(5),
    "Fold": lambda: C.layers.Fold(C.layers.GRU(3)),
    "Sequential": lambda: C.layers.Sequential([C.layers.Embedding(4), C.sequence.last, C.layers.Dense(2)]),
    "Function": lambda: C.Function(lambda a, b: a * b - 2 * b),
}


@either_way
@pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)
def test_layers_that_have_not_been_applied(make: Any, way: Way) -> None:
    layer = make()
    made = way(layer)
    assert str(made) == str(layer)
    assert [v.shape for v in made.parameters] == [v.shape for v in layer.parameters]


@either_way
def test_parameters_of_inferred_shape_begin_with_the_same_values(way: Way) -> None:
    layer = C.layers.Dense(10)
    made = way(layer)
    applied, made_applied = layer(C.input_variable(3)), made(C.input_variable(3))
    np.testing.assert_array_equal(made_applied.W.value, applied.W.value)
    with pytest.raises(ValueError, match="not known yet"):
        _ = pickled(C.layers.Dense(10)).W.value


def test_names_uids_and_attributes_are_kept() -> None:
    function, _ = dense_network()
    function.custom_attributes = {"version": (1, 2)}
    made = pickled(function)
    assert (made.uid, made.name, made.output.uid) == (function.uid, function.name, function.output.uid)
    assert [v.uid for v in made.parameters] == [v.uid for v in function.parameters]
    assert made.custom_attributes == {"version": (1, 2)}
    assert made.find_by_name("last", -1) is not None
    assert made.root_function.line == function.root_function.line


def test_deep_copies_are_nodes_of_their_own() -> None:
    function, _ = dense_network()
    function.custom_attributes = {"tags": ["a"]}
    made = copy.deepcopy(function)
    made.custom_attributes["tags"].append("b")
    assert function.custom_attributes == {"tags": ["a"]}
    assert {v.uid for v in made.parameters}.isdisjoint(v.uid for v in function.parameters)
    before = function.parameters[0].value
    made.parameters[0].value = before + 1
    np.testing.assert_array_equal(function.parameters[0].value, before)


def test_a_copy_has_the_same_leaves() -> None:
    p = C.placeholder(name="p")
    function = C.times(p, C.parameter((3, 2), init=1))
    made = copy.copy(function)
    assert made.parameters == function.parameters
    assert made.placeholders == function.placeholders
    made.replace_placeholder(C.input_variable(3))
    assert function.placeholders == (p,)
    assert copy.copy(function.parameters[0]) is not function.parameters[0]


def test_deep_graphs() -> None:
    x = C.input_variable(2)
    y = x
    for _ in range(3000):
        y = y + 0.5
    assert_equal_results(pickled(y).eval([[1, 2]]), y.eval([[1, 2]]))
    assert_equal_results(copy.deepcopy(y).eval([[1, 2]]), y.eval([[1, 2]]))


# ---- what is shared ------------------------------------------------------------------------------


@either_way
def test_what_is_shared_stays_shared(way: Way) -> None:
    x, y = C.input_variable(3), C.input_variable(2)
    z = C.layers.Sequential([C.layers.Dense(4, name="first"), C.layers.Dense(2)])(x)
    loss = C.cross_entropy_with_softmax(z, y)
    made = way({"loss": loss, "model": z, "parameter": z.parameters[0], "inputs": [x, y], "output": z.output, "inner": z.first})
    assert made["model"].parameters[0] is made["parameter"]
    assert made["loss"].parameters == made["model"].parameters
    assert set(made["loss"].arguments) == set(made["inputs"])
    assert made["output"] is made["model"].output
    assert made["output"] in made["loss"].root_function.inputs
    assert made["inner"].output in made["model"].root_function.inputs
    features, _ = made["inputs"]
    data = floats(2, 3)
    within = made["loss"].eval({features: data}, outputs=[made["output"]])
    assert_equal_results(within, made["model"].eval({features: data}))


@either_way
def test_recurrences_and_their_steps_stay_shared(way: Way) -> None:
    x = C.sequence.input_variable(3)
    h = C.layers.Recurrence(C.layers.LSTM(4))(x)
    last, first = C.sequence.last(h), C.sequence.first(h)
    one, other, between = way((last, first, h))
    assert one.parameters == other.parameters == between.parameters
    assert between.output in one.root_function.inputs
    assert between.output in other.root_function.inputs


def test_pickles_share_nothing_with_one_another() -> None:
    function, _ = dense_network()
    noise = C.random.uniform((2,), seed=3)
    data = pickle.dumps((function, noise))
    (one, drawn), (other, drawn_again) = pickle.loads(data), pickle.loads(data)
    assert not set(one.parameters) & set(other.parameters)
    assert drawn.root_function is not drawn_again.root_function
    np.testing.assert_array_equal(drawn.eval(), drawn_again.eval())


def test_functions_of_equal_uids_are_told_apart(tmp_path: Any) -> None:
    function, data = dense_network()
    function.save(tmp_path / "model.dnn")
    one, other = C.load_model(tmp_path / "model.dnn"), C.load_model(tmp_path / "model.dnn")
    other.parameters[0].value = other.parameters[0].value + 1
    both = pickled([one, other, C.combine([one, other])])
    assert_equal_results(both[0].eval(data), one.eval(data))
    assert_equal_results(both[1].eval(data), other.eval(data))
    assert both[2].outputs == (both[0].output, both[1].output)


# ---- user functions ------------------------------------------------------------------------------


def test_user_functions_keep_their_attributes() -> None:
    function = C.user_function(Twice(C.input_variable(2), {"shift": np.float32([1, 2])}))
    made = pickled(function)
    assert type(made.root_function) is Twice
    np.testing.assert_array_equal(made.root_function.more["shift"], [1, 2])
    np.testing.assert_array_equal(made.eval([[1, 1]]), [[3, 4]])


def test_user_functions_that_say_how_they_are_stored() -> None:
    function = C.user_function(Scaled(C.input_variable(2), {"shift": 3}, "named"))
    made = pickled(function)
    assert (made.root_function.more, made.name) == ({"shift": 4}, "named")


def test_user_functions_of_local_classes_are_refused() -> None:
    class Local(Twice):
        pass

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(C.user_function(Local(C.input_variable(2))))


# ---- training ------------------------------------------------------------------------------------

LEARNERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda p: C.sgd(p, 0.1),
    "momentum": lambda p: C.momentum_sgd(p, C.learning_parameter_schedule([0.1, 0.05], epoch_size=30), 0.9, l2_regularization_weight=0.01),
    "adam": lambda p: C.adam(p, 0.1, 0.9),
    "fsadagrad": lambda p: C.fsadagrad(p, 0.1, 0.9),
    "rmsprop": lambda p: C.rmsprop(p, 0.01, 0.9, 1.2, 0.5, 10, 0.1),
    "adadelta": lambda p: C.adadelta(p, 0.1),
    "adagrad": lambda p: C.adagrad(p, 0.1),
    "nesterov": lambda p: C.nesterov(p, 0.1, 0.9, gaussian_noise_injection_std_dev=0.01),
    "universal": lambda p: C.universal(lambda ps, gs: C.combine([C.assign(a, a - 0.1 * g) for a, g in zip(ps, gs, strict=True)]), p),
}


def trained(model: Any, loss: Any, learner: Any, arguments: Any, minibatches: Any) -> Any:
    trainer = C.Trainer(model, loss, [learner])
    for minibatch in minibatches:
        trainer.train_minibatch(dict(zip(arguments, minibatch, strict=True)))
    return trainer


@either_way
@pytest.mark.parametrize("make", LEARNERS.values(), ids=LEARNERS)
def test_training_goes_on_as_if_nothing_had_been(make: Any, way: Way) -> None:
    data = [(floats(6, 3), np.eye(2, dtype=np.float32)[rng.integers(0, 2, 6)]) for _ in range(12)]
    x, y = C.input_variable(3), C.input_variable(2)
    z = C.layers.Sequential([C.layers.Dense(4, activation=C.relu), C.layers.Dropout(0.3, seed=3), C.layers.Dense(2)])(x)
    loss = C.cross_entropy_with_softmax(z, y)
    learner = make(z.parameters)
    trained(z, loss, learner, (x, y), data[:6])
    arguments, model, criterion, made = way(((x, y), z, loss, learner))
    assert made.updated_parameters == model.parameters
    assert made.total_number_of_samples_seen() == 36
    trained(model, criterion, made, arguments, data[6:])
    trained(z, loss, learner, (x, y), data[6:])
    for found, expected in zip(model.parameters, z.parameters, strict=True):
        np.testing.assert_array_equal(found.value, expected.value)


@either_way
def test_a_pickled_trainer_goes_on_as_the_original(way: Way) -> None:
    x = C.input_variable(2)
    y = C.times(x, C.parameter((2, 1), init=1))
    trainer = trained(y, C.reduce_sum(y), C.momentum_sgd(y.parameters, 0.1, 0.9), [x], [(floats(3, 2),)])
    made, argument = way((trainer, x))
    assert made.total_number_of_samples_seen == 3
    data = floats(3, 2)
    trainer.train_minibatch({x: data})
    made.train_minibatch({argument: data})
    np.testing.assert_array_equal(made.model.parameters[0].value, y.parameters[0].value)


# ---- values and small things ---------------------------------------------------------------------


VALUES = {
    "dense": lambda: C.Value(floats(2, 3)),
    "one hot": lambda: C.Value.one_hot([[0, 1], [2]], 4),
    "sequences": lambda: C.Value.create(C.sequence.input_variable(2), [floats(3, 2), floats(1, 2)], seq_starts=[True, False]),
}


@pytest.mark.parametrize("way", [pickled, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("make", VALUES.values(), ids=VALUES)
def test_pickled_values_are_the_same(make: Any, way: Way) -> None:
    value = make()
    made = way(value)
    assert (made.shape, made.is_sparse, made.seq_starts) == (value.shape, value.is_sparse, value.seq_starts)
    x = C.sequence.input_variable(value.shape[-1], is_sparse=value.is_sparse)
    found, expected = ([one.as_sequences(x) if len(one.shape) > 2 else one.asarray()] for one in (made, value))
    assert_equal_results(found, expected)


def test_a_value_that_is_not_valid_any_more() -> None:
    x = C.input_variable(2)
    f = 2 * x
    value = f.eval({x: floats(1, 2)}, as_numpy=False)
    f.eval({x: floats(1, 2)}, as_numpy=False)
    with pytest.raises(RuntimeError, match="lasts until this is evaluated again"):
        pickle.dumps(value)


@either_way
def test_pickled_minibatches_are_the_same(way: Way) -> None:
    source = C.io.MinibatchSourceFromData({"x": ([floats(1, 2), floats(3, 2)], Sequence[Tensor[2]])})  # type: ignore[type-arg]
    minibatch = source.next_minibatch(10)
    made = way(minibatch)
    assert list(made) == list(minibatch)
    assert_equal_results(made[source.streams.x].as_sequences(), minibatch[source.streams.x].as_sequences())


@pytest.mark.parametrize("protocol", [2, 5])
@pytest.mark.parametrize(
    "make",
    [
        C.device.cpu,
        lambda: C.Axis(1),
        C.Axis.default_batch_axis,
        lambda: C.Axis("words"),
        lambda: C.learning_parameter_schedule([0.1, 0.2], epoch_size=3),
        lambda: C.momentum_as_time_constant_schedule(10),
        lambda: C.minibatch_size_schedule([1, 2]),
        lambda: C.input_variable(2).type,
        lambda: C.glorot_uniform(seed=3),
        lambda: C.CloneMethod.share,
        lambda: C.io.StreamInformation("x", 0, "dense", np.float32, (2,)),
    ],
)
def test_small_things(make: Any, protocol: int) -> None:
    item = make()
    assert pickled(item, protocol) == item
    assert copy.deepcopy(item) == item


def test_what_cannot_be_pickled_says_why(tmp_path: Any) -> None:
    (tmp_path / "data.ctf").write_text("|a 1 2\n")
    source = C.io.MinibatchSource(C.io.CTFDeserializer(str(tmp_path / "data.ctf"), C.io.StreamDefs(a=C.io.StreamDef("a", 2))))
    with pytest.raises(TypeError, match="make one where it is needed"):
        pickle.dumps(source)
    x = C.input_variable(2)
    f = 2 * x
    state, _ = f.forward({x: floats(1, 2)}, keep_for_backward={f.output})
    with pytest.raises(TypeError, match="state of a forward pass"):
        pickle.dumps(state)
