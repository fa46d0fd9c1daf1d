"""The example that logs its run: what MLflow holds of it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install opencntk[mlflow]")

# MLflow imports protobuf and others whose warnings are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture
def example(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The example; its runs are kept in files for the time of a test."""
    monkeypatch.syspath_prepend(root / "examples")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    monkeypatch.delitem(sys.modules, "logging_runs", raising=False)
    return __import__("logging_runs")


def check(run_id: str, minibatches: int) -> None:
    """The run has ended and holds all losses and errors, which go down, and their figures."""
    client = mlflow.MlflowClient()
    run = client.get_run(run_id)
    assert run.info.status == "FINISHED"
    assert run.data.params["hidden dim"] == "400"
    for name, least in (("Loss", 1.5), ("Error", 1.5)):
        values = [metric.value for metric in client.get_metric_history(run_id, name)]
        assert len(values) == minibatches
        quarter = minibatches // 4
        assert sum(values[:quarter]) > least * sum(values[-quarter:])
    assert "Test error" in run.data.metrics
    assert [file.path for file in client.list_artifacts(run_id)] == ["Error.png", "Loss.png"]


def test_bundled_digits(example: Any) -> None:
    pytest.importorskip("sklearn")
    run_id, error = example.main(["--minibatches", "100"])
    check(run_id, 100)
    assert error < 0.2


@pytest.mark.slow
def test_a_run_on_mnist_is_logged_and_learns(example: Any, real_data: Path) -> None:
    run_id, error = example.main(["--minibatches", "300", "--data", str(real_data)])
    check(run_id, 300)
    assert error < 0.1
