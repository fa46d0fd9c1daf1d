"""What the profiler knows of operators: their times, operations and bytes; and the files it writes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from string import digits
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C
from cntk.core.common.switches import recorders
from cntk.core.extension import plugins
from cntk.core.operators.cost import Cost
from cntk.core.run import profiling
from cntk.core.run.profiling import Recorder, Tally, note_event
from cntk.debugging.profile_files import table, trace
from cntk.debugging.rates import Rates
from cntk.testing.gradients import Projection
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial

Figures = dict[str, tuple[int, int]]
"""Operations and bytes by operator and pass, such as ``'Times backward'``."""


@pytest.fixture(autouse=True)
def _nobody_measures_afterwards() -> Any:
    yield
    assert recorders.value == ()


@contextmanager
def measuring(recorder: Recorder) -> Iterator[None]:
    profiling.begin(recorder)
    try:
        yield
    finally:
        profiling.end(recorder)


def figures(f: Any, data: Mapping[Any, Any], *wrt: Any) -> Figures:
    """What is counted while gradients by *wrt* are taken, or while the function is evaluated, where there are none."""
    recorder = Recorder()
    with measuring(recorder):
        if wrt:
            f.grad(data, list(wrt))
        else:
            f.eval(data)
    return of_operators(recorder)


def of_operators(recorder: Recorder) -> Figures:
    return {f"{uid.rstrip(digits)} {way}": (tally.flop, tally.nbytes) for (uid, way), tally in recorder.tallies.items()}


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


def training() -> tuple[Any, Any]:
    """A trainer of one product and its sum, and a minibatch."""
    x, w = C.input_variable(2, name="x"), C.parameter(2, init=1, name="w")
    product = C.element_times(w, x, name="p")
    trainer = C.Trainer(None, (C.reduce_sum(product), C.reduce_sum(product)), C.sgd([w], 0.1))
    return trainer, {x: np.ones((3, 2), np.float32)}


def words(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


# ---- operations and bytes --------------------------------------------------------------------------


def test_a_product_multiplies_and_adds() -> None:
    x, w = C.input_variable(3, needs_gradient=True), C.parameter((3, 4))
    found = figures(C.times(x, w), {x: ones(5, 3)}, w, x)
    assert found["Times forward"] == (2 * 5 * 3 * 4, 4 * (5 * 4 + 5 * 3 + 3 * 4))
    assert found["Times backward"] == (2 * 2 * 5 * 3 * 4, 4 * (5 * 4 + 2 * (5 * 3 + 3 * 4)))
    assert figures(C.times(x, w), {x: ones(5, 3)}, w)["Times backward"][0] == 2 * 5 * 3 * 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bytes_are_those_of_the_type(dtype: Any) -> None:
    x = C.input_variable(6, dtype=dtype)
    assert figures(C.relu(x), {x: np.ones((5, 6), dtype)}) == {"ReLU forward": (30, 2 * 30 * np.dtype(dtype).itemsize)}


@pytest.mark.parametrize(
    ("f", "shape", "flop"),
    [
        (lambda x: C.times_transpose(x, C.parameter((7, 6))), (6,), 2 * 5 * 6 * 7),
        (lambda x: C.times(x, C.parameter((2, 3, 4, 5)), output_rank=2), (2, 3), 2 * 5 * 6 * 20),
        (lambda x: C.times(x, x), (3, 3), 2 * 5 * 27),
        (lambda x: C.times(C.parameter((4, 3)), x), (3, 2), 2 * 5 * 4 * 3 * 2),
        (lambda x: C.convolution(C.parameter((8, 3, 5, 5)), x, auto_padding=[False, True, True]), (3, 6, 6), 2 * 5 * 8 * 36 * 75),
        (lambda x: C.convolution(C.parameter((8, 1, 3, 3)), x, groups=4, auto_padding=[False]), (4, 6, 6), 2 * 5 * 8 * 16 * 9),
        (lambda x: C.convolution_transpose(C.parameter((3, 2, 3)), x, auto_padding=[False]), (3, 4), 2 * 5 * 12 * 6),
        (lambda x: C.pooling(x, C.MAX_POOLING, (2, 2), (2, 2)), (3, 4, 4), 5 * 3 * 4 * 4),
        (lambda x: C.pooling(x, C.AVG_POOLING, (3, 3), (1, 1)), (3, 4, 4), 5 * 3 * 4 * 9),
        (lambda x: C.reduce_mean(x, axis=0), (3, 4), 5 * 12),
        (lambda x: C.reduce_max(x), (3, 4), 5 * 12),
        (lambda x: C.softmax(x), (4,), 5 * 5 * 4),
        (lambda x: C.squared_error(x, C.constant(1, (4,))), (4,), 3 * 5 * 4),
        (lambda x: C.mean_variance_normalization(x), (2, 3), 5 * 5 * 6),
        (lambda x: C.cross_entropy_with_softmax(x, C.constant(1, (4,))), (4,), 4 * 20 + 2 * 4),
        (lambda x: x + 1, (4,), 20),
        (lambda x: C.transpose(x, (1, 0)), (3, 4), 0),
    ],
)
def test_operations_of(f: Any, shape: tuple[int, ...], flop: int) -> None:
    x = C.input_variable(shape)
    function = f(x)
    found = figures(function, {x: ones(5, *shape)})
    assert found[f"{function.root_function.op_name} forward"][0] == flop


@pytest.mark.parametrize("name", plugins.ops.names())
def test_the_work_of_every_operator_can_be_told(name: str) -> None:
    function, recorder = plugins.ops.get(name), Recorder()
    with measuring(recorder):
        for sample in samples_of(function):
            trial = Trial(function, sample, np.float64)
            wanted = [i for i, operand in enumerate(sample.operands) if operand.gradient and not operand.sparse]
            if wanted:
                Projection(trial).gradients(wanted)
            else:
                trial.evaluate()
    assert all(type(number) is int and number >= 0 for t in recorder.tallies.values() for number in (t.flop, t.nbytes))


def test_normalisation_does_more_in_training() -> None:
    x = C.input_variable((3, 4))
    f = C.layers.BatchNormalization(map_rank=1)(x)
    assert figures(f, {x: ones(5, 3, 4)})["BatchNormalization forward"][0] == 2 * 60
    trainer, recorder = C.Trainer(None, C.reduce_sum(f), C.sgd(f.parameters, 0.1)), Recorder()
    with measuring(recorder):
        trainer.train_minibatch({x: ones(5, 3, 4)})
    assert of_operators(recorder)["BatchNormalization forward"][0] == 6 * 60


def test_numbers_that_are_not_stored_cost_nothing() -> None:
    x, w = C.input_variable(100, is_sparse=True), C.parameter((100, 4))
    matrix = csr_matrix(([1, 1, 1], ([0, 1, 1], [3, 5, 99])), (2, 100), dtype=np.float32)
    found = figures(C.times(x, w), {x: matrix}, w)
    flop, indices = 2 * 3 * 4, matrix.indices.nbytes + matrix.indptr.nbytes
    assert found["Times forward"][0] == found["Times backward"][0] == flop
    stored, result = 4 * 3, 4 * 2 * 4
    # Of 100 rows of w no more is read than there are operations.
    assert found["Times forward"][1] == result + stored + indices + 4 * flop


def test_steps_of_a_recurrence_are_summed_up() -> None:
    x, before = C.sequence.input_variable(2), C.placeholder()
    w, r = C.parameter((2, 3)), C.parameter((3, 3))
    of_x, of_state = C.times(x, w), C.times(C.sequence.past_value(before), r)
    h = C.tanh(of_x + of_state)
    f = C.sequence.reduce_sum(h.replace_placeholders({before: h.output}))
    recorder = Recorder()
    with measuring(recorder):
        f.grad({x: [ones(4, 2), ones(2, 2)]}, [w, r])
    tallies, rows = recorder.tallies, 6
    assert [tallies[g.root_function.uid, "forward"].count for g in (of_x, of_state, h)] == [1, 4, 4]
    assert [tallies[g.root_function.uid, "forward"].flop for g in (of_x, of_state, h)] == [2 * rows * 6, 2 * rows * 9, rows * 3]
    # The state's gradient is taken in each step, that of the weights after the last one.
    assert [tallies[g.root_function.uid, "backward"].flop for g in (of_x, of_state)] == [2 * rows * 6, 2 * 2 * rows * 9]


def test_a_stack_of_recurrent_layers_multiplies_each_row_by_all_matrices() -> None:
    x = C.sequence.input_variable(2)
    f = C.optimized_rnnstack(x, C.parameter((C.InferredDimension, 3)), 3, 2, recurrent_op="rnnTanh")
    assert figures(f, {x: [ones(4, 2), ones(2, 2)]})["OptimizedRNNStack forward"][0] == 2 * 6 * (2 * 3 + 3 * 3 + 3 * 3 + 3 * 3)


def test_products_over_steps() -> None:
    x, y = C.sequence.input_variable(2), C.sequence.input_variable(3)
    f = C.times(x, y, infer_input_rank_to_map=C.TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK)
    data = {x: [ones(4, 2), ones(1, 2)], y: [ones(4, 3), ones(1, 3)]}
    assert figures(f, data)["Times forward"][0] == 2 * 5 * 2 * 3


# ---- times of each node ----------------------------------------------------------------------------


def test_node_timing(capsys: pytest.CaptureFixture[str]) -> None:
    trainer, data = training()
    C.debugging.set_node_timing(True)
    try:
        for _ in range(2):
            trainer.train_minibatch(data)
        C.relu(C.input_variable(1)).eval([[1]])
        trainer.print_node_timing()
    finally:
        C.debugging.set_node_timing(False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ElementTimes")
    assert all("(fwd# 2|bwd# 2)" in line for line in lines[:2])
    assert not any(line.startswith("ReLU") for line in lines)
    trainer.train_minibatch(data)
    trainer.print_node_timing()
    assert "(fwd# 2|bwd# 2)" in capsys.readouterr().out


def test_node_timing_of_an_evaluator(capsys: pytest.CaptureFixture[str]) -> None:
    x = C.input_variable(2)
    evaluator = C.Evaluator(C.layers.Dense(1, activation=C.reduce_sum)(x))
    evaluator.print_node_timing()
    C.debugging.set_node_timing(True)
    try:
        evaluator.test_minibatch({x: np.ones((3, 2), np.float32)})
    finally:
        C.debugging.set_node_timing(False)
    evaluator.print_node_timing()
    lines = capsys.readouterr().out.splitlines()
    assert [line[:5] for line in lines] == ["Times", "Plus" + lines[1][4], "Reduc"]
    assert all("backward avg 0.000000s (fwd# 1|bwd# 0)" in line for line in lines)


def test_an_error_names_the_operator_while_somebody_measures() -> None:
    x = C.input_variable(1)
    C.debugging.set_checked_mode(True)
    C.debugging.set_node_timing(True)
    try:
        with pytest.raises(ValueError, match=r"Log.*produced NaN"):
            C.log(x, name="l").eval(np.full((1, 1), np.nan, np.float32))
    finally:
        C.debugging.set_node_timing(False)
        C.debugging.set_checked_mode(False)


# ---- events ----------------------------------------------------------------------------------------


def test_events_are_kept_by_those_who_measure() -> None:
    recorder = Recorder(max_events=2)
    note_event("before", "test", 0.0, 1.0)
    with measuring(recorder):
        for name in ("first", "second", "one too many"):
            note_event(name, "test", 1.0, 3.0, bytes=7)
    note_event("after", "test", 0.0, 1.0)
    assert [event.name for event in recorder.events] == ["first", "second"]
    assert recorder.tallies == {}
    shown = [event for event in trace(recorder) if event["ph"] == "X"]
    assert [(event["cat"], event["dur"], event["args"]) for event in shown] == 2 * [("test", 2e6, {"bytes": 7})]
    assert shown[0]["tid"] in {event["tid"] for event in trace(recorder) if event["name"] == "thread_name"}


def test_times_of_a_trace_are_those_of_the_day() -> None:
    recorder, now = Recorder(max_events=1), time.perf_counter()
    with measuring(recorder):
        note_event("now", "test", now, now)
    assert abs(trace(recorder)[-1]["ts"] / 1e6 - time.time()) < 10


@pytest.mark.parametrize(("size", "process", "title"), [("1", None, "process"), ("4", 3, "worker 3")])
def test_a_worker_is_a_process_of_the_trace(monkeypatch: pytest.MonkeyPatch, size: str, process: int | None, title: str) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", size)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    (name,) = trace(Recorder())
    assert (name["pid"], name["args"]) == (os.getpid() if process is None else process, {"name": title})


# ---- files -----------------------------------------------------------------------------------------


def tally(seconds: float, flop: int, nbytes: int, dtype: Any = np.float32) -> Tally:
    made = Tally()
    made.add(seconds, Cost(flop, nbytes, dtype))
    return made


@pytest.mark.parametrize(
    ("flop", "nbytes", "dtype", "share"),
    [(100, 10, np.float32, 0.5), (100, 10, np.dtype("f8"), 1.0), (10, 15, np.float32, 0.75), (0, 20, None, 1.0), (100, 0, np.float16, 0.5)],
)
def test_shares_of_the_roof(flop: int, nbytes: int, dtype: Any, share: float) -> None:
    rates = Rates(float32=100.0, float64=50.0, copy=10.0)
    assert rates.share(tally(2.0, flop, nbytes, dtype)) == share


def test_the_table_tells_rates() -> None:
    tallies = {("Times1", "forward"): tally(0.5, 2 * 10**9, 10**9), ("Tanh2", "forward"): tally(1.0, 0, 0)}
    head, tanh, times = words(table(tallies))
    assert head[-3:] == ["GFLOP/s", "GB/s", "FLOP/byte"]
    assert tanh[:2] + tanh[-3:] == ["Tanh2", "forward", "0.000", "0.000", "0.00"]
    assert times[:2] + times[-3:] == ["Times1", "forward", "4.000", "2.000", "2.00"]
    head, _, times, _, last = words(table(tallies, Rates(8e9, 4e9, 2e9)))
    assert (head[-1], times[-1]) == ("roofline", "100.0%")
    assert "8.0 GFLOP/s" in " ".join(last)


def calls(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, without the names of its rows."""
    return [event for event in json.loads(path.read_text(encoding="utf-8")) if event["ph"] == "X"]


def test_the_profiler_writes_a_table_and_a_trace(tmp_path: Path) -> None:
    trainer, data = training()
    trainer.train_minibatch(data)
    C.debugging.start_profiler(str(tmp_path / "profile"))
    trainer.train_minibatch(data)
    C.debugging.enable_profiler()
    for _ in range(3):
        trainer.train_minibatch(data)
    C.debugging.disable_profiler()
    trainer.train_minibatch(data)
    C.debugging.stop_profiler()
    detail, summary = sorted((tmp_path / "profile").iterdir())
    head, *rows = words(summary.read_text(encoding="utf-8"))
    assert head[:3] == ["operator", "pass", "mean"]
    uids = {node.uid for node in C.logging.depth_first_search(trainer.loss_function.root_function, lambda n: isinstance(n, C.Function))}
    measured = [row for row in rows if row[0] in uids]
    assert sorted(row[1] for row in measured) == ["backward", "backward", "forward", "forward"]
    for row in measured:
        mean, deviation, least, most, total = (float(row[i]) for i in (2, 3, 4, 5, 7))
        assert row[6] == "3"
        assert least <= mean <= most
        assert deviation <= most - least + 1e-3
        assert abs(total - 3 * mean) < 0.01
    events = calls(detail)
    assert len(events) == 3 * len(rows)
    assert all(event["dur"] >= 0 for event in events)
    assert {event["cat"] for event in events} == {"forward", "backward"}
    assert all(event["args"]["bytes"] > 0 for event in events)


def test_a_full_trace_counts_on_in_the_table(tmp_path: Path) -> None:
    trainer, data = training()
    C.debugging.start_profiler(str(tmp_path), reserve_mem=1024)
    C.debugging.enable_profiler()
    trainer.train_minibatch(data)
    C.debugging.stop_profiler()
    detail, summary = sorted(tmp_path.iterdir())
    assert len(calls(detail)) == 2
    assert len(summary.read_text(encoding="utf-8").splitlines()) > 4


@pytest.mark.parametrize("call", [C.debugging.enable_profiler, C.debugging.disable_profiler, C.debugging.stop_profiler])
def test_nothing_happens_to_a_profiler_that_is_not_started(call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call()
    trainer, data = training()
    trainer.train_minibatch(data)
    C.debugging.stop_profiler()
    assert not list(tmp_path.iterdir())


def test_there_is_one_profile_at_a_time(tmp_path: Path) -> None:
    C.debugging.start_profiler(str(tmp_path))
    with pytest.raises(RuntimeError, match="has been started already"):
        C.debugging.start_profiler(str(tmp_path))
    C.debugging.stop_profiler()


def test_the_profiler_draws_the_roofline(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    trainer, data = training()
    C.debugging.start_profiler(str(tmp_path), plot=True)
    C.debugging.enable_profiler()
    trainer.train_minibatch(data)
    C.debugging.stop_profiler()
    _, picture, summary = sorted(tmp_path.iterdir())
    assert picture.name.endswith("_roofline_.svg")
    drawn = picture.read_text(encoding="utf-8")
    assert "FLOP / byte" in drawn
    assert "ElementTimes" in drawn
    assert "roofline" in summary.read_text(encoding="utf-8")


def test_nothing_to_draw_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    C.debugging.start_profiler(str(tmp_path), plot=True)
    C.debugging.stop_profiler()
    assert len(list(tmp_path.glob("*_roofline_.svg"))) == 1


def test_a_picture_takes_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntk.debugging.roofline.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'opencntk\[plot\]'"):
        C.debugging.start_profiler(str(tmp_path), plot=True)
    C.debugging.stop_profiler()
    assert not list(tmp_path.iterdir())


def test_workers_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "1")
    C.debugging.start_profiler(str(tmp_path))
    C.debugging.stop_profiler()
    assert sorted(path.name.split("_", 2)[2] for path in tmp_path.iterdir()) == ["detail_1.json", "summary_1.txt"]
