"""What a server says of itself for programs: the addresses it names, and the shapes of its models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cntk as C

pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")

from serving import InProcess

from cntk.serving.application import Settings


def fits(schema: dict[str, Any], value: Any, document: dict[str, Any]) -> bool:
    """Whether a value is one of a schema, of which the document uses few words."""
    if "$ref" in schema:
        return fits(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], value, document)
    known = {"object": dict, "array": list, "string": str, "integer": int}
    if "type" in schema and not isinstance(value, known[schema["type"]]):
        return False
    if "anyOf" in schema and not any(fits(one, value, document) for one in schema["anyOf"]):
        return False
    if ("const" in schema and value != schema["const"]) or ("enum" in schema and value not in schema["enum"]):
        return False
    if "minimum" in schema and value < schema["minimum"]:
        return False
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            return False
        return all(fits(schema.get("items", {}) if i >= len(first) else first[i], one, document) for i, one in enumerate(value))
    if isinstance(value, dict):
        own = schema.get("properties", {})
        return set(schema.get("required", ())) <= set(value) and all(
            fits(own[name], one, document) for name, one in value.items() if name in own
        )
    return True


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    x, w = C.input_variable(3, name="x"), C.sequence.input_variable(5, is_sparse=True, name="w")
    C.layers.Dense(2, name="z")(x).save(str(tmp_path / "dense.dnn"))
    C.layers.Recurrence(C.layers.LSTM(3), name="h")(C.layers.Embedding(2)(w)).save(str(tmp_path / "a b.dnn"))
    return [str(tmp_path / "dense.dnn"), str(tmp_path / "a b.dnn")]


def test_requests_and_responses_are_as_described(files: list[str]) -> None:
    with InProcess(Settings(files, poll=0)) as client:
        document = client.get("/openapi.json").json
        tried = 0
        for path, methods in document["paths"].items():
            for method, described in methods.items():
                if method == "get":
                    assert client.get(path.replace("%20", " ")).status == 200, path
                    continue
                content = described["requestBody"]["content"]["application/json"]
                assert fits(content["schema"], content["example"], document)
                answer = client.ask("POST", path.replace("%20", " "), json.dumps(content["example"]).encode())
                assert fits(described["responses"]["200"]["content"]["application/json"]["schema"], answer.json, document)
                wrong = {"inputs": [{**content["example"]["inputs"][0], "shape": [1, 1, 1, 1]}]}
                assert not fits(content["schema"], wrong, document)
                tried += 1
        assert tried == 2
        assert "security" not in document


def test_a_token_is_described(files: list[str]) -> None:
    with InProcess(Settings(files, token="secret", poll=0)) as client:
        document = client.get("/openapi.json", {"Authorization": "Bearer secret"}).json
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
