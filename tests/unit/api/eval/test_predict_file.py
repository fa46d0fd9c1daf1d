"""Models applied to files, of any format in and out."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.cli import main
from cntk.eval import Predictor, predict_file, scoring

COUNT = 300
ROWS = np.random.default_rng(0).normal(size=(COUNT, 3)).astype(np.float32)
LENGTHS = np.random.default_rng(1).integers(1, 6, COUNT)
STARTS = np.concatenate([[0], np.cumsum(LENGTHS)])
STEPS = np.random.default_rng(2).normal(size=(STARTS[-1], 2)).astype(np.float32)
SEQUENCES = [STEPS[start:stop] for start, stop in pairwise(STARTS)]
FORMATS = ("csv", "npz", "ctf", "parquet")


@pytest.fixture(scope="module")
def dense() -> C.Function:
    x = C.input_variable(3, name="x")
    return C.combine([C.layers.Dense(2, name="z")(x), C.layers.Dense(1, name="w")(x)])


@pytest.fixture(scope="module")
def recurrent() -> C.Function:
    return C.layers.Recurrence(C.layers.GRU(4), name="h")(C.sequence.input_variable(2, name="s"))


def parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet", reason="needs PyArrow")


def text(row: Any) -> list[str]:
    return [f"{number:.9g}" for number in row]


def write_rows(path: Path) -> None:
    """The rows, in a file of the format that its suffix says."""
    if path.suffix == ".npz":
        np.savez_compressed(path, x=ROWS)
    elif path.suffix == ".ctf":
        path.write_text("".join(f"|x {' '.join(text(row))} |y 1 |# comment\n" for row in ROWS))
    elif path.suffix == ".parquet":
        import pyarrow

        table = pyarrow.table({"id": [f"row {i}" for i in range(COUNT)], "x": list(ROWS)})
        parquet().write_table(table, path, row_group_size=70)
    else:
        mark = "," if path.suffix == ".csv" else "\t"
        lines = [mark.join(["id", "x_0", "x_1", "x_2"]), *(mark.join([f"row {i}", *text(row)]) for i, row in enumerate(ROWS))]
        path.write_text("\n".join(lines) + "\n")


def write_sequences(path: Path) -> None:
    """The sequences, in a file of the format that its suffix says."""
    if path.suffix == ".npz":
        np.savez(path, s=STEPS, sequence_lengths=LENGTHS)
    elif path.suffix == ".ctf":
        path.write_text("".join(f"{i} |s {' '.join(text(step))}\n" for i, part in enumerate(SEQUENCES) for step in part))
    elif path.suffix == ".parquet":
        import pyarrow

        parquet().write_table(pyarrow.table({"s": [part.tolist() for part in SEQUENCES]}), path, row_group_size=70)
    else:
        with open(path, "w", newline="") as file:
            csv.writer(file).writerows([["s"], *([json.dumps(part.tolist())] for part in SEQUENCES)])


def read_rows(path: Path) -> dict[str, Any]:
    """What is in a file of results for rows."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return {"z": archive["z"], "w": archive["w"][:, 0]}
    if path.suffix == ".parquet":
        table = parquet().read_table(path)
        return {name: np.array(table[name].to_pylist()) for name in ("z", "w")}
    lines = path.read_text().splitlines()
    if path.suffix == ".ctf":
        fields = [[field.split() for field in line.split("|")[1:]] for line in lines]
        assert fields[0][0][0] == "z"
        return {"z": np.array([z[1:] for z, _ in fields], float), "w": np.array([w[1] for _, w in fields], float)}
    cells = [line.split("," if path.suffix == ".csv" else "\t") for line in lines]
    assert cells[0][-3:] == ["z_0", "z_1", "w"]
    numbers = np.array([row[-3:] for row in cells[1:]], float)
    return {"z": numbers[:, :2], "w": numbers[:, 2]}


def read_sequences(path: Path) -> list[Any]:
    """What is in a file of results for sequences."""
    if path.suffix == ".npz":
        with np.load(path) as archive:
            return np.split(archive["h"], np.cumsum(archive["sequence_lengths"])[:-1])
    if path.suffix == ".parquet":
        return [np.array(cell) for cell in parquet().read_table(path)["h"].to_pylist()]
    if path.suffix == ".ctf":
        found: dict[str, list[Any]] = {}
        for line in path.read_text().splitlines():
            number, _, *numbers = line.split()
            found.setdefault(number, []).append(numbers)
        assert list(found) == [str(i) for i in range(COUNT)]
        return [np.array(steps, float) for steps in found.values()]
    with open(path, newline="") as file:
        return [np.array(json.loads(cell)) for (cell,) in list(csv.reader(file))[1:]]


PAIRS = [
    pytest.param(source, target, id=f"{source}-{target}")
    for source in FORMATS
    for target in FORMATS
    if source == target or "npz" in (source, target) or source == "parquet"
]


@pytest.fixture
def require_formats() -> Callable[..., None]:
    def require(*suffixes: str) -> None:
        if "parquet" in suffixes:
            parquet()

    return require


@pytest.mark.parametrize(("source", "target"), [*PAIRS, ("tsv", "tsv")])
def test_rows(source: str, target: str, dense: C.Function, tmp_path: Path, require_formats: Callable[..., None]) -> None:
    require_formats(source, target)
    data, results = tmp_path / f"data.{source}", tmp_path / f"results.{target}"
    write_rows(data)
    assert predict_file(Predictor(dense, batch_rows=64), data, results) == COUNT
    expected, found = Predictor(dense)(ROWS), read_rows(results)
    np.testing.assert_allclose(found["z"], expected["z"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found["w"], expected["w"][:, 0], rtol=1e-5, atol=1e-6)
    assert sorted(path.name for path in tmp_path.iterdir()) == [data.name, results.name]


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_sequences(source: str, target: str, recurrent: C.Function, tmp_path: Path, require_formats: Callable[..., None]) -> None:
    require_formats(source, target)
    data, results = tmp_path / f"data.{source}", tmp_path / f"results.{target}"
    write_sequences(data)
    assert predict_file(Predictor(recurrent, batch_rows=64), data, results) == COUNT
    for one, other in zip(read_sequences(results), recurrent.eval(SEQUENCES), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("stop", [128, 300])
@pytest.mark.parametrize("suffix", FORMATS)
def test_it_goes_on_where_it_was_stopped(
    suffix: str, stop: int, dense: C.Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require_formats: Callable[..., None]
) -> None:
    """The second run computes what the pieces do not have, and the file is the same as of one run."""
    require_formats(suffix)
    data, results, whole = tmp_path / f"data.{suffix}", tmp_path / f"results.{suffix}", tmp_path / f"whole.{suffix}"
    write_rows(data)
    monkeypatch.setattr(scoring, "PIECE_BYTES", 1)
    predictor = Predictor(dense, batch_rows=64)

    def interrupt(done: int, count: int | None) -> None:
        if done > stop or done == COUNT:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, data, results, progress=interrupt)
    assert not results.exists()
    seen: list[int] = []
    assert predict_file(predictor, data, results, progress=lambda done, count: seen.append(done)) == COUNT
    assert seen[0] > min(stop, 256)
    predict_file(predictor, data, whole)
    assert results.read_bytes() == whole.read_bytes()


def stopped(predictor: Predictor, data: Path, results: Path) -> None:
    def interrupt(done: int, count: int | None) -> None:
        if done > 128:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_file(predictor, data, results, progress=interrupt)


@pytest.mark.parametrize("change", ["model", "data", "outputs", "restart"])
def test_pieces_of_something_else_are_not_taken(change: str, dense: C.Function, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "PIECE_BYTES", 1)
    model, data, results = tmp_path / "model.dnn", tmp_path / "data.csv", tmp_path / "results.csv"
    write_rows(data)
    dense.save(model)
    stopped(Predictor(model, batch_rows=64), data, results)
    if change == "model":
        x = C.input_variable(3, name="x")
        C.combine([C.layers.Dense(2, name="z", init=1)(x), C.layers.Dense(1, name="w")(x)]).save(model)
    if change == "data":
        data.write_text(data.read_text() + "\n")
    predictor, seen = Predictor(model, "w" if change == "outputs" else None, 64), []
    predict_file(predictor, data, results, change == "restart", lambda done, count: seen.append(done))
    assert seen[0] == 64
    expected = predictor(ROWS)
    np.testing.assert_allclose(
        [float(line.split(",")[-1]) for line in results.read_text().splitlines()[1:]],
        (expected["w"] if isinstance(expected, dict) else expected)[:, 0],
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("target", ["csv", "npz", "ctf", "parquet"])
def test_files_without_rows(target: str, dense: C.Function, tmp_path: Path, require_formats: Callable[..., None]) -> None:
    require_formats(target)
    data, results = tmp_path / "data.csv", tmp_path / f"results.{target}"
    data.write_text("x_0,x_1,x_2\n")
    assert predict_file(Predictor(dense), data, results) == 0
    if target == "csv":
        assert results.read_text() == "z_0,z_1,w\n"
    if target == "npz":
        np.savez(data.with_suffix(".npz"), x=ROWS[:0])
        predict_file(Predictor(dense), data.with_suffix(".npz"), results)
        with np.load(results) as archive:
            assert archive["z"].shape == (0, 2)


def test_columns_are_passed_on(dense: C.Function, tmp_path: Path) -> None:
    write_rows(data := tmp_path / "data.csv")
    predict_file(Predictor(dense, keep=["id"], batch_rows=64), data, results := tmp_path / "results.csv")
    assert [line.split(",")[0] for line in results.read_text().splitlines()] == ["id", *(f"row {i}" for i in range(COUNT))]
    with pytest.raises(ValueError, match="column 'id' holds <U7 data, and files of this format have numbers alone"):
        predict_file(Predictor(dense, keep=["id"]), data, tmp_path / "results.npz")
    parquet()
    predict_file(Predictor(dense, keep=["id"], batch_rows=64), data, parquet_file := tmp_path / "results.parquet")
    predict_file(Predictor(dense, keep=["id"], batch_rows=64, columns={"x": ["w", "z_0", "z_1"]}), results, again := tmp_path / "again.csv")
    assert parquet().read_table(parquet_file)["id"].to_pylist() == [f"row {i}" for i in range(COUNT)]
    assert again.read_text().count("row") == COUNT


def test_sparse_fields_of_ctf_files(tmp_path: Path) -> None:
    """Sparse text for a dense input, and the other way round."""
    x, p = C.input_variable(4, name="x"), C.input_variable(3, is_sparse=True, name="p")
    model = C.combine([C.alias(x, name="a"), C.times(p, np.eye(3, dtype=np.float32), name="b")])
    (data := tmp_path / "data.ctf").write_text("|x 2:5 0:1 |p 0 0 7\n|x 1:2 |p 1 0 0\n")
    predict_file(Predictor(model), data, results := tmp_path / "results.npz")
    with np.load(results) as archive:
        assert archive["a"].tolist() == [[1, 0, 5, 0], [0, 2, 0, 0]]
        assert archive["b"].tolist() == [[0, 0, 7], [1, 0, 0]]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("data.xlsx", b"", r"the suffix says the format, which is one of \.csv"),
        ("data.csv", b"", "is empty"),
        ("data.csv", b"x_0,x_1,x_2\n1,2,3\n1,2\n", "row 1: 2 cells, but the first line names 3 columns"),
        ("data.csv", b"x_0,x_1,x_2\n1,2,3\n1,2,three\n", "column 'x_2', row 1: expected a number.*got 'three'"),
        ("data.csv", b"x_0,x_1,x_2\n1,2,3\n1,2,\n", "column 'x_2', row 1: expected a number.*got ''"),
        ("data.csv", b"x_0,x_0,x_2\n", "several columns called 'x_0'"),
        ("data.csv", b"a,b\n1,2\n", "no column for the input x"),
        ("data.csv", b"x_0,x_1,x_2\n\xff\xfe,2,3\n", "is not CSV in UTF-8"),
        ("data.npz", b"PK no archive", "as NumPy's archive"),
        ("data.ctf", b"1 2 3\n", "has no fields"),
        ("data.ctf", b"|x 1 2 3\n|x 1 2 three\n", "three"),
        ("data.parquet", b"PAR1 or not", "cannot read"),
    ],
)
def test_wrong_files(
    name: str, content: bytes, message: str, dense: C.Function, tmp_path: Path, require_formats: Callable[..., None]
) -> None:
    require_formats(name.partition(".")[2])
    (data := tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        predict_file(Predictor(dense), data, tmp_path / "results.npz")
    assert not (tmp_path / "results.npz").exists()
    assert not (tmp_path / "results.npz.pieces").exists()


def test_archives_are_not_unpickled(dense: C.Function, tmp_path: Path) -> None:
    np.savez(tmp_path / "data.npz", x=np.array([{}, {}], object))
    with pytest.raises(ValueError, match="holds Python's objects, which are not read"):
        predict_file(Predictor(dense), tmp_path / "data.npz", tmp_path / "results.npz")
    np.savez(tmp_path / "data.npz", x=np.asfortranarray(ROWS))
    with pytest.raises(ValueError, match=r"save np\.ascontiguousarray of it"):
        predict_file(Predictor(dense), tmp_path / "data.npz", tmp_path / "results.npz")


def test_a_damaged_archive_is_noticed(dense: C.Function, tmp_path: Path) -> None:
    np.savez(path := tmp_path / "data.npz", x=ROWS)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"array 'x' of .*npz"):
        predict_file(Predictor(dense), path, tmp_path / "results.npz")


def test_the_data_are_not_overwritten(dense: C.Function, tmp_path: Path) -> None:
    write_rows(path := tmp_path / "data.csv")
    with pytest.raises(ValueError, match="is the file with the data"):
        predict_file(Predictor(dense), path, path)


def test_two_cannot_write_one_file(dense: C.Function, tmp_path: Path) -> None:
    write_rows(data := tmp_path / "data.csv")
    results = tmp_path / "results.csv"

    def again(done: int, count: int | None) -> None:
        predict_file(Predictor(dense), data, results)

    with pytest.raises(BlockingIOError):
        predict_file(Predictor(dense), data, results, progress=again)


def test_the_command(dense: C.Function, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "data.csv")
    dense.save("model.dnn")
    assert (
        main(["predict", "model.dnn", "data.csv", "a/b/results.csv", "--outputs", "w", "--columns", "x=x_2,x_1,x_0", "--keep", "id"]) == 0
    )
    assert capsys.readouterr().out == "results.csv: 300 rows of w [batch, 1] float32\n"
    expected = Predictor(dense, "w")(ROWS[:, ::-1].copy())
    lines = Path("a/b/results.csv").read_text().splitlines()
    np.testing.assert_allclose([float(line.split(",")[1]) for line in lines[1:]], expected[:, 0], rtol=1e-5, atol=1e-6)
    with pytest.raises(SystemExit):
        main(["predict", "model.dnn", "data.csv", "results.csv", "--columns", "x"])
    assert "--columns: expected INPUT=COLUMN" in capsys.readouterr().err
    assert main(["predict", "nothing.dnn", "data.csv", "results.csv"]) == 1
    assert "nothing.dnn" in capsys.readouterr().err


def test_a_folder_in_the_place_of_the_results_is_told_before_anything_is_computed(tmp_path: Path) -> None:
    data, results = tmp_path / "data.csv", tmp_path / "results.csv"
    data.write_text("x_0,x_1\n1,2\n")
    results.mkdir()
    predictor = Predictor(C.layers.Dense(1)(C.input_variable(2, name="x")))
    with pytest.raises(IsADirectoryError, match="it is a folder"):
        predict_file(predictor, data, results)
    with pytest.raises(NotADirectoryError, match="Not a directory"):
        predict_file(predictor, data, data / "results.csv")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "results.csv"]
