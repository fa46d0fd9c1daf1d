"""``cntk bench``: how fast this machine trains and evaluates networks, beside other frameworks that are installed."""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from statistics import median
from typing import TextIO, cast

from cntk.core.common.threads import processors

from .arguments import Parser, number
from .peers import FRAMEWORKS, WORKLOADS, Framework
from .tune import is_busy

ROUNDS = 3
"""How often each workload is measured: the frameworks take turns, so that what else the machine does strikes all alike."""

Results = dict[str, dict[str, list[float]]]
"""Seconds of steps, by workload and framework."""

Worker = subprocess.Popen[str]


def run(arguments: Sequence[str]) -> int:
    """Measure training and evaluation on this machine, beside PyTorch, ONNX Runtime and NumPy where they are installed.

    Args:
        arguments: ``--seconds``, ``--only``, ``--json``, or ``--help``.

    Returns:
        0, or 1 where opencntk itself has failed.
    """
    parser = Parser(
        prog="cntk bench",
        description="Measure training and evaluation on this machine, beside PyTorch, ONNX Runtime and NumPy where they are installed.",
        epilog="\n".join(["workloads:", *(f"  {name:16} {what}" for name, what in WORKLOADS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seconds", type=_seconds, default=40.0, help="seconds to measure for in all, %(default)s")
    parser.add_argument("--only", nargs="+", choices=WORKLOADS, metavar="WORKLOAD", default=list(WORKLOADS), help="only these workloads")
    parser.add_argument("--json", action="store_true", help="print the results for programs")
    options = parser.parse_args(arguments)
    if is_busy():
        print("cntk bench: other programs keep this machine busy; measure again when they do not", file=sys.stderr)
    frameworks = [framework for framework in FRAMEWORKS if find_spec(framework.module) is not None]
    results = _measured(frameworks, options.only, options.seconds)
    print(json.dumps(_as_data(frameworks, results), indent=2) if options.json else "\n".join(_table(frameworks, results)))
    return int(any("opencntk" not in measured for measured in results.values()))


def _seconds(text: str) -> float:
    value = number(float, 0)(text)
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds, above 0 and less than a day, got {text}")
    return value


def _measured(frameworks: Sequence[Framework], only: Sequence[str], seconds: float) -> Results:
    """Seconds of steps; what fails is named and left out."""
    results: Results = {workload: {} for workload in only}
    with ExitStack() as stack:
        workers = [stack.enter_context(_worker(framework)) for framework in frameworks]
        pairs = [(framework, worker, _offered(framework, worker)) for framework, worker in zip(frameworks, workers, strict=True)]
        turns = sum(workload in names for workload in only for *_, names in pairs) * ROUNDS
        for _ in range(ROUNDS):
            for workload in only:
                for framework, worker, names in pairs:
                    if workload in names:
                        _tell(worker, [workload, seconds / max(1, turns)])
                        times = _answer(worker)
                        if isinstance(times, list):
                            results[workload].setdefault(framework.name, []).extend(times)
                        else:
                            print(f"cntk bench: {framework.name}, {workload}: {times or 'its process has ended'}", file=sys.stderr)
    return results


def _offered(framework: Framework, worker: Worker) -> list[str]:
    """The workloads that there are in a framework; none where it cannot be imported."""
    names = _answer(worker)
    if isinstance(names, list):
        return names
    print(f"cntk bench: {framework.name} is left out: its process has ended", file=sys.stderr)
    return []


@contextmanager
def _worker(framework: Framework) -> Iterator[Worker]:
    command = [sys.executable, "-P", "-m", f"{__package__}.peers.worker", framework.workloads]
    # In a session of its own, where Ctrl-C does not reach it: it is killed below, without a word.
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True) as worker:
        try:
            yield worker
        finally:
            worker.kill()


def _tell(worker: Worker, what: object) -> None:
    channel = cast(TextIO, worker.stdin)
    with suppress(BrokenPipeError):  # the missing answer tells
        channel.write(json.dumps(what) + "\n")
        channel.flush()


def _answer(worker: Worker) -> object:
    """What a process answers; None where it has ended."""
    line = cast(TextIO, worker.stdout).readline()
    return json.loads(line) if line else None


def _as_data(frameworks: Sequence[Framework], results: Results) -> dict[str, object]:
    """The results for programs: milliseconds of a step, and in multiples of opencntk's."""
    return {
        "machine": {"system": f"{platform.system()} {platform.machine()}", "processors": processors(), "python": platform.python_version()},
        "frameworks": {framework.name: _version(framework) for framework in frameworks},
        "workloads": {
            workload: {
                name: {"milliseconds": 1000 * median(times), "times_opencntk": _ratio(measured, name), "steps": len(times)}
                for name, times in measured.items()
            }
            for workload, measured in results.items()
        },
    }


def _table(frameworks: Sequence[Framework], results: Results) -> Iterator[str]:
    yield f"{platform.system()} {platform.machine()}, {processors()} processors, Python {platform.python_version()}"
    yield ", ".join(f"{framework.name} {_version(framework)}" for framework in frameworks)
    yield "milliseconds of a step (median), and in multiples of opencntk's"
    yield ""
    yield f"{'':16}" + "".join(f"{framework.name:>20}" for framework in frameworks)
    for workload, measured in results.items():
        yield f"{workload:16}" + "".join(f"{_cell(measured, framework.name):>20}" for framework in frameworks)


def _cell(measured: dict[str, list[float]], name: str) -> str:
    if name not in measured:
        return "-"
    ratio = _ratio(measured, name)
    return f"{1000 * median(measured[name]):,.3f}" + ("" if name == "opencntk" or ratio is None else f" ({ratio:.2f})")


def _ratio(measured: dict[str, list[float]], name: str) -> float | None:
    return median(measured[name]) / median(measured["opencntk"]) if "opencntk" in measured else None


def _version(framework: Framework) -> str:
    try:
        return version("opencntk" if framework.name == "opencntk" else framework.module)
    except PackageNotFoundError:
        return ""
