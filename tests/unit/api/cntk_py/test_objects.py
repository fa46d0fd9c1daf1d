"""Objects, numbers and functions of the engine; what they give is what CNTK 2.7 gave."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk import cntk_py


def test_a_shape_is_made_from_the_last_axis_and_read_from_the_first() -> None:
    shape = cntk_py.NDShape((2, 3, 4))
    assert shape.dimensions() == (4, 3, 2)
    assert [shape[0], shape[1], shape[2]] == [4, 3, 2]
    assert str(shape) == shape.as_string() == "[4 x 3 x 2]"
    assert (shape.rank(), shape.total_size(), len(shape)) == (3, 24, 3)
    assert (shape.sub_shape(1), shape.sub_shape(0, 1), shape.sub_shape(1, 2)) == ((4, 3), (2,), (3,))
    assert [shape.is_unknown(), shape.is_scalar(), shape.has_unbound_dimension()] == [False] * 3
    assert C.input_variable(shape).shape == (4, 3, 2)


def test_shapes_that_are_not_known() -> None:
    assert cntk_py.NDShape(3).dimensions() == (-1, -1, -1)
    assert cntk_py.NDShape(2, 5).dimensions() == (5, 5)
    assert cntk_py.NDShape().is_scalar()
    unknown = cntk_py.NDShape.unknown()
    assert (unknown.dimensions(), unknown.as_string(), unknown.is_unknown()) == ((-2,), "[???]", True)
    assert cntk_py.NDShape((2, C.FreeDimension)).has_free_dimension()
    with pytest.raises(ValueError, match="the number of elements is not known"):
        cntk_py.NDShape((2, C.InferredDimension)).total_size()


def test_a_mask() -> None:
    mask = cntk_py.NDMask((2, 3), C.cpu())
    mask.invalidate_section([0, 1], (1, 2))
    assert mask.to_ndarray().tolist() == [[1, 1, 1], [0, 0, 1]]
    mask.mark_sequence_begin([0, 0])
    assert mask.asarray().tolist() == [[2, 1, 1], [0, 0, 1]]
    copy, same = mask.deep_clone(), mask.alias()
    mask.clear()
    assert (copy.masked_count(), same.masked_count()) == (2, 0)
    assert (mask.shape().dimensions(), mask.device()) == ((2, 3), C.cpu())
    with pytest.raises(ValueError, match=r"a block of shape \(1, 1\) at \(1, 3\) reaches outside the mask of shape \(2, 3\)"):
        mask.mark_sequence_begin([3, 1])


def test_enumerations_have_the_numbers_of_cntk() -> None:
    assert (cntk_py.DataUnit_Sweep, cntk_py.DataUnit_Sample, cntk_py.DataUnit_Minibatch) == (0, 1, 2)
    assert (cntk_py.MaskKind_Invalid, cntk_py.MaskKind_Valid, cntk_py.MaskKind_SequenceBegin) == (0, 1, 2)
    assert (cntk_py.VariableKind_Input, cntk_py.VariableKind_Placeholder) == (0, 4)
    assert (cntk_py.PoolingType_Max, cntk_py.PoolingType_Average) == (C.MAX_POOLING, C.AVG_POOLING) == (0, 1)
    assert cntk_py.sentinel_value_for_auto_select_random_seed == C.SentinelValueForAutoSelectRandomSeed
    assert cntk_py.default_profiler_buffer_size == 33554432


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: cntk_py.data_type_name(cntk_py.DataType_Float16), "Float16"),
        (lambda: cntk_py.data_type_size(cntk_py.DataType_Double), 8),
        (lambda: cntk_py.device_kind_name(1), "GPU"),
        (lambda: cntk_py.variable_kind_name(4), "Placeholder"),
        (lambda: cntk_py.is_sparse_storage_format(cntk_py.StorageFormat_SparseCSC), True),
        (lambda: cntk_py.momentum_from_time_constant(1000), 0.999000499833375),
        (lambda: cntk_py.number_of_workers(), 1),
        (lambda: cntk_py.worker_global_rank(), 0),
        (lambda: cntk_py.get_mpipack_threshold(), 33554432),
        (lambda: cntk_py.is_synchronous_gpukernel_execution_enabled(), False),
        (lambda: cntk_py.Axis_eq(C.Axis(0), C.Axis(0)), True),
        (lambda: cntk_py.Axis_all_static_axes(), C.Axis.all_static_axes()),
        (lambda: cntk_py.DeviceDescriptor_cpu_device(), C.cpu()),
    ],
)
def test_answers(call: Callable[[], Any], expected: Any) -> None:
    assert call() == expected


def test_there_is_no_name_for_other_numbers() -> None:
    with pytest.raises(ValueError, match=r"77 is the number of no element type; there are 1 \(Float\)"):
        cntk_py.data_type_name(77)
    with pytest.raises(ValueError, match=r"7 is no kind of variable; there are 0 \(Input\)"):
        cntk_py.variable_kind_name(7)


def test_identifiers_are_new_each_time() -> None:
    first, second = cntk_py.generate_uid("abc"), cntk_py.generate_uid("abc")
    assert first != second
    assert first.startswith("abc")
    assert cntk_py.generate_uid(cntk_py.VariableKind_Input).startswith("Input")
    assert cntk_py.new_unique_id() < cntk_py.new_unique_id()


def test_checked_mode_is_the_one_of_debugging() -> None:
    x = C.input_variable(1)
    cntk_py.set_checked_mode(True)
    try:
        with pytest.raises(ValueError, match="produced NaN"):
            (C.log(x) * 1).eval([[np.nan]])
    finally:
        cntk_py.set_checked_mode(False)


def test_dictionaries() -> None:
    found = cntk_py.Dictionary()
    found["a"] = 1
    more = cntk_py.Dictionary()
    more["b"] = [1, 2.5]
    found.add(more)
    assert (found.size(), found.contains("b"), found["b"], found["c"]) == (2, True, [1, 2.5], None)


@pytest.mark.parametrize(
    ("value", "kind", "name"),
    [
        (None, 0, "None"),
        (True, 1, "Bool"),
        (1, 2, "Int"),
        (2.5, 5, "Double"),
        ("s", 6, "String"),
        ([1, 2], 9, "Vector"),
        ({"a": 1}, 10, "Dictionary"),
        (np.ones(2, np.float32), 11, "NDArrayView"),
        (C.learning_parameter_schedule(1), 12, "TrainingParameterSchedule"),
    ],
)
def test_types_of_values(value: Any, kind: int, name: str) -> None:
    held = C.internal.utils._to_cntk_dict_value(value)
    assert held.value_type() == kind
    assert cntk_py.DictionaryValue.type_name(kind) == name
    assert held.has_value() is (value is not None)


def test_parameters_constants_and_views() -> None:
    parameter = cntk_py.ParameterFloat((2,), 1.5, C.cpu(), "p")
    assert (parameter.name, parameter.dtype, parameter.value.tolist()) == ("p", np.float32, [1.5, 1.5])
    assert cntk_py.ConstantDouble((2,), 3.0).dtype == np.float64
    assert cntk_py.Constant_scalar(2, 3.0).value == C.Constant.scalar(np.float64, 3.0).value == 3
    assert cntk_py.NDArrayViewFloat(2.0, (2,), C.cpu()).asarray().tolist() == [2, 2]
    drawn = cntk_py.NDArrayView_random_uniform_float((2, 3), 0.0, 1.0, 5, C.cpu()).asarray()
    np.testing.assert_allclose(drawn, [[0.6730649, 0.03849461, 0.22528856], [0.67593217, 0.09036689, 0.09634243]], rtol=1e-6)


def test_variables_are_made_of_what_the_engine_takes() -> None:
    batch = C.Axis.default_batch_axis()
    x = cntk_py.input_variable((2, 3), True, 2, True, "x", [C.Axis.default_dynamic_axis(), batch])
    assert (x.shape, x.is_sparse, x.dtype, x.needs_gradient, x.name) == ((2, 3), True, np.float64, True, "x")
    assert x.dynamic_axes == C.Axis.default_input_variable_dynamic_axes()
    plain = cntk_py.input_variable((2,), cntk_py.DataType_Float, "y", [batch])
    assert (plain.is_sparse, plain.needs_gradient, plain.name) == (False, False, "y")
    assert cntk_py.placeholder_variable("p").name == "p"
    assert cntk_py.placeholder_variable((2, 3), [batch]).shape == (2, 3)
    assert cntk_py.output_variable((2,), 1, [batch], "out").name == "out"
    with pytest.raises(TypeError, match="got 'more' where there is no place for it"):
        cntk_py.input_variable((2,), 1, "y", [batch], "more")


def test_values_from_numbers() -> None:
    x, words = C.sequence.input_variable(2), C.sequence.input_variable(3, is_sparse=True)
    dense = cntk_py.Value_create_dense_float((2,), [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]], C.cpu(), False)
    assert [part.tolist() for part in dense.as_sequences(x)] == [[[1, 2], [3, 4]], [[5, 6]]]
    assert dense.masked_count() == 1
    hot = C.Value.create_one_hot_float(3, [[0, 1], [2]], C.cpu(), False)
    assert [part.toarray().argmax(axis=1).tolist() for part in hot.as_sequences(words)] == [[0, 1], [2]]
    assert cntk_py.Value_create_batch_double((2,), [1.0, 2.0, 3.0, 4.0]).asarray().tolist() == [[1, 2], [3, 4]]
    assert cntk_py.Value_create_batch_float(3, [0, 2], C.cpu(), False).shape == (2, 1, 3)
    sequence = cntk_py.Value_create_sequence_float(3, [0, 2], True, C.cpu(), False)
    assert (sequence.shape, sequence.is_sparse, sequence.get_storage_format()) == ((1, 2, 3), True, 1)
    views = [C.NDArrayView.from_dense(np.ones((steps, 2), np.float32)) for steps in (1, 3)]
    assert [len(part) for part in cntk_py.Value_create((2,), views, [True, False], C.cpu(), False).as_sequences(x)] == [1, 3]


def test_streams_are_configured_as_in_the_engine(tmp_path: Path) -> None:
    path = tmp_path / "data.ctf"
    path.write_text("|x 1 2 |y 1\n|x 3 4 |y 0\n")
    streams = [cntk_py.StreamConfiguration("features", 2, False, "x"), cntk_py.StreamConfiguration("labels", 1, False, "y")]
    config = cntk_py.MinibatchSourceConfig([cntk_py.ctf_deserializer(os.fspath(path), streams)], False)
    config.max_sweeps = 1
    source = cntk_py.create_composite_minibatch_source(config)
    data = source.next_minibatch(2)
    assert data[source.streams.features].asarray().tolist() == [[[1, 2]], [[3, 4]]]
    assert source.next_minibatch(1) == {}


def test_readers_of_images_and_speech_know_their_streams(tmp_path: Path) -> None:
    crop = cntk_py.reader_crop("center", (4, 4), (0.0, 0.0), (0.0, 0.0), (1.0, 1.0), "none")
    (tmp_path / "map.txt").write_text("")
    made = cntk_py.image_deserializer(os.fspath(tmp_path / "map.txt"), "labels", 10, "images", [crop])
    assert [info.name for info in made.stream_infos()] == ["images", "labels"]
    speech = cntk_py.HTKFeatureConfiguration("features", "list.scp", 3, 1, 2, False)
    assert (speech.m_dim, speech.m_left, speech.m_right, speech.m_stream_name) == (3, 1, 2, "features")


def test_trainers_and_sessions() -> None:
    x, y, w = C.input_variable(1), C.input_variable(1), C.parameter(1)
    loss = C.squared_error(x * w, y)
    trainer = cntk_py.create_trainer(None, loss, loss, [C.sgd([w], 0.1)])
    assert trainer.train_minibatch({x: [[1.0]], y: [[2.0]]})
    assert trainer.evaluation_function is not None
    assert cntk_py.create_trainer(None, loss, [C.sgd([w], 0.1)]).evaluation_function is None
    source = C.io.MinibatchSourceFromData({"x": np.ones((4, 1), np.float32), "y": np.ones((4, 1), np.float32)}, max_samples=4)
    session = cntk_py.create_training_session(trainer, source, 2, {x: source.streams.x, y: source.streams.y})
    session.train()
    assert trainer.total_number_of_samples_seen == 5
    assert cntk_py.create_evaluator(loss).test_minibatch({x: [[1.0]], y: [[1.0]]}) >= 0


def test_distributed_learners() -> None:
    w = C.parameter(1)
    communicator = cntk_py.mpicommunicator()
    plain = cntk_py.create_data_parallel_distributed_learner(communicator, C.sgd([w], 0.1), 10, False)
    assert isinstance(plain, C.DistributedLearner)
    assert plain.parallelization_after() == 10
    block = cntk_py.create_block_momentum_distributed_learner(communicator, C.sgd([w], 0.1), 5, 100, 0.5, True, True, 1.0)
    assert block.parallelization_after() == 5
    assert cntk_py.create_block_momentum_distributed_learner(communicator, C.sgd([w], 0.1), 0, 100, True, True, 1.0)
    quantised = cntk_py.create_quantized_data_parallel_distributed_learner(
        cntk_py.quantized_mpicommunicator(True, True, 1), C.sgd([w], 0.1), 0, False
    )
    assert quantised.strategy is not None


def test_the_librarys_name_shows_the_same() -> None:
    import _cntk_py

    assert _cntk_py.InferredDimension == C.InferredDimension
    assert _cntk_py.times is cntk_py.times
    assert "NDShape" in dir(_cntk_py)
    with pytest.raises(AttributeError, match="nonsense"):
        _ = _cntk_py.nonsense
