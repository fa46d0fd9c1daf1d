"""What a server counts, as Prometheus reads it."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDER = "PROMETHEUS_MULTIPROC_DIR"
"""Variable of the environment with the folder in which workers put what they count."""
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
ROWS = tuple(2**i for i in range(11))
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """Counts of a server, and of its other workers where :data:`FOLDER` says where these are."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        of = ("model", "version")
        self._requests = Counter(
            "cntk_requests", "Requests for inference, by the status of the response.", (*of, "code"), registry=registry
        )
        self._seconds = Histogram("cntk_request_seconds", "Time from request to response.", of, buckets=SECONDS, registry=registry)
        self._rows = Histogram("cntk_batch_rows", "Rows computed together.", of, buckets=ROWS, registry=registry)
        self._waiting = Gauge("cntk_waiting_rows", "Rows that wait for a model.", of, multiprocess_mode="livesum", registry=registry)
        self._loads = Counter("cntk_model_loads", "Files of models that were loaded, or failed to.", (*of, "outcome"), registry=registry)
        self._ready = Gauge(
            "cntk_model_ready", "Whether a version of a model is served.", of, multiprocess_mode="livemin", registry=registry
        )
        self._labelled = cache(self._find)  # the library takes longer to find a count than to count

    def answered(self, model: str, version: str, code: int, seconds: float) -> None:
        """Count a request; model and version are empty where there is none of that name."""
        count, times = self._labelled(model, version, code)
        count.inc()
        if times is not None:
            times.observe(seconds)

    def _find(self, model: str, version: str, code: int) -> tuple[Counter, Histogram | None]:
        """What counts a response, and its time where there is a model."""
        return self._requests.labels(model, version, str(code)), self._seconds.labels(model, version) if model else None

    def batches(self, model: str, version: str) -> Callable[[int, int], None]:
        """What counts a model's batches, by their rows and those that wait then."""
        rows, waiting = self._rows.labels(model, version), self._waiting.labels(model, version)

        def observe(computed: int, left: int) -> None:
            rows.observe(computed)
            waiting.set(left)

        return observe

    def loaded(self, model: str, version: str, is_loaded: bool) -> None:
        """Count a file that was loaded, or failed to."""
        self._loads.labels(model, version, "loaded" if is_loaded else "failed").inc()

    def ready(self, model: str, version: str, is_ready: bool) -> None:
        """Note whether a version is served."""
        self._ready.labels(model, version).set(is_ready)

    def text(self) -> bytes:
        """All of it as text."""
        registry = self._registry
        if os.environ.get(FOLDER):
            registry = CollectorRegistry()
            MultiProcessCollector(registry)
        return generate_latest(registry)

    def close(self) -> None:
        """Forget the gauges of this worker."""
        if os.environ.get(FOLDER):
            mark_process_dead(os.getpid())
