"""A trace of how workers exchange gradients while others are still being computed.

    cntk launch -n 2 examples/distributed_trace.py [FOLDER]

trains ten layers of 1000 x 1000 for some minibatches and writes FOLDER/trace.json, which Perfetto (https://ui.perfetto.dev) or
chrome://tracing show: a process for each worker, with a row for its operators and one for the sums of gradients.  Prints how much of the
time of the sums lies beside backward steps.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import cntk as C

LAYERS, WIDTH, ROWS = 10, 1000, 128
UNTRACED, TRACED = 3, 5
"""Minibatches before the trace begins, and in it."""

Event = dict[str, Any]


def train(folder: Path) -> None:
    """Train, and leave this worker's part of the trace in the folder."""
    x = C.input_variable(WIDTH)
    model = C.layers.For(range(LAYERS), lambda: C.layers.Dense(WIDTH, activation=C.relu, bias=False))(x)
    learner = C.data_parallel_distributed_learner(C.sgd(model.parameters, 1e-6))
    trainer = C.Trainer(model, C.squared_error(model, x), learner)
    data = {x: np.random.default_rng(C.Communicator.rank()).standard_normal((ROWS, WIDTH), np.float32)}
    for _ in range(UNTRACED):
        trainer.train_minibatch(data)
    C.debugging.start_profiler(str(folder))
    C.debugging.enable_profiler()
    for _ in range(TRACED):
        trainer.train_minibatch(data)
    C.debugging.stop_profiler()


def beside(sums: list[Event], steps: list[Event]) -> float:
    """The share of the time of *sums* during which one of the *steps*, which follow one another, is under way."""

    def common(one: Event, other: Event) -> float:
        end = min(one["ts"] + one["dur"], other["ts"] + other["dur"])
        return float(max(end - max(one["ts"], other["ts"]), 0))

    return sum(common(one, step) for one in sums for step in steps) / sum(one["dur"] for one in sums)


def summary(events: list[Event]) -> str:
    """What a worker's trace says of the sums."""
    sums = [event for event in events if event["name"].startswith("sum of bucket")]
    backward = [event for event in events if event.get("cat") == "backward"]
    waits = [event for event in events if event.get("cat") == "wait"]
    taken, waited = (sum(event["dur"] for event in some) / TRACED / 1000 for some in (sums, waits))
    share = f"{beside(sums, backward):.0%} of that beside backward steps"
    return f"{len(sums)} sums of buckets took {taken:.1f} ms a minibatch, {share}; they were waited for {waited:.1f} ms"


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "profiler")
    train(folder)
    C.distributed.mpi_communicator().barrier()
    if C.Communicator.rank() == 0:
        newest = [max(folder.glob(f"*_detail_{worker}.json")) for worker in range(C.Communicator.num_workers())]
        parts = [json.loads(path.read_text(encoding="utf-8")) for path in newest]
        (folder / "trace.json").write_text(json.dumps([event for part in parts for event in part]), encoding="utf-8")
        for worker, part in enumerate(parts):
            print(f"worker {worker}: {summary(part)}")
    C.Communicator.finalize()


if __name__ == "__main__":
    main()
