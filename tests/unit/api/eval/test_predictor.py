"""Models applied to dictionaries, lists, tables and iterators."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.eval import Predictor

ROWS = np.random.default_rng(1).normal(size=(11, 3)).astype(np.float32)
STEPS = [np.random.default_rng(n).normal(size=(n, 2)).astype(np.float32) for n in (3, 1, 4, 2, 2)]
NAMES = [f"x_{i}" for i in range(3)]


def dense() -> C.Function:
    x = C.input_variable(3, name="x")
    return C.combine([C.layers.Dense(2, name="z")(x), C.layers.Dense(1, name="w")(x)])


def recurrent() -> C.Function:
    return C.layers.Recurrence(C.layers.GRU(4), name="h")(C.sequence.input_variable(2, name="s"))


def pandas_frame(columns: dict[str, Any]) -> Any:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({name: list(column) for name, column in columns.items()})


def polars_frame(columns: dict[str, Any]) -> Any:
    polars = pytest.importorskip("polars", reason="needs polars")
    return polars.DataFrame(
        {name: [part.tolist() if isinstance(part, np.ndarray) else part for part in column] for name, column in columns.items()}
    )


def arrow_table(columns: dict[str, Any]) -> Any:
    pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
    return pyarrow.table(
        {name: [part.tolist() if isinstance(part, np.ndarray) else part for part in column] for name, column in columns.items()}
    )


def arrow_batch(columns: dict[str, Any]) -> Any:
    return arrow_table(columns).to_batches()[0]


TABLES = pytest.mark.parametrize("table", [pandas_frame, polars_frame, arrow_table, arrow_batch])


def column(table: Any, name: str) -> list[Any]:
    """A column as arrays and numbers."""
    cells = table[name]
    return [np.array(cell) for cell in (cells.to_pylist() if hasattr(cells, "to_pylist") else cells.to_list())]


def require_equal(found: Any, expected: Any) -> None:
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch_rows", [1, 4, 11, 1000])
def test_chunks_keep_the_order(batch_rows: int) -> None:
    model = dense()
    found = Predictor(model, batch_rows=batch_rows)({"x": ROWS})
    expected = model.eval({model.arguments[0]: ROWS})
    for output in model.outputs:
        require_equal(found[output.owner.name], expected[output])


@pytest.mark.parametrize("batch_rows", [1, 2, 5])
def test_sequences_keep_the_order(batch_rows: int) -> None:
    model = recurrent()
    predictor, expected = Predictor(model, batch_rows=batch_rows), model.eval(STEPS)
    for given in (STEPS, [part.tolist() for part in STEPS], {"s": np.concatenate(STEPS), "sequence_lengths": [3, 1, 4, 2, 2]}):
        found = predictor(given)
        require_equal(found["h"] if isinstance(found, dict) else found, expected)


def test_results_are_of_the_kind_of_the_data() -> None:
    several, one = Predictor(dense(), batch_rows=2), Predictor(dense(), "z")
    assert one(ROWS).shape == one(ROWS.tolist()).shape == (11, 2)
    assert {name: found.shape for name, found in several(ROWS).items()} == {"z": (11, 2), "w": (11, 1)}
    records = several([{"x": row} for row in ROWS])
    np.testing.assert_array_equal(np.stack([row["z"] for row in records]), several(ROWS)["z"])
    assert next(several(iter([ROWS[:3], {"x": ROWS}])))["z"].shape == (3, 2)


def test_iterators_are_read_as_results_are_asked_for() -> None:
    asked = []

    def parts() -> Any:
        for i in range(1000):
            asked.append(i)
            yield ROWS

    results = Predictor(dense(), "z")(parts())
    assert asked == []
    next(results)
    assert asked == [0]


def test_large_arrays_are_converted_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = Predictor(dense(), "z", batch_rows=4)
    largest = []
    rows = predictor.signature.rows
    monkeypatch.setattr(predictor.signature, "rows", lambda data: largest.append(len(data["x"])) or rows(data))
    predictor({"x": ROWS.astype(np.float64)})
    assert largest == [4, 4, 3]


@TABLES
def test_columns_are_features(table: Callable[..., Any]) -> None:
    data = table({"id": [f"row {i}" for i in range(11)], **dict(zip(NAMES, ROWS.T.astype(np.float64), strict=True))})
    model = dense()
    found = Predictor(model, keep=["id"], batch_rows=4)(data)
    assert type(found) is type(data)
    assert [cell.item() for cell in column(found, "id")] == [f"row {i}" for i in range(11)]
    expected = Predictor(model)(ROWS)
    require_equal(column(found, "z"), expected["z"])
    require_equal(column(found, "w"), expected["w"][:, 0])


@TABLES
def test_a_column_of_vectors(table: Callable[..., Any]) -> None:
    model = dense()
    found = Predictor(model, batch_rows=3)(table({"other": range(11), "x": ROWS}))
    require_equal(column(found, "z"), Predictor(model, "z")(ROWS))


@TABLES
def test_a_column_of_sequences(table: Callable[..., Any]) -> None:
    model = recurrent()
    expected = model.eval(STEPS)
    for cells in (STEPS, [part.ravel() for part in STEPS]):
        found = Predictor(model, batch_rows=2)(table({"s": cells}))
        require_equal(column(found, "h"), expected)


@TABLES
def test_features_of_steps_in_columns_of_their_own(table: Callable[..., Any]) -> None:
    model = recurrent()
    data = table({"a": [part[:, 0] for part in STEPS], "b": [part[:, 1] for part in STEPS]})
    require_equal(column(Predictor(model, columns={"s": ["a", "b"]})(data), "h"), model.eval(STEPS))


@TABLES
def test_columns_of_class_numbers(table: Callable[..., Any]) -> None:
    words, user = C.sequence.input_variable(9, is_sparse=True, name="words"), C.input_variable(4, is_sparse=True, name="user")
    model = C.layers.Fold(C.layers.GRU(3))(C.layers.Embedding(2)(words)) + C.layers.Dense(3)(user)
    data = {"words": [np.array([1, 8]), np.array([0]), np.array([3, 3, 3])], "user": [0, 3, 2]}
    found = Predictor(model)(table(data))
    one_hot = {words: C.Value.one_hot([ids.tolist() for ids in data["words"]], 9), user: C.Value.one_hot(data["user"], 4)}
    require_equal(column(found, model.outputs[0].uid), model.eval(one_hot))


@TABLES
def test_tables_without_rows(table: Callable[..., Any]) -> None:
    data = table({name: np.ones(3) for name in NAMES})
    nothing = data.slice(0, 0) if hasattr(data, "slice") else data.head(0)
    found = Predictor(dense())(nothing)
    assert type(found) is type(data)
    assert len(found) == 0
    assert len(found.columns) == 2
    assert Predictor(dense())(ROWS[:0])["z"].shape == (0, 2)
    assert Predictor(recurrent())([]) == []


def test_frames_keep_their_index() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    frame = pandas.DataFrame(ROWS, index=[f"r{i}" for i in range(11)])
    assert Predictor(dense())(frame).index.equals(frame.index)


def test_readers_of_record_batches_are_iterators() -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs PyArrow")
    table = pyarrow.table(dict(zip(NAMES, ROWS.T, strict=True)))
    results = Predictor(dense())(table.to_reader(4))
    assert [batch.num_rows for batch in results] == [4, 4, 3]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["a", "b"], r"no column for the input x \[batch, 3\] float32; there are 'a', 'b'\. Name it 'x', or say which ones it takes"),
        (["x_0", "x_1"], "no column 'x_2' for the input x"),
        (["x"], r"column 'x': the input x .* was given float64 data of shape \(2,\)"),
    ],
)
def test_missing_columns_are_named(columns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Predictor(dense())(pandas_frame({name: [1.0, 2.0] for name in columns}))


def test_columns_that_are_asked_for_must_be_there() -> None:
    frame = pandas_frame(dict(zip(NAMES, ROWS.T, strict=True)))
    with pytest.raises(ValueError, match=r"no column 'age' for the input x .*; there are 'x_0', 'x_1', 'x_2'"):
        Predictor(dense(), columns={"x": ["age", "x_0", "x_1"]})(frame)
    with pytest.raises(ValueError, match="one for each of its 3 elements; got 2: 'x_0', 'x_1'"):
        Predictor(dense(), columns={"x": ["x_0", "x_1"]})(frame)
    with pytest.raises(ValueError, match="keep: there is no column 'id'"):
        Predictor(dense(), keep=["id"])(frame)
    with pytest.raises(ValueError, match="has no input 'y'; it has x"):
        Predictor(dense(), columns={"y": "x_0"})


def test_missing_values_are_refused() -> None:
    polars = pytest.importorskip("polars", reason="needs polars")
    with pytest.raises(ValueError, match=r"column 'x_1': .*1 of 2 values.* missing"):
        Predictor(dense())(polars.DataFrame({"x_0": [1, 2], "x_1": [1, None], "x_2": [1, 2]}))


def test_results_of_other_types() -> None:
    assert Predictor(dense(), "z", dtype=np.float64)(ROWS).dtype == np.float64
    assert Predictor(recurrent(), dtype="float16")(STEPS)[0].dtype == np.float16


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"model": 3}, TypeError, "expected a path, the bytes of a model or a function, got int 3"),
        ({"batch_rows": 0}, ValueError, "batch_rows must be a whole number of 1 at least, got 0"),
        ({"outputs": "nothing"}, ValueError, "no result or node is called 'nothing'"),
        ({"dtype": "int8"}, ValueError, "data type 'int8' is not supported"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Predictor(**{"model": dense(), **arguments})


def test_wrong_data() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable(2, name="y")
    with pytest.raises(ValueError, match=r"the model has 2 inputs, so data comes as a dictionary or table"):
        Predictor(x + y)(ROWS)
    with pytest.raises(TypeError, match=r"got str 'data.csv'"):
        Predictor(dense())("data.csv")
    with pytest.raises(ValueError, match="row 1 has the entries 'y', and row 0 has 'x'"):
        Predictor(dense())([{"x": ROWS[0]}, {"y": ROWS[0]}])
    with pytest.raises(ValueError, match="has no batch axis, so no value for each row"):
        Predictor(C.reduce_sum(x, axis=C.Axis.all_axes()))


def test_frames_that_are_not_computed_are_refused() -> None:
    polars = pytest.importorskip("polars", reason="needs polars")
    with pytest.raises(TypeError, match=r"collect\(\)"):
        Predictor(dense())(polars.DataFrame({"x_0": [1.0]}).lazy())


def test_a_path_is_loaded_on_first_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, model = tmp_path / "model.dnn", dense()
    monkeypatch.chdir(tmp_path)
    predictor = pickle.loads(pickle.dumps(Predictor("model.dnn", "z")))
    with pytest.raises(ValueError, match=r"model\.dnn"):
        predictor(ROWS)
    model.save(path)
    monkeypatch.chdir("/")
    require_equal(predictor(ROWS), Predictor(model, "z")(ROWS))
    assert len(pickle.dumps(predictor)) < 1000


@pytest.mark.parametrize("outputs", [None, "z", "variable"])
def test_functions_travel_in_the_pickle(outputs: Any) -> None:
    model = dense()
    predictor = Predictor(model, model.outputs[0] if outputs == "variable" else outputs)
    found, expected = pickle.loads(pickle.dumps(predictor))({"x": ROWS}), predictor({"x": ROWS})
    assert found.keys() == expected.keys()
    np.testing.assert_array_equal(found["z"], expected["z"])


@pytest.mark.parametrize("suffix", ["dnn", "legacy", "onnx", "bytes"])
def test_models_of_several_formats(suffix: str, tmp_path: Path) -> None:
    model, path = dense(), tmp_path / f"model.{suffix}"
    if suffix == "legacy":
        C.debugging.save_as_legacy_model(model, str(path))
    else:
        model.save(path, "onnx" if suffix == "onnx" else C.ModelFormat.CNTKv2)
    given: Any = path.read_bytes() if suffix == "bytes" else path
    require_equal(Predictor(given)({"x": ROWS})["z"], Predictor(model)({"x": ROWS})["z"])


def test_files_without_a_graph_are_refused(tmp_path: Path) -> None:
    dense().save(path := tmp_path / "model.safetensors", "safetensors")
    with pytest.raises(ValueError, match="holds values and no graph"):
        Predictor(path)(ROWS)


def test_threads_share_a_predictor(tmp_path: Path) -> None:
    dense().save(path := tmp_path / "model.dnn")
    expected, predictor = Predictor(path)(ROWS)["z"], Predictor(path, batch_rows=2)
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(20):
            if not np.allclose(predictor(ROWS)["z"], expected, atol=1e-6):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_the_function_for_spark_takes_arrays() -> None:
    x, y = C.input_variable(2, name="x"), C.input_variable((), name="y")
    predict = Predictor(C.combine([C.alias(x, name="a"), C.plus(y, 1, name="b")])).make_predict_fn()
    found = predict(np.array([[1.0, 2], [3, 4]]), np.array([5.0, 6]))
    assert {name: array.tolist() for name, array in found.items()} == {"a": [[1, 2], [3, 4]], "b": [6, 7]}
    assert Predictor(recurrent()).make_predict_fn()(np.ones((2, 3, 2))).shape == (2, 3, 4)
    with pytest.raises(ValueError, match="the model takes 2 arrays, got 1"):
        predict(np.ones(2))
