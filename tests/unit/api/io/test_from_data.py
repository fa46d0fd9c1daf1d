"""Minibatch sources over what other libraries hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

pytestmark = pytest.mark.filterwarnings("ignore:asarray")  # sequences are taken apart below

FRAME = {
    "a": [1.0, 2.0, 3.0, 4.0, 5.0],
    "b": [5, 4, 3, 2, 1],
    "kind": ["red", "green", "red", "blue", "red"],
    "steps": [[1.0, 2.0], [3.0], [4.0, 5.0, 6.0], [7.0], [8.0, 9.0]],
    "words": [["to", "be"], ["or"], ["not", "to", "be"], ["be"], ["to", "or"]],
}


def rows() -> list[dict[str, Any]]:
    return [dict(zip(FRAME, values, strict=True)) for values in zip(*FRAME.values(), strict=True)]


def pandas_frame(_: Path) -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed").DataFrame(FRAME)


def polars_frame(_: Path) -> Any:
    return pytest.importorskip("polars", reason="Polars is not installed").DataFrame(FRAME)


def arrow_table(_: Path) -> Any:
    return pytest.importorskip("pyarrow", reason="PyArrow is not installed").table(FRAME)


def arrow_batches(_: Path) -> Any:
    return arrow_table(_).to_reader(max_chunksize=2)


def parquet_file(folder: Path) -> Any:
    table = arrow_table(folder)
    from pyarrow import parquet

    parquet.write_table(table, folder / "data.parquet", row_group_size=2)
    return folder / "data.parquet"


def hugging_face(_: Path) -> Any:
    return pytest.importorskip("datasets", reason="datasets is not installed").Dataset.from_dict(FRAME)


def hugging_face_iterable(folder: Path) -> Any:
    return hugging_face(folder).to_iterable_dataset()


KINDS: list[Callable[[Path], Any]] = [
    pandas_frame,
    polars_frame,
    arrow_table,
    arrow_batches,
    parquet_file,
    hugging_face,
    hugging_face_iterable,
    lambda _: FRAME,
    lambda _: rows(),
    lambda _: rows,
    lambda _: iter(rows()),
]

CLASSES = {"kind": ["blue", "green", "red"], "words": ["be", "not", "or", "to"]}


def sequences(data: Any) -> list[Any]:
    """By row its steps, without padding."""
    array, lengths = np.asarray(data.asarray()), np.diff(data.data._data.starts)
    return [row[:length].tolist() for row, length in zip(array, lengths, strict=True)]


def everything(source: Any, size: int = 2) -> dict[str, list[Any]]:
    """All that a source serves, by stream."""
    found: dict[str, list[Any]] = {}
    while minibatch := source.next_minibatch(size):
        for info, data in minibatch.items():
            found.setdefault(info.name, []).extend(sequences(data))
    return found


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_all_kinds_of_data_are_the_same(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    columns = {"x": ["a", "b"], "kind": "kind", "steps": "steps", "words": "words"}
    source = C.io.from_data(kind(tmp_path), columns, classes=CLASSES, randomize=False, max_sweeps=1)
    found = everything(source)
    assert found["x"] == [[[a, b]] for a, b in zip(FRAME["a"], FRAME["b"], strict=True)]
    assert found["kind"] == [[np.eye(3)[CLASSES["kind"].index(kind)].tolist()] for kind in FRAME["kind"]]
    assert found["steps"] == [[[step] for step in steps] for steps in FRAME["steps"]]
    assert found["words"] == [[np.eye(4)[CLASSES["words"].index(word)].tolist() for word in words] for words in FRAME["words"]]
    assert source.classes == CLASSES


READABLE = [kind for kind in KINDS[:9] if kind not in (arrow_batches, hugging_face_iterable)]


@pytest.mark.parametrize("kind", READABLE, ids=lambda kind: kind.__name__)
def test_classes_of_text_are_found_and_serve_for_other_data(kind: Callable[[Path], Any], tmp_path: Path) -> None:
    source = C.io.from_data(kind(tmp_path), ["kind", "words"])
    assert source.classes == CLASSES
    other = C.io.from_data({"kind": ["red"], "words": [["not"]]}, classes=source.classes)
    assert everything(C.io.from_data({"kind": ["red"], "words": [["not"]]}, classes=source.classes, max_sweeps=1)) == {
        "kind": [[[0, 0, 1]]],
        "words": [[[0, 1, 0, 0]]],
    }
    assert [info.sample_shape for info in other.stream_infos()] == [(3,), (4,)]


def test_numbers_and_classes_stand_side_by_side() -> None:
    columns = {"all": ["a", "kind", "b"], "classes": ["kind", "kind"]}
    source = C.io.from_data(rows(), columns, randomize=False, max_sweeps=1)
    assert source.streams.all.sample_shape == (5,)
    assert not source.streams.all.is_sparse
    assert source.streams.classes.is_sparse
    found = everything(source)
    assert found["all"][:2] == [[[1, 0, 0, 1, 5]], [[2, 0, 1, 0, 4]]]
    assert found["classes"][0] == [[0, 0, 1, 0, 0, 1]]


def test_sequences_side_by_side_are_steps_of_vectors() -> None:
    data = {"open": [[1.0, 2.0], [3.0]], "close": [[5.0, 6.0], [7.0]]}
    source = C.io.from_data(data, {"x": ["open", "close"]}, max_sweeps=1, randomize=False)
    assert everything(source) == {"x": [[[1, 5], [2, 6]], [[3, 7]]]}
    with pytest.raises(ValueError, match=r"'close' has sequences of other lengths than 'open', beside which it is in 'x'"):
        C.io.from_data({"open": [[1.0, 2.0], [3.0]], "close": [[5.0], [7.0]]}, {"x": ["open", "close"]}).next_minibatch(2)


def test_a_class_may_be_its_number() -> None:
    found = everything(C.io.from_data(FRAME, ["kind", "words"], indices=["kind", "words"], randomize=False, max_sweeps=1), 9)
    assert found["kind"] == [[[2]], [[1]], [[2]], [[0]], [[2]]]
    assert found["words"][2] == [[1], [3], [0]]


def test_shapes_say_what_a_step_is() -> None:
    data = {"x": [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0]], "y": np.arange(24.0).reshape(2, 3, 4)}
    found = everything(C.io.from_data(data, shapes={"x": 2, "y": 4}, randomize=False, max_sweeps=1), 9)
    assert found["x"] == [[[1, 2], [3, 4]], [[5, 6]]]
    assert np.shape(found["y"]) == (2, 3, 4)
    assert C.io.from_data(data).streams.y.sample_shape == (3, 4)


def test_whole_numbers_become_vectors_where_their_classes_are_counted() -> None:
    data = (np.zeros((3, 2), np.float32), np.array([2, 0, 1]))
    assert everything(C.io.from_data(data, classes={"y": 3}, randomize=False, max_sweeps=1))["y"] == [[[0, 0, 1]], [[1, 0, 0]], [[0, 1, 0]]]
    assert everything(C.io.from_data(data, randomize=False, max_sweeps=1))["y"] == [[[2]], [[0]], [[1]]]
    with pytest.raises(ValueError, match=r"'y' has the value 2, which is none of its 2 classes \(numbers from 0 to 1\)"):
        C.io.from_data(data, classes={"y": 2}).next_minibatch(3)
    zeros = C.io.from_data(data, classes={"y": 2}, unknown="zeros", randomize=False, max_sweeps=1)
    assert everything(zeros)["y"] == [[[0, 0]], [[1, 0]], [[0, 1]]]


def test_sparse_columns_stay_sparse() -> None:
    sparse = pytest.importorskip("scipy.sparse", reason="SciPy is not installed")
    source = C.io.from_data({"x": sparse.csr_matrix(np.diag([1.0, 2.0, 3.0])), "y": np.arange(3)}, randomize=False, max_sweeps=1)
    assert source.streams.x.is_sparse
    assert everything(source)["x"] == [[[1, 0, 0]], [[0, 2, 0]], [[0, 0, 3]]]


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_minibatches_end_where_sweeps_do(size: int) -> None:
    source = C.io.from_data({"x": np.arange(5)})
    served = []
    for _ in range(8):
        data = source.next_minibatch(size)[source.streams.x]
        served.append((len(data), data.end_of_sweep))
    one_sweep = [(min(size, 5 - start), start + size >= 5) for start in range(0, 5, size)]
    assert served == (one_sweep * 8)[:8]


# ---- order, checkpoints, workers -----------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 5, 127, 128, 129, 1000])
def test_a_sweep_has_every_row_once_and_every_sweep_another_order(count: int) -> None:
    source = C.io.from_data({"x": np.arange(count)}, max_sweeps=2)
    numbers = [row[0][0] for row in everything(source, 7)["x"]]
    assert sorted(numbers[:count]) == sorted(numbers[count:]) == list(range(count))
    assert count < 100 or numbers[:count] != numbers[count:] != list(range(count))
    assert source.samples_in_sweep == count


@pytest.mark.parametrize("kind", KINDS[:9], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("served", [0, 1, 2, 4])
def test_goes_on_from_a_checkpoint(kind: Callable[[Path], Any], served: int, tmp_path: Path) -> None:
    def made() -> Any:
        return C.io.from_data(kind(tmp_path), ["a", "steps"])

    first, second = made(), made()
    for _ in range(served):
        if not first.next_minibatch(3):
            return  # of what is iterated over once
    second.restore_from_checkpoint(first.get_checkpoint_state())
    for _ in range(3):
        one, other = first.next_minibatch(3), second.next_minibatch(3)
        assert {info.name: sequences(data) for info, data in one.items()} == {info.name: sequences(data) for info, data in other.items()}
        if not one:
            break


@pytest.mark.parametrize("kind", [lambda: {"x": np.arange(50)}, lambda: lambda: ({"x": i} for i in range(50))])
def test_workers_share_a_sweep(kind: Callable[[], Any]) -> None:
    found: list[float] = []
    for rank in range(3):
        source = C.io.from_data(kind(), max_sweeps=1)
        arguments = (8, None, None, 3, rank) if isinstance(source, C.io.MinibatchSource) else (8, 3, rank)
        while minibatch := source.next_minibatch(*arguments):
            found += [row[0][0] for row in sequences(minibatch[source.streams.x])]
    assert sorted(found) == list(range(50))


def test_datasets_are_asked_for_each_sample_in_every_sweep() -> None:
    asked: list[int] = []

    class Counting:
        def __len__(self) -> int:
            return 4

        def __getitem__(self, number: int) -> dict[str, Any]:
            asked.append(number)
            return {"x": np.full((2, 3), len(asked)), "y": number}

    source = C.io.from_data(Counting(), classes={"y": 4}, max_sweeps=2)
    asked.clear()
    found = everything(source)
    assert sorted(asked) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert len({values[0][0][0] for values in found["x"]}) == 8  # each is what was made for it
    assert source.streams.x.sample_shape == (2, 3)


def test_parquet_is_read_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_file(tmp_path)
    from pyarrow import parquet

    read: list[tuple[int, list[str]]] = []
    whole = parquet.ParquetFile.read_row_group

    def noted(self: Any, group: int, columns: Any = None, **options: Any) -> Any:
        read.append((group, columns))
        return whole(self, group, columns=columns, **options)

    monkeypatch.setattr(parquet.ParquetFile, "read_row_group", noted)
    source = C.io.from_data(str(path), {"x": "a"}, randomize=False, max_sweeps=1)
    assert everything(source) == {"x": [[[value]] for value in FRAME["a"]]}
    assert {group for group, _ in read} == {0, 1, 2}
    assert all(columns == ["a"] for _, columns in read)


# ---- what is iterated over -----------------------------------------------------------------------


def test_minibatches_are_cut_anew() -> None:
    def batches() -> Iterator[tuple[Any, Any]]:
        for start in (0, 3, 6):
            yield np.arange(start, start + 3, dtype=np.float32)[:, None] * [1, 2], np.arange(start, start + 3)

    source = C.io.from_data(batches, batched=True, max_sweeps=2)
    sizes = []
    values: list[float] = []
    while minibatch := source.next_minibatch(4):
        data = minibatch[source.streams.y]
        sizes.append((len(data), data.end_of_sweep))
        values += [row[0][0] for row in sequences(data)]
    assert sizes == [(4, False), (4, False), (1, True)] * 2
    assert values == [*range(9), *range(9)]


def test_a_generator_is_served_once_and_says_so() -> None:
    def numbers() -> Iterator[dict[str, float]]:
        return ({"x": i} for i in range(3))

    source = C.io.from_data(numbers())
    assert len(everything(source)["x"]) == 3
    with pytest.raises(ValueError, match=r"the generator gives its data once, and has given them; .*from_data\(rows\) rather than"):
        source.next_minibatch(2)
    with pytest.raises(ValueError, match="the generator gives its data once, so there are no 2 sweeps"):
        C.io.from_data(numbers(), max_sweeps=2)
    with pytest.raises(ValueError, match="gives its data once, and has given them"):
        source.restore_from_checkpoint({"sweeps": 0, "sequences": 1, "samples": 1})
    with pytest.raises(ValueError, match="in its own order and cannot be randomized"):
        C.io.from_data(numbers(), randomize=True)


def test_pytorch_datasets_and_loaders() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    data = torch.utils.data.TensorDataset(torch.arange(24.0).reshape(6, 2, 2), torch.tensor([0, 1, 2, 0, 1, 2]))
    for given in (data, torch.utils.data.DataLoader(data, batch_size=4), torch.utils.data.DataLoader(data, batch_size=None)):
        source = C.io.from_data(given, {"image": "x", "label": "y"}, classes={"y": 3}, max_sweeps=1, randomize=False)
        found = everything(source, 5)
        assert np.array_equal(np.asarray(found["image"])[:, 0], np.arange(24.0).reshape(6, 2, 2))
        assert found["label"] == [[np.eye(3)[number].tolist()] for number in [0, 1, 2, 0, 1, 2]]

    class Squares(torch.utils.data.IterableDataset):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[tuple[Any, int]]:
            return ((torch.tensor([float(i), i * i]), i % 2) for i in range(4))

    assert everything(C.io.from_data(Squares(), max_sweeps=2))["x"][3:5] == [[[3, 9]], [[0, 0]]]


def test_labels_of_hugging_face_have_their_names() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    features = datasets.Features({"ids": datasets.List(datasets.Value("int64")), "label": datasets.ClassLabel(names=["bad", "good"])})
    data = datasets.Dataset.from_dict({"ids": [[1, 2], [0]], "label": [1, 0]}, features=features)
    for given in (data, data.to_iterable_dataset()):
        source = C.io.from_data(given, classes={"ids": 3}, randomize=False if given is data else None, max_sweeps=1)
        assert everything(source, 9) == {"ids": [[[0, 1, 0], [0, 0, 1]], [[1, 0, 0]]], "label": [[[0, 1]], [[1, 0]]]}
        assert source.classes == {"ids": 3, "label": ["bad", "good"]}
    with pytest.raises(ValueError, match=r"has the parts 'train'; give one of them, such as data\['train'\]"):
        C.io.from_data(datasets.DatasetDict(train=data))


def test_categories_of_frames_keep_their_order() -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"size": pandas.Categorical(["s", "l"], categories=["s", "m", "l"]), "year": pandas.Categorical([2020, 2019])})
    assert C.io.from_data(frame).classes == {"size": ["s", "m", "l"], "year": [2019, 2020]}
    polars = pytest.importorskip("polars", reason="Polars is not installed")
    assert C.io.from_data(polars.DataFrame({"size": polars.Series(["s"], dtype=polars.Enum(["s", "m"]))})).classes == {"size": ["s", "m"]}


# ---- mistakes ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "options", "told"),
    [
        ({"a": [1.0]}, {"columns": ["b"]}, "there is no column 'b'; there are 'a'"),
        ({"a": [1.0]}, {"classes": {"b": 2}}, "classes is about the column 'b', and the streams take 'a'"),
        ({"a": [1.0]}, {"indices": ["a"]}, "whose numbers are no classes; say how many there are with classes="),
        ({"a": [1.0]}, {"classes": {"a": 0}}, "must be 1 at least, got 0"),
        ({"a": ["u"]}, {"classes": {"a": ["v", "v"]}}, "must be different values"),
        ({"a": [1.0]}, {"unknown": "ignore"}, "unknown must be 'error' or 'zeros', got 'ignore'"),
        ({"a": [1.0]}, {"batched": True}, "batched is about what is iterated over"),
        ({"a": [1.0], "b": [1.0, 2.0]}, {}, "all columns need the same number of rows, got {'a': 1, 'b': 2}"),
        ({"a": np.array(["2020-01-01"], "datetime64[D]")}, {}, r"'a' holds datetime64\[D\] data; expected numbers, text or lists of these"),
        ({"a": [1.0]}, {"max_samples": 1, "max_sweeps": 1}, "give max_samples or max_sweeps, not both"),
        ({"a": []}, {}, "the data has no rows"),
        ({}, {}, "the dictionary has no columns"),
        ([], {}, "the data has no rows"),
        ([{"a": 1.0}, {"b": 1.0}], {}, "row 1 has 'b', and the first one 'a'"),
        ("data.csv", {}, r"paths are of Parquet files, \*.parquet, got 'data.csv'; read other files with"),
        (iter([]), {}, "gives no data"),
        (iter([{"a": "text"}]), {}, r"holds text, whose classes are not known before all has been read; list them: classes={'a': \["),
    ],
)
def test_mistakes_are_told(data: Any, options: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        C.io.from_data(data, **options)


def test_other_things_are_no_data() -> None:
    with pytest.raises(TypeError, match=r"expected frames of pandas or Polars, .*; got int 3"):
        C.io.from_data(3)
    with pytest.raises(TypeError, match="is a minibatch source already"):
        C.io.from_data(C.io.from_data([1.0]))


@pytest.mark.parametrize("missing", [np.nan, None])
def test_missing_values_are_told_with_the_column_and_rows(missing: Any) -> None:
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = pandas.DataFrame({"age": [1.0, missing, 3.0], "port": ["x", "y", missing]})
    with pytest.raises(ValueError, match=r"the column 'age' has 1 missing values .*\.fillna\(value\).*\(in the rows 1 to 1\)"):
        everything(C.io.from_data(frame, ["age"], max_sweeps=1, randomize=False))
    with pytest.raises(ValueError, match=r"the column 'port' has no value at place 0 .*\.fillna\(value\).*\(in the rows 2 to 2\)"):
        everything(C.io.from_data(frame, ["port"], max_sweeps=1, randomize=False))


def test_unknown_values_are_told_or_left_out() -> None:
    with pytest.raises(ValueError, match=r"'kind' has the value 'teal', which is none of its 2 classes \('red', 'blue'\).*unknown='zeros'"):
        C.io.from_data({"kind": ["red", "teal"]}, classes={"kind": ["red", "blue"]}).next_minibatch(2)
    source = C.io.from_data({"kind": ["red", "teal"]}, classes={"kind": ["red", "blue"]}, unknown="zeros", randomize=False, max_sweeps=1)
    assert everything(source) == {"kind": [[[1, 0]], [[0, 0]]]}
