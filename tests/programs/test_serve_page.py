"""The page of ``cntk serve`` in Chromium, used by keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cntk as C

pytest.importorskip("uvicorn", reason="what serving needs is not installed")
pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")
pytest.importorskip("httptools", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")

from browsing import chromium, foreign_addresses, severe_messages, until
from serving import ServerProcess


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("served")
    x = C.input_variable(2, name="x")
    C.alias(x * 3 + 1, "y").save(str(folder / "triple.dnn"))
    C.layers.Recurrence(C.layers.LSTM(3), name="h")(C.sequence.input_variable(2, name="s")).save(str(folder / "lstm.dnn"))
    files = [str(folder / name) for name in ("triple.dnn", "lstm.dnn")]
    with ServerProcess(*files, log=folder / "log", environment={"CNTK_SERVE_TOKEN": "secret"}) as server:
        yield server


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    with chromium(tmp_path) as started:
        yield started


@pytest.mark.slow
def test_the_page_is_used_by_keyboard_and_loads_nothing_from_elsewhere(served: ServerProcess, browser: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    def script(text: str) -> Any:
        return browser.execute_script(f"return {text}")

    def press(*keys: str) -> None:
        browser.switch_to.active_element.send_keys(*keys)

    def tab_to(condition: str) -> None:
        """Press tab until what has the focus is such."""
        for _ in range(40):
            if script(f"document.activeElement.matches({condition!r})"):
                return
            press(Keys.TAB)
        raise AssertionError(f"tab does not reach {condition}")

    browser.get(f"http://{served.address}/")
    until(lambda: script("!document.getElementById('access').hidden"))
    browser.find_element("tag name", "body").send_keys(Keys.TAB)
    tab_to("#token")
    press("secret", Keys.ENTER)
    until(lambda: script("document.querySelectorAll('section').length") == 2)

    assert script("[...document.querySelectorAll('h2')].map(e => e.textContent)") == ["lstm, version 1", "triple, version 1"]
    cells = script("[...document.querySelectorAll('section:last-child td')].map(e => e.textContent)")
    assert cells == ["Input", "x", "FP32", "[-1, 2]", "Output", "y", "FP32", "[-1, 2]"]

    tab_to("section:last-child .graph summary")
    press(Keys.ENTER)
    until(lambda: script("document.querySelector('section:last-child img').naturalWidth > 50"))
    assert script("document.querySelector('section:last-child img').alt") == "Graph of triple"

    tab_to("section:last-child .try summary")
    press(Keys.ENTER)
    area = "document.querySelector('section:last-child textarea')"
    until(lambda: script(f"{area}.value"))
    assert json.loads(script(f"{area}.value"))["inputs"][0]["shape"] == [1, 2]
    tab_to("section:last-child textarea")
    press(Keys.CONTROL, "a", Keys.NULL)
    press(json.dumps({"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, 2]}]}))
    press(Keys.CONTROL, Keys.ENTER, Keys.NULL)
    output = "document.querySelector('section:last-child output')"
    until(lambda: script(f"{output}.textContent").endswith("y FP32 [1, 2]: [4,7]"))
    press(Keys.CONTROL, "a", Keys.NULL)
    press(json.dumps({"inputs": [{"name": "x", "shape": [1, 3], "datatype": "FP32", "data": [1, 2, 3]}]}))
    tab_to("section:last-child .try button")
    press(Keys.ENTER)
    until(lambda: "[-1, 2]" in script(f"{output}.textContent") and script(f"{output}.className") == "error")
    assert "for example" in script(f"{output}.textContent")

    live = "document.querySelector('section:last-child [data-live=%s]').textContent"
    until(lambda: script(live % "count") == "1" and script(live % "errors") == "1")

    assert foreign_addresses(browser, served.address) == []
    assert [text for text in severe_messages(browser) if "401" not in text and "422" not in text] == []
