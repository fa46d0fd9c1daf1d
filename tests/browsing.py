"""Chromium for tests of pages, and what its logs say."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(folder: Path) -> Iterator[Any]:
    """A browser, with its files in a folder; the test is skipped where there is none."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for option in (*OPTIONS, f"--user-data-dir={folder}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


def until(condition: Callable[[], Any], seconds: float = 20) -> Any:
    """What a condition gives once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return found


def foreign_addresses(browser: Any, address: str) -> list[str]:
    """What pages of an address have asked others for."""
    asked = [json.loads(one["message"])["message"] for one in browser.get_log("performance")]
    addresses = {one["params"]["request"]["url"] for one in asked if one["method"] == "Network.requestWillBeSent"}
    own = (f"http://{address}/", f"blob:http://{address}/", "data:", "chrome://")  # the last are Chromium's own
    return [one for one in addresses if not one.startswith(own)]


def severe_messages(browser: Any) -> list[str]:
    """Errors of pages."""
    return [one["message"] for one in browser.get_log("browser") if one["level"] == "SEVERE"]
