"""The tutorial of docs/mlflow.md, followed to the letter: training, the history of runs, a registered model, services that answer."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import site
import socket
import subprocess
import sys
import time
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "mlflow.md"
FILES = re.compile(r"`(\w+\.py|MLproject)`(?:(?!^```).)*?^```(?:python|yaml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
COMMANDS = re.compile(r"^\$ (.*)$", re.MULTILINE)
EXAMPLE = "models/digits/1/serving_input_example.json"
PATIENCE = 120
"""Seconds that a server may take to start."""


class Tutorial:
    """The page in a folder of its own, whose commands find this environment's programs first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._page = PAGE.read_text(encoding="utf-8").partition("## Models of MLflow")[0]
        for name, content in FILES.findall(self._page):
            (folder / name).write_text(content, encoding="utf-8")

    def command(self, beginning: str) -> str:
        """The command of the page that begins so."""
        (found,) = (command for command in COMMANDS.findall(self._page) if command.startswith(beginning))
        return found

    def run(self, beginning: str, port: int | None = None) -> str:
        """What a command prints."""
        command = self.command(beginning)
        if port is not None:
            command = re.sub(r"127\.0\.0\.1:\d+", f"127.0.0.1:{port}", command)
        done = subprocess.run(command, shell=True, cwd=self.folder, env=self.environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def serving(self, beginning: str, path: str) -> Iterator[int]:
        """A server of the page, at a port that is free; it answers at a path."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        words = shlex.split(re.sub(r"--port \d+", f"--port {port}", self.command(beginning)))
        with open(self.folder / "server.log", "w+", encoding="utf-8") as log:
            server = subprocess.Popen(words, cwd=self.folder, env=self.environment(), stdout=log, stderr=log, start_new_session=True)
            try:
                self._wait_for(server, f"http://127.0.0.1:{port}{path}")
                yield port
            finally:
                os.killpg(server.pid, signal.SIGTERM)
                server.wait()

    def _wait_for(self, server: subprocess.Popen[bytes], url: str) -> None:
        until = time.monotonic() + PATIENCE
        while server.poll() is None and time.monotonic() < until:
            try:
                with urllib.request.urlopen(url, timeout=10):
                    return
            except OSError:
                time.sleep(0.2)
        pytest.fail((self.folder / "server.log").read_text(encoding="utf-8"))

    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CNTK_", "MLFLOW_", "PYTHON"))}
        return {**kept, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "MLFLOW_DISABLE_TELEMETRY": "true"}


@pytest.fixture(scope="module")
def tutorial(tmp_path_factory: pytest.TempPathFactory) -> Tutorial:
    """The tutorial after training, twice, and with the model fetched."""
    for package in ("mlflow", "pandas", "sqlalchemy", "alembic", "sklearn", "matplotlib"):
        pytest.importorskip(package, reason=f"{package} is not installed: pip install opencntk[mlflow,demo]")
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    folder = tmp_path_factory.mktemp("tutorial") / "digits"
    folder.mkdir()
    followed = Tutorial(folder)
    assert "test error" in followed.run("python train.py")
    followed.run("mlflow run .")
    followed.run("mlflow artifacts download")
    return followed


@pytest.fixture
def expected(tutorial: Tutorial) -> Any:
    """What the model makes of the example of a request."""
    model = C.load_model(str(tutorial.folder / "models/digits/1/data/model.dnn"))
    request = json.loads((tutorial.folder / EXAMPLE).read_text(encoding="utf-8"))["inputs"]
    return model.eval({model.arguments[0]: np.float32(request["pixels"])})


RUNS = """
import json, mlflow
client = mlflow.MlflowClient()
runs = mlflow.search_runs(search_all_experiments=True, output_format="list")
print(json.dumps([
    {
        "experiment": client.get_experiment(run.info.experiment_id).name,
        "status": run.info.status,
        "params": run.data.params,
        "losses": [one.value for one in client.get_metric_history(run.info.run_id, "Loss")],
        "errors": [one.value for one in client.get_metric_history(run.info.run_id, "Error")],
        "test": run.data.metrics["Test error"],
        "files": sorted(file.path for file in client.list_artifacts(run.info.run_id)),
    }
    for run in runs
]))
print(sorted(one.version for one in client.search_model_versions("name='digits'")))
"""


def test_runs_have_arguments_metrics_and_pictures(tutorial: Tutorial) -> None:
    (tutorial.folder / "runs_of_test.py").write_text(RUNS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "runs_of_test.py"], cwd=tutorial.folder, env=tutorial.environment(), capture_output=True, text=True, check=True
    )
    runs, versions = done.stdout.splitlines()
    project, script = json.loads(runs)
    assert (project["experiment"], script["experiment"]) == ("digits", "Default")
    assert (project["params"]["hidden"], script["params"]["hidden"]) == ("50", "100")
    for run in (project, script):
        assert run["status"] == "FINISHED"
        assert len(run["losses"]) == len(run["errors"]) == 10 * 47
        assert sum(run["losses"][-47:]) < sum(run["losses"][:47]) / 10
        assert run["test"] < 0.06
        assert run["files"] == ["Error.png", "Loss.png", "misread.png"]
    assert versions in ("[1, 2]", "['1', '2']")


def test_the_history_is_a_table(tutorial: Tutorial) -> None:
    header, *rows = tutorial.run('python -c "import mlflow; print(mlflow.search_runs').splitlines()
    assert header.split() == ["params.hidden", "metrics.Test", "error"]
    assert sorted(row.split()[1] for row in rows) == ["100", "50"]


def test_mlflow_serves_the_model(tutorial: Tutorial, expected: Any) -> None:
    with tutorial.serving("mlflow models serve", "/ping") as port:
        answer = json.loads(tutorial.run("curl http://127.0.0.1:5001", port))
    np.testing.assert_allclose(answer["predictions"], expected, rtol=1e-5)


def test_the_script_of_azure_ml_runs_by_itself(tutorial: Tutorial, expected: Any) -> None:
    answer = json.loads(tutorial.run("AZUREML_MODEL_DIR="))
    np.testing.assert_allclose(answer["probabilities"], expected, rtol=1e-5)


def test_the_server_of_azure_ml_calls_the_script(tutorial: Tutorial, expected: Any) -> None:
    if os.name == "nt":
        pytest.skip("paths of the page are those of Unix")
    _make_environment(tutorial.folder.parent / "serving")
    with tutorial.serving("../serving/bin/azmlinfsrv", "/") as port:
        answer = json.loads(tutorial.run("curl http://127.0.0.1:5002", port))
        np.testing.assert_allclose(answer["probabilities"], expected, rtol=1e-5)
        wrong = urllib.request.Request(
            f"http://127.0.0.1:{port}/score", b'{"inputs": {"pixels": [[1, 2]]}}', {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(wrong, timeout=30) as response:
            assert "the input pixels [batch, 64] float32" in json.load(response)["error"]


def _make_environment(folder: Path) -> None:
    """The page's environment for the server, which finds the packages of this one behind its own."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "azureml-inference-server-http"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 and not os.environ.get("CNTK_CI"):
        pytest.skip(f"packages cannot be fetched here: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    (own,) = folder.glob("lib/python*/site-packages")
    others = [path for path in sys.path if path.endswith("site-packages")] or site.getsitepackages()
    (own / "behind.pth").write_text("".join(f"import site; site.addsitedir({path!r})\n" for path in others), encoding="utf-8")
