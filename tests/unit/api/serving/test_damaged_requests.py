"""Requests made at random, right and damaged: what is answered is right, and what is refused is the client's fault."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cntk as C

pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")

from serving import Answer, InProcess

from cntk.serving.application import Settings
from cntk.serving.limits import Limits

REFUSALS = (400, 404, 413, 415, 422)
SCRAPS = (b"[", b"]", b"{", b"}", b'"', b",", b"-", b"1e99", b"NaN", b"null", b"true", b"\xff", b"\x00", b"[[[[", b"9" * 30, b"FP64", b"x")


@pytest.fixture(scope="module")
def model() -> Any:
    x, s = C.input_variable(3, name="x"), C.sequence.input_variable(2, name="s")
    return C.combine([C.alias(C.tanh(x * 2), "y"), C.alias(C.sequence.reduce_sum(s), "sum")])


@pytest.fixture(scope="module")
def client(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    path = tmp_path_factory.mktemp("models") / "m.dnn"
    model.save(str(path))
    with InProcess(Settings([str(path)], limits=Limits(rows=100, body=20_000, elements=10_000), poll=0)) as running:
        yield running


def outputs_of(answer: Answer) -> dict[str, Any]:
    """The outputs, of which each is in JSON or in binary data."""
    size = int(answer.headers.get("inference-header-content-length", len(answer.body)))
    data, found = answer.body[size:], {}
    for one in json.loads(answer.body[:size])["outputs"]:
        if "data" in one:
            found[one["name"]] = np.array(one["data"], np.float32).reshape(one["shape"])
        else:
            nbytes = one["parameters"]["binary_data_size"]
            found[one["name"]] = np.frombuffer(data[:nbytes], np.float32).reshape(one["shape"])
            data = data[nbytes:]
    assert not data
    return found


def request_of(x: Any, sequences: list[Any], is_binary: bool, is_packed: bool) -> tuple[bytes, dict[str, str]]:
    lengths = np.array([len(steps) for steps in sequences], np.int64)
    s = np.concatenate(sequences) if is_packed else np.zeros((len(sequences), lengths.max(), 2), np.float32)
    if not is_packed:
        for row, steps in zip(s, sequences, strict=True):
            row[: len(steps)] = steps
    inputs: list[dict[str, Any]] = []
    data = b""
    for name, array in (("x", x), ("s", s), ("sequence_lengths", lengths)):
        one: dict[str, Any] = {"name": name, "shape": array.shape, "datatype": "INT64" if array.dtype.kind == "i" else "FP32"}
        if is_binary:
            one["parameters"] = {"binary_data_size": array.nbytes}
            data += array.tobytes()
        else:
            one["data"] = array.tolist()
        inputs.append(one)
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": is_binary}}).encode()
    return head + data, {"Inference-Header-Content-Length": str(len(head))} if is_binary else {}


numbers = st.floats(-1e3, 1e3, width=32)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.integers(1, 5), st.booleans(), st.booleans())
def test_whatever_is_asked_is_what_eval_gives(
    client: InProcess, model: Any, data: Any, rows: int, is_binary: bool, is_packed: bool
) -> None:
    x = data.draw(arrays.arrays(np.float32, (rows, 3), elements=numbers))
    lengths = data.draw(st.lists(st.integers(1, 4), min_size=rows, max_size=rows))
    sequences = [data.draw(arrays.arrays(np.float32, (length, 2), elements=numbers)) for length in lengths]
    found = outputs_of(client.infer("m", *request_of(x, sequences, is_binary, is_packed)))
    right = {variable.name: value for variable, value in model.eval({"x": x, "s": sequences}).items()}
    assert found.keys() == right.keys()
    for name, value in found.items():
        np.testing.assert_allclose(value, right[name], rtol=1e-5, atol=1e-5)


def damaged(body: bytes, headers: dict[str, str], random_: random.Random) -> tuple[bytes, dict[str, str]]:
    """A request with one to four mistakes."""
    made = bytearray(body)
    for _ in range(random_.randint(1, 4)):
        at = random_.randrange(len(made) + 1)
        kind = random_.randrange(6)
        if kind == 0 and at < len(made):
            made[at] ^= 1 << random_.randrange(8)
        elif kind == 1:
            made[at:at] = random_.choice(SCRAPS)
        elif kind == 2:
            del made[at : at + random_.randint(1, 8)]
        elif kind == 3:
            del made[at:]
        elif kind == 4:
            made[at:at] = made[at : at + random_.randint(1, 60)]
        elif headers:
            length = int(headers["Inference-Header-Content-Length"]) + random_.randint(-9, 9)
            headers = {"Inference-Header-Content-Length": str(length)}
    return bytes(made), headers


def test_ten_thousand_damaged_requests(client: InProcess, model: Any) -> None:
    random_ = random.Random(7)
    x, sequences = np.array([[1, 2, 3], [4, 5, 6]], np.float32), [np.ones((2, 2), np.float32), np.ones((1, 2), np.float32)]
    whole = [request_of(x, sequences, is_binary, is_packed) for is_binary in (True, False) for is_packed in (True, False)]
    answered = 0
    for _ in range(10_000):
        body, headers = damaged(*random_.choice(whole), random_)
        answer = client.infer("m", body, headers)
        if answer.status == 200:
            answered += 1
            if not headers:
                given = {
                    one["name"]: np.array(one["data"]).reshape(one["shape"])
                    for one in json.loads(body.decode("utf-8", "replace"))["inputs"]
                }
                right = np.tanh(2 * given["x"].astype(np.float32))
                np.testing.assert_allclose(outputs_of(answer).get("y", right), right, rtol=1e-4)
        else:
            assert answer.status in REFUSALS, (answer, body)
            assert answer.json["error"]
    assert 0 < answered < 5_000
    found = outputs_of(client.infer("m", *whole[0]))
    np.testing.assert_allclose(found["y"], np.tanh(2 * x), rtol=1e-5)
