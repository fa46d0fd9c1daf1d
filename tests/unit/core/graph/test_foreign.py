"""Data of other libraries in feeds, values, operands and sources; what is missing or no number in them is told."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.graph.foreign import as_data
from cntk.layers.typing import Sequence, Tensor

A = np.float32([[1, 2], [3, 4], [5, 6]])
RAGGED = [np.float32([[1, 2]]), np.float32([[3, 4], [5, 6]])]


def arrow(held: Any) -> Any:
    """An object that has Arrow's protocol and nothing else."""
    names = [name for name in ("__arrow_c_array__", "__arrow_c_stream__") if hasattr(held, name)]
    return type("Arrow", (), {name: staticmethod(getattr(held, name)) for name in names})()


class DLPack:
    """An object that has DLPack's protocol and nothing else."""

    def __dlpack__(self, **options: Any) -> Any:
        return A.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return A.__dlpack_device__()


def torch_tensor() -> Any:
    return pytest.importorskip("torch", reason="needs PyTorch").from_numpy(A)


def frame() -> Any:
    return pytest.importorskip("pandas", reason="needs pandas").DataFrame(A, columns=["a", "b"])


def mixed_frame() -> Any:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({"a": A[:, 0], "b": pandas.array([2, 4, 6], dtype="Int64")})


def polars_frame() -> Any:
    return pytest.importorskip("polars", reason="needs polars").DataFrame({"a": A[:, 0], "b": A[:, 1]})


def polars_arrays() -> Any:
    polars = pytest.importorskip("polars", reason="needs polars")
    return polars.Series(A.tolist(), dtype=polars.Array(polars.Float32, 2))


def pyarrow() -> Any:
    return pytest.importorskip("pyarrow", reason="needs PyArrow")


def table() -> Any:
    return pyarrow().table({"a": A[:, 0], "b": A[:, 1]})


def chunked_table() -> Any:
    return pyarrow().concat_tables([table()[:1], table()[1:]])


def fixed_lists() -> Any:
    return pyarrow().array(A.tolist(), pyarrow().list_(pyarrow().float32(), 2))


def tensors() -> Any:
    return pyarrow().FixedShapeTensorArray.from_numpy_ndarray(A)


MATRICES = {
    "torch": torch_tensor,
    "pandas": frame,
    "pandas, nullable": mixed_frame,
    "polars": polars_frame,
    "polars, arrays": polars_arrays,
    "table": table,
    "table of chunks": chunked_table,
    "slice of a table": lambda: pyarrow().concat_tables([table()[2:], table()]).combine_chunks().slice(1),
    "record batch": lambda: table().to_batches()[0],
    "lists of fixed length": fixed_lists,
    "tensors": tensors,
    "Arrow's protocol": lambda: arrow(table()),
    "Arrow's protocol, an array": lambda: arrow(fixed_lists()),
    "DLPack": DLPack,
    "memoryview": lambda: memoryview(A),
    "objects": lambda: np.array([*list(A), None], object)[:-1],
}
each = pytest.mark.parametrize("kind", MATRICES)
ordinary = pytest.mark.filterwarnings("ignore:.*(is converted to|list of . samples)")


def test_nothing_is_made_of_what_is_plain() -> None:
    for plain in (A, [1, 2], (1, 2), 3.5, "text", None, C.Value(A), C.input_variable(2), np.float32(1)):
        assert as_data("x", plain) is plain


@ordinary
@each
def test_feeds(kind: str) -> None:
    x = C.input_variable(2)
    f = 2 * x
    data = MATRICES[kind]()
    for found in (f.eval({x: data}), f.eval(data), f(data)):
        np.testing.assert_array_equal(found, 2 * A)


@each
def test_values_of_parameters(kind: str) -> None:
    data = MATRICES[kind]()
    if isinstance(as_data("data", data), list):
        return
    p = C.parameter((3, 2))
    p.value = data
    np.testing.assert_array_equal(p.value, A)
    for made in (C.parameter(init=data), C.constant(data), C.Constant(data)):
        np.testing.assert_array_equal(made.value, A)


@each
def test_foreign_matrices_are_operands(kind: str) -> None:
    x = C.input_variable((3, 2))
    data = MATRICES[kind]()
    for made in (x * data, C.plus(data, x), C.times_transpose(x, data)):
        assert isinstance(made, C.Function)
    np.testing.assert_array_equal((x * data).eval([np.ones((3, 2), np.float32)])[0], A)


@ordinary
@each
def test_values_and_views(kind: str) -> None:
    data = MATRICES[kind]()
    np.testing.assert_array_equal(C.Value.create(C.input_variable(2), data).asarray().reshape(3, 2), A)
    if isinstance(as_data("data", data), list) or as_data("data", data).dtype != np.float32:
        return
    np.testing.assert_array_equal(C.Value(data).asarray(), A)
    np.testing.assert_array_equal(C.NDArrayView.from_dense(data).asarray(), A)


@ordinary
@each
def test_foreign_matrices_are_trained_on(kind: str) -> None:
    x, y = C.input_variable(2), C.input_variable(2)
    z = C.layers.Dense(2)(x)
    loss = C.squared_error(z, y)
    loss.train((MATRICES[kind](), MATRICES[kind]()), parameter_learners=[C.sgd(z.parameters, 0.01)], minibatch_size=2, max_epochs=2)
    if kind == "objects":
        return  # a list is of sequences there
    source = C.io.MinibatchSourceFromData({"x": (MATRICES[kind](), Tensor[2])})
    np.testing.assert_array_equal(source.next_minibatch(3)[source.streams.x].asarray().reshape(3, 2), A)


def test_slices_and_chunks_of_arrow() -> None:
    pa = pyarrow()
    numbers = pa.array(np.arange(10, dtype=np.int32)).slice(3, 4)
    np.testing.assert_array_equal(as_data("x", numbers), [3, 4, 5, 6])
    flags = pa.array([True, False] * 10).slice(3, 12)
    np.testing.assert_array_equal(as_data("x", flags), [False, True] * 6)
    words = pa.array([0.5, 1.5, 0.5]).dictionary_encode()
    np.testing.assert_array_equal(as_data("x", words), [0.5, 1.5, 0.5])
    lists = pa.array([[1.0], [2.0, 3.0], [4.0, 5.0, 6.0]]).slice(1)
    assert [part.tolist() for part in as_data("x", lists)] == [[2, 3], [4, 5, 6]]
    fixed = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64(), 2)).slice(1)
    np.testing.assert_array_equal(as_data("x", fixed), [[3, 4], [5, 6]])
    batch = pa.record_batch({"a": [1.0, 2.0, 3.0]}).slice(1)
    np.testing.assert_array_equal(as_data("x", batch), [[2], [3]])
    assert as_data("x", pa.chunked_array([], pa.float32())).shape == (0,)
    half = pa.array(np.float16([1, 2]))
    assert as_data("x", half).dtype == np.float16


# ---- sequences -----------------------------------------------------------------------------------


def torch_list() -> Any:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    return [torch.from_numpy(part) for part in RAGGED]


def frames() -> Any:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    whole = pandas.DataFrame({"which": [0, 1, 1], "a": A[:, 0], "b": A[:, 1]})
    return [group[["a", "b"]] for _, group in whole.groupby("which")]


def series_of_arrays() -> Any:
    return pytest.importorskip("pandas", reason="needs pandas").Series(RAGGED)


def arrow_lists() -> Any:
    inner = pyarrow().list_(pyarrow().list_(pyarrow().float32(), 2))
    return pyarrow().array([part.tolist() for part in RAGGED], inner)


def polars_lists() -> Any:
    polars = pytest.importorskip("polars", reason="needs polars")
    return polars.Series([part.tolist() for part in RAGGED], dtype=polars.List(polars.Array(polars.Float32, 2)))


SEQUENCES = {
    "torch": torch_list,
    "groups of a frame": frames,
    "series of arrays": series_of_arrays,
    "Arrow's lists": arrow_lists,
    "column of lists": lambda: pyarrow().table({"steps": arrow_lists()}),
    "polars": polars_lists,
}
each_sequence = pytest.mark.parametrize("kind", SEQUENCES)


@each_sequence
def test_foreign_sequences_are_fed(kind: str) -> None:
    x = C.sequence.input_variable(2)
    data = SEQUENCES[kind]()
    for found in ((2 * x).eval({x: data}), C.Value.create(x, data).as_sequences()):
        assert [len(part) for part in found] == [1, 2]
    np.testing.assert_array_equal(np.concatenate((2 * x).eval({x: data})), 2 * A)
    source = C.io.MinibatchSourceFromData({"x": (data, Sequence[Tensor[2]])})  # type: ignore[type-arg]
    assert [len(part) for part in source.next_minibatch(3)[source.streams.x].as_sequences()] == [1, 2]


def test_lists_of_numbers_are_sequences() -> None:
    lists = pyarrow().array([[1.0], [2.0, 3.0]], pyarrow().list_(pyarrow().float32()))
    for shape in ((), (1,)):
        x = C.sequence.input_variable(shape)
        assert [part.ravel().tolist() for part in (x + 1).eval({x: lists})] == [[2], [3, 4]]


def test_classes() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    expected = C.Value.one_hot([2, 0], 3).asarray().toarray()
    for classes in (torch.tensor([2, 0]), array.array("l", [2, 0]), memoryview(np.array([2, 0]))):
        np.testing.assert_array_equal(C.Value.one_hot(classes, 3).asarray().toarray(), expected)
    assert C.Value.one_hot([torch.tensor([2, 0]), torch.tensor([1])], 3).shape == (2, 2, 3)


# ---- what is refused -----------------------------------------------------------------------------


def masked() -> Any:
    return np.ma.masked_array(A, A > 5)


def graded() -> Any:
    return torch_tensor().requires_grad_()


def graded_brain() -> Any:
    return torch_tensor().bfloat16().requires_grad_()


def nullable() -> Any:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    return pandas.DataFrame({"a": pandas.array([1, None, 3], dtype="Int64"), "b": [1.0, 2, 3]})


def names() -> Any:
    return pytest.importorskip("pandas", reason="needs pandas").DataFrame({"a": ["x", "y", "z"], "b": [1.0, 2, 3]})


def nulls() -> Any:
    return pyarrow().table({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})


def polars_nulls() -> Any:
    return pytest.importorskip("polars", reason="needs polars").DataFrame({"a": [1, None, 3], "b": [1.0, 2, 3]})


WRONG = {
    "masked": (masked, "1 of 6 elements.*masked.*filled"),
    "gradient": (graded, r"requires grad.*\.detach\(\)"),
    "bfloat16 with a gradient": (graded_brain, r"requires grad.*\.detach\(\)"),
    "nullable": (nullable, "1 of 3 values of the column 'a' are missing.*fillna"),
    "names": (names, r"expected numbers, got str 'x' at \[0, 0\]; names become numbers with np.unique"),
    "nulls": (nulls, "1 of 3 values in the column 'a' missing.*fill_null"),
    "polars' nulls": (polars_nulls, "1 of 3 values in the column 'a' missing"),
    "text": (lambda: pyarrow().table({"t": ["x"]}), "text in the column 't'"),
    "times": (lambda: pyarrow().array([1], pyarrow().timestamp("s")), "holds times"),
    "lists beside numbers": (lambda: pyarrow().table({"l": [[1.0]], "n": [1.0]}), "lists in the column 'l' beside"),
    "null lists": (lambda: pyarrow().array([[1.0], None]), "1 of 2 values missing"),
    "None": (lambda: np.array([1, None, 3], object), r"got NoneType None at \[1\]"),
}


@pytest.mark.parametrize(("make", "why"), WRONG.values(), ids=WRONG)
def test_what_is_refused(make: Any, why: str) -> None:
    data = make()
    x = C.input_variable(2, name="x")
    with pytest.raises(ValueError, match=f"(?s){why}"):
        (2 * x).eval({x: data})
    with pytest.raises(ValueError, match=f"(?s){why}"):
        C.parameter((3, 2)).value = data
    with pytest.raises(ValueError, match=f"(?s){why}"):
        x * data


def test_masked_arrays_of_which_nothing_is_masked() -> None:
    x = C.input_variable(2)
    np.testing.assert_array_equal((2 * x).eval({x: np.ma.masked_array(A)}), 2 * A)


@pytest.mark.parametrize(
    "use",
    {
        "lists of lists": lambda m: (2 * C.sequence.input_variable(2)).eval([[m[0], m[2]], [m[2]]]),
        "value": lambda m: C.Value([m, m]),
        "parameter": lambda m: C.parameter(init=[m, m]),
        "constant": lambda m: C.constant([m, m]),
        "operand": lambda m: C.plus(C.input_variable(2), [m[2]]),
        "embedding": lambda m: C.layers.Embedding(weights=m),
        "asarray": lambda m: C.asarray(m),
        "gradient": lambda m: C.sgd([p := C.parameter((3, 2))], 0.1).update({p: m}, 1),
    }.items(),
    ids=lambda item: item[0],
)
def test_masked_arrays_are_refused_wherever_data_is_taken(use: Any) -> None:
    with pytest.raises(ValueError, match="masked"):
        use[1](np.ma.masked_array(A, A > 5))


def test_masked_sequences_are_refused() -> None:
    x = C.sequence.input_variable(2)
    with pytest.raises(ValueError, match="masked"):
        (2 * x).eval({x: [np.ma.masked_array(A, A > 5)]})


def test_operators_of_pandas_come_to_ours() -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    x = C.input_variable(2)
    for left in (pandas.Series([1.0, 2.0]), pandas.DataFrame([[1.0, 2.0]])):
        for made in (left * x, left - x, left + C.parameter(2), left / (x + 1)):
            assert isinstance(made, C.Function)


def tables() -> list[Any]:
    """Tables with a column of vectors for each of two inputs, and one that is for none."""

    def pandas() -> Any:
        library = pytest.importorskip("pandas", reason="needs pandas")
        return library.DataFrame({"features": list(A), "number": [1, 2, 3], "more": list(2 * A)})

    def polars() -> Any:
        library = pytest.importorskip("polars", reason="needs polars")
        vector = library.Array(library.Float32, 2)
        columns = {"features": A.tolist(), "number": [1, 2, 3], "more": (2 * A).tolist()}
        return library.DataFrame(columns, schema={"features": vector, "number": library.Int64, "more": vector})

    def arrow_table() -> Any:
        library = pytest.importorskip("pyarrow", reason="needs PyArrow")
        return library.table({"features": A.tolist(), "number": [1, 2, 3], "more": (2 * A).tolist()})

    return [pandas, polars, arrow_table]


@pytest.mark.parametrize("table", tables())
@pytest.mark.filterwarnings("ignore:Input:UserWarning")  # of lists and of float64
def test_columns_of_a_table_are_for_the_inputs_of_their_names(table: Any) -> None:
    features, more = C.input_variable(2, name="features"), C.input_variable(2, name="more")
    function = C.squared_error(C.times(features, C.parameter((2, 2), init=np.eye(2, dtype=np.float32))), more)
    np.testing.assert_allclose(np.ravel(function.eval(table())), (A * A).sum(axis=1))
    trainer = C.Trainer(function, (function, function), C.sgd(function.parameters, 0.0))
    assert trainer.train_minibatch(table())
    assert trainer.previous_minibatch_loss_average == pytest.approx((A * A).sum() / 3)
    assert trainer.test_minibatch(table()) == pytest.approx((A * A).sum() / 3)
    assert C.Evaluator(function).test_minibatch(table()) == pytest.approx((A * A).sum() / 3)


@pytest.mark.parametrize("table", tables())
def test_a_table_without_a_column_for_each_input(table: Any) -> None:
    function = C.input_variable(2, name="features") + C.input_variable(2, name="other")
    with pytest.raises(ValueError, match=r"as a table with a column for each: .*'other'.*; the table has the columns 'features'"):
        function.eval(table())
