"""``cntk view``: what Netron is asked to show."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import cntk as C
from cntk.cli import main


def test_netron_shows_the_file_on_this_machine_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    stand_in = SimpleNamespace(start=lambda *given, **named: asked.append((given, named)), wait=lambda: asked.append("wait"))
    monkeypatch.setitem(sys.modules, "netron", stand_in)
    path = str(tmp_path / "model.dnn")
    C.tanh(C.input_variable(2)).save(path)
    assert main(["view", path, "--port", "8123", "--no-browser"]) == 0
    assert asked == [((path,), {"address": ("127.0.0.1", 8123), "browse": False}), "wait"]


def test_what_is_missing_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "netron", None)
    assert main(["view", str(tmp_path / "nothing")]) == 1
    assert "there is no file" in capsys.readouterr().err
    assert main(["view", str(tmp_path)]) == 1
    assert "is a directory" in capsys.readouterr().err
    (tmp_path / "model").write_bytes(b"\x08\x02")
    assert main(["view", str(tmp_path / "model")]) == 1
    assert "pip install netron" in capsys.readouterr().err


def test_a_port_that_is_taken_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def start(*given: Any, **named: Any) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")

    monkeypatch.setitem(sys.modules, "netron", SimpleNamespace(start=start))
    (tmp_path / "model").write_bytes(b"\x08\x02")
    assert main(["view", str(tmp_path / "model"), "--port", "8123"]) == 1
    assert "port 8123 is in use; --port N" in capsys.readouterr().err
