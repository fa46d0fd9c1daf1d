"""The image of packaging/Containerfile: its commands, run in a folder in the place of its root, give a server that answers."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest
from containerfile import Machine

import cntk as C

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="the commands of the file are those of Unix")]

PATIENCE = 120
"""Seconds that the server may take to start."""


@pytest.fixture
def port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
        return number


def test_the_image_serves_models_and_writes_nothing_but_in_tmp(tmp_path: Path, port: int) -> None:
    (tmp_path / "models" / "doubled" / "1").mkdir(parents=True)
    C.plus(x := C.input_variable(2, name="x"), x, name="z").save(str(tmp_path / "models" / "doubled" / "1" / "model.dnn"))
    machine = Machine(tmp_path, port)
    if (failed := machine.build()) is not None:
        if "pip" in str(failed.args) and not os.environ.get("CNTK_CI"):
            pytest.skip(f"packages cannot be fetched here: {failed.stderr.strip().splitlines()[-1]}")
        pytest.fail(failed.stderr)
    before = machine.files()
    assert not machine.is_healthy()
    with machine.start() as server:
        try:
            until = time.monotonic() + PATIENCE
            while not machine.is_healthy():
                assert server.poll() is None, server.communicate()[0]
                assert time.monotonic() < until
            np.testing.assert_array_equal(asked(port, [[1, 2], [3, 4]]), [[2, 4], [6, 8]])
            server.send_signal(signal.SIGTERM)
            assert server.wait(PATIENCE) in (0, -signal.SIGTERM), server.communicate()[0]
        finally:
            server.kill()
    assert not machine.is_healthy()
    assert machine.files() == before


def asked(port: int, rows: list[list[float]]) -> np.ndarray:
    """What the server makes of rows of the model's input."""
    tensor = {"name": "x", "shape": [len(rows), 2], "datatype": "FP32", "data": rows}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v2/models/doubled/infer", json.dumps({"inputs": [tensor]}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=30) as response:
        (output,) = json.load(response)["outputs"]
    assert output["name"] == "z"
    return np.reshape(output["data"], output["shape"])
