"""A plugin of pytest's that counts what tests come to, and ends them when their time is over.

They run in an order by chance, the same each time, so that those that fit into the time stand for all.  What runs on the CPU is left out.
"""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

FAILURES = 100
"""So many failed tests are named."""

OFTEN = 50
"""After so many tests totals are written, since one that takes long may be ended with all."""


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--gpu-totals", help="file of the totals")
    parser.addoption("--gpu-seconds", type=float, default=0.0, help="how long tests may take; 0 for as long as they do")


def pytest_configure(config: Any) -> None:
    if config.getoption("--gpu-totals"):
        config.pluginmanager.register(Totals(Path(config.getoption("--gpu-totals")), config.getoption("--gpu-seconds")), "gpu-totals")


class _Plain:
    """In place of the parameters of a test without any."""

    params: ClassVar[dict[str, Any]] = {}


def _is_cpu(value: Any) -> bool:
    from cntk.core.extension.device import DeviceDescriptor, DeviceKind

    return isinstance(value, DeviceDescriptor) and value.type() == DeviceKind.CPU


class Totals:
    """Totals of a run.

    Args:
        path: where they are written.
        seconds: how long the run may take.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self._path, self._ends = path, time.monotonic() + seconds if seconds else float("inf")
        self._totals: Counter[str] = Counter()
        self._failed: list[str] = []
        self._is_cut, self._collected = False, 0

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        left_out = [item for item in items if any(map(_is_cpu, getattr(item, "callspec", _Plain).params.values()))]
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
        random.Random(1).shuffle(items)
        self._collected = len(items)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._totals[report.outcome if report.when == "call" or report.skipped else "error"] += 1
            if report.failed and len(self._failed) < FAILURES:
                self._failed.append(f"{report.nodeid}: {str(report.longrepr)[-300:]}")
            if sum(self._totals.values()) % OFTEN == 0:
                self._write(is_complete=False)

    def pytest_runtest_teardown(self, item: Any) -> None:
        if time.monotonic() > self._ends:
            self._is_cut = True
            item.session.shouldstop = "the time for tests is over"

    def pytest_sessionfinish(self) -> None:
        self._write(is_complete=not self._is_cut)

    def _write(self, is_complete: bool) -> None:
        found = {"totals": dict(self._totals), "collected": self._collected, "is_complete": is_complete, "failed": self._failed}
        self._path.write_text(json.dumps([found]), encoding="utf-8")
