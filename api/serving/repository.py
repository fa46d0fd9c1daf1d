"""The models of a server: loaded, found by name and version, and loaded anew when their files change."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import quote

from cntk.core.graph.function import Function
from cntk.serving.batching import Batcher
from cntk.serving.limits import Limits
from cntk.serving.metrics import Metrics
from cntk.serving.refusals import Refusal
from cntk.serving.served import Served
from cntk.serving.sources import Source, Sources

log = logging.getLogger("cntk.serving")

Stamp = tuple[int, int, int]


class Version(NamedTuple):
    """A version of a model that is served.

    Attributes:
        source: where it comes from.
        stamp: what tells its file from a later one.
        served: what it computes.
        batcher: computes requests together.
    """

    source: Source
    stamp: Stamp
    served: Served
    batcher: Batcher


class Repository:
    """The models of a server.

    Args:
        sources: where they are.
        outputs: results or nodes to give, for all models; None for all results but losses and metrics.
        limits: limits of the server.
        metrics: counts loads and batches.
    """

    def __init__(self, sources: Sources, outputs: Sequence[str] | None, limits: Limits, metrics: Metrics) -> None:
        self._sources, self._outputs, self._limits, self._metrics = sources, outputs, limits, metrics
        self._versions: dict[str, dict[str, Version]] = {}
        self._seen: dict[tuple[str, str], Stamp] = {}
        self._failed: dict[tuple[str, str], tuple[Stamp, str]] = {}
        self._draining: set[asyncio.Task[None]] = set()

    # ---- finding ----

    def find(self, name: str, version: str | None) -> Version:
        """A version of a model, the highest where none is asked for.

        Raises:
            Refusal: there is none.
        """
        versions = self._versions.get(name)
        if not versions:
            known = ", ".join(map(repr, self._versions)) or "none"
            failures = [f"; version {number} cannot be loaded: {why}" for (of, number), (_, why) in self._failed.items() if of == name]
            example = next((f"/v2/models/{quote(one)}/infer" for one in self._versions), None)
            raise Refusal(404, f"there is no model {name!r:.200}{''.join(failures)}; there are {known}", example=example)
        if version is None:
            return versions[max(versions, key=int)]
        if version not in versions:
            reason = self._failed.get((name, version), ((), ""))[1]
            why = f"cannot be loaded: {reason}" if reason else "does not exist"
            example = f"/v2/models/{quote(name)}/versions/{next(iter(versions))}/infer"
            raise Refusal(404, f"version {version!r:.80} of the model {name!r} {why}; there are {', '.join(versions)}", example=example)
        return versions[version]

    def versions(self, name: str) -> list[str]:
        """The versions of a model that are served, in order."""
        return sorted(self._versions.get(name, ()), key=int)

    def all(self) -> list[Version]:
        """All that is served."""
        return [self._versions[name][version] for name in sorted(self._versions) for version in self.versions(name)]

    @property
    def is_ready(self) -> bool:
        """Whether every model that was found has a version that is served."""
        return bool(self._versions) and all(self._versions.get(name) for name, _ in self._failed)

    # ---- loading ----

    async def start(self) -> None:
        """Load all models.

        Raises:
            ValueError: a model that was given as a file cannot be loaded, or there are no models.
        """
        for source in self._sources.found():
            stamp = _stamp(source.path)
            if stamp is not None:
                await self._load(source, stamp)
            failure = self._failed.get((source.name, source.version))
            if source.name in self._sources.required and failure is not None:
                raise ValueError(f"the model {source.name!r} cannot be served: {failure[1]}")
        if not self._versions:
            reasons = "".join(f"\n{name}/{version}: {why}" for (name, version), (_, why) in self._failed.items())
            raise ValueError(f"there are no models to serve; expected files NAME/VERSION/FILE in a folder, versions being numbers{reasons}")

    async def watch(self, seconds: float) -> None:
        """Look every so many seconds for files that are new, have changed or are gone."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.refresh()
            except OSError as error:  # folders that come and go while they are listed
                log.warning("models cannot be listed", extra={"fields": {"error": str(error)}})

    async def refresh(self) -> None:
        """Load what is new or has changed and is at rest: a file that is being written changes from look to look."""
        found = {(source.name, source.version): source for source in await asyncio.to_thread(self._sources.found)}
        for key, source in found.items():
            stamp = _stamp(source.path)
            if stamp is None or stamp == self._known(key):
                continue
            if self._seen.get(key) == stamp:
                await self._load(source, stamp)
            self._seen[key] = stamp
        for name, versions in list(self._versions.items()):
            for version in [number for number in versions if (name, number) not in found and name not in self._sources.required]:
                self._retire(versions.pop(version), "removed")
                self._metrics.ready(name, version, False)
                if not versions:
                    del self._versions[name]
        for key in [key for key in self._failed if key not in found]:
            del self._failed[key]

    def _known(self, key: tuple[str, str]) -> Stamp | None:
        """The stamp of the file that was loaded last, or failed to."""
        if key in self._failed:
            return self._failed[key][0]
        version = self._versions.get(key[0], {}).get(key[1])
        return None if version is None else version.stamp

    async def _load(self, source: Source, stamp: Stamp) -> None:
        """Load a version beside the one that is served, warm it, and put it in its place."""
        key, begin = (source.name, source.version), time.perf_counter()
        fields: dict[str, Any] = {"model": source.name, "version": source.version, "path": source.path}
        try:
            served = await asyncio.to_thread(self._loaded, source)
        except Exception as error:
            self._failed[key] = stamp, str(error).replace(source.path, os.path.basename(source.path))  # clients are told
            self._metrics.loaded(*key, False)
            log.error("model cannot be loaded", extra={"fields": {**fields, "error": str(error)}})
            return
        self._failed.pop(key, None)
        batcher = Batcher(served.compute, self._limits, self._metrics.batches(*key))
        versions = self._versions.setdefault(source.name, {})
        old, versions[source.version] = versions.get(source.version), Version(source, stamp, served, batcher)
        self._metrics.loaded(*key, True)
        self._metrics.ready(*key, True)
        seconds = round(time.perf_counter() - begin, 3)
        log.info("model loaded", extra={"fields": {**fields, "seconds": seconds, "signature": str(served.signature)}})
        if old is not None:
            self._retire(old, "replaced")

    def _loaded(self, source: Source) -> Served:
        if os.path.isdir(source.path):
            files = ", ".join(sorted(os.listdir(source.path)))
            raise ValueError(f"the folder of a version has one file, its model, and {source.path} has several: {files:.200}")
        served = Served(Function.load(source.path), self._outputs, self._limits.rows)
        served.warm()
        return served

    def _retire(self, version: Version, why: str) -> None:
        """Let a version that is found no more compute what waits for it."""
        task = asyncio.create_task(version.batcher.drain())
        self._draining.add(task)
        task.add_done_callback(self._draining.discard)
        log.info(f"model {why}", extra={"fields": {"model": version.source.name, "version": version.source.version}})

    async def drain(self) -> None:
        """Wait until nothing waits for any model."""
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*(version.batcher.drain() for version in self.all()), *self._draining)


def _stamp(path: str) -> Stamp | None:
    """What changes when a file does; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
