"""Members that CNTK's classes show beside what they offer; what they give is what CNTK 2.7 gave."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk import cntk_py
from cntk.compatibility.members import data, graph, training

TABLES = {**graph.MEMBERS, **data.MEMBERS, **training.MEMBERS}


def network() -> tuple[Any, Any, Any]:
    x, w = C.input_variable(3, name="x"), C.parameter((3, 2), init=1, name="w")
    return x, w, C.relu(C.times(x, w), name="r")


DATA = np.float32([[1, 2, 3]])


@pytest.mark.parametrize("target", list(TABLES), ids=lambda target: target.__name__)
def test_each_member_is_there_and_says_what_it_does(target: type) -> None:
    for name in vars(TABLES[target]):
        if not name.startswith("__"):
            member = getattr(target, name)
            assert name.startswith("_") or not callable(member) or member.__doc__, f"{target.__name__}.{name}"


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (C.Axis(0), "Axis('staticAxisIdx=0')"),
        (C.cpu(), "CPU"),
        (C.Value(np.ones((2, 3), np.float32)), "Value([2 x 3], CPU)"),
        (C.NDArrayView.from_dense(np.ones((2, 3), np.float32)), "NDArrayView([2 x 3], CPU)"),
        (C.parameter(2, name="p"), "Parameter('p', [], [2])"),
        (C.io.StreamInformation("n", 3, "dense", np.float32, (2, 3)), "n([2 x 3])"),
    ],
)
def test_as_string(thing: Any, text: str) -> None:
    assert thing.as_string() == text


def test_variables_have_the_members_of_cntk() -> None:
    x, w, f = network()
    assert (w.uid, w.name, w.is_initialized(), w.get_value().asarray().tolist()) == (w.uid, "w", True, [[1, 1]] * 3)
    before = w.current_value_time_stamp()
    w.value = np.zeros((3, 2))
    w.record_value_update()
    assert w.current_value_time_stamp() == before + 2
    with pytest.raises(RuntimeError, match=r"get_value\(\): only parameters and constants have a value"):
        x.get_value()
    assert C.constant(1.5).clone_as(cntk_py.DataType_Double).dtype == np.float64
    assert f.as_string().startswith("Composite(ReLU): Input('x', [#], [3])")


def test_evaluating_into_dictionaries() -> None:
    x, w, f = network()
    outputs: dict[Any, Any] = {f.output: None}
    f.evaluate({x: DATA}, outputs, C.cpu())
    assert outputs[f.output].asarray().tolist() == [[6, 6]]
    gradients: dict[Any, Any] = {w: None}
    f.gradients({x: DATA}, gradients, outputs, C.cpu())
    assert gradients[w].asarray().tolist() == [[1, 1], [2, 2], [3, 3]]
    state = f._forward({x: DATA}, outputs, C.cpu(), {f.output})
    back: dict[Any, Any] = {w: None}
    f._backward(state, {f.output: np.ones((1, 2), np.float32)}, back)
    assert back[w].asarray().tolist() == [[1, 1], [2, 2], [3, 3]]
    with pytest.raises(ValueError, match="give a dictionary with at least one of the outputs"):
        f.evaluate({x: DATA}, {})


def test_descriptions_and_files(tmp_path: Path) -> None:
    _, _, f = network()
    described = f.serialize()
    assert (described["type"], described["version"], f.current_version()) == ("CompositeFunction", 3, 3)
    assert C.Function._deserialize(described).eval(DATA).tolist() == [[6, 6]]
    f.save(tmp_path / "model")
    assert C.Function.load_from_buffer((tmp_path / "model").read_bytes(), C.cpu()).eval(DATA).tolist() == [[6, 6]]


def test_a_flat_copy_has_no_blocks() -> None:
    x = C.input_variable(3)
    model = C.layers.Sequential([C.layers.Dense(2, activation=C.relu), C.layers.Dense(1)])(x)
    flat = model.clone_flattened(cntk_py.ParameterCloningMethod_Share)
    assert not any(node.is_block for node in C.logging.depth_first_search(flat, lambda node: isinstance(node, C.Function)))
    assert set(flat.parameters) == set(model.parameters)
    np.testing.assert_array_equal(flat.eval(DATA), model.eval(DATA))
    assert set(model.clone_flattened().parameters).isdisjoint(model.parameters)


def test_custom_attributes_and_names() -> None:
    f = C.relu(C.input_variable(1)).root_function
    f.custom_attributes = {"a": 1}
    assert f.get_custom_attributes() == {"a": 1}
    assert f._get_or_reset_custom_attributes(True) == {}
    f.set_name("r")
    assert f.name == "r"


def test_functions_of_python() -> None:
    made = C.Function._to_Function(lambda a, b: a + b)
    assert [variable.name for variable in made.signature] == ["a", "b"]
    assert C.Function._to_Function(lambda a, b: a + b, True, "op", "nm").root_function.op_name == "op"
    function, arguments = C.Function._to_Function_unchecked(lambda a: a * 2)
    assert C.Function._sanitize_check_Function(function, arguments, lambda a: a * 2) is function
    with pytest.raises(TypeError, match="is to be replaced by a Variable or Function, got 3"):
        C.Function._replace_args_type_check({arguments[0]: 3})


def test_values_have_the_members_of_cntk() -> None:
    x = C.sequence.input_variable(2)
    value = C.Value.create(x, [np.ones((3, 2), np.float32), np.zeros((1, 2), np.float32)])
    views, starts = value.unpack_variable_value(x, True, C.cpu())
    assert ([view.shape for view in views], starts) == ([(3, 2), (1, 2)], (True, True))
    assert (value.masked_count(), C.Value.one_hot_skip) == (2, 4294967295)
    numbers: list[Any] = []
    value.copy_variable_value_to_float(x, numbers)
    assert numbers == [[1] * 6, [0, 0]]
    words = C.sequence.input_variable(3, is_sparse=True)
    C.Value.one_hot([[0, 2], [1]], 3).copy_variable_value_to(words, numbers)
    assert numbers == [[0, 2], [1]]


def test_devices_and_axes() -> None:
    assert C.DeviceDescriptor.cpu_device() == C.cpu()
    assert C.cpu() in C.DeviceDescriptor.all_devices()
    assert C.Axis.operand_sequence_axis().name == "__operandSequenceAxis"


def test_streams_and_minibatches() -> None:
    source = C.io.MinibatchSourceFromData({"x": np.arange(12, dtype=np.float32).reshape(4, 3)}, max_samples=8)
    stream = source.streams.x
    assert (stream.m_sample_layout.dimensions(), stream.m_is_binary, stream._storage) == ((3,), False, {"dense": 0, "sparse": 1})
    minibatch = source.next_minibatch(2)[stream]
    assert minibatch.as_string() == repr(minibatch)
    assert (minibatch.number_of_samples, minibatch.sweep_end) == (2, False)
    assert C.io.MinibatchSource.full_data_sweep == C.io.FULL_DATA_SWEEP


def test_trainers_have_the_members_of_cntk() -> None:
    x, w, f = network()
    loss = C.reduce_sum(f, axis=0)
    writer = C.logging.ProgressPrinter(10)
    trainer = C.Trainer(f, (loss, None), C.sgd([w], 0.1), writer)
    trainer.train_minibatch_overload_for_minibatchdata({x: np.repeat(DATA, 2, axis=0)})
    assert trainer.progress_writers() == [writer]
    seen = [trainer.total_number_of_units_seen(unit) for unit in (C.DataUnit.sample, C.DataUnit.minibatch, C.DataUnit.sweep)]
    assert seen == [2, 1, 0]
    assert list(trainer._train_test_mb_map_args(DATA)) == [x]
    assert trainer._train_test_mb_map_args({x: DATA}) == {x: DATA}
    learner = trainer.parameter_learners[0]
    assert learner._learning_rate_schedule[0] == 0.1
    learner.add_progress_writers([writer])
    learner.set_need_to_update_master_parameter()


def test_loss_and_metric() -> None:
    _, _, f = network()
    loss, metric = C.Trainer._get_loss_metric(f)
    assert (loss.outputs, metric) == ((f.output,), None)
    assert C.Trainer._get_loss_metric((f, f)) == (f, f)
    assert C.Trainer._get_loss_metric((f, None)) == (f, None)
    assert C.Trainer._get_loss_metric([f]) == (f, None)
    first, second = C.Trainer._get_loss_metric(C.combine([f, C.abs(f)]))
    assert [part.root_function.op_name for part in (first, second)] == ["Combine", "Combine"]
    with pytest.raises(ValueError, match="a loss and at most one metric, got 3 parts"):
        C.Trainer._get_loss_metric((f, f, f))


def test_distributed_learners_and_communicators() -> None:
    learner = C.train.distributed.data_parallel_distributed_learner(C.sgd([C.parameter(1)], 0.5), distributed_after=7)
    assert (learner.parallelization_after(), learner.minibatch_size_scale_factor()) == (7, 1.0)
    assert learner._learning_rate_schedule[0] == 0.5
    assert learner.get_communicator().is_main()
    array = np.float32([1, 2])
    communicator = C.train.distributed.mpi_communicator()
    communicator.aggregate_in_place([array])
    assert array.tolist() == [1, 2]
    assert [part.tolist() for part in communicator.concatenate([array])] == [[1, 2]]


@pytest.mark.parametrize("name", ["module_name", "deserialize_method_name", "restore_from_checkpoint"])
def test_what_only_the_engine_can_do(name: str) -> None:
    with pytest.raises(NotImplementedError, match=f"{name} is part of CNTK's native engine, which is not here; "):
        getattr(network()[2], name)()


def test_wrong_calls_name_the_class_that_shows_the_member() -> None:
    with pytest.raises(TypeError, match=r"Function\.clone_flattened\(\)"):
        network()[2].clone_flattened(1, 2, 3)


def test_sessions_call_their_hooks() -> None:
    x, w, f = network()
    trainer = C.Trainer(f, C.reduce_sum(f, axis=0), C.sgd([w], 0.1))
    calls: list[str] = []

    class Session(C.TrainingSession):
        def on_minibatch_start(self) -> None:
            calls.append("start")

        def on_minibatch_end(self) -> bool:
            calls.append("end")
            return True

        def get_minibatch_size(self) -> int:
            return 3

    source = C.io.MinibatchSourceFromData({"x": np.ones((6, 3), np.float32)}, max_samples=6)
    Session(trainer, source, 1, {x: source.streams.x}, None, None, None, None, None).train()
    assert calls[:4] == ["start", "end"] * 2
    assert trainer.total_number_of_samples_seen == 6


def test_a_session_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    def session(w: Any, x: Any) -> Any:
        loss = C.reduce_sum(C.times(x, w), axis=0)
        source = C.io.MinibatchSourceFromData({"x": np.ones((6, 3), np.float32)}, max_samples=6)
        config = C.CheckpointConfig(str(tmp_path / "checkpoint"), frequency=2, restore=False)
        return C.training_session(C.Trainer(None, loss, C.sgd([w], 0.1)), source, 2, {x: source.streams.x}, checkpoint_config=config)

    x, first, second = C.input_variable(3), C.parameter((3, 1)), C.parameter((3, 1))
    session(first, x).train()
    again = session(second, x)
    again.restore_from_checkpoint(tmp_path / "checkpoint")
    np.testing.assert_array_equal(second.value, first.value)


def test_copies_and_pickles_of_plain_objects_are_as_before() -> None:
    for thing in (C.Axis(1), C.cpu(), C.learning_parameter_schedule(0.1), cntk_py.NDShape((2, 3)), cntk_py.DictionaryValue("a")):
        assert copy.deepcopy(thing) == thing
        assert pickle.loads(pickle.dumps(thing)) == thing
