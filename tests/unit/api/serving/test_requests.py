"""Requests and responses of the protocol, by a server in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")

from serving import Answer, InProcess

from cntk.serving.application import Settings
from cntk.serving.limits import Limits

X = np.array([[1, 2, 3], [-4, 5.5, 6]], np.float32)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Functions by name, and the folder of their files."""
    folder = tmp_path_factory.mktemp("models")
    x, t = C.input_variable(3, name="x"), C.input_variable(2, dtype=np.float64, name="t")
    s, w = C.sequence.input_variable(2, name="s"), C.sequence.input_variable(5, is_sparse=True, name="w")
    open_ = C.input_variable((C.FreeDimension, 2), name="rows")
    dense = C.layers.Dense(2, activation=C.tanh, name="z")(x)
    recurrent = C.layers.Recurrence(C.layers.LSTM(3), name="h")(C.splice(s, C.layers.Embedding(2)(w)))
    made = {
        "dense": dense,
        "double": C.combine([C.alias(2 * t, "twice"), C.alias(C.greater(t, 0), "positive")]),
        "recurrent": C.combine([recurrent, C.alias(C.sequence.last(recurrent), "end")]),
        "open": C.alias(C.reduce_sum(open_, axis=0), "sums"),
        "powers": C.alias(C.exp(x * 100), "power"),
        "mean": C.alias(x - C.reduce_mean(x, axis=C.Axis.default_batch_axis()), "centred"),
        "half": C.alias(C.cast(x, np.float16) * 2, "two"),
    }
    for name, function in made.items():
        function.save(str(folder / f"{name}.dnn"))
    return {"folder": folder, **made}


@pytest.fixture(scope="module")
def client(models: dict[str, Any]) -> Iterator[InProcess]:
    files = sorted(map(str, models["folder"].iterdir()))
    with InProcess(Settings(files, limits=Limits(rows=50, body=20_000, elements=5000), poll=0)) as running:
        yield running


def tensor(name: str, array: Any, datatype: str = "FP32", **others: Any) -> dict[str, Any]:
    array = np.asarray(array)
    return {"name": name, "shape": list(array.shape), "datatype": datatype, "data": array.ravel().tolist(), **others}


def asked(*tensors: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"inputs": list(tensors), **others}


def arrays(answer: Answer) -> dict[str, Any]:
    """The outputs of a response in JSON."""
    assert answer.status == 200, answer.body
    kinds = {"FP64": np.float64, "FP32": np.float32, "FP16": np.float16, "INT64": np.int64}
    return {one["name"]: np.array(one["data"], kinds[one["datatype"]]).reshape(one["shape"]) for one in answer.json["outputs"]}


def binary(*given: tuple[str, Any], datatype: str = "FP32", **others: Any) -> tuple[bytes, dict[str, str]]:
    """A request with binary tensors, and its headers."""
    inputs, data = [], b""
    for name, array in given:
        kind = "INT64" if array.dtype.kind == "i" else datatype
        inputs.append({"name": name, "shape": array.shape, "datatype": kind, "parameters": {"binary_data_size": array.nbytes}})
        data += array.tobytes()
    head = json.dumps({"inputs": inputs, **others}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))}


# ---- what is right ----


def test_json_gives_what_eval_gives(client: InProcess, models: dict[str, Any]) -> None:
    answer = client.infer("dense", asked(tensor("x", X), id="seven"))
    assert np.array_equal(arrays(answer)["z"], models["dense"].eval({"x": X}))
    assert (answer.json["id"], answer.json["model_name"], answer.json["model_version"]) == ("seven", "dense", "1")


def test_nested_lists_are_taken_as_flat_ones(client: InProcess) -> None:
    nested = client.infer("dense", {"inputs": [{"name": "x", "shape": [2, 3], "datatype": "FP32", "data": X.tolist()}]})
    assert np.array_equal(arrays(nested)["z"], arrays(client.infer("dense", asked(tensor("x", X))))["z"])


def test_binary_tensors_both_ways(client: InProcess, models: dict[str, Any]) -> None:
    answer = client.infer("dense/versions/1", *binary(("x", X), parameters={"binary_data_output": True}))
    size = int(answer.headers["inference-header-content-length"])
    output = json.loads(answer.body[:size])["outputs"][0]
    assert answer.headers["content-type"] == "application/octet-stream"
    assert output["parameters"] == {"binary_data_size": 16}
    assert "data" not in output
    assert np.array_equal(np.frombuffer(answer.body[size:], np.float32).reshape(2, 2), models["dense"].eval({"x": X}))


def test_some_outputs_of_each_kind(client: InProcess) -> None:
    outputs = [{"name": "positive", "parameters": {"binary_data": True}}, {"name": "twice"}]
    answer = client.infer("double", asked(tensor("t", [[0.1, -2]], "FP64"), outputs=outputs))
    size = int(answer.headers["inference-header-content-length"])
    assert [one["name"] for one in json.loads(answer.body[:size])["outputs"]] == ["positive", "twice"]
    assert json.loads(answer.body[:size])["outputs"][1]["data"] == [0.2, -4]
    assert np.frombuffer(answer.body[size:], np.float64).tolist() == [1, 0]


def test_ragged_sequences_padded_and_packed(client: InProcess, models: dict[str, Any]) -> None:
    steps = np.random.default_rng(1).normal(size=(6, 2)).astype(np.float32)
    words, lengths = np.array([0, 4, 2, 2, 1, 3]), np.array([1, 3, 2])
    starts = np.cumsum([0, *lengths])
    parts = [(steps[a:b], words[a:b]) for a, b in pairwise(starts)]
    right = [models["recurrent"].eval({"s": [p], "w": C.Value.one_hot([q.tolist()], 5)}) for p, q in parts]
    padded_s, padded_w = np.full((3, 4, 2), 9, np.float32), np.full((3, 4), 4)
    for i, (p, q) in enumerate(parts):
        padded_s[i, : len(p)], padded_w[i, : len(q)] = p, q
    one_hot = np.eye(5, dtype=np.float32)
    for s, w in ((padded_s, padded_w), (steps, words), (padded_s, one_hot[padded_w]), (steps, one_hot[words])):
        kind = "INT64" if w.dtype.kind == "i" else "FP32"
        answer = client.infer("recurrent", asked(tensor("s", s), tensor("w", w, kind), tensor("sequence_lengths", lengths, "INT64")))
        found = arrays(answer)
        assert found["sequence_lengths"].tolist() == [1, 3, 2]
        assert found["h"].shape == (3, 3, 3)
        for i, values in enumerate(right):
            h, end = values.values()
            np.testing.assert_allclose(found["h"][i, : lengths[i]], h[0], rtol=1e-5)
            assert not found["h"][i, lengths[i] :].any()
            np.testing.assert_allclose(found["end"][i], end[0], rtol=1e-5)


def test_sequences_without_lengths_are_equally_long(client: InProcess) -> None:
    found = arrays(client.infer("recurrent", asked(tensor("s", np.ones((2, 3, 2))), tensor("w", [[1, 2, 3]] * 2, "INT64"))))
    assert found["sequence_lengths"].tolist() == [3, 3]


def test_free_dimensions_and_samples_together(client: InProcess, models: dict[str, Any]) -> None:
    for size in (1, 4):
        data = np.random.default_rng(size).normal(size=(2, size, 2)).astype(np.float32)
        assert np.array_equal(arrays(client.infer("open", asked(tensor("rows", data))))["sums"], models["open"].eval({"rows": data}))


def test_float16_comes_back_as_it_is(client: InProcess, models: dict[str, Any]) -> None:
    assert np.array_equal(arrays(client.infer("half", asked(tensor("x", X))))["two"], models["half"].eval({"x": X}))


def test_a_model_that_mixes_rows_computes_each_request_alone(client: InProcess) -> None:
    async def both() -> list[Answer]:
        import asyncio

        requests = [client.infer_later("mean", asked(tensor("x", X * scale))) for scale in (1, 2, 3)]
        return await asyncio.gather(*requests)

    for scale, answer in zip((1, 2, 3), client.run(both()), strict=True):
        np.testing.assert_allclose(arrays(answer)["centred"], scale * (X - X.mean(0)), rtol=1e-6)


def test_metadata_has_names_types_and_shapes(client: InProcess) -> None:
    found = client.get("/v2/models/recurrent").json
    assert (found["name"], found["versions"]) == ("recurrent", ["1"])
    by_name = {one["name"]: (one["datatype"], one["shape"]) for one in found["inputs"]}
    assert by_name == {"s": ("FP32", [-1, -1, 2]), "w": ("FP32", [-1, -1, 5]), "sequence_lengths": ("INT64", [-1])}
    assert {one["name"] for one in found["outputs"]} == {"h", "end", "sequence_lengths"}
    assert client.get("/v2/models/recurrent/versions/1").json == found
    assert "binary_tensor_data" in client.get("/v2").json["extensions"]
    assert [client.get(path).status for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/dense/ready")] == [200] * 3


def test_every_example_is_answered(client: InProcess, models: dict[str, Any]) -> None:
    for name in models:
        if name != "folder":
            assert client.infer(name, client.get(f"/v2/models/{name}/example").json).status == 200


# ---- what is wrong ----

GOOD, PACKED = tensor("x", X), tensor("s", np.ones((5, 2)))
S, W = tensor("s", np.ones((2, 3, 2))), tensor("w", np.ones((2, 3), int), "INT64")


@pytest.mark.parametrize(
    ("model", "body", "status", "name", "text"),
    [
        ("none", asked(GOOD), 404, None, "no model 'none'"),
        ("dense/versions/7", asked(GOOD), 404, None, "version '7'"),
        ("dense", asked(tensor("y", X)), 422, "y", "no input 'y'; it has 'x'"),
        ("dense", asked(), 422, "x", "there is no input 'x'"),
        ("dense", asked(GOOD, GOOD), 422, "x", "given twice"),
        ("dense", asked(tensor("x", X[:, :2])), 422, "x", "[-1, 3], where -1 stands for any size; got [2, 2]"),
        ("dense", asked(tensor("x", X[0])), 422, "x", "got [3]"),
        ("dense", asked(tensor("x", X, "FP64")), 422, "x", "is FP32, got FP64"),
        ("dense", asked(tensor("x", X, "INT32")), 422, "x", "not INT32"),
        ("dense", asked(tensor("x", X, "BYTES")), 422, "x", "no datatype 'BYTES'"),
        ("dense", asked({**GOOD, "shape": [3, 3]}), 422, "x", "has 9 elements, and data has 6"),
        ("dense", asked({**GOOD, "data": [[1, 2, 3], [4, 5]]}), 422, "x", "not nested as the shape [2, 3]"),
        ("dense", asked({**GOOD, "data": [1, 2, 3, 4, 5, "six"]}), 422, "x", "Expected `float`, got `str`"),
        ("dense", asked({**GOOD, "data": [1, 2, 3, 4, 5, 1e39]}), 422, "x", "a number that FP32 does not hold"),
        ("dense", asked({**GOOD, "data": [1, 2, 3, 4, 5, float("nan")]}), 422, "x", "NaN or Infinity"),
        ("dense", asked({**GOOD, "data": [[1, 2, 3], [4, 5, -float("inf")]]}), 422, "x", "NaN or Infinity"),
        ("dense", asked({"name": "x", "shape": [2, 3], "datatype": "FP32"}), 422, "x", "has no data"),
        ("dense", asked({**GOOD, "shape": [0, 3], "data": []}), 422, "x", "no elements"),
        ("dense", asked({**GOOD, "shape": [-1, 3]}), 400, "x", ">= 0"),
        ("dense", asked({**GOOD, "shape": [2**40, 3]}), 400, "x", "shape"),
        ("dense", asked({**GOOD, "shape": "2, 3"}), 400, "x", "Expected `array`, got `str`"),
        ("dense", asked({**GOOD, "datatype": 32}), 400, "x", "Expected `str`, got `int`"),
        ("dense", asked({"name": "x", "shape": [2, 3], "data": [1] * 6}), 400, "x", "`datatype`"),
        ("dense", asked({**GOOD, "name": 7}), 400, None, "`$.inputs[0].name`"),
        ("dense", asked({**GOOD, "shape": [2000, 3]}), 422, "x", "6000 elements"),
        ("dense", asked({**GOOD, "name": "y" * 5000}), 422, "y" * 200, "it has 'x'"),
        ("dense", asked(GOOD, parameters={"binary_data_output": "yes"}), 400, None, "true or false, got 'yes'"),
        ("dense", b'{"inputs": [{"name": "x", "data": [NaN, %s]}]}' % (b"[" * 9_000 + b"]" * 9_000), 400, None, "not JSON"),
        ("dense", asked(tensor("x", np.zeros((51, 3)))), 422, None, "51 rows; this server takes 50"),
        ("dense", asked({**GOOD, "parameters": {"shared_memory_region": "r"}}), 422, "x", "shared memory"),
        ("dense", asked({**GOOD, "parameters": {"binary_data_size": 24}}), 422, "x", "both data and binary_data_size"),
        ("dense", asked(GOOD, outputs=[{"name": "y"}]), 422, None, "no output 'y'; it has 'z'"),
        ("dense", asked(GOOD, outputs=[{"name": "z", "parameters": {"classification": 2}}]), 422, None, "'classification'"),
        ("dense", {"outputs": []}, 400, None, "`inputs`"),
        ("dense", b'{"inputs": [,', 400, None, "not JSON"),
        ("dense", b"", 400, None, "not JSON"),
        ("dense", b"\xff\xfe", 400, None, "not JSON"),
        ("dense", b"[" * 15_000, 400, None, "Expected `object`"),
        ("dense", b'{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": ' + b"[" * 15_000, 422, None, "too deeply"),
        ("dense", b'{"inputs": [], "more": ' + b"[" * 15_000, 422, None, "too deeply"),
        ("recurrent", asked(S, W, tensor("sequence_lengths", [3, 4], "INT64")), 422, "sequence_lengths", "a length of 4"),
        ("recurrent", asked(S, W, tensor("sequence_lengths", [3, 0], "INT64")), 422, "sequence_lengths", "one step at least"),
        ("recurrent", asked(S, W, tensor("sequence_lengths", [3], "INT64")), 422, "sequence_lengths", "has 1 lengths"),
        ("recurrent", asked(S, W, tensor("sequence_lengths", [3.0, 3.0])), 422, "sequence_lengths", "whole number for each row, got FP32"),
        ("recurrent", asked(PACKED, W, tensor("sequence_lengths", [3, 1], "INT64")), 422, "sequence_lengths", "add up to the 5"),
        ("recurrent", asked(S, tensor("w", [[1, 2, 5]] * 2, "INT64")), 422, "w", "5"),
        ("recurrent", asked(S, tensor("w", [[1, 2]] * 2, "INT64")), 422, None, "not the same numbers of steps"),
        ("recurrent", asked(S, tensor("w", [[1, 2, 3]], "INT64")), 422, None, "2 and 1 rows"),
        ("powers", asked(tensor("x", [[1, 2, 3]])), 422, None, "is inf at [0, 0], which JSON does not have"),
    ],
)  # fmt: skip
def test_refusals_say_what_was_expected(client: InProcess, model: str, body: Any, status: int, name: str | None, text: str) -> None:
    answer = client.infer(model, body)
    assert (answer.status, text in answer.json["error"]) == (status, True), answer.body
    if name is not None:
        assert answer.json["input"] == name
    if isinstance(answer.json.get("expected"), dict):
        assert answer.json["expected"]["name"] == answer.json["input"]
        assert answer.json["example"]["name"] == answer.json["input"]
    elif name is not None or status == 400:
        assert name is None or name not in [one["name"] for one in answer.json["expected"]]
        if "example" in answer.json:
            assert client.infer(model, answer.json["example"]).status == 200


def test_the_input_with_nan_is_named_in_large_requests(client: InProcess) -> None:
    numbers = [1.5] * 1500
    body = asked({**GOOD, "name": "first", "data": numbers}, {**GOOD, "data": [*numbers, float("inf")]})
    assert client.infer("dense", body).json["input"] == "x"


def test_null_is_taken_for_what_is_not_there(client: InProcess) -> None:
    body = asked({**GOOD, "parameters": None}, id=None, parameters=None, outputs=None)
    assert client.infer("dense", body).json["outputs"] == client.infer("dense", asked(GOOD)).json["outputs"]
    assert client.infer("dense", asked(GOOD, outputs=[{"name": "z", "parameters": None}])).status == 200


def test_an_example_of_many_numbers_is_shortened(tmp_path: Path) -> None:
    C.layers.Dense(2, name="z")(C.input_variable(400, name="x")).save(str(tmp_path / "wide.dnn"))
    with InProcess(Settings([str(tmp_path / "wide.dnn")], poll=0)) as client:
        example = client.infer("wide", asked(tensor("x", X))).json["example"]
    assert example == '{"name": "x", "shape": [1, 400], "datatype": "FP32", "data": [0.0, 0.0, ...]}, 400 numbers'


@pytest.mark.parametrize(
    ("size", "length", "text"),
    [
        (20, "", "binary_data_size says 20"),
        (24, "900", "expected how many"),
        (24, "-1", "expected how many"),
        (24, "1e1", "expected how many"),
        (24, "12", "not JSON"),
    ],
)
def test_binary_sizes_have_to_agree(client: InProcess, size: int, length: str, text: str) -> None:
    head = json.dumps(asked({"name": "x", "shape": [2, 3], "datatype": "FP32", "parameters": {"binary_data_size": size}})).encode()
    answer = client.infer("dense", head + X.tobytes(), {"Inference-Header-Content-Length": length or str(len(head))})
    assert answer.status in (400, 422)
    assert text in answer.json["error"]


def test_bytes_that_no_input_takes_are_refused(client: InProcess) -> None:
    body, headers = binary(("x", X))
    assert client.infer("dense", body + b"1", headers).json["error"].endswith(f"it has {len(body) + 1}")
    assert client.infer("dense", body[:-1], headers).json["input"] == "x"


def test_large_bodies_are_refused(client: InProcess) -> None:
    answer = client.infer("dense", b" " * 20_001)
    assert (answer.status, answer.headers["connection"]) == (413, "close")
    parts = [b" " * 9_000] * 3
    assert client.run(client.send("POST", "/v2/models/dense/infer", parts)).status == 413


def test_compressed_bodies_are_refused(client: InProcess) -> None:
    assert client.infer("dense", b"", {"Content-Encoding": "gzip"}).status == 415


def test_other_addresses_and_methods(client: InProcess) -> None:
    assert client.get("/v3").status == 404
    assert client.get("/v2/models/dense/infer").status == 405
    assert client.ask("POST", "/v2", b"").status == 405
    assert client.ask("DELETE", "/v2/models/dense", b"").status == 405
    assert "no model 'a b'" in client.get("/v2/models/a b").json["error"]
