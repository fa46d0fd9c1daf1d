"""What notebooks ask of objects."""

from __future__ import annotations

import pytest

from cntk.core.common.displayed import Displayed
from cntk.core.common.services import services


@pytest.mark.parametrize(
    ("include", "exclude", "kinds"),
    [
        (None, None, ["text/html", "text/plain"]),
        (["text/plain"], None, ["text/plain"]),
        (None, ["text/html"], ["text/plain"]),
        (["image/png"], None, []),
    ],
)
def test_what_is_wanted_comes(monkeypatch: pytest.MonkeyPatch, include: list[str], exclude: list[str], kinds: list[str]) -> None:
    monkeypatch.setattr(services, "displayed", lambda item: {"text/html": "<p>", "text/plain": type(item).__name__}, raising=False)
    assert sorted(Displayed()._repr_mimebundle_(include, exclude)) == kinds
