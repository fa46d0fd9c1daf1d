"""Models that come, change and go while a server runs; health, metrics, tokens, deadlines."""

from __future__ import annotations

import asyncio
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

import cntk as C

pytest.importorskip("msgspec", reason="what serving needs is not installed")
pytest.importorskip("prometheus_client", reason="what serving needs is not installed")
pytest.importorskip("starlette", reason="what serving needs is not installed")

from serving import InProcess

from cntk.serving.application import Settings
from cntk.serving.limits import Limits
from cntk.serving.sources import Sources

ONE = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [1]}]}


def write(path: Path, factor: float) -> Path:
    """A model that multiplies by a factor, in a file that is surely newer than before."""
    path.parent.mkdir(parents=True, exist_ok=True)
    before = path.stat().st_mtime_ns if path.exists() else 0
    C.alias(C.input_variable(1, name="x") * factor, "y").save(str(path))
    os.utime(path, ns=(before + 10**9, before + 10**9))
    return path


def answer(client: InProcess, path: str) -> float:
    return float(client.infer(path, ONE).json["outputs"][0]["data"][0])


def refresh(client: InProcess) -> None:
    """Look twice: what has changed is loaded when it is at rest."""
    for _ in range(2):
        client.run(client.application.repository.refresh())


def test_a_changed_file_is_served_anew(tmp_path: Path) -> None:
    path = write(tmp_path / "m.dnn", 2)
    with InProcess(Settings([str(path)], poll=0)) as client:
        assert answer(client, "m") == 2
        write(path, 3)
        client.run(client.application.repository.refresh())
        assert answer(client, "m") == 2, "a file that may still be written is left alone"
        client.run(client.application.repository.refresh())
        assert answer(client, "m") == 3


def test_a_damaged_file_leaves_the_model_as_it_is(tmp_path: Path) -> None:
    path = write(tmp_path / "m.dnn", 2)
    with InProcess(Settings([str(path)], poll=0)) as client:
        path.write_bytes(b"no model")
        refresh(client)
        assert answer(client, "m") == 2
        assert 'cntk_model_loads_total{model="m",outcome="failed",version="1"} 1.0' in client.get("/metrics").body.decode()
        write(path, 5)
        refresh(client)
        assert answer(client, "m") == 5


def test_versions_come_and_go(tmp_path: Path) -> None:
    write(tmp_path / "m" / "2" / "model.dnn", 2)
    write(tmp_path / "m" / "10" / "any.dnn", 10)
    (tmp_path / "m" / "notes").mkdir()
    with InProcess(Settings([str(tmp_path)], poll=0)) as client:
        assert client.get("/v2/models/m").json["versions"] == ["2", "10"]
        assert (answer(client, "m"), answer(client, "m/versions/2")) == (10, 2)
        write(tmp_path / "m" / "11" / "model.dnn", 11)
        write(tmp_path / "other" / "1" / "model.dnn", 7)
        refresh(client)
        assert (answer(client, "m"), answer(client, "other")) == (11, 7)
        (tmp_path / "m" / "11" / "model.dnn").unlink()
        refresh(client)
        assert answer(client, "m") == 10
        assert client.infer("m/versions/11", ONE).status == 404


def test_a_second_file_in_a_version_is_told_and_the_model_stays(tmp_path: Path) -> None:
    path = write(tmp_path / "m" / "1" / "model.dnn", 2)
    with InProcess(Settings([str(tmp_path)], poll=0)) as client:
        (path.parent / "labels.txt").write_text("cat")
        refresh(client)
        assert answer(client, "m") == 2
        assert b'outcome="failed",version="1"} 1.0' in client.get("/metrics").body
        (path.parent / "labels.txt").unlink()
        refresh(client)
        assert answer(client, "m") == 2
        assert client.get("/v2/health/ready").status == 200
    (path.parent / "labels.txt").write_text("cat")
    with pytest.raises(ValueError, match=r"several: labels\.txt, model\.dnn"), InProcess(Settings([str(tmp_path)], poll=0)):
        pass


def test_requests_that_wait_for_a_replaced_model_are_answered(tmp_path: Path) -> None:
    path = write(tmp_path / "m.dnn", 2)
    with InProcess(Settings([str(path)], poll=0)) as client:

        async def ask_and_replace() -> list[Any]:
            waiting = [asyncio.create_task(client.infer_later("m", ONE)) for _ in range(20)]
            write(path, 3)
            await client.application.repository.refresh()
            await client.application.repository.refresh()
            return await asyncio.gather(*waiting, client.infer_later("m", ONE))

        found = [float(one.json["outputs"][0]["data"][0]) for one in client.run(ask_and_replace())]
        assert found == [2.0] * 20 + [3.0]


def test_a_broken_model_in_a_folder_is_not_ready_and_says_why(tmp_path: Path) -> None:
    write(tmp_path / "good" / "1" / "model.dnn", 2)
    (tmp_path / "bad" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1" / "model.dnn").write_bytes(b"no model")
    with InProcess(Settings([str(tmp_path)], poll=0)) as client:
        assert answer(client, "good") == 2
        assert client.get("/v2/health/live").status == 200
        assert client.get("/v2/health/ready").status == 503
        assert "cannot be loaded" in client.infer("bad", ONE).json["error"]
        write(tmp_path / "bad" / "1" / "model.dnn", 4)
        refresh(client)
        assert client.get("/v2/health/ready").status == 200


def test_a_server_without_its_models_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "bad.dnn").write_bytes(b"no model")
    with pytest.raises(ValueError, match="'bad' cannot be served"), InProcess(Settings([str(tmp_path / "bad.dnn")])):
        pass
    with pytest.raises(ValueError, match="no models to serve"), InProcess(Settings([str(tmp_path)])):
        pass


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (["{}/nothing"], "no file or folder"),
        (["{}/m.dnn", "m={}/n.dnn"], "several models are called 'm'"),
        (["a={}"], "is a folder"),
        (["a/b={}/m.dnn"], "no '/'"),
    ],
)
def test_models_have_paths_and_names_of_their_own(tmp_path: Path, given: list[str], text: str) -> None:
    write(tmp_path / "m.dnn", 1)
    write(tmp_path / "n.dnn", 1)
    with pytest.raises(ValueError, match=text):
        Sources([one.format(tmp_path) for one in given])


def test_metrics_count_requests_and_batches(tmp_path: Path) -> None:
    with InProcess(Settings([str(write(tmp_path / "m.dnn", 2))], poll=0)) as client:
        for body in (ONE, ONE, {"inputs": []}):
            client.infer("m", body)
        client.infer("nothing", ONE)
        text = client.get("/metrics").body.decode()
    assert 'cntk_requests_total{code="200",model="m",version="1"} 2.0' in text
    assert 'cntk_requests_total{code="422",model="m",version="1"} 1.0' in text
    assert 'cntk_requests_total{code="404",model="",version=""} 1.0' in text
    assert 'cntk_request_seconds_count{model="m",version="1"} 3.0' in text
    assert 'cntk_batch_rows_sum{model="m",version="1"} 2.0' in text
    assert 'cntk_model_ready{model="m",version="1"} 1.0' in text
    assert not re.search("nothing", text), "names that clients make up are no labels"


def test_a_token_is_wanted_of_all_but_health(tmp_path: Path) -> None:
    with InProcess(Settings([str(write(tmp_path / "m.dnn", 2))], token="secret", poll=0)) as client:
        assert client.infer("m", ONE).status == 401
        assert client.infer("m", ONE, {"Authorization": "Bearer wrong"}).status == 401
        assert client.infer("m", ONE, {"Authorization": "Bearer secret"}).status == 200
        assert [client.get(path).status for path in ("/v2/models/m", "/metrics", "/openapi.json")] == [401] * 3
        assert [client.get(path).status for path in ("/v2/health/live", "/v2/health/ready", "/", "/page.js")] == [200] * 4


def test_what_takes_too_long_is_given_up(tmp_path: Path) -> None:
    with InProcess(Settings([str(write(tmp_path / "m.dnn", 2))], limits=Limits(deadline=0.05, delay=0.2), poll=0)) as client:
        begin = time.perf_counter()
        late = client.infer("m", ONE)
        assert (late.status, late.headers["retry-after"]) == (503, "1")
        assert time.perf_counter() - begin < 0.15


def test_a_server_that_leaves_says_so(tmp_path: Path) -> None:
    with InProcess(Settings([str(write(tmp_path / "m.dnn", 2))], poll=0)) as client:
        client.application.is_draining = True
        assert client.get("/v2/health/ready").status == 503
        last = client.infer("m", ONE)
        assert (last.status, last.headers["connection"]) == (200, "close")
