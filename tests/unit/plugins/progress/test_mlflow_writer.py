"""The MLflow writer: what a run holds in the end, in a store of files."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.logging import MLflowProgressWriter
from cntk.plugins.progress import mlflow_writer

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # read when MLflow is imported
mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed: pip install opencntk[mlflow]")

# MLflow imports protobuf and others whose warnings are not ours.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where runs are kept during a test."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "runs").as_uri()
    mlflow.set_tracking_uri(uri)
    yield uri
    while mlflow.active_run():
        mlflow.end_run()


def history(writer: MLflowProgressWriter, name: str) -> list[tuple[int, float]]:
    return [(metric.step, metric.value) for metric in mlflow.MlflowClient().get_metric_history(writer.run_id, name)]


def run_of(writer: MLflowProgressWriter) -> Any:
    return mlflow.get_run(writer.run_id)


def artifacts(writer: MLflowProgressWriter) -> list[str]:
    return [file.path for file in mlflow.MlflowClient().list_artifacts(writer.run_id)]


def tell(writer: MLflowProgressWriter, *losses: float) -> None:
    for loss in losses:
        writer.update_training(10, loss * 10, loss)


def test_training_is_logged_by_minibatch_and_by_summary() -> None:
    with MLflowProgressWriter(freq=2) as writer:
        writer.write("Learning rate per minibatch", 0.5)
        tell(writer, 4, 2, 1, 0)
        writer.summarize_training()
        writer.write("Learning rate per minibatch", 0.25)
        tell(writer, 3, 3)
        writer.summarize_training()
    assert history(writer, "minibatch/avg_loss") == [(2, 3.0), (4, 0.5), (6, 3.0)]
    assert history(writer, "minibatch/avg_metric") == [(2, 0.3), (4, 0.05), (6, 0.3)]
    assert history(writer, "summary/avg_loss") == [(1, 1.75), (2, 3.0)]
    assert history(writer, "summary/avg_metric") == [(1, 0.175), (2, 0.3)]
    assert history(writer, "Learning rate per minibatch") == [(1, 0.5), (5, 0.25)]


def test_summaries_alone_are_logged_by_default() -> None:
    with MLflowProgressWriter() as writer:
        tell(writer, 4, 2)
        writer.summarize_training()
    assert run_of(writer).data.metrics == {"summary/avg_loss": 3.0, "summary/avg_metric": pytest.approx(0.3)}


def test_tests_are_logged_by_what_was_trained_before() -> None:
    with MLflowProgressWriter() as writer:
        writer.update_test(10, 5.0)
        writer.summarize_test()
        tell(writer, 4, 2, 1)
        writer.update_test(10, 2.5)
        writer.summarize_test()
    assert history(writer, "summary/test_avg_metric") == [(1, 0.5)]
    assert history(writer, "minibatch/test_avg_metric") == [(3, 0.25)]


def test_a_run_of_its_own_is_ended() -> None:
    writer = MLflowProgressWriter(run_name="mine", params={"layers": 2, "activation": "relu"})
    assert mlflow.active_run().info.run_id == writer.run_id
    writer.close()
    writer.close()
    run = run_of(writer)
    assert (run.info.run_name, run.info.status) == ("mine", "FINISHED")
    assert run.data.params == {"layers": "2", "activation": "relu"}
    assert mlflow.active_run() is None


def test_a_run_that_is_active_goes_on() -> None:
    with mlflow.start_run() as run:
        with MLflowProgressWriter() as writer:
            tell(writer, 1)
            writer.summarize_training()
        assert writer.run_id == run.info.run_id
        assert run_of(writer).info.status == "RUNNING"
        mlflow.log_metric("mine", 1.0)
    assert {"mine", "summary/avg_loss"} <= run_of(writer).data.metrics.keys()


def test_its_run_is_ended_where_another_is_active() -> None:
    writer = MLflowProgressWriter()
    with mlflow.start_run(nested=True) as inner:
        writer.close()
        assert mlflow.active_run().info.run_id == inner.info.run_id
    assert run_of(writer).info.status == "FINISHED"


def test_an_error_ends_the_run_as_failed() -> None:
    writer = MLflowProgressWriter(freq=1)
    with pytest.raises(RuntimeError, match="broken"):
        _break(writer)
    assert run_of(writer).info.status == "FAILED"
    assert history(writer, "minibatch/avg_loss") == [(1, 2.0)], "what came before is there"


def _break(writer: MLflowProgressWriter) -> None:
    with writer:
        tell(writer, 2)
        raise RuntimeError("broken")


PROGRAM = """
import cntk as C
writer = C.logging.MLflowProgressWriter(freq=1)
writer.update_training(10, 20.0, 1.0)
print(writer.run_id)
"""


@pytest.mark.slow
def test_the_end_of_the_program_ends_the_run(store: str) -> None:
    settings = {**os.environ, "MLFLOW_TRACKING_URI": store}
    printed = subprocess.run([sys.executable, "-c", PROGRAM], env=settings, capture_output=True, text=True, check=True).stdout
    run = mlflow.get_run(printed.split()[-1])
    assert (run.info.status, run.data.metrics["minibatch/avg_loss"]) == ("FINISHED", 2.0)


def test_values_are_sent_together(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    send = mlflow.MlflowClient.log_batch
    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", lambda self, run, metrics: (sent.append(len(metrics)), send(self, run, metrics)))
    monkeypatch.setattr(mlflow_writer, "SECONDS_PER_BATCH", 3600.0)
    with MLflowProgressWriter(freq=1) as writer:
        tell(writer, *range(600))
    assert sent == [1000, 200]
    assert len(history(writer, "minibatch/avg_loss")) == 600


def test_values_are_sent_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_writer, "SECONDS_PER_BATCH", -1.0)
    writer = MLflowProgressWriter(freq=1)
    tell(writer, 1)
    assert history(writer, "minibatch/avg_loss") == [(1, 1.0)]


def test_lists_and_values_are_logged_step_by_step() -> None:
    with MLflowProgressWriter() as writer:
        writer.log("Loss", [3.0, 2.0, np.float32(1.5)])
        writer.log("Loss", np.array([1.0, 0.5]))
        writer.log("Error", 0.25)
        writer.log("Error", np.float32(0.125))
        writer.log("a/b: c", [])
    assert history(writer, "Loss") == [(0, 3.0), (1, 2.0), (2, 1.5), (3, 1.0), (4, 0.5)]
    assert history(writer, "Error") == [(0, 0.25), (1, 0.125)]


def test_a_list_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    with MLflowProgressWriter() as writer:
        writer.log("Loss", [3.0, 2.0, float("nan")])
        writer.log("train/error: a", [1.0])
        writer.log("Error", 0.25)
    assert artifacts(writer) == ["Loss.png", "train_error_ a.png"]
    file = mlflow.artifacts.download_artifacts(run_id=writer.run_id, artifact_path="Loss.png", dst_path=str(tmp_path))
    assert Path(file).read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_there_are_the_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mlflow_writer, "find_spec", lambda name: None)
    with MLflowProgressWriter() as writer:
        writer.log("Loss", [3.0, 2.0])
    assert artifacts(writer) == []
    assert history(writer, "Loss") == [(0, 3.0), (1, 2.0)]


def test_what_is_no_number_becomes_a_tag() -> None:
    with MLflowProgressWriter() as writer:
        writer.write("device", "GPU[0]")
    assert run_of(writer).data.tags["device"] == "GPU[0]"


def test_workers_but_the_first_log_nothing() -> None:
    with MLflowProgressWriter(freq=1, rank=1, params={"a": 1}) as writer:
        tell(writer, 1)
        writer.write("key", 1.0)
        writer.log("Loss", [1.0])
        writer.summarize_training()
        writer.update_test(1, 1.0)
        writer.summarize_test()
        writer.flush()
    assert writer.run_id is None
    assert mlflow.active_run() is None


def test_training_and_testing() -> None:
    x, y = C.input_variable(1), C.input_variable(1)
    model = C.layers.Dense(1, init=0)(x)
    criterion = C.combine([C.squared_error(model, y), C.squared_error(model, y)])
    data = np.ones((64, 1), np.float32)
    with MLflowProgressWriter(freq=1) as writer:
        criterion.train((data, 2 * data), parameter_learners=[C.sgd(model.parameters, 0.1)], max_epochs=2, callbacks=[writer])
        criterion.test((data, 2 * data), callbacks=[writer])
    assert [step for step, _ in history(writer, "minibatch/avg_loss")] == [1, 2, 3, 4]
    assert [value for _, value in history(writer, "summary/avg_loss")] == pytest.approx([2.72, 0.352512], rel=1e-5)
    assert history(writer, "Learning rate per minibatch") == [(1, 0.1)]
    assert len(history(writer, "minibatch/test_avg_metric")) == 1


def test_mlflow_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ImportError, match=r"pip install 'opencntk\[mlflow\]'"):
        MLflowProgressWriter()
