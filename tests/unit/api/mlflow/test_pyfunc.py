"""Predictions of models that MLflow has loaded: from dictionaries, arrays, frames and lists."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import cntk as C
import cntk.mlflow

# MLflow imports protobuf and others whose warnings are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

DATA = np.float32([[1, 2], [3, 4]])


@pytest.fixture
def pandas(mlflow: Any) -> Any:
    return pytest.importorskip("pandas")


def loaded(mlflow: Any, function: Any, **options: Any) -> Any:
    cntk.mlflow.save_model(function, "saved", **options)
    return mlflow.pyfunc.load_model("saved")


def dense() -> Any:
    return C.layers.Dense(3, activation=C.tanh, name="z")(C.input_variable(2, name="x"))


def test_one_input_takes_a_dictionary_an_array_or_a_column(mlflow: Any, pandas: Any) -> None:
    z = dense()
    model = loaded(mlflow, z)
    wanted = z.eval({z.x: DATA})
    for data in ({"x": DATA}, DATA, pandas.DataFrame({"x": DATA.tolist()}), pandas.DataFrame({"x": list(DATA)})):
        np.testing.assert_array_equal(model.predict(data), wanted)


def test_without_a_signature_lists_and_other_types_are_taken(mlflow: Any, pandas: Any) -> None:
    z = dense()
    model = loaded(mlflow, z, signature=False)
    wanted = z.eval({z.x: DATA})
    for data in (DATA.tolist(), DATA.astype(np.float64), {"x": DATA.tolist()}):
        np.testing.assert_array_equal(model.predict(data), wanted)
    frame = pandas.DataFrame(DATA, columns=["width", "height"])
    np.testing.assert_array_equal(np.stack(model.predict(frame)["z"]), wanted)


def test_a_frame_as_the_example_makes_its_columns_the_inputs(mlflow: Any, pandas: Any) -> None:
    z = dense()
    frame = pandas.DataFrame({"width": [1.0, 3.0], "height": [2.0, 4.0]}, index=[7, 9])
    model = loaded(mlflow, z, input_example=frame)
    assert model.metadata.signature.inputs.input_names() == ["width", "height"]
    for given in (frame, frame[["height", "width"]], frame.assign(other=1.0)):
        found = model.predict(given)
        assert found.index.tolist() == [7, 9]
        np.testing.assert_array_equal(np.stack(found["z"]), z.eval({z.x: DATA}))
    with pytest.raises(mlflow.MlflowException, match="missing inputs"):
        model.predict(frame[["width"]])


def test_results_of_one_number_are_a_column_of_numbers(mlflow: Any, pandas: Any) -> None:
    z = C.reduce_sum(C.input_variable(2, name="x"), name="z")
    found = loaded(mlflow, z, signature=False).predict(pandas.DataFrame(DATA))
    assert found["z"].tolist() == [3, 7]


def test_several_inputs_and_results_go_by_name(mlflow: Any, pandas: Any) -> None:
    x, y = C.input_variable((2, 2), name="x"), C.input_variable((), name="y")
    model = loaded(mlflow, C.combine([C.plus(x, y, name="sum"), C.element_times(y, 2, name="twice")]), signature=False)
    images, numbers = np.arange(12, dtype=np.float32).reshape(3, 2, 2), np.float32([1, 2, 3])
    for data in ({"x": images, "y": numbers}, {"x": images.tolist(), "y": [1, 2, 3]}):
        found = model.predict(data)
        np.testing.assert_array_equal(found["sum"], images + numbers[:, None, None])
        np.testing.assert_array_equal(found["twice"].reshape(-1), 2 * numbers)
    found = model.predict(pandas.DataFrame({"y": numbers, "x": images.reshape(3, 4).tolist()}))
    np.testing.assert_array_equal(np.stack(found["sum"]), images + numbers[:, None, None])
    with pytest.raises(ValueError, match="the model has 2 inputs, so data comes as a dictionary or table"):
        model.predict(images)


SEQUENCES = [np.float32([[1, 2], [3, 4], [5, 6]]), np.float32([[7, 8]])]


def recurrent() -> Any:
    return C.layers.Recurrence(C.layers.GRU(3), name="z")(C.sequence.input_variable(2, name="s"))


def test_a_list_of_dictionaries_is_answered_by_one(mlflow: Any) -> None:
    z = dense()
    found = loaded(mlflow, z, signature=False).predict([{"x": [1, 2]}, {"x": [3, 4]}])
    np.testing.assert_array_equal([row["z"] for row in found], z.eval({z.x: DATA}))


def padded(sequences: list[Any]) -> dict[str, Any]:
    array = np.zeros((len(sequences), max(map(len, sequences)), 2), np.float32)
    for own, sequence in zip(array, sequences, strict=True):
        own[: len(sequence)] = sequence
    return {"s": array, "sequence_lengths": np.array([len(sequence) for sequence in sequences])}


def test_sequences_are_padded_arrays_with_lengths(mlflow: Any) -> None:
    z = recurrent()
    wanted = z.eval({z.arguments[0]: SEQUENCES})
    found = loaded(mlflow, z).predict(padded(SEQUENCES))
    assert found["sequence_lengths"].tolist() == [3, 1]
    for own, sequence in zip(found["z"], wanted, strict=True):
        np.testing.assert_allclose(own[: len(sequence)], sequence, rtol=1e-6)
        assert not own[len(sequence) :].any()


def test_sequences_of_one_length_need_none(mlflow: Any) -> None:
    z = C.sequence.last(recurrent())
    data = np.ones((4, 5, 2), np.float32)
    found = loaded(mlflow, z, lengths=False).predict({"s": data})
    np.testing.assert_allclose(found, z.eval({z.arguments[0]: data}), rtol=1e-6)


def test_columns_of_a_frame_hold_sequences(mlflow: Any, pandas: Any) -> None:
    z = recurrent()
    frame = pandas.DataFrame({"s": [sequence.tolist() for sequence in SEQUENCES]})
    wanted = z.eval({z.arguments[0]: SEQUENCES})
    found = loaded(mlflow, z, input_example=frame).predict(frame)
    for own, sequence in zip(found["z"], wanted, strict=True):
        np.testing.assert_allclose(own, sequence, rtol=1e-6)


def test_sparse_inputs_take_dense_rows_or_indices(mlflow: Any) -> None:
    z = C.layers.Embedding(3)(C.input_variable(5, is_sparse=True, name="word"))
    cntk.mlflow.save_model(z, "indices", sparse="indices")
    words = np.array([4, 0, 2])
    wanted = z.E.value[words]
    np.testing.assert_allclose(mlflow.pyfunc.load_model("indices").predict({"word": words}), wanted, rtol=1e-6)
    np.testing.assert_allclose(loaded(mlflow, z).predict({"word": np.eye(5, dtype=np.float32)[words]}), wanted, rtol=1e-6)
    with pytest.raises(mlflow.MlflowException, match="dtype"):
        mlflow.pyfunc.load_model("indices").predict({"word": words.astype(np.float32)})


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16"])
def test_element_types(mlflow: Any, dtype: str) -> None:
    if dtype == "bfloat16":
        pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed: pip install opencntk[bfloat16]")
    outside = np.dtype("float32" if dtype == "bfloat16" else dtype)
    model = loaded(mlflow, C.input_variable(2, dtype=dtype, name="x") * 2)
    found = model.predict({"x": DATA.astype(outside)})
    assert found.dtype == outside
    np.testing.assert_array_equal(found, 2 * DATA)


def answered(mlflow: Any, model: Any, request: Any) -> Any:
    """What MLflow's server answers."""
    server = pytest.importorskip("mlflow.pyfunc.scoring_server")
    answer = server.invocations(json.dumps(request), "application/json", model, model.metadata.get_input_schema())
    return json.loads(answer.response)["predictions"]


@pytest.mark.parametrize(
    "request_of", [lambda rows: {"inputs": {"x": rows}}, lambda rows: {"inputs": rows}, lambda rows: {"instances": rows}]
)
def test_requests_for_tensors(mlflow: Any, request_of: Any) -> None:
    z = dense()
    found = answered(mlflow, loaded(mlflow, z), request_of(DATA.tolist()))
    np.testing.assert_allclose(found, z.eval({z.x: DATA}), rtol=1e-6)


def test_requests_for_frames_of_sequences(mlflow: Any, pandas: Any) -> None:
    z = recurrent()
    rows = [sequence.tolist() for sequence in SEQUENCES]
    model = loaded(mlflow, z, input_example=pandas.DataFrame({"s": rows}))
    found = answered(mlflow, model, {"dataframe_records": [{"s": row} for row in rows]})
    for own, sequence in zip(found, z.eval({z.arguments[0]: SEQUENCES}), strict=True):
        np.testing.assert_allclose(own["z"], sequence, rtol=1e-6)


def test_requests_for_padded_sequences(mlflow: Any) -> None:
    z = recurrent()
    request = {name: array.tolist() for name, array in padded(SEQUENCES).items()}
    found = answered(mlflow, loaded(mlflow, z), {"inputs": request})
    assert found["sequence_lengths"] == [3, 1]
    np.testing.assert_allclose(found["z"][0], z.eval({z.arguments[0]: SEQUENCES})[0], rtol=1e-6)
