"""Training curves: what they hold, when they are drawn, and where."""

from __future__ import annotations

import gc
import math
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import cntk as C
from cntk.logging import LivePlot
from cntk.plugins.progress import live_plot
from cntk.testing import check_progress_writer

NAMESPACE = "{http://www.w3.org/2000/svg}"
X = np.ones((64, 1), np.float32)


def criterion(with_metric: bool = True) -> Any:
    x, y = C.input_variable(1), C.input_variable(1)
    loss = C.squared_error(C.layers.Dense(1, init=0)(x), y)
    return C.combine([loss, loss + 1]) if with_metric else loss


def train(function: Any, *writers: Any, **options: Any) -> None:
    learner = C.sgd(function.parameters, C.learning_parameter_schedule(0.1))
    function.train((X, 2 * X), minibatch_size=16, parameter_learners=[learner], callbacks=list(writers), **options)


def titles(plot: LivePlot) -> list[str]:
    texts = ElementTree.fromstring(plot.svg()).iter(f"{NAMESPACE}text")
    return [text.text or "" for text in texts if text.get("font-weight") == "bold"]


def test_it_keeps_the_contract_of_writers() -> None:
    check_progress_writer(LivePlot)


@pytest.mark.parametrize(("along", "places"), [("samples", [16, 32, 48, 64, 80, 96, 112, 128]), ("minibatches", [1, 2, 3, 4, 5, 6, 7, 8])])
def test_curves_of_training_and_tests(along: str, places: list[int]) -> None:
    plot, function = LivePlot(along=along), criterion()
    train(function, plot, max_epochs=2)
    losses = plot.curves["loss"].points()
    assert [place for place, _ in losses] == places
    assert [value for _, value in losses] == sorted((value for _, value in losses), reverse=True)
    assert losses[0][1] == pytest.approx(4.0)
    assert plot.curves["metric"].points()[0][1] == pytest.approx(5.0)
    measured = function.test((X, 2 * X), callbacks=[plot])
    assert plot.curves["test"].points() == [(places[-1], pytest.approx(measured["metric"]))]
    assert titles(plot) == ["loss", "metric"]


def test_validation_in_a_training_session() -> None:
    plot, function = LivePlot(), criterion()
    data = {function.arguments[0]: X, function.arguments[1]: 2 * X}
    source = C.io.MinibatchSourceFromData({"x": X, "y": 2 * X}, max_samples=64)
    streams = dict(zip(data, (source.streams.x, source.streams.y), strict=True))
    trainer = C.Trainer(None, function, [C.sgd(function.parameters, 0.1)], [plot])
    training = C.io.MinibatchSourceFromData({"x": X, "y": 2 * X})
    C.training_session(
        trainer=trainer,
        mb_source=training,
        model_inputs_to_streams=dict(zip(data, (training.streams.x, training.streams.y), strict=True)),
        mb_size=16,
        max_samples=64,
        progress_frequency=32,
        cv_config=C.CrossValidationConfig(source, frequency=32, minibatch_size=16, model_inputs_to_streams=streams),
    ).train()
    assert [place for place, _ in plot.curves["loss"].points()] == [16, 32, 48, 64]
    assert [place for place, _ in plot.curves["test"].points()][:2] == [32, 64]


def test_a_loss_without_metric_has_one_panel_and_a_test_of_its_own_counts_tests() -> None:
    plot = LivePlot()
    train(criterion(with_metric=False), plot)
    assert titles(plot) == ["loss"]
    other = LivePlot()
    criterion().test((X, 2 * X), callbacks=[other])
    assert [place for place, _ in other.curves["test"].points()] == [1]


def test_what_is_not_finite_is_a_gap_and_what_follows_is_drawn() -> None:
    plot = LivePlot(along="minibatches")
    for loss in (10.0, math.inf, 20.0, math.nan, 30.0):
        plot.update_training(10, loss, 0.0)
    assert [(place, value) for place, value in plot.curves["loss"].points() if math.isfinite(value)] == [(1, 1.0), (3, 2.0), (5, 3.0)]
    assert "nan" not in plot.svg()


def test_a_million_updates_take_little_memory() -> None:
    plot = LivePlot()
    for _ in range(1_000_000):
        plot.update_training(1, 1.0, 0.0)
    assert len(plot.curves["loss"]) <= 1000
    assert plot.curves["loss"].points()[-1] == (1_000_000, 1.0)
    assert len(plot.svg()) < 200_000


@pytest.mark.parametrize("ending", [".svg", ".html"])
def test_a_file_has_the_last_state_and_is_not_written_for_each_minibatch(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, written = [0.0], []
    monkeypatch.setattr(live_plot, "monotonic", lambda: now[0])
    original = live_plot.write_file
    monkeypatch.setattr(live_plot, "write_file", lambda *arguments: (written.append(1), original(*arguments)))
    path = tmp_path / f"curves{ending}"
    with LivePlot(path=path) as plot:
        for _ in range(10):
            plot.update_training(1, 1.0, 0.0)
        assert len(written) == 1
        now[0] = 10.0
        plot.update_training(1, 1.0, 0.0)
        assert len(written) == 2
        plot.update_training(1, 0.125, 0.0)
    assert len(written) == 3
    text = path.read_text()
    assert plot.svg() in text
    assert text.startswith("<svg" if ending == ".svg" else "<!doctype html>")
    plot.close()
    assert len(written) == 3


def test_the_last_state_is_drawn_when_the_writer_goes(tmp_path: Path) -> None:
    plot = LivePlot(path=tmp_path / "curves.svg")
    plot.update_training(1, 1.0, 0.0)
    plot.update_training(1, 2.0, 0.0)
    picture = plot.svg()
    del plot
    gc.collect()
    assert (tmp_path / "curves.svg").read_text() == picture


def test_the_last_state_is_drawn_when_the_program_ends(tmp_path: Path) -> None:
    program = (
        "import os, sys\nimport cntk as C\nplot = C.logging.LivePlot(path='curves.svg')\n"
        "for loss in (1.0, 2.0, 0.375): plot.update_training(1, loss, 0.0)\nos.makedirs('other'), os.chdir('other')\n"
        "assert 'IPython' not in sys.modules and 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert len(list(tmp_path.glob("**/curves.svg"))) == 1
    assert "training" in (tmp_path / "curves.svg").read_text()


@pytest.mark.parametrize("given", ["argument", "launcher"])
def test_other_workers_draw_nothing(tmp_path: Path, given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if given == "launcher":
        monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
        monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    plot = LivePlot(path=tmp_path / "curves.svg", rank=1 if given == "argument" else None)
    train(criterion(), plot)
    plot.close()
    assert len(plot.curves["loss"]) == 0
    assert list(tmp_path.iterdir()) == []


def test_training_goes_on_from_a_checkpoint(tmp_path: Path) -> None:
    def trainer(plot: LivePlot) -> Any:
        function = criterion()
        return C.Trainer(None, function, [C.sgd(function.parameters, 0.1)], [plot])

    def step(made: Any) -> None:
        arguments = made.loss_function.arguments
        made.train_minibatch({arguments[0]: X[:16], arguments[1]: 2 * X[:16]})

    first, other = LivePlot(), LivePlot()
    whole = trainer(first)
    step(whole)
    step(whole)
    whole.save_checkpoint(str(tmp_path / "model"))
    resumed = trainer(other)
    resumed.restore_from_checkpoint(str(tmp_path / "model"))
    step(whole)
    step(resumed)
    assert other.curves["loss"].points() == first.curves["loss"].points()
    assert [place for place, _ in other.curves["loss"].points()] == [16, 32, 48]


@pytest.mark.parametrize("wrong", [{"along": "epochs"}, {"smoothing": 1.0}, {"smoothing": -0.1}, {"path": "curves.png"}])
def test_wrong_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)) if "path" not in wrong else "ends in"):
        LivePlot(**wrong)


def test_one_display_of_a_notebook_is_updated_and_has_the_last_state_when_the_cell_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[dict[str, str]] = []
    ends: list[Any] = []
    shell = SimpleNamespace(kernel=1, events=SimpleNamespace(register=lambda event, call: ends.append(call)))
    handle = SimpleNamespace(update=lambda bundle, raw: shown.append(bundle))

    def display(bundle: dict[str, str], raw: bool, display_id: bool) -> Any:
        shown.append(bundle)
        return handle

    module = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    plot = LivePlot()
    for loss in (8.0, 4.0, 2.0):
        plot.update_training(1, loss, 0.0)
    assert len(shown) == 1
    ends[0]()
    assert len(shown) == 2
    assert shown[-1]["text/html"] == plot.svg()
    assert shown[-1]["text/plain"].startswith("LivePlot: loss 2")
    ends[0]()
    assert len(shown) == 2
    assert len(ends) == 1
