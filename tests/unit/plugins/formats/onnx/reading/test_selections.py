"""Elements that are picked by numbers which the graph computes, compared with NumPy's indexing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_graphs import file_of, graph, node, normal, value

import cntk as C


def gather_nd(x: Any, places: Any, shared: int) -> Any:
    if shared:
        return np.stack([gather_nd(one, own, shared - 1) for one, own in zip(x, places, strict=True)])
    return x[tuple(np.moveaxis(places, -1, 0))]


@pytest.mark.parametrize(
    ("shape", "dims", "places", "kind", "shared"),
    [
        ((3, 5, 2), ("N", "T", 2), [[1], [-1], [4]], ("N", 1), 1),
        ((3, 5), ("N", "T"), [[1], [-1], [4]], ("N", 1), 1),
        ((3, 5, 2), ("N", "T", 2), [[[1], [0]], [[-1], [2]], [[4], [3]]], ("N", 2, 1), 1),
        ((3, 5, 2), ("N", 5, 2), [[1, 0], [-1, 1], [4, -2]], ("N", 2), 1),
        ((5, 2, 3), (5, 2, 3), [[1, 0], [-1, 1], [4, -2]], ("N", 2), 0),
        ((5, 2, 3), (5, 2, 3), [[1], [-1], [4]], ("M", 1), 0),
    ],
)
def test_gather_nd(shape: Any, dims: Any, places: Any, kind: Any, shared: int) -> None:
    inputs = [value("x", *dims), value("places", *kind, dtype=np.int64)]
    f = C.load_model(file_of(graph([node("GatherND", "x places", "y", batch_dims=shared)], inputs, "y")))
    x = normal(*shape)
    if shared:
        x[1, 0] = np.nan  # what is not picked makes no difference
    expected = gather_nd(x, np.array(places), shared)
    np.testing.assert_array_equal(f.eval({"x": x, "places": np.float64(places)}), expected)


def test_gather_nd_of_several_axes_in_common() -> None:
    inputs = [value("x", "N", 4, 5), value("places", "N", 4, 1, dtype=np.int64)]
    f = C.load_model(file_of(graph([node("GatherND", "x places", "y", batch_dims=2)], inputs, "y")))
    x, places = normal(3, 4, 5), np.random.default_rng(1).integers(-5, 5, (3, 4, 1))
    np.testing.assert_array_equal(f.eval({"x": x, "places": np.float64(places)}), np.take_along_axis(x, places, 2)[..., 0])


def test_the_last_step_of_padded_sequences(tmp_path: Any) -> None:
    x = C.sequence.input_variable(3, name="x")
    function = C.layers.Sequential([C.layers.Fold(C.layers.GRU(4)), C.layers.Dense(2)])(x)
    function.save(tmp_path / "model.onnx", format="onnx", record=False)
    found = C.load_model(tmp_path / "model.onnx")
    data, given = [normal(steps, 3) for steps in (4, 1, 3)], np.full((3, 4, 3), np.nan, np.float32)
    for row, one in zip(given, data, strict=True):
        row[: len(one)] = one
    results = found.eval({"x": given, "sequence_lengths": np.float64([4, 1, 3])})
    np.testing.assert_allclose(results, function.eval(data), rtol=1e-4, atol=1e-5)


# ---- slices whose bounds are sizes of the data ---------------------------------------------------

SLICED: dict[str, tuple[list[Any], Any]] = {
    "but the first": ([node("Sub", "t one", "m"), node("Neg", "m", "b"), node("Slice", "x b far last", "y")], lambda x, k: x[..., 1:]),
    "as many as of another": ([node("Slice", "x zero k last", "y")], lambda x, k: x[..., :k]),
    "behind as many as of another": (
        [node("Add", "k t", "e"), node("Slice", "table k e zero", "p"), node("Add", "x p", "y")],
        lambda x, k: x + np.arange(20, dtype=np.float32)[k : k + x.shape[-1]],
    ),
    "the last, as many as of another": ([node("Neg", "k", "b"), node("Slice", "x b far last", "y")], lambda x, k: x[..., -k:]),
}


@pytest.mark.parametrize("name", SLICED)
def test_slices_between_sizes_of_the_data(name: str) -> None:
    nodes, right = SLICED[name]
    sizes = [node("Shape", "x", "xs"), node("Slice", "xs last three", "t"), node("Shape", "z", "zs"), node("Slice", "zs one last", "k")]
    numbers = {"zero": [0], "one": [1], "last": [2], "three": [3], "far": [2**62]}
    arrays = {key: np.array(one) for key, one in numbers.items()} | {"table": np.arange(20, dtype=np.float32)}
    inputs = [value("x", "N", 2, "T"), value("z", "N", "K")]
    f = C.load_model(file_of(graph([*sizes, *nodes, node("ReduceSum", "z", "all")], inputs, "y all", **arrays)))
    for steps, others in ((5, 3), (7, 4)):
        x, z = normal(3, 2, steps), normal(3, others)
        found = f.eval({"x": x, "z": z})
        np.testing.assert_array_equal(found[f.outputs[0]], right(x, others))
