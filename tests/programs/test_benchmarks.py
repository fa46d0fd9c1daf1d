"""The benchmarks run: each workload takes its first step, and the table is put into its page."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from standin import host_backend, host_cuda

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.extension import compiled

ROOT = Path(__file__).resolve().parents[2]
WORKER = ROOT / "benchmarks" / "worker.py"


WORKLOADS = [
    "logistic_regression", "mlp", "convolution", "inference", "tagger", "bidirectional", "bag_of_words", "resnet", "transformer",
    "learners:adam", "resnet50", "resnet50_inference:1", "wide_transformer", "ragged_transformer", "gru", "embedding",
]  # fmt: skip
ON_REAL_DATA = {"sequence_to_sequence": "cmudict-0.7b.train-dev-1-21.ctf", "atis": "atis.train.ctf", "atis_file": "atis.train.ctf"}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_workload_takes_a_step(workload: str) -> None:
    assert first_call(workload) > 0


@pytest.mark.parametrize("workload", ["mlp", "convolution", "transformer", "gru"])
def test_jax_takes_a_step_where_it_is_installed(workload: str) -> None:
    if find_spec("jax"):
        assert first_call(workload, "jax") > 0


@pytest.mark.usefixtures("benchmarks")
def test_attention_does_not_see_the_padding_of_shorter_sequences() -> None:
    import ragged_transformer as ragged

    x, places = C.sequence.input_variable(ragged.SHAPE.width), C.sequence.input_variable(ragged.SHAPE.steps, is_sparse=True)
    model = ragged.cntk_model(x, places)
    samples, numbers, _ = ragged.cntk_data()[0]
    together = model.eval({x: samples[:3], places: numbers[:3]})
    for i in range(3):
        alone = model.eval({x: samples[i : i + 1], places: numbers[i : i + 1]})
        np.testing.assert_allclose(together[i], alone[0], rtol=1e-4, atol=1e-4)


@pytest.mark.usefixtures("benchmarks")
def test_first_calls_are_measured_and_what_compiles_beside_them_ends(tmp_path: Path) -> None:
    import first_calls

    for case in ("no code", "no Numba"):
        arguments = [str(WORKER.with_name("first_calls.py")), "--measure", case, "evaluation", "convolution", str(tmp_path / "none")]
        assert len([float(number) for number in first_calls.run(arguments, tmp_path / case).split()]) == 4


@pytest.mark.usefixtures("benchmarks")
def test_workloads_are_chosen_by_module_and_by_name() -> None:
    import run

    assert run.is_of("resnet50_inference:16", ["resnet50_inference"])
    assert run.is_of("resnet50_inference:16", ["mlp", "resnet50_inference:16"])
    assert not run.is_of("resnet50_inference:16", ["resnet50", "resnet50_inference:1"])


@pytest.mark.parametrize("workload", ON_REAL_DATA)
def test_every_workload_on_real_data_takes_a_step(workload: str, real_data: Path) -> None:
    assert (real_data / ON_REAL_DATA[workload]).exists()
    assert first_call(workload) > 0


def first_call(workload: str, framework: str = "cntk") -> float:
    done = subprocess.run([sys.executable, str(WORKER), "first_call", workload, framework], capture_output=True, text=True, check=False)
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
    kernels = ["cntk.backends.fused"] if compiled.is_wanted() else []
    assert names[:-1] == kernels
    assert {what for what, _ in times} == set(layers.WHAT)
    layers.show({"small": layer}, names, {("small", what, who): seconds for (what, who), seconds in times.items()})
    assert "| small: step | 0 | " in capsys.readouterr().out


def test_the_gain_of_more_processors_is_told() -> None:
    pytest.importorskip("cntk.core.machine.loops", reason="compiled loops are switched off", exc_type=ImportError)
    command = [sys.executable, str(WORKER.with_name("many_cores.py")), "--only", "mlp", "--steps", "2"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *_, row = done.stdout.splitlines()
    name, milliseconds, shared, *gains, flop, _ = (cell.strip() for cell in row.strip("|").split("|"))
    assert name == "mlp"
    assert float(milliseconds) > 0
    assert 0 < int(shared.rstrip("%")) <= 100
    assert [float(gain) for gain in gains] == sorted(map(float, gains))
    assert float(flop) == 573


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
def test_a_measurement_that_fails_loses_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import run

    def measure(figure: Any, framework: Any, mode: str = "") -> list[float]:
        if framework.name == "CNTK 2.7" and figure.workload == "mlp":
            raise RuntimeError("sparse matrices are not supported")
        return [0.001, 0.002]

    monkeypatch.setenv("CNTK27", "cntk27")
    monkeypatch.setattr(run, "measure", measure)
    with pytest.raises(SystemExit, match=r"failed, as told above: dense network .*, CNTK 2\.7$"):
        run.main(["--rounds", "2", "--only", "mlp", "tagger", "--no-page"])
    told = capsys.readouterr()
    dense, recurrent = (next(line for line in told.out.splitlines() if line.startswith(f"| {name}")) for name in ("dense", "LSTM"))
    assert dense.split(" | ")[1:3] == ["1, 2 ms", ""]
    assert recurrent.split(" | ")[1:3] == ["1, 2 ms", "1, 2 ms"]
    assert told.err.count("sparse matrices are not supported") == 3  # a step, the first one, and memory: each once


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


@pytest.mark.usefixtures("benchmarks")
def test_many_workers_are_simulated(tmp_path: Path) -> None:
    import many_workers as simulation

    costs = simulation.Costs([0.1], 0.1, 0.5, 40_000_000, 0.02, 0.01, 0.001, 10_000)
    none, slow = simulation.Network(0.0, float("inf")), simulation.Network(1e-4, 1e8)
    free = costs._replace(add=0.0)
    for divided in (False, True):
        assert simulation.seconds("data parallel", 1, costs, slow) == pytest.approx(0.1)
        found = simulation.gains("data parallel", (2, 8), free, none, divided)
        expected = [2, 8] if not divided else [6.41 / (0.01 + 0.09 * 64 / count) * 0.9 for count in (2, 8)]
        assert found == pytest.approx(expected, rel=0.15)
    # two workers send half of 40 MB twice, of which half may be on its way while the other half is computed; blocks of ten pay a tenth
    assert 0.1 + 0.35 < simulation.seconds("data parallel", 2, free, slow) < 0.1 + 0.42
    assert simulation.seconds("block momentum", 2, free, slow) == pytest.approx(0.1 + 0.04, rel=0.02)
    assert simulation.seconds("1 bit", 2, free, slow) == pytest.approx(0.1 + 0.0125 + 0.0008 + 0.05, rel=0.05)
    slowest = simulation.seconds("data parallel", 512, free._replace(steps=[0.1] * 9 + [0.3]), none)
    assert slowest == pytest.approx(0.3)  # all wait for the slowest
    assert simulation.pays_up_to((2, 4, 8), [1.6, 3.0, 3.5]) == 4
    assert simulation.pays_up_to((2, 4, 8), [0.9, 1.7, 2.0]) == 4
    assert simulation.pays_up_to((2, 4, 8), [0.5, 0.9, 0.95]) == 1
    lines = simulation.table(costs, {"slow": slow}, True)
    assert len(lines) == 2 + len(simulation.LEARNERS)
    if find_spec("matplotlib"):
        simulation.plot(tmp_path / "plot.svg", costs, {"slow": slow, "none": none})
        assert "block momentum" in (tmp_path / "plot.svg").read_text(encoding="utf-8")


# ---- on a GPU, of which there is none here ----


@pytest.mark.usefixtures("benchmarks")
def test_the_plan_for_a_gpu_has_every_workload_in_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import gpu_plan
    import gpu_worker
    from figures import FIGURES, LARGE

    monkeypatch.setattr(gpu_plan.Job, "why_not", lambda job: "")
    jobs = gpu_plan.plan()
    assert jobs[0].ways == (gpu_plan.TESTS,)
    rows = [(row["workload"], row["way"]) for job in jobs for row in job.rows()]
    assert len(rows) == len(set(rows))
    measured = [one for job in jobs[1:] for one in gpu_worker.measurements_of(*job.command(Path("found.json"), 9.0)[2:4])]
    assert measured == rows[1:]
    timed = [figure for figure in (*FIGURES, *LARGE) if figure.measure == "step_time"]
    assert {workload for workload, way in rows if way == gpu_plan.OURS} == {figure.workload for figure in timed}
    compared = {figure.workload for figure in timed if "torch" in figure.modules}
    assert {workload for workload, way in rows if way == gpu_plan.EAGER} == compared
    assert {workload for workload, way in rows if way == gpu_plan.GRAPH} == compared
    left, shares = 540.0, []
    for number in range(len(jobs)):
        shares.append(gpu_plan.share(jobs[number:], left))
        left -= shares[-1]
    assert left >= -1e-6
    assert shares[0] > 50
    with pytest.raises(SystemExit, match="no workloads \\['mpl'\\]; there are logistic_regression, mlp"):
        gpu_plan.plan(["mpl"])


@pytest.mark.usefixtures("benchmarks")
def test_without_a_gpu_it_says_what_it_would_run_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import gpu

    def missing() -> None:
        raise ValueError("gpu(0): there is no driver")

    monkeypatch.setattr(gpu, "described_gpu", missing)
    assert gpu.main(["--out", str(tmp_path / "gpu.json")]) == 1
    said = capsys.readouterr()
    assert "mlp                    torch graph" in said.out
    assert "error: nothing can be measured: gpu(0): there is no driver" in said.err
    assert not (tmp_path / "gpu.json").exists()
    assert gpu.main(["--plan"]) == 0


@pytest.mark.usefixtures("benchmarks")
def test_what_is_left_out_on_a_gpu_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that fails after its first measurement, one that takes too long, and no time for the third."""
    import gpu
    import gpu_plan

    scripts = {
        "one": "import sys; open(sys.argv[1], 'w').write('[{\"median_ms\": 1.5, \"kernels\": 3}]'); sys.exit('out of luck')",
        "two": "import time; time.sleep(60)",
    }
    jobs = [
        gpu_plan.Job((gpu_plan.EAGER, gpu_plan.GRAPH), (gpu_plan.Figure("the first", "step_time", "one", flop=7),)),
        gpu_plan.Job((gpu_plan.OURS,), (gpu_plan.Figure("the second", "step_time", "two"),)),
        gpu_plan.Job((gpu_plan.COMPILED,), (gpu_plan.Figure("the third", "step_time", "three"),)),
    ]
    monkeypatch.setattr(gpu_plan.Job, "why_not", lambda job: "")
    shares = iter([20.0, -4.0, 1.0])
    monkeypatch.setattr(gpu, "described_gpu", lambda: {"backend": "a card"})
    monkeypatch.setattr(gpu, "plan", lambda only, with_tests: jobs)
    monkeypatch.setattr(gpu, "share", lambda jobs, seconds: next(shares))
    monkeypatch.setattr(gpu_plan, "LEAST", {gpu_plan.EAGER: 0.0, gpu_plan.OURS: -9.0, gpu_plan.COMPILED: 40.0})
    command = lambda job, found, seconds: [sys.executable, "-c", scripts[job.figures[0].workload], str(found)]  # noqa: E731
    monkeypatch.setattr(gpu_plan.Job, "command", command)
    assert gpu.main(["--out", str(tmp_path / "gpu.json")]) == 0
    results = json.loads((tmp_path / "gpu.json").read_text())
    assert results["measured_on"] == {"backend": "a card"}
    (row,) = results["rows"]
    assert (row["workload"], row["way"], row["flop"], row["median_ms"]) == ("one", gpu_plan.EAGER, 7, 1.5)
    why = {(row["workload"], row["way"]): row["left_out"] for row in results["left_out"]}
    assert why["one", gpu_plan.GRAPH] == "it failed: out of luck\n"
    assert why["two", gpu_plan.OURS].startswith("no time: it was ended")
    assert why["three", gpu_plan.COMPILED] == "no time: 1 s are left for it, it needs 40"


@pytest.mark.usefixtures("benchmarks")
@pytest.mark.skipif(bool(host_cuda.unavailable()), reason=host_cuda.unavailable())
def test_kernels_of_recurrences_are_timed_by_themselves(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import gpu_recurrence

    monkeypatch.setattr(gpu_recurrence, "microseconds", lambda launch: launch() or 8.0)
    shape = gpu_recurrence.Shape("small", "GRU", 2, 3, 2, np.array([4, 1]))
    with host_backend.host_kernels(), host_backend.host_device(host_backend.is_generated) as device, gpu_recurrence.grid_number(1):
        gpu_recurrence.tell(shape, device)
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[:5] for line in said] == [["small,", way, "1", "x", "1"] for way in ("forward", "backward")]
    assert all(line.split()[-2] == "2.00" for line in said)


@pytest.mark.usefixtures("benchmarks")
def test_the_table_of_gpus_is_that_of_the_committed_results(root: Path) -> None:
    import gpu_table

    made = gpu_table.page(json.loads(gpu_table.RESULTS.read_text(encoding="utf-8")))
    shown = (root / "docs" / "gpu.md").read_text(encoding="utf-8")
    assert shown.partition(gpu_table.BEGIN)[2].partition(gpu_table.END)[0].strip() == made
    assert len(made.splitlines()) > 12


@pytest.mark.usefixtures("benchmarks")
def test_a_part_of_all_that_a_gpu_can_tell_is_ended_with_its_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import gpu_all
    import gpu_plan

    assert len(gpu_plan.plan(gpu_all.WORKLOADS)) > len(gpu_plan.plan(["mlp"]))  # all of them are known
    parts = [gpu_all.Part(tmp_path, name, [sys.executable, "-c", code]) for name, code in (("a", "print(7)"), ("b", "while True: pass"))]
    parts[0].end(time.monotonic() + 60)
    parts[1].end(time.monotonic() + 0.2)
    assert capsys.readouterr().out == "a: 0\nb: ended, as its time was over\n"
    assert (tmp_path / "a.log").read_text() == "7\n"
    assert {name for name, _ in gpu_all.at_once(tmp_path, 60.0, 0)} >= {"long_runs", "tests"}


class Recording(NumpyBackend):
    """NumPy that would record."""

    name = "recording"

    def record(self, steps: Any) -> None:
        return None


@pytest.mark.usefixtures("benchmarks")
def test_a_step_is_timed_and_replayed_training_compared() -> None:
    import gpu_worker

    found = gpu_worker.ours("logistic_regression", time.monotonic() + 60, C.cpu())
    assert found["steps"] == gpu_worker.MEASURED
    assert 0 < found["fastest_tenth_ms"] <= found["median_ms"] <= found["slowest_tenth_ms"]
    assert found["replay"] == "this backend records nothing"
    assert gpu_worker.ours("learners:adam", time.monotonic(), C.cpu())["steps"] == 2
    backend = Recording()
    with gpu_worker.not_recording(backend):
        assert "record" in vars(backend)
    assert "record" not in vars(backend)
    assert gpu_worker.replay_is_equal("logistic_regression", backend) == {"replay": "equal to the bit"}
    calls = iter([[np.zeros(1)], [-np.zeros(1)]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_worker, "parameters_after", lambda workload, backend: next(calls))
        assert gpu_worker.replay_is_equal("any", backend) == {"replay": "DIFFERENT"}


@pytest.mark.usefixtures("benchmarks")
def test_pytorch_is_timed_on_data_of_the_host() -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    import gpu_worker
    from gpu_plan import EAGER, GRAPH

    assert gpu_worker.torch_s("logistic_regression", EAGER, time.monotonic(), "cpu")["median_ms"] > 0
    if not torch.cuda.is_available():
        assert "no graph can be made" in gpu_worker.torch_s("logistic_regression", GRAPH, time.monotonic(), "cpu")["left_out"]
    assert "differ in shape" in gpu_worker.torch_s("tagger", GRAPH, time.monotonic(), "cpu")["left_out"]
    with gpu_worker.capturable_learners():
        weight = torch.nn.Parameter(torch.zeros(1))
        assert torch.optim.Adam([weight]).param_groups[0]["capturable"]
    assert not torch.optim.Adam([weight]).param_groups[0]["capturable"]


def test_totals_of_tests_are_written_although_time_is_over(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import time, pytest, cntk as C\n"
        "def test_a(): pass\n"
        "def test_b(): assert 1 == 2\n"
        "def test_c(): pytest.skip('why')\n"
        "def test_d(request): request.getfixturevalue('nothing')\n"
        "@pytest.mark.parametrize('device', [C.cpu(), C.DeviceDescriptor(C.device.DeviceKind.GPU, 0, 'some')])\n"
        "def test_e(device): assert device != C.cpu()\n"
    )
    found = tmp_path / "totals.json"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "gpu_tests",
        "-p",
        "no:cacheprovider",
        "--gpu-totals",
        str(found),
        "test_some.py",
    ]
    environment = {**os.environ, "PYTHONPATH": str(WORKER.parent)}

    def totals(seconds: str) -> dict[str, Any]:
        subprocess.run([*command, "--gpu-seconds", seconds], cwd=tmp_path, env=environment, capture_output=True, check=False)
        (content,) = json.loads(found.read_text())
        return dict(content)

    whole = totals("60")
    assert whole["totals"] == {"passed": 2, "failed": 2, "skipped": 1}
    assert (whole["collected"], whole["is_complete"]) == (5, True)
    assert any(line.startswith("test_some.py::test_b: ") for line in whole["failed"])
    cut = totals("0.000001")
    assert (sum(cut["totals"].values()), cut["collected"]) == (0, 5)
    assert not cut["is_complete"]
