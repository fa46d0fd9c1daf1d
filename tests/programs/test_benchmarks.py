"""The benchmarks run: each workload takes its first step, and the table is put into its page."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "benchmarks" / "worker.py"


WORKLOADS = [
    "logistic_regression", "mlp", "convolution", "inference", "tagger", "bidirectional", "bag_of_words", "resnet", "transformer",
    "learners:adam",
]  # fmt: skip
ON_REAL_DATA = {"sequence_to_sequence": "cmudict-0.7b.train-dev-1-21.ctf", "atis": "atis.train.ctf", "atis_file": "atis.train.ctf"}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_takes_a_step(workload: str) -> None:
    assert first_call(workload) > 0


@pytest.mark.parametrize("workload", ON_REAL_DATA)
def test_every_workload_on_real_data_takes_a_step(workload: str, real_data: Path) -> None:
    assert (real_data / ON_REAL_DATA[workload]).exists()
    assert first_call(workload) > 0


def first_call(workload: str) -> float:
    done = subprocess.run([sys.executable, str(WORKER), "first_call", workload, "cntk"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


@pytest.fixture
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets modules of the benchmarks be imported, though other tests may have imported modules of the same names."""
    for path in WORKER.parent.glob("*.py"):
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
    monkeypatch.syspath_prepend(str(WORKER.parent))


@pytest.mark.usefixtures("benchmarks")
def test_every_kernel_computes_a_layer(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import layers

    layer = layers.Layer(2, 3, 6, 4, 3)
    assert layer.flop == 2 * 2 * 36 * 4 * 27
    monkeypatch.setattr(layers, "SECONDS", 0)
    times = layers.seconds_of([lambda layer: layers.cntk_kernels(True, layer)], layer)
    names = list(dict.fromkeys(name for _, name in times))
    assert names[-1] == "operator"
    assert {what for what, _ in times} == set(layers.WHAT)
    layers.show({"small": layer}, names, {("small", what, who): seconds for (what, who), seconds in times.items()})
    assert "| small: step | 0 | " in capsys.readouterr().out


@pytest.mark.usefixtures("benchmarks")
def test_every_large_graph_is_compiled() -> None:
    import compiling

    for make in compiling.GRAPHS:
        assert len(compiling.seconds(make, 60)) == len(compiling.STAGES)


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.parametrize("name", ["performance.md", "scaling.md"])
def test_the_page_has_a_place_for_the_table(name: str, tmp_path: Path) -> None:
    import table

    before = (ROOT / "docs" / name).read_text(encoding="utf-8")
    page = tmp_path / name
    page.write_text(before, encoding="utf-8")
    table.write(page, "| a table |")
    text = page.read_text(encoding="utf-8")
    assert "| a table |" in text
    assert text.count(table.BEGIN) == text.count(table.END) == 1
    assert text.endswith(before.partition(table.END)[2])


@pytest.mark.usefixtures("benchmarks")
def test_workloads_whose_data_is_absent_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import run
    from figures import FIGURES

    monkeypatch.setenv("CNTK_TEST_DATA", str(tmp_path))
    (tmp_path / "atis.train.ctf").touch()
    left_out = [figure.file for figure in FIGURES if figure not in list(run.present(FIGURES))]
    assert left_out
    assert set(left_out) == {"cmudict-0.7b.train-dev-1-21.ctf"}
    assert "left out: sequence to sequence" in capsys.readouterr().err


@pytest.mark.usefixtures("benchmarks")
def test_the_table_tells_pytorchs_mode_and_what_goes_through_a_second() -> None:
    import table
    from figures import Figure

    results = table.Results(1)
    results.add(("machine", "rates"), [1e9, 1e9])
    figure = Figure("words", "step_time", "none", unit="words/s", items=500)
    for name, seconds in {"opencntk": 0.1, "CNTK 2.7": 0.25, "PyTorch": 0.2}.items():
        results.add((figure.title, name), [seconds])
    results.modes[figure.title, "PyTorch"] = "compiled"
    line = table.page([figure], ["opencntk", "CNTK 2.7", "PyTorch"], results, "here").splitlines()[2]
    assert line == "| words | 5,000 words/s | 2,000 words/s | 2,500 words/s, compiled | 0.40 | 0.50 |  |  |  |"


@pytest.mark.usefixtures("benchmarks")
def test_sequences_are_read_from_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from data import ctf_numbers

    (tmp_path / "some.ctf").write_text("7\t|S0 3:1 |# <s>\t|S1 5:1 |# x\n7\t|S0 4:1\n9\t|S0 2:1\t|S1 1:1\n")
    monkeypatch.setenv("CNTK_TEST_DATA", str(tmp_path))
    assert [[list(part) for part in sequence] for sequence in ctf_numbers("some.ctf", ["S0", "S1"])] == [[[3, 4], [5]], [[2], [1]]]


@pytest.mark.usefixtures("benchmarks")
def test_cost_that_grows_faster_than_the_arithmetic_is_pointed_out(tmp_path: Path) -> None:
    import scaling
    from curves import CURVES

    def points(power: float) -> list[scaling.Point]:
        return [scaling.Point(1e-9 * size.flop**power, 0.0) for size in CURVES[0].sizes()]

    assert scaling.steep(CURVES[0], points(1.0)) == []
    assert len(scaling.steep(CURVES[0], points(1.5))) == len(CURVES[0].values) - 1
    if find_spec("matplotlib"):
        scaling.plot(tmp_path / "plot.svg", {curve.title: {"opencntk": [scaling.Point(0.1, 0.0)] * len(curve.values)} for curve in CURVES})
        assert "arithmetic" in (tmp_path / "plot.svg").read_text(encoding="utf-8")
