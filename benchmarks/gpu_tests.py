"""A plugin of pytest's that counts what tests come to, and ends them when their time is over.

They run in an order by chance, the same each time, so that those that fit into the time stand for all.  What runs on the CPU is left out.
With pytest-xdist several processes share the GPU; one whose CUDA context is lost ends, and another takes its place.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

import pytest

FAILURES = 400
"""So many failed tests are named."""

TOLD = 1500
"""So many characters are told of each."""

OFTEN = 50
"""After so many tests totals are written, since one that takes long may be ended with all."""

LOST = (
    "cudaErrorIllegalAddress",
    "cudaErrorMisalignedAddress",
    "cudaErrorLaunchFailure",
    "cudaErrorIllegalInstruction",
    "an illegal memory access",
)
"""What errors say after which nothing more can be computed in a process."""


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--gpu-totals", help="file of the totals")
    parser.addoption("--gpu-from", type=int, default=0, help="the test to begin with, by its number, where earlier runs came so far")
    parser.addoption("--gpu-seconds", type=float, default=0.0, help="how long tests may take; 0 for as long as they do")


def pytest_configure(config: Any) -> None:
    if config.getoption("--gpu-totals"):
        is_worker, has_workers = hasattr(config, "workerinput"), bool(config.getoption("numprocesses", None))
        if not has_workers or is_worker:
            chosen = Chosen(config.getoption("--gpu-from"), config.getoption("--gpu-seconds"), is_worker)
            config.pluginmanager.register(chosen, "gpu-chosen")
        if not is_worker:
            config.pluginmanager.register(Totals(Path(config.getoption("--gpu-totals"))), "gpu-totals")


class _Plain:
    """In place of the parameters of a test without any."""

    params: ClassVar[dict[str, Any]] = {}


def _is_cpu(value: Any) -> bool:
    from cntk.core.extension.device import DeviceDescriptor, DeviceKind

    return isinstance(value, DeviceDescriptor) and value.type() == DeviceKind.CPU


class Chosen:
    """Which tests run.

    Args:
        first: number of the test to begin with.
        seconds: how long the run may take; 0 for as long as it does.
        is_worker: whether another process counts, and starts a new one in place of this where it ends.
    """

    def __init__(self, first: int, seconds: float, is_worker: bool) -> None:
        self._first = first
        self._ends, self._is_worker = time.monotonic() + seconds if seconds else float("inf"), is_worker

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        left_out = [item for item in items if any(map(_is_cpu, getattr(item, "callspec", _Plain).params.values()))]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        random.Random(1).shuffle(items)
        items[:] = [*items[self._first :], *items[: self._first]]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self) -> bool | None:
        return True if time.monotonic() > self._ends else None  # as if another plugin had run it

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: Any) -> None:
        if self._is_worker and report.failed and any(lost in str(report.longrepr) for lost in LOST):
            os._exit(1)


class Totals:
    """Totals of a run.

    Args:
        path: where they are written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._totals, self._failed, self._collected = path, Counter[str](), list[str](), 0

    def pytest_collection_finish(self, session: Any) -> None:
        self._collected = self._collected or len(session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        self._collected = len(ids)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._totals[report.outcome if report.when in ("call", "???") or report.skipped else "error"] += 1
            if report.failed and len(self._failed) < FAILURES:
                self._failed.append(f"{report.nodeid}: {str(report.longrepr)[-TOLD:]}")
            if sum(self._totals.values()) % OFTEN == 0:
                self._write()

    def pytest_sessionfinish(self) -> None:
        self._write()

    def _write(self) -> None:
        is_complete = sum(self._totals.values()) >= self._collected
        found = {"totals": dict(self._totals), "collected": self._collected, "is_complete": is_complete, "failed": self._failed}
        self._path.write_text(json.dumps([found]), encoding="utf-8")
