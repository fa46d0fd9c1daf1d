"""Progress writers: when they are called, and what the printer prints, against text that CNTK 2.7 printed for the same figures."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.logging import ProgressPrinter, TrainingSummaryProgressCallback
from cntk.plugins.progress.base import ProgressWriter

CNTK = json.loads((Path(__file__).parents[3] / "data" / "progress_printer.json").read_text())
TIME = re.compile(r"[0-9.]+s \( *[0-9.]+ samples/s\)")


def lines(text: str) -> list[str]:
    return TIME.sub("TIME", text).splitlines()


@pytest.mark.parametrize("case", CNTK["trained"])
def test_training_and_evaluation(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    printer = ProgressPrinter(**CNTK["trained"][case]["arguments"])
    w = C.Parameter(1)
    learner = C.sgd([w], C.learning_parameter_schedule([0.1, 0.05], minibatch_size=8, epoch_size=30))
    for epoch in CNTK["epochs"]:
        for samples, loss, metric in epoch:
            learner.update({w: np.zeros(1)}, samples)
            for key, value in learner.announcements.items():
                printer.write(key, value)
            learner.announcements.clear()
            printer.update_training(samples, loss * samples, metric * samples)
        printer.summarize_training()
    for samples, metric in CNTK["test"]:
        printer.update_test(samples, metric * samples)
    printer.summarize_test()
    printer.summarize_test()
    printer.end_progress_print("done")
    assert lines(capsys.readouterr().out) == CNTK["trained"][case]["lines"]


@pytest.mark.parametrize("case", CNTK["manual"])
def test_deprecated_interface(case: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected = CNTK["manual"][case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        printer = ProgressPrinter(**expected["arguments"])
        values = []
        for epoch in CNTK["epochs"]:
            for samples, loss, metric in epoch:
                printer.update(loss, samples, metric if expected["with_metric"] else None)
            since_start = printer.avg_loss_since_start(), printer.avg_metric_since_start()
            values.append((*since_start, printer.avg_loss_since_last(), printer.avg_metric_since_last()))
            values.append(printer.epoch_summary(with_metric=expected["with_metric"]))
        values.extend((printer.reset_last(), printer.reset_start()))
    printer.log("a message")
    printer.write("key", 0.5)
    if printer.freq != 0:
        printer.on_write_distributed_sync_update((0, 10), (2, 5), (0.0, 1.0))
    assert lines(capsys.readouterr().out) == expected["lines"]
    for found, wanted in zip(values, expected["values"], strict=True):
        assert found == pytest.approx(wanted) if wanted is not None else found is None


@pytest.mark.parametrize("case", CNTK["files"])
def test_log_file(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, name = CNTK["files"][case], str(tmp_path / "log")
    printer = ProgressPrinter(log_to_file=name, **expected["arguments"])
    with pytest.warns(DeprecationWarning, match="update"):
        printer.update(1.0, 2, 3.0)
    printer.end_progress_print("bye")
    written = Path(name + expected["suffix"]).read_text()
    assert written.replace(name, "FILE").splitlines() == expected["lines"]
    assert capsys.readouterr().out == f"Redirecting log to file {name}{expected['suffix']}\n"


def test_update_with_trainer(capsys: pytest.CaptureFixture[str]) -> None:
    class Trainer:
        previous_minibatch_sample_count = 4
        previous_minibatch_loss_average = 0.5
        previous_minibatch_evaluation_average = 0.25

    printer = ProgressPrinter(freq=1)
    for with_metric in (True, False):
        with pytest.warns(DeprecationWarning, match="Trainer"):
            printer.update_with_trainer(Trainer(), with_metric)
    assert capsys.readouterr().out.splitlines() == [
        " Minibatch[   1-   1]: loss = 0.500000 * 4, metric = 25.00% * 4;",
        " Minibatch[   2-   2]: loss = 0.500000 * 4;",
    ]


def test_first_minibatches_of_the_deprecated_interface_are_numbered_alike(capsys: pytest.CaptureFixture[str]) -> None:
    told, manual = ProgressPrinter(freq=3, first=2), ProgressPrinter(freq=3, first=2)
    for _ in range(7):
        told.update_training(2, 1.0, 0.5)
    by_trainer = capsys.readouterr().out
    for _ in range(7):
        with pytest.warns(DeprecationWarning, match="update"):
            manual.update(0.5, 2, 0.25)
    assert capsys.readouterr().out == by_trainer


def test_heartbeat(capsys: pytest.CaptureFixture[str]) -> None:
    printer = ProgressPrinter(gen_heartbeat=True)
    for _ in range(3):
        printer.update_training(1, 1.0, 0.0)
    assert capsys.readouterr().out == "PROGRESS: 0.00%\n"


class Recorder(ProgressWriter):
    """Keeps what it is told, without the time."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.__disown__()
        self.told: list[tuple[Any, ...]] = []

    def on_write_training_update(self, *arguments: Any) -> None:
        self.told.append(("training", *arguments))

    def on_write_training_summary(self, *arguments: Any) -> None:
        assert arguments[-1] >= 0
        self.told.append(("training summary", *arguments[:-1]))

    def on_write_test_update(self, *arguments: Any) -> None:
        self.told.append(("test", *arguments))

    def on_write_test_summary(self, *arguments: Any) -> None:
        assert arguments[-1] >= 0
        self.told.append(("test summary", *arguments[:-1]))

    def on_write_distributed_sync_update(self, *arguments: Any) -> None:
        self.told.append(("sync", *arguments))

    def on_training_update_end(self) -> None:
        self.told.append(("end", self.total_training_updates()))


def test_writers_are_told_sums() -> None:
    writer = Recorder(2, 0, 1, 0, 2, 0)
    for _ in range(3):
        writer.update_training(10, 4.0, 1.0)
    writer.update_training(0, 4.0, 1.0)
    writer.summarize_training()
    writer.summarize_training()
    writer.update_test(5, 2.0)
    writer.update_test(5, 1.0)
    writer.summarize_test()
    writer.update_distributed(8, 1.0)
    writer.update_distributed(8, 1.0)
    assert writer.told == [
        ("end", 1),
        ("training", (0, 20), (0, 2), (0.0, 8.0), (0.0, 2.0)),
        ("end", 2),
        ("end", 3),
        ("training summary", 30, 3, 1, 12.0, 3.0),
        ("training summary", 0, 0, 2, 0.0, 0.0),
        ("test", (0, 5), (0, 1), (0.0, 2.0)),
        ("test", (5, 10), (1, 2), (2.0, 3.0)),
        ("test summary", 10, 2, 1, 3.0),
        ("sync", (0, 16), (0, 2), (0.0, 2.0)),
    ]
    assert (writer.total_training_updates(), writer.total_test_updates()) == (3, 2)


def test_a_writer_that_overrides_nothing() -> None:
    writer = ProgressWriter(1, 0, 1, 0, 1, 0)
    writer.update_training(1, 1.0, 1.0)
    writer.update_test(1, 1.0)
    writer.update_distributed(1, 1.0)
    writer.write("key", 1)
    writer.summarize_training()
    writer.summarize_test()


def test_bad_frequencies_are_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        ProgressPrinter(freq=-1)


def test_training_summary_callback() -> None:
    told: list[tuple[Any, ...]] = []
    writer = TrainingSummaryProgressCallback(100, lambda *arguments: told.append(arguments))
    for _ in range(2):
        writer.update_training(10, 4.0, 1.0)
        writer.update_training(10, 4.0, 1.0)
        writer.summarize_training()
    writer.update_test(10, 1.0)
    writer.summarize_test()
    assert told == [(0, 8.0, 2.0, 20), (1, 8.0, 2.0, 20)]
