"""Helpers of CNTK's modules that packages of others call do what CNTK's do."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.debugging.debug import _DebugState, _nodes_to_debug
from cntk.internal import _serialize, _UDFDeserializeCallbackWrapper
from cntk.io import _dense_to_str, _process_image_deserializer_args, _sparse_to_str
from cntk.layers.blocks import _INFERRED, _get_initial_state_or_default, _initializer_for, _inject_name, _RecurrentBlock
from cntk.layers.layers import _pad_to_shape, _Pooling, _window
from cntk.layers.typing import _make_seq_meta, _make_tensor_meta
from cntk.learners import (
    _infer_learning_parameter_schedule,
    _infer_learning_rate_schedule_and_ref_minibatch_size,
    _prepare_training_parameter_list,
    _verify_learning_rate_type,
    _verify_momentum_type,
)
from cntk.logging.progress_print import _avg, _warn_deprecated
from cntk.train.training_session import _unpack_parameter_frequency


def test_the_inferred_shape() -> None:
    W = C.layers.blocks.Parameter((*_INFERRED, 3), init=_initializer_for(C.glorot_uniform()))
    assert C.times(C.input_variable(2), W).shape == (3,)
    assert W.shape == (2, 3)


def test_initializers() -> None:
    assert C.parameter(2, init=_initializer_for(0.5)).value.tolist() == [0.5, 0.5]
    given = C.he_normal(seed=1)
    assert _initializer_for(given) is given
    ranked = _initializer_for(given, {"output_rank": 2, "filter_rank": 1})
    assert repr(ranked) == repr(C.initializer_with_rank(given, output_rank=2, filter_rank=1))
    with pytest.raises(ValueError, match="init is None"):
        _initializer_for(None)


def test_initial_states() -> None:
    none, number, both = _get_initial_state_or_default(None), _get_initial_state_or_default(0.5), _get_initial_state_or_default((None, 2))
    assert (none.shape, none.value) == ((), 0)
    assert (number.shape, number.value.tolist()) == ((1,), [0.5])
    assert [state.shape for state in both] == [(), (1,)]
    state = C.input_variable(2)
    assert _get_initial_state_or_default(state) is state


def test_injecting_a_name() -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    f = C.relu(x)
    assert _inject_name(f, "") is f
    named = _inject_name(f, "rectified")
    assert (named.name, named.root_function.op_name) == ("rectified", "NoOp")
    assert _inject_name(C.combine([f, C.abs(y)]), "both").name == "both"
    assert _inject_name(lambda a: C.abs(a), "absolute").name == "absolute"


@pytest.mark.parametrize(("kind", "parameters"), [("LSTM", 3), ("GRU", 4), ("RNNStep", 3)])
def test_recurrent_blocks(kind: str, parameters: int) -> None:
    made = _RecurrentBlock(kind, 3, None, C.tanh, False, C.glorot_uniform(), 0, False, name="cell")
    assert made.name == "cell"
    assert made.root_function.op_name == kind
    assert len(C.layers.Recurrence(made)(C.sequence.input_variable(2)).parameters) == parameters


def test_recurrent_blocks_that_are_none() -> None:
    with pytest.raises(ValueError, match="expected 'LSTM', 'GRU' or 'RNNStep', got 'SRU'"):
        _RecurrentBlock("SRU", 3, None, C.tanh, False, 0, 0, False)
    with pytest.raises(ValueError, match="a GRU has no peepholes"):
        _RecurrentBlock("GRU", 3, None, C.tanh, True, 0, 0, False)


def test_arguments_for_each_axis_of_a_filter() -> None:
    assert _pad_to_shape((3, 3), 2, "strides") == (2, 2)
    assert _pad_to_shape((3, 3), (1, 2), "strides") == (1, 2)
    with pytest.raises(ValueError, match="strides"):
        _pad_to_shape((3, 3), (1, 2, 3), "strides")


def test_windows_of_a_sequence() -> None:
    x = C.sequence.input_variable((1, 2))
    window = _window(x, 0, -1, 2, 1, 1, initial_state=9)
    found = window.eval([np.float32([[[1, 2]], [[3, 4]]])])[0]
    assert found.tolist() == [[[9, 9], [1, 2], [3, 4]], [[1, 2], [3, 4], [9, 9]]]
    with pytest.raises(NotImplementedError, match="stride must be 1, got 2"):
        _window(x, 0, -1, 2, 1, 2)


def test_pooling_layers() -> None:
    pool = _Pooling(C.ops.PoolingType_Max, (2, 2), strides=2, op_name="MaxPooling", name="pool")
    image = C.input_variable((1, 2, 2))
    made = pool(image)
    assert (made.name, made.eval(np.float32([[[[1, 2], [3, 4]]]])).tolist()) == ("pool", [[[[4]]]])


def test_kinds_of_types() -> None:
    tensor = _make_tensor_meta("Tensor", is_sparse=True, dynamic_axes=[C.Axis.default_batch_axis()])
    assert tensor[3].is_sparse
    sequence = _make_seq_meta("Sequence", C.Axis.default_input_variable_dynamic_axes())
    assert sequence[C.layers.Tensor[2]].dynamic_axes == C.Axis.default_input_variable_dynamic_axes()


def test_schedules_are_prepared_as_in_cntk() -> None:
    assert _prepare_training_parameter_list([0.1, (2, 0.2)]) == [(1, 0.1), (2, 0.2)]
    assert _prepare_training_parameter_list(0.1) == 0.1
    assert _infer_learning_parameter_schedule(0.1, None, None)[0] == 0.1
    assert _infer_learning_parameter_schedule([0.1, 0.2], 32, 10).minibatch_size == 32
    schedule, size = _infer_learning_rate_schedule_and_ref_minibatch_size(True, None, 0.1, None)
    assert (schedule.minibatch_size, size) == (C.learners.IGNORE, C.learners.IGNORE)
    assert _infer_learning_rate_schedule_and_ref_minibatch_size(True, 5, 0.1, None)[1] == 5
    _verify_learning_rate_type(schedule)
    with pytest.raises(ValueError, match="learning_rate: expected a schedule, as learning_parameter_schedule"):
        _verify_learning_rate_type(0.1)
    with pytest.raises(ValueError, match="momentum: expected a schedule, as momentum_schedule"):
        _verify_momentum_type(0.9)
    with pytest.raises(ValueError, match="got 'fast'"):
        _infer_learning_parameter_schedule("fast", None, None)


def test_data_are_written_as_texts_of_cntk() -> None:
    assert _dense_to_str(np.float32([[0.5, 1], [2, 3]])) == "0.5 1.0 2.0 3.0"
    assert _sparse_to_str({5: 1.5, 2: 3}) == "2:3 5:1.5"


def test_streams_of_images() -> None:
    streams = C.io.StreamDefs(
        features=C.io.StreamDef(field="image", transforms=[C.io.transforms.crop()]), labels=C.io.StreamDef(field="label", shape=10)
    )
    filename, label, classes, image, transforms = _process_image_deserializer_args("map.txt", streams, "ImageDeserializer")
    assert (filename, label, classes, image, len(transforms)) == ("map.txt", "labels", 10, "features", 1)
    only = C.io.StreamDefs(features=C.io.StreamDef(field="image"))
    assert _process_image_deserializer_args("map.txt", only, "ImageDeserializer")[1].startswith("_ignore_labels_")
    with pytest.raises(ValueError, match="ImageDeserializer: streams are of the field 'image' or 'label', got"):
        _process_image_deserializer_args("map.txt", C.io.StreamDefs(x=C.io.StreamDef(field="sound")), "ImageDeserializer")


def test_user_functions_in_files() -> None:
    class Half(C.ops.functions.UserFunction):
        def __init__(self, x: Any) -> None:
            super().__init__([x], name="half")

        def infer_outputs(self) -> Any:
            return [C.output_variable(self.inputs[0].shape, self.inputs[0].dtype, self.inputs[0].dynamic_axes)]

        def serialize(self) -> dict[str, Any]:
            return {"factor": 0.5}

    described = _serialize(Half(C.input_variable(1)))
    assert (described["class"], described["state"], described["version"]) == ("Half", {"factor": 0.5}, 1)
    make = _UDFDeserializeCallbackWrapper({described["op_name"]: lambda inputs, name, state: (inputs, name, state)})
    assert make(["x"], "half", described) == (["x"], "half", {"factor": 0.5})
    with pytest.raises(ValueError, match="no callback makes the user function"):
        _UDFDeserializeCallbackWrapper()(["x"], "half", described)


def test_frequencies_and_averages() -> None:
    assert _unpack_parameter_frequency(10) == (10, C.DataUnit.sample)
    assert _unpack_parameter_frequency((2, C.DataUnit.sweep)) == (2, C.DataUnit.sweep)
    assert _unpack_parameter_frequency(None) == (None, C.DataUnit.sample)
    assert (_avg(6, 3), _avg((2, 8), (1, 3)), _avg(1, 0)) == (2, 3, 0)


def test_warnings_of_what_is_old() -> None:
    with pytest.warns(DeprecationWarning, match="DEPRECATED: use the other"):
        _warn_deprecated("use the other")


def test_debugging() -> None:
    x = C.input_variable(1, name="x")
    model = C.abs(C.relu(x, name="rectified"), name="absolute")
    nodes = _nodes_to_debug(model)
    assert {"rectified", "absolute"} <= {node.name for node in nodes}
    assert len(_DebugState(nodes).name_to_node["rectified"]) == 1


def test_data_types_and_layout() -> None:
    assert C.core._is_c_contiguous([np.ones((2, 2))])
    assert not C.core._is_c_contiguous(np.ones((2, 3)).T)
    dense = C.internal.sanitize._sparse_to_dense_network_cache((3,), False, None)
    assert dense.eval(C.Value.one_hot([1], 3)).tolist() == [[0, 1, 0]]
    assert C.internal.sanitize._sanitize_common_conv_args(2, [True, False]) == ((2,), [False, True])


@pytest.mark.parametrize("call", [C.install_samples, C.sample_installer.install_samples])
def test_samples_are_not_downloaded(call: Callable[[], Any]) -> None:
    with pytest.raises(RuntimeError, match="CNTK's samples are not downloaded"):
        call()


def test_checks_of_the_system_find_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        C.cntk_py_init.cntk_check_distro_info()
        C.cntk_py_init.cntk_check_libs()


def test_the_old_utils() -> None:
    from cntk.utils import get_train_eval_criterion, get_train_loss, one_hot

    x, w = C.input_variable(1), C.parameter(1, init=2)
    trainer = C.Trainer(None, (C.square(x * w), C.abs(x * w)), C.sgd([w], 0.1))
    trainer.train_minibatch({x: [[3.0]]})
    assert (get_train_loss(trainer), get_train_eval_criterion(trainer)) == (36, 6)
    assert one_hot([[1]], 3).shape == (1, 1, 3)
