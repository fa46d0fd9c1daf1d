"""``cntk serve`` as a process: started, loaded with requests, changed under way, told to stop."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.cli import main

pytest.importorskip("uvicorn", reason="what serving needs is not installed")
pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")
pytest.importorskip("httptools", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")

from serving import Client, ServerProcess, binary


def saved(path: Path, seed: int = 1) -> Any:
    """The dense network 784-200-10, in a file that replaces another at once."""
    x = C.input_variable(784, name="x")
    init = C.glorot_uniform(seed=seed)
    model = C.layers.Sequential([C.layers.Dense(200, activation=C.relu, init=init), C.layers.Dense(10, init=init, name="z")])(x)
    model.save(str(path))
    return model


def get(address: str, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=20)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_no_request_is_lost_when_models_change_and_the_server_stops(tmp_path: Path, workers: int) -> None:
    path = tmp_path / "mlp.dnn"
    models = [saved(path, 1)]
    with ServerProcess(str(path), "--poll", "0.1", "--workers", str(workers), log=tmp_path / "log") as server:
        server.wait_for("ready", workers)
        clients = [Client(server.address, "mlp", seed) for seed in range(4)]
        for client in clients:
            client.start()
        time.sleep(0.5)
        models.append(saved(path, 2))
        server.wait_for("model replaced", workers)
        time.sleep(0.3)
        assert b"cntk_requests_total" in get(server.address, "/metrics")[1]
        server.process.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(20)
        assert server.process.wait(20) == 0
    assert [client.lost for client in clients] == [[]] * 4
    assert [client.refused for client in clients] == [[]] * 4
    assert all(len(client.answers) > 10 for client in clients)
    wrong = 0
    for client in clients:
        data = np.concatenate([data for data, _ in client.answers])
        found = np.concatenate([found for _, found in client.answers])
        by_model = [np.isclose(found, model.eval({"x": data}), rtol=1e-4, atol=1e-5).all(1) for model in models]
        wrong += int((~(by_model[0] | by_model[1])).sum())
        assert by_model[1][-1], "the last answers are those of the new model"
    assert wrong == 0


def test_workers_count_together_and_one_that_dies_is_replaced(tmp_path: Path) -> None:
    saved(tmp_path / "mlp.dnn")
    with ServerProcess(str(tmp_path / "mlp.dnn"), "--workers", "2", log=tmp_path / "log") as server:
        server.wait_for("ready", 2)
        for _ in range(20):
            body, headers = binary(np.ones((1, 784), np.float32))
            connection = http.client.HTTPConnection(server.address)
            connection.request("POST", "/v2/models/mlp/infer", body, headers)
            assert connection.getresponse().status == 200
            connection.close()
        end = time.monotonic() + 10  # a worker counts a request behind its answer, and another one may be asked before
        while 'cntk_requests_total{code="200",model="mlp",version="1"} 20.0' not in get(server.address, "/metrics")[1].decode():
            assert time.monotonic() < end
            time.sleep(0.05)
        worker = next(event["process"] for event in server.events if event["event"] == "ready")
        os.kill(worker, signal.SIGKILL)
        server.wait_for("ready", 3)


def test_tls_and_a_token(tmp_path: Path) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate")
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subprocess.run([*made, "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
    saved(tmp_path / "mlp.dnn")
    arguments = [str(tmp_path / "mlp.dnn"), "--ssl-keyfile", key, "--ssl-certfile", certificate]
    with ServerProcess(*arguments, log=tmp_path / "log", environment={"CNTK_SERVE_TOKEN": "secret"}) as server:
        context = ssl.create_default_context(cafile=certificate)
        context.check_hostname = False
        connection = http.client.HTTPSConnection(server.address, context=context, timeout=20)
        statuses = []
        for headers in ({}, {"Authorization": "Bearer secret"}):
            connection.request("GET", "/v2/models/mlp", headers=headers)
            answer = connection.getresponse()
            answer.read()
            statuses.append(answer.status)
        connection.close()
    assert statuses == [401, 200]


def test_wrong_arguments_are_said_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", str(tmp_path / "nothing.dnn")]) == 1
    assert "no file or folder" in capsys.readouterr().err
    (tmp_path / "token").write_text("\n")
    saved(tmp_path / "mlp.dnn")
    assert main(["serve", str(tmp_path / "mlp.dnn"), "--token-file", str(tmp_path / "token")]) == 1
    assert "not empty" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["serve", str(tmp_path / "mlp.dnn"), "--workers", "0"])
    assert "expected a whole number from 1 on, got '0'" in capsys.readouterr().err


def test_what_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("cntk.commands.serve.find_spec", lambda name: None if name == "msgspec" else object())
    assert main(["serve", str(tmp_path)]) == 1
    assert "msgspec not installed" in capsys.readouterr().err


def test_a_server_that_cannot_start_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "bad.dnn").write_bytes(b"no model")
    for workers in ("1", "2"):
        command = [sys.executable, "-m", "cntk", "serve", str(tmp_path / "bad.dnn"), "--port", "0", "--workers", workers]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ})
        assert ended.returncode == 1, ended.stderr
        assert "'bad' cannot be served" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_tritons_client_agrees(tmp_path: Path) -> None:
    triton = pytest.importorskip("tritonclient.http", reason="Triton's client is not installed")
    model = saved(tmp_path / "mlp.dnn")
    data = np.random.default_rng(1).random((3, 784), np.float32)
    right = model.eval({"x": data})
    with ServerProcess(str(tmp_path / "mlp.dnn"), log=tmp_path / "log") as server:
        client = triton.InferenceServerClient(server.address)
        assert client.is_server_live()
        assert client.is_server_ready()
        assert client.is_model_ready("mlp", "1")
        assert not client.is_model_ready("other")
        assert client.get_server_metadata()["name"] == "opencntk"
        described = client.get_model_metadata("mlp")
        assert described["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 784]}]
        for binary_in in (True, False):
            given = triton.InferInput("x", [3, 784], "FP32")
            given.set_data_from_numpy(data, binary_data=binary_in)
            for wanted in (
                None,
                [triton.InferRequestedOutput("z", binary_data=True)],
                [triton.InferRequestedOutput("z", binary_data=False)],
            ):
                result = client.infer("mlp", [given], outputs=wanted, request_id="seven")
                assert np.array_equal(result.as_numpy("z"), right)
                assert result.get_response()["id"] == "seven"
        with pytest.raises(triton.InferenceServerException, match="no input 'y'"):
            client.infer("mlp", [triton.InferInput("y", [3, 784], "FP32").set_data_from_numpy(data)])
        client.close()
