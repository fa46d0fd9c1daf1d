"""The page of ``cntk watch`` in Chromium, while a run goes on."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from browsing import chromium, foreign_addresses, severe_messages, until

from cntk.logging import TensorBoardProgressWriter


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for run in ("first", "second"):
        writer = TensorBoardProgressWriter(log_dir=str(tmp_path / "runs" / run))
        for step in range(1, 6):
            writer.write_value("loss <b>", 1 / step, step)
    return tmp_path / "runs"


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    command = [sys.executable, "-m", "cntk", "watch", str(folder), "--page", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        match = re.search(r"http://(127\.0\.0\.1:\d+)/", process.stdout.readline())
        assert match
        yield match[1]
        process.terminate()


def answer(address: str, path: str, host: str | None = None) -> tuple[int, str]:
    with closing(http.client.HTTPConnection(address, timeout=20)) as connection:
        connection.request("GET", path, headers={"Host": host or address})
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_pages_of_others_and_other_paths_are_refused(address: str) -> None:
    assert answer(address, "/curves")[0] == 200
    assert answer(address, "/curves", host="elsewhere.example:80")[0] == 403
    assert answer(address, "/../runs.py")[0] == 404
    assert answer(address, "/page.py")[0] == 404


@pytest.mark.slow
def test_the_page_shows_what_comes_and_loads_nothing_from_elsewhere(address: str, folder: Path, tmp_path: Path) -> None:
    with chromium(tmp_path / "profile") as browser:

        def script(text: str) -> Any:
            return browser.execute_script(f"return {text}")

        browser.get(f"http://{address}/")
        until(lambda: script("document.querySelectorAll('figure svg').length") == 1)
        texts = "[...document.querySelectorAll('svg text')].map(e => e.textContent)"
        assert {"loss <b>", "first 0.2", "second 0.2"} <= set(script(texts))
        assert script("document.querySelectorAll('figure b').length") == 0
        assert script("document.querySelector('figure path').getBoundingClientRect().width") > 100
        assert script("document.getElementById('state').textContent") == "Up to date."

        TensorBoardProgressWriter(log_dir=str(folder / "third")).write_value("metric", 0.5, 1)
        until(lambda: "third 0.5" in script(texts))

        browser.find_element("id", "pause").click()
        assert script("document.getElementById('state').textContent") == "Paused."
        assert foreign_addresses(browser, address) == []
        assert severe_messages(browser) == []
