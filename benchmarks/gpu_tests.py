"""A plugin of pytest's that counts what tests come to, and ends them when their time is over."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

FAILURES = 100
"""So many failed tests are named."""


def pytest_addoption(parser: Any) -> None:
    parser.addoption("--gpu-totals", help="file of the totals")
    parser.addoption("--gpu-seconds", type=float, default=0.0, help="how long tests may take; 0 for as long as they do")


def pytest_configure(config: Any) -> None:
    if config.getoption("--gpu-totals"):
        config.pluginmanager.register(Totals(Path(config.getoption("--gpu-totals")), config.getoption("--gpu-seconds")), "gpu-totals")


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
        self._is_cut = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self._totals[report.outcome if report.when == "call" or report.skipped else "error"] += 1
            if report.failed and len(self._failed) < FAILURES:
                self._failed.append(f"{report.nodeid}: {str(report.longrepr)[-300:]}")

    def pytest_runtest_teardown(self, item: Any) -> None:
        if time.monotonic() > self._ends:
            self._is_cut = True
            item.session.shouldstop = "the time for tests is over"

    def pytest_sessionfinish(self, session: Any) -> None:
        found = {"totals": dict(self._totals), "collected": session.testscollected, "is_complete": not self._is_cut, "failed": self._failed}
        self._path.write_text(json.dumps([found]), encoding="utf-8")
