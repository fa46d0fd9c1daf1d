"""Counts what is skipped against the list of what may be, where CNTK_CI says which parts of the list hold.

In continuous integration ``CNTK_CI`` is 1, or names parts of ``skips.toml`` separated by commas.  Elsewhere whatever is not installed is
skipped, and nothing is counted.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

LIST = Path(__file__).with_name("skips.toml")


def allowed(parts: str) -> list[tuple[str, str]]:
    """Beginnings of tests' places, with what their reasons hold, in parts of the list; the part that always holds among them.

    Raises:
        ValueError: the list has no part of a name.
    """
    listed = tomllib.loads(LIST.read_text("utf-8"))
    names = ["always", *(name for name in parts.split(",") if name != "1")]
    if unknown := [name for name in names if name not in listed]:
        raise ValueError(f"CNTK_CI: {LIST.name} has no part {', '.join(unknown)}; it has {', '.join(listed)}")
    return [(place, reason) for name in names for place, reasons in listed[name].items() for reason in _as_list(reasons)]


def unlisted(skipped: Iterable[tuple[str, str]], known: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Of places and reasons those that the list does not have."""
    for place, reason in skipped:
        if not any(place.startswith(beginning) and part in reason for beginning, part in known):
            yield place, reason


def _as_list(reasons: str | list[str]) -> list[str]:
    return [reasons] if isinstance(reasons, str) else reasons


class Skips:
    """Notes what is skipped, and fails the run where it may not be."""

    def __init__(self, parts: str) -> None:
        self._known = allowed(parts)
        self._skipped: list[tuple[str, str]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
            self._skipped.append((report.nodeid, reason))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if session.exitstatus == pytest.ExitCode.OK and self._unlisted():
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        wrong = self._unlisted()
        terminalreporter.write_line(f"{len(self._skipped)} skipped, {len(wrong)} of them in no part of {LIST.name} that holds here")
        for place, reason in wrong:
            terminalreporter.write_line(f"{place}: {reason}", red=True)

    def _unlisted(self) -> list[tuple[str, str]]:
        return sorted(set(unlisted(self._skipped, self._known)))


def begin(config: pytest.Config) -> None:
    """Have skips counted where the environment says so, by the process that starts others and not by these."""
    parts = os.environ.get("CNTK_CI", "")
    if parts and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Skips(parts), "cntk-skips")
