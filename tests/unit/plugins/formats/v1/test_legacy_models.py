"""The model format of CNTK's first version: models that CNTK 2.7 wrote, older versions, and files that are damaged."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import random
import tracemalloc
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.extension import plugins
from cntk.plugins.formats.v1 import stream
from cntk.plugins.formats.v1.stream import number, shape, text
from cntk.plugins.protobuf import DamagedFile

FOLDER = Path(__file__).parents[4] / "data" / "legacy_models"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text())


def _make() -> Any:
    spec = importlib.util.spec_from_file_location("make_legacy_models", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


make = _make()


# ---- models cross over ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_models_of_cntk(name: str) -> None:
    loaded = C.Function.load(FOLDER / f"{name}.model")
    assert make.compare(make.outputs_of(loaded), EXPECTED[name]) < 1e-5


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_models_of_ours(name: str, tmp_path: Path) -> None:
    C.debugging.save_as_legacy_model(make.MODELS[name](), str(tmp_path / "model"))
    loaded = C.Function.load(tmp_path / "model")
    assert make.compare(make.outputs_of(loaded), EXPECTED[name]) < 1e-5


def nodes_of(data: bytes) -> bytes:
    return data[: data.index(text("ERelation"))]


@pytest.mark.parametrize("name", ["unary", "dense", "double", "image_network", "lstm", "names", "reductions", "sparse", "unpooling"])
def test_what_is_loaded_is_written_byte_for_byte(name: str, tmp_path: Path) -> None:
    C.debugging.save_as_legacy_model(C.Function.load(FOLDER / f"{name}.model"), str(tmp_path / "model"))
    assert nodes_of((tmp_path / "model").read_bytes()) == nodes_of((FOLDER / f"{name}.model").read_bytes())


def saved(function: Any, folder: Path) -> Any:
    C.debugging.save_as_legacy_model(function, str(folder / "model"))
    return C.Function.load(folder / "model")


def test_names_uids_and_kinds(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x", needs_gradient=True)
    V, c = C.parameter((2, 2), name="V"), C.constant([1, 2], name="c")
    f = C.layers.Sequential([C.layers.Dense(2, C.tanh, name="first")])(C.times(x, V) + c)
    loaded = saved(f, tmp_path)
    assert (loaded.x.uid, loaded.V.uid, loaded.c.uid) == (x.uid, V.uid, c.uid)
    assert loaded.x.needs_gradient
    assert [v.uid for v in loaded.constants] == [c.uid]
    assert {v.name for v in loaded.parameters} == {"V", "W", "b"}
    assert loaded.find_by_name("first") is not None
    assert all(isinstance(v, C.Parameter) for v in loaded.parameters)


def test_results_keep_their_order(tmp_path: Path) -> None:
    x = C.input_variable(2, name="x")
    z, a = C.sin(x, name="z"), C.cos(x, name="a")
    given = np.float32([[0.1, 0.2]])
    loaded = saved(C.combine([z.output, x, a.output, z.output]), tmp_path)
    found = [loaded.outputs[i] for i in range(4)]
    values = loaded.eval({loaded.x: given})
    for output, expected in zip(found, [np.sin(given), given, np.cos(given), np.sin(given)], strict=True):
        np.testing.assert_allclose(values[output], expected, rtol=1e-6)


def test_a_loaded_model_learns(tmp_path: Path) -> None:
    loaded = saved(make.MODELS["lstm"](), tmp_path)
    x, y = loaded.arguments[0], C.sequence.input_variable(2)
    trainer = C.Trainer(loaded, C.squared_error(loaded, y), [C.sgd(loaded.parameters, C.learning_parameter_schedule(0.1))])
    data = {x: [np.ones((3, 3), np.float32)], y: [np.ones((3, 2), np.float32)]}
    losses = []
    for _ in range(20):
        trainer.train_minibatch(data)
        losses.append(trainer.previous_minibatch_loss_average)
    assert losses[-1] < losses[0] / 2


def test_the_format_is_found_by_the_first_bytes(tmp_path: Path) -> None:
    known = plugins.model_formats.get("CNTKv1")
    data = (FOLDER / "dense.model").read_bytes()
    assert known.recognises(data[:16])
    assert not known.recognises(b"BC")
    C.tanh(C.input_variable(2)).save(tmp_path / "model")
    assert not known.recognises((tmp_path / "model").read_bytes())
    assert C.Function.load(data).z.shape == C.load_model(str(FOLDER / "dense.model")).z.shape == (2,)


def test_a_loaded_model_saves_in_the_current_format(tmp_path: Path) -> None:
    C.Function.load(FOLDER / "gru.model").save(tmp_path / "model")
    assert make.compare(make.outputs_of(C.Function.load(tmp_path / "model")), EXPECTED["gru"]) < 1e-5


# ---- older versions, and nodes that CNTK 2 does not write ----------------------------------------

Node = tuple[str, str, bytes, list[str]]


def count(value: int) -> bytes:
    return number("q", value)


def names(*found: str) -> bytes:
    return count(len(found)) + b"".join(map(text, found))


def file(nodes: Iterable[Node], version: int = 31, outputs: Iterable[str] = (), roles: Iterable[str] = ("Output",)) -> bytes:
    nodes = [("DynamicAxis", "__noSequenceAxis", b"", []), *nodes]
    head = text("BCN") + text("BVersion") + count(version) + text("EVersion") + count(len(nodes)) + text("BNodeList")
    listed = b"".join(text("float") + text(operation) + text(name) + own for operation, name, own, _ in nodes) + text("ENodeList")
    related = text("BRelation") + b"".join(text(name) + names(*operands) for _, name, _, operands in nodes) + text("ERelation")
    groups = b"".join(text(f"B{role}Nodes") + names(*outputs) + text(f"E{role}Nodes") for role in roles)
    return head + listed + related + text("BRootNodes") + groups + text("ERootNodes") + text("ECN")


def fed(name: str, *dims: int, version: int = 31, axis: str | None = "__noSequenceAxis") -> Node:
    on_axis = number("i", 0) if axis is None else number("i", 1) + text(axis)
    return "InputValue", name, bytes(16) + shape(dims) + on_axis + (number("f", 0) if version >= 10 else b""), []


def learned(name: str, value: Any, rate: float = 1.0) -> Node:
    array = np.asarray(value, np.float32)
    return "LearnableParameter", name, number("f", rate) + shape(array.shape) + b"".join(map(bytes, stream.matrix(array))), []


def evaluated(nodes: Iterable[Node], version: int = 31, **given: Any) -> np.ndarray:
    f = C.Function.load(file(nodes, version))
    return np.asarray(f.eval({getattr(f, name): np.float32(value) for name, value in given.items()}))


X = np.arange(1, 13, dtype=np.float32).reshape(1, 3, 4) / 10


@pytest.mark.parametrize("version", [8, 9, 10, 21, 22, 26, 27, 31])
def test_slices_of_every_version(version: int) -> None:
    cut = count(1) + count(2) + number("i", 1)
    own = cut if version < 22 else number("i", 1) + cut + (number("i", 1) if version >= 27 else b"")
    found = evaluated([fed("x", 3, 4, version=version), ("Slice", "r", own, ["x"])], version, x=X)
    np.testing.assert_array_equal(found, X[..., 1:3])


@pytest.mark.parametrize("version", [8, 23, 24, 26, 27, 31])
def test_reductions_of_every_version(version: int) -> None:
    head = (number("i", 1) if version >= 27 else b"") + number("i", 2) + text("Max")
    own = head + (b"\1" if version >= 24 else b"")
    found = evaluated([fed("x", 3, 4, version=version), ("ReduceElements", "r", own, ["x"])], version, x=X)
    np.testing.assert_array_equal(found, X.max(1, keepdims=True))


@pytest.mark.parametrize("version", [8, 11, 12, 31])
def test_products_of_every_version(version: int) -> None:
    W = np.float32([[1, 2], [3, 4], [5, 6]])
    own = count(1) + (number("i", -1) if version >= 12 else b"")
    found = evaluated([learned("W", W), fed("x", 3, version=version), ("Times", "r", own, ["W", "x"])], version, x=X[:, :, 0])
    np.testing.assert_allclose(found, X[:, :, 0] @ W, rtol=1e-6)


@pytest.mark.parametrize("version", [8, 15, 16, 31])
def test_dropout_of_every_version(version: int) -> None:
    own = bytes(16) if version >= 16 else b""
    found = evaluated([fed("x", 3, 4, version=version), ("Dropout", "r", own, ["x"])], version, x=X)
    np.testing.assert_array_equal(found, X)


@pytest.mark.parametrize("version", [8, 9, 17, 18, 20, 21, 22, 23, 31])
def test_windows_of_every_version(version: int) -> None:
    flags, none, zeros = count(3) + b"\1\1\1", count(3) + b"\0\0\0", shape((0, 0, 0))
    tail = [(9, b"\0"), (20, shape((0,))), (21, b"\0"), (23, b"\0")]
    shared = b"".join(piece for since, piece in tail if version >= since)

    def own(window: tuple[int, ...], maps: tuple[int, ...], kind: int) -> bytes:
        sizes = shape(window) + shape(maps) + shape((1, 1, 1)) + flags + none + zeros + zeros
        return sizes + number("i", kind) + number("i", 1) + count(0) + shared

    data = X.reshape(1, 1, 3, 4)
    found = evaluated([fed("x", 1, 3, 4, version=version), ("Pooling", "r", own((1, 2, 2), (1,), 2), ["x"])], version, x=data)
    windows = np.lib.stride_tricks.sliding_window_view(data[0, 0], (2, 2))
    np.testing.assert_allclose(found[0, 0], windows.mean((-2, -1)), rtol=1e-6)
    filters = np.float32([[[[1, 2], [3, 4]]]])
    convolution = own((1, 2, 2), (1, 1, 1), 0) + b"\0" + (shape((1, 1, 1)) if version >= 18 else b"")
    nodes = [learned("W", filters), fed("x", 1, 3, 4, version=version), ("Convolution", "r", convolution, ["W", "x"])]
    np.testing.assert_allclose(evaluated(nodes, version, x=data)[0, 0], (windows * filters[0, 0]).sum((-2, -1)), rtol=1e-6)


@pytest.mark.parametrize("version", [13, 18, 20, 31])
def test_normalisation_without_a_count(version: int) -> None:
    own = b"\1" + number("d", 0) * 2 + number("i", 1) + count(0) + number("d", 1e-5) + b"\1"
    statistics = [learned(name, [value]) for name, value in {"s": 2, "b": 3, "m": 0.2, "v": 0.7}.items()]
    node = ("BatchNormalization", "r", own, ["x", "s", "b", "m", "v"])
    found = evaluated([fed("x", 1, 3, 4, version=version), *statistics, node], version, x=X.reshape(1, 1, 3, 4))
    np.testing.assert_allclose(found, (X.reshape(1, 1, 3, 4) - 0.2) / np.sqrt(0.7 + 1e-5) * 2 + 3, rtol=1e-5)


def softmax(z: np.ndarray) -> np.ndarray:
    return np.exp(z) / np.exp(z).sum(-1, keepdims=True)


Z = np.float32([[0.1, 0.7, 0.4], [0.9, 0.2, 0.3]])
LABELS = np.float32([[0, 1, 0], [0, 0, 1]])
CRITERIA = {
    "CrossEntropyWithSoftmax": -(LABELS * np.log(softmax(Z))).sum(),
    "ErrorPrediction": 1,
    "ClassificationError": 1,
    "SquareError": ((Z - LABELS) ** 2).sum(),
    "Logistic": -np.log(np.where(LABELS > 0, Z, 1 - Z)).sum(),
    "CosDistance": (Z * LABELS).sum(-1) / np.linalg.norm(Z, axis=-1),
    "ColumnElementTimes": Z * LABELS,
}


@pytest.mark.parametrize("operation", sorted(CRITERIA))
def test_criteria_add_up_the_minibatch(operation: str) -> None:
    found = evaluated([fed("z", 3), fed("y", 3), (operation, "r", b"", ["y", "z"])], z=Z, y=LABELS)
    np.testing.assert_allclose(found, CRITERIA[operation], rtol=1e-6)


def test_cross_entropy_of_labels_that_are_no_distribution() -> None:
    labels = np.float32([[0.5, 1, 0], [0, 2, 0.25]])
    found = evaluated([fed("z", 3), fed("y", 3), ("CrossEntropyWithSoftmax", "r", b"", ["y", "z"])], z=Z, y=labels)
    np.testing.assert_allclose(found, -(labels * np.log(softmax(Z))).sum(), rtol=1e-6)


def test_normalised_features() -> None:
    mean, scale = np.float32([1, 2, 3]), np.float32([4, 5, 6])
    nodes = [fed("features", 3)]
    for operation, name, value in (("Mean", "m", mean), ("InvStdDev", "s", scale)):
        nodes.append((operation, name, b"\1" + b"".join(map(bytes, stream.matrix(value))), ["features"]))
    nodes.append(("PerDimMeanVarNormalization", "r", b"", ["features", "m", "s"]))
    np.testing.assert_allclose(evaluated(nodes, features=Z), (Z - mean) * scale, rtol=1e-6)


def test_results_of_a_network_with_roles() -> None:
    nodes = [fed("features", 3), fed("labels", 3), ("Sin", "ol.z[0]", b"", ["features"]), ("Minus", "Err", b"", ["ol.z[0]", "labels"])]
    loaded = C.Function.load(file(nodes, outputs=["ol.z[0]"], roles=["Output", "Pair"]))
    assert [output.name for output in loaded.outputs] == ["Err", "ol.z[0]"]
    assert [v.name for v in loaded.arguments] == ["features", "labels"]


@pytest.mark.parametrize("axis", [None, "", "*"])
def test_the_default_axis(axis: str | None) -> None:
    axes: list[Node] = [("DynamicAxis", "*", b"", [])] if axis else []
    past: Node = ("PastValue", "r", number("i", 1) + shape((2,)) + number("f", 0.5), ["x"])
    loaded = C.Function.load(file([*axes, fed("x", 2, axis=axis), past]))
    assert loaded.x.dynamic_axes == C.sequence.input_variable(2).dynamic_axes
    (found,) = loaded.eval({loaded.x: [np.float32([[1, 2], [3, 4]])]})
    assert found.tolist() == [[0.5, 0.5], [1, 2]]


# ---- what the format does not have ---------------------------------------------------------------


def _mixed() -> Any:
    return C.combine([C.sin(C.input_variable(2, name="x")), C.sin(C.input_variable(2, dtype=np.float64, name="wide"))])


REFUSED = {
    "TopK 'best'": lambda: C.top_k(C.input_variable(5), 2, name="best"),
    "OneHotOp": lambda: C.one_hot(C.input_variable(2), 5),
    "Pow 'p'": lambda: C.pow(C.input_variable(2), 2, name="p"),
    "UnpackSequenceOp": lambda: C.sequence.reduce_sum(C.sequence.input_variable(2)),
    "strides of a slice": lambda: C.slice(C.input_variable(5), 0, 0, 5, 2),
    "in groups": lambda: C.convolution(C.parameter((4, 1, 3, 3)), C.input_variable((2, 5, 6)), groups=2),
    r"float .*double": _mixed,
    "neither float32 nor float64": lambda: C.sin(C.input_variable(2, dtype=np.float16, name="half")),
    "'x' has free dimensions": lambda: C.sin(C.input_variable((C.FreeDimension, 3), name="x")),
    "input 'x'": lambda: C.sin(C.input_variable(2, dynamic_axes=[], name="x")),
    "placeholder 'p' is not replaced": lambda: C.sin(C.input_variable(2)) + C.placeholder(name="p", shape=(2,)),
}


@pytest.mark.parametrize("what", sorted(REFUSED))
def test_models_that_the_format_does_not_have(what: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"(?s){what}.*Function\.save"):
        C.debugging.save_as_legacy_model(REFUSED[what](), str(tmp_path / "model"))
    assert list(tmp_path.iterdir()) == []


# ---- damaged files -------------------------------------------------------------------------------

SMALL = file([fed("x", 3), learned("W", [1, 2, 3]), ("Plus", "r", b"", ["x", "W"])])


def changed(old: bytes, new: bytes) -> bytes:
    assert SMALL.count(old) >= 1
    return SMALL.replace(old, new, 1)


DAMAGED = {
    "version 7 of": file([], 7),
    "version 32 of": file([], 32),
    "version 0 of": changed(text("BVersion") + count(31) + text("EVersion"), b""),
    "operation 'RowRepeat' of node 'r'": file([fed("x", 3), ("RowRepeat", "r", count(2), ["x"])]),
    "ROIPooling of version 25 is not known": file([("ROIPooling", "r", b"", [])], 25),
    "BatchNormalization of version 19": file([("BatchNormalization", "r", b"", [])], 19),
    "filters as a matrix": (FOLDER / "convolution.model").read_bytes().replace(b"\0\0\0" + shape((1, 1, 1)), b"\0\0\1" + shape((1, 1, 1))),
    "float or double": changed(text("float") + text("Plus"), text("half") + text("Plus")),
    "another name than 'x'": file([fed("x", 3), fed("x", 3)]),
    "a node, found 'nobody'": file([fed("x", 3), ("Sin", "r", b"", ["nobody"])]),
    "expected 2 operands of Logistic": file([fed("x", 3), ("Logistic", "r", b"", ["x"])]),
    "expected 1 operands": file([fed("x", 3), ("SumElements", "r", b"", ["x", "x"])]),
    "a dense matrix": changed(shape((3,)) + b"d", shape((3,)) + b"s"),
    "values of 4 or 8 bytes": changed(count(4) + text("unnamed"), count(2) + text("unnamed")),
    "expected 4 values of a parameter": changed(shape((3,)) + b"d", shape((4,)) + b"d"),
    "expected at most 12 dimensions": changed(shape((3,)) + b"d", number("I", 13) + bytes(13 * 4) + b"d"),
    "a node with a result": file([fed("x", 3)]),
    "more bytes": SMALL + b"\0",
    "shapes do not broadcast": file([fed("x", 3), learned("W", [1, 2]), ("Plus", "r", b"", ["x", "W"])]),
    "layers whose weights": file([("OptimizedRNNStack", "r", count(0) + count(2**31 - 1) + count(3) + text("lstm") + number("i", -1), [])]),
    "kind of pooling": (FOLDER / "max_pooling.model")
    .read_bytes()
    .replace(number("i", 1) * 2 + count(0), number("i", 3) + number("i", 1) + count(0)),
    "reduction along sequences": file(
        [fed("x", 3), ("ReduceElements", "r", number("i", 1) + number("i", -2) + text("Sum") + b"\1", ["x"])]
    ),
    "axis": file([fed("x", 3), ("RowStack", "r", number("i", 2**31 - 1), ["x", "x"])]),
    "one axis": changed(number("i", 1) + text("__noSequenceAxis"), number("i", 2) + text("__noSequenceAxis")),
}


@pytest.mark.parametrize("what", sorted(DAMAGED))
def test_damage_is_reported_with_its_place(what: str, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(DAMAGED[what])
    with pytest.raises(DamagedFile, match=rf"(?s)model, byte \d+: .*{what}"):
        C.Function.load(tmp_path / "model")


def test_every_beginning_of_a_file_is_refused() -> None:
    known = plugins.model_formats.get("CNTKv1")
    for size in range(len(SMALL)):
        with pytest.raises(DamagedFile, match=r"<file>, byte \d+: "):
            known.read(SMALL[:size], None, "<file>")


HUGE = {
    "nodes": changed(count(4) + text("BNodeList"), count(2**62) + text("BNodeList")),
    "rows": changed(text("unnamed") + number("i", 0) + count(3), text("unnamed") + number("i", 0) + count(2**60)),
    "dimensions": changed(shape((3,)) + b"d", number("I", 2**32 - 1) + b"d"),
    "operands": changed(text("r") + names("x", "W"), text("r") + count(2**62) + text("x")),
    "flags": (FOLDER / "convolution.model").read_bytes().replace(count(3) + b"\1\1\1", count(2**62) + b"\1\1\1"),
}


@pytest.mark.parametrize("what", sorted(HUGE))
def test_lengths_that_the_file_cannot_hold_take_no_memory(what: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(DamagedFile, match=r"byte \d+: expected"):
            C.Function.load(HUGE[what])
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_changed_bytes_never_do_anything_else_than_raise() -> None:
    chance = random.Random(4)
    known = plugins.model_formats.get("CNTKv1")
    files = [(FOLDER / f"{name}.model").read_bytes() for name in ("dense", "slices", "convolution", "recurrence", "reductions", "ranks")]
    for _ in range(2000):
        data = bytearray(chance.choice(files))
        for _ in range(chance.choice([1, 1, 3])):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 1, 1, 8])] = chance.choice(
                [bytes([chance.randrange(256)]), b"", b"\xff" * 8, data[at : at + 40]]
            )
        with contextlib.suppress(DamagedFile):
            known.read(bytes(data), None, "<file>")
