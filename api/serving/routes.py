"""What a server tells of itself and its models."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from cntk.core.extension.plugins import DISTRIBUTION
from cntk.serving import openapi, page
from cntk.serving.metrics import CONTENT_TYPE
from cntk.serving.refusals import Refusal
from cntk.serving.repository import Version

if TYPE_CHECKING:
    from cntk.serving.application import Application

EXTENSIONS = ["binary_tensor_data"]


def routes_of(application: Application) -> list[Route]:
    """What is found at which address, but for inference."""
    repository = application.repository

    def found(request: Request) -> Version:
        return repository.find(request.path_params["model"], request.path_params.get("version"))

    async def live(request: Request) -> Response:
        return _json({"live": True})

    async def ready(request: Request) -> Response:
        return _json({"ready": application.is_ready}, 200 if application.is_ready else 503)

    async def server(request: Request) -> Response:
        return _json({"name": DISTRIBUTION, "version": version(DISTRIBUTION), "extensions": EXTENSIONS})

    async def models(request: Request) -> Response:
        names = dict.fromkeys(one.source.name for one in repository.all())
        return _json({"models": [{"name": name, "versions": repository.versions(name)} for name in names]})

    async def model(request: Request) -> Response:
        one = found(request)
        described = {"name": one.source.name, "versions": repository.versions(one.source.name), "platform": "cntk"}
        return _json({**described, "inputs": one.served.inputs, "outputs": one.served.outputs})

    async def model_ready(request: Request) -> Response:
        one = found(request)
        return _json({"name": one.source.name, "ready": application.is_ready}, 200 if application.is_ready else 503)

    async def graph(request: Request) -> Response:
        return Response(found(request).served.picture, media_type="image/svg+xml", headers=page.HEADERS)

    async def example(request: Request) -> Response:
        return _json(found(request).served.example_request())

    async def metrics(request: Request) -> Response:
        return Response(application.metrics.text(), headers={"content-type": CONTENT_TYPE})

    async def description(request: Request) -> Response:
        return _json(openapi.description(repository.all(), application.settings.token is not None))

    async def infer(request: Request) -> Response:  # POST comes by a shorter way
        raise NotImplementedError

    of_model: dict[str, Callable[[Request], Any]] = {"": model, "/ready": model_ready, "/graph.svg": graph, "/example": example}
    addresses = ("/v2/models/{model}", "/v2/models/{model}/versions/{version}")
    told = {
        "/v2": server,
        "/v2/health/live": live,
        "/v2/health/ready": ready,
        "/v2/models": models,
        "/metrics": metrics,
        "/openapi.json": description,
        **{start + end: handler for start in addresses for end, handler in of_model.items()},
    }
    own = [Route(path, _refusing(handler)) for path, handler in told.items()]
    return [*own, *(Route(f"{start}/infer", infer, methods=["POST"]) for start in addresses), *page.routes()]


def refused(refusal: Refusal) -> Response:
    """A refusal as a response."""
    headers = {name.decode(): value.decode() for name, value in refusal.headers}
    return Response(refusal.body, refusal.status, headers, media_type="application/json")


def _refusing(handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except Refusal as refusal:
            return refused(refusal)

    return handle


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
