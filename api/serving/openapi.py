"""A description of a server's addresses, with the shapes of its models, as OpenAPI has it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any
from urllib.parse import quote

from cntk.core.extension.plugins import DISTRIBUTION
from cntk.serving.repository import Version

ERRORS = {
    "400": "The request is not of the protocol.",
    "404": "There is no such model or version.",
    "413": "The request is too large.",
    "422": "The request does not fit the model, or has too many rows.",
    "429": "Too much waits for the model.",
    "503": "The request took too long.",
}


def description(versions: Sequence[Version], wants_token: bool) -> dict[str, Any]:
    """The OpenAPI document, version 3.1.

    Args:
        versions: what is served.
        wants_token: whether requests have to bring a token.
    """
    paths: dict[str, Any] = {
        "/v2": _get("About the server."),
        "/v2/health/live": _get("Whether the server is alive."),
        "/v2/health/ready": _get("Whether requests are to be sent here.", {"503": "Not now."}),
        "/v2/models": _get("The models and their versions."),
        "/metrics": _get("What the server counts, as Prometheus reads it."),
    }
    schemas: dict[str, Any] = {"Error": _error()}
    for one in versions:
        paths.update(_paths(one))
        schemas.update(_schemas(one))
    document: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": DISTRIBUTION, "version": version(DISTRIBUTION), "description": "Open Inference Protocol, version 2."},
        "paths": paths,
        "components": {"schemas": schemas},
    }
    if wants_token:
        document["components"] = {"schemas": schemas, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}}
        document["security"] = [{"token": []}]
    return document


def _get(summary: str, others: dict[str, str] | None = None) -> dict[str, Any]:
    answers = {"200": "OK", **(others or {})}
    return {"get": {"summary": summary, "responses": {code: {"description": text} for code, text in answers.items()}}}


def _paths(one: Version) -> dict[str, Any]:
    source, own = one.source, _own(one)
    start = f"/v2/models/{quote(source.name, safe='')}/versions/{source.version}"
    refused = {code: {"description": text, "content": _content("Error")} for code, text in ERRORS.items()}
    infer = {
        "summary": f"Computes {source.name}, version {source.version}.",
        "requestBody": {
            "required": True,
            "content": {"application/json": {**_schema(f"{own}.Request"), "example": one.served.example_request()}},
        },
        "responses": {"200": {"description": "The outputs.", "content": _content(f"{own}.Response")}, **refused},
    }
    return {start: _get("Inputs and outputs."), f"{start}/ready": _get("Whether it is served."), f"{start}/infer": {"post": infer}}


def _own(one: Version) -> str:
    """The beginning of the names of its schemas."""
    name = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_") else "_" for letter in one.source.name)
    return f"{name}.{one.source.version}"


def _schema(name: str) -> dict[str, Any]:
    return {"schema": {"$ref": f"#/components/schemas/{name}"}}


def _content(name: str) -> dict[str, Any]:
    return {"application/json": _schema(name)}


def _schemas(one: Version) -> dict[str, Any]:
    inputs = {"type": "array", "items": {"anyOf": [_tensor(tensor) for tensor in one.served.accepted]}, "minItems": 1}
    outputs = {"type": "array", "items": {"anyOf": [_tensor(tensor) for tensor in one.served.outputs]}}
    names = {"type": "object", "required": ["name"], "properties": {"name": {"enum": one.served.output_names}}}
    request = {"id": {"type": "string"}, "inputs": inputs, "outputs": {"type": "array", "items": names}}
    response = {"id": {"type": "string"}, "model_name": {"type": "string"}, "model_version": {"type": "string"}, "outputs": outputs}
    own = _own(one)
    return {
        f"{own}.Request": {"type": "object", "required": ["inputs"], "properties": request},
        f"{own}.Response": {"type": "object", "required": ["model_name", "outputs"], "properties": response},
    }


def _tensor(tensor: dict[str, Any]) -> dict[str, Any]:
    sizes = [{"type": "integer", "minimum": 1} if size == -1 else {"const": size} for size in tensor["shape"]]
    shape = {"type": "array", "prefixItems": sizes, "minItems": len(sizes), "maxItems": len(sizes)}
    properties = {"name": {"const": tensor["name"]}, "shape": shape, "datatype": {"const": tensor["datatype"]}, "data": {"type": "array"}}
    return {"type": "object", "required": ["name", "shape", "datatype"], "properties": properties}


def _error() -> dict[str, Any]:
    properties = {"error": {"type": "string"}, "input": {"type": "string"}, "expected": {"type": ["object", "array"]}, "example": {}}
    return {"type": "object", "required": ["error"], "properties": properties}
