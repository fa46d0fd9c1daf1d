"""``cntk bench``: what it measures is the same in every framework, and a framework that fails is named."""

from __future__ import annotations

import json
from importlib import import_module

import numpy as np
import pytest

from cntk.cli import main
from cntk.commands import bench
from cntk.commands.peers import FRAMEWORKS, WORKLOADS, Framework
from cntk.commands.peers.worker import timed

OWN, *PEERS = FRAMEWORKS


def workloads(framework: Framework) -> dict[str, object]:
    pytest.importorskip(framework.module)
    return import_module(f"cntk.commands.peers.{framework.workloads}").WORKLOADS


def test_opencntk_has_all_workloads() -> None:
    assert list(workloads(OWN)) == list(WORKLOADS)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.module)
@pytest.mark.slow
def test_steps_compute(framework: Framework) -> None:
    for name, make in workloads(framework).items():
        assert name in WORKLOADS
        step = make()
        results = [step(), step()]
        if not name.startswith("train"):
            rows = 256 if name.startswith("256") else 1
            assert np.asarray(results[0]).reshape(-1, 10).shape == (rows, 10)
            assert np.ptp(results[0]) > 0


@pytest.mark.parametrize("framework", FRAMEWORKS[:2], ids=lambda framework: framework.module)
@pytest.mark.slow
def test_training_learns(framework: Framework) -> None:
    import cntk as C

    step = workloads(framework)["train rows"]()
    if framework is OWN:
        trainer = step.__closure__ and next(cell.cell_contents for cell in step.__closure__ if isinstance(cell.cell_contents, C.Trainer))
        losses = [(step(), trainer.previous_minibatch_loss_average)[1] for _ in range(60)]
    else:
        losses = [step() for _ in range(60)]
    assert losses[-1] < losses[0] / 2


def test_a_step_is_timed_a_few_times_at_least() -> None:
    assert len(timed(lambda: None, 0)) == 5


@pytest.mark.slow
def test_results_are_printed_for_people_and_programs(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    broken = Framework("Broken", "json", "in_nothing")
    monkeypatch.setattr(bench, "FRAMEWORKS", (OWN, FRAMEWORKS[3], broken))
    assert main(["bench", "--seconds", "0.1", "--only", "one row", "--json"]) == 0
    out, err = capfd.readouterr()
    measured = json.loads(out)["workloads"]["one row"]
    assert set(measured) == {"opencntk", "NumPy"}
    assert measured["opencntk"]["times_opencntk"] == 1
    assert measured["NumPy"]["milliseconds"] > 0
    assert "Broken is left out: its process has ended" in err
    assert main(["bench", "--seconds", "0.1", "--only", "one row"]) == 0
    heading, row = capfd.readouterr().out.splitlines()[-2:]
    assert heading.split() == ["opencntk", "NumPy", "Broken"]
    assert row.startswith("one row ")
    assert row.endswith(" -")


@pytest.mark.parametrize("arguments", [["--seconds", "0"], ["--seconds", "nan"], ["--only", "two rows"]])
def test_wrong_arguments_are_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["bench", *arguments])
    assert "usage: cntk bench" in capsys.readouterr().err
