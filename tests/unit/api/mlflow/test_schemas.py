"""Signatures of MLflow, made from functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.mlflow import model_signature

# MLflow imports protobuf and others whose warnings are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


def tensors(schema: Any) -> list[tuple[str, str, tuple[int, ...]]]:
    return [(spec.name, str(spec.type), spec.shape) for spec in schema.inputs]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_tensors_have_the_names_types_and_shapes_of_the_function(mlflow: Any, dtype: str) -> None:
    image, scale = C.input_variable((3, 4, C.FreeDimension), dtype=dtype, name="image"), C.input_variable((), dtype=dtype, name="scale")
    found = model_signature(C.plus(image * scale, 0, name="scaled"))
    assert tensors(found.inputs) == [("image", dtype, (-1, 3, 4, -1)), ("scale", dtype, (-1,))]
    assert tensors(found.outputs) == [("scaled", dtype, (-1, 3, 4, -1))]


def test_what_numpy_does_not_know_is_float32(mlflow: Any) -> None:
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install opencntk[bfloat16]")
    x = C.input_variable(2, dtype="bfloat16", name="x")
    assert tensors(model_signature(C.tanh(x)).inputs) == [("x", "float32", (-1, 2))]


def test_losses_and_metrics_are_left_out(mlflow: Any) -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(3, name="y")
    z = C.layers.Dense(3, name="z")(x)
    found = model_signature(C.combine([z, C.cross_entropy_with_softmax(z, y), C.classification_error(z, y)]))
    assert tensors(found.inputs) == [("x", "float32", (-1, 2))]
    assert tensors(found.outputs) == [("z", "float32", (-1, 3))]


def test_sequences_come_with_lengths_one_vector_for_each_axis(mlflow: Any) -> None:
    words, tags = C.sequence.input_variable(3, name="words"), C.sequence.input_variable((), name="tags")
    other = C.sequence.input_variable(3, sequence_axis=C.Axis("letters"), name="other")
    model = C.combine([C.plus(words * tags, 1, name="z"), C.sequence.last(other)])
    vectors = [("sequence_lengths", "int64", (-1,)), ("letters_lengths", "int64", (-1,))]
    steps = [("words", "float32", (-1, -1, 3)), ("tags", "float32", (-1, -1)), ("other", "float32", (-1, -1, 3))]
    assert tensors(model_signature(model).inputs) == [*steps, *vectors]
    assert tensors(model_signature(model, lengths=False).inputs) == steps
    assert tensors(model_signature(model).outputs)[-1] == vectors[0]


def test_sparse_inputs_are_dense_tensors_or_indices(mlflow: Any) -> None:
    words, topics = C.sequence.input_variable(50, is_sparse=True, name="words"), C.input_variable(7, is_sparse=True, name="topics")
    model = C.sequence.last(C.layers.Embedding(4)(words)) + C.layers.Embedding(4)(topics)
    assert tensors(model_signature(model).inputs)[:2] == [("words", "float32", (-1, -1, 50)), ("topics", "float32", (-1, 7))]
    assert tensors(model_signature(model, sparse="indices").inputs)[:2] == [("words", "int64", (-1, -1)), ("topics", "int64", (-1,))]
    with pytest.raises(ValueError, match="sparse must be 'dense' or 'indices', got 'csr'"):
        model_signature(model, sparse="csr")


def test_inputs_without_a_batch_axis_have_their_own_shape(mlflow: Any) -> None:
    table = C.input_variable((2, 3), dynamic_axes=[], name="table")
    assert tensors(model_signature(C.times(C.input_variable(2, name="x"), table)).inputs) == [
        ("x", "float32", (-1, 2)),
        ("table", "float32", (2, 3)),
    ]


def test_shapes_must_be_known(mlflow: Any) -> None:
    with pytest.raises(ValueError, match="no known type yet; replace the placeholders first"):
        model_signature(C.tanh(C.placeholder(name="x")))


def test_a_signature_survives_being_written(mlflow: Any) -> None:
    found = model_signature(C.tanh(C.sequence.input_variable((2, C.FreeDimension), dtype=np.float16, name="x")))
    assert type(found).from_dict(found.to_dict()) == found
