"""MLflow, which keeps what it is told in the folder of a test."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """MLflow, with a store of files; the working directory is that of the test."""
    imported = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install opencntk[mlflow]")
    pytest.importorskip("pandas", reason="pandas is not installed: pip install opencntk[mlflow]")
    with warnings.catch_warnings(action="ignore"):  # those of MLflow's own modules
        import_module("mlflow.pyfunc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    imported.set_tracking_uri((tmp_path / "runs").as_uri())
    yield imported
    while imported.active_run():
        imported.end_run()
