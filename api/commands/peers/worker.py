"""A process that takes steps of one framework, so that frameworks share no threads and no memory.

It is told by lines of text which workload to run, and for how many seconds, and answers each by a line with the seconds of its steps.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from time import perf_counter

from . import Step, Workload

WARM_UP, FEWEST, MOST = 3, 5, 10_000
"""Steps before any is timed, and how many are timed at least and at most."""


def timed(step: Step, seconds: float) -> list[float]:
    """The seconds of each step, taken for about so long."""
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < FEWEST or (perf_counter() < end and len(times) < MOST):
        start = perf_counter()
        step()
        times.append(perf_counter() - start)
    return times


def main(name: str) -> None:
    workloads: dict[str, Workload] = import_module(f"{__package__}.{name}").WORKLOADS
    made: dict[str, Step] = {}
    answers, sys.stdout = sys.stdout, sys.stderr  # what else is printed is no answer
    print(json.dumps(list(workloads)), file=answers, flush=True)
    for line in sys.stdin:
        workload, seconds = json.loads(line)
        try:
            if workload not in made:
                made[workload] = workloads[workload]()
                for _ in range(WARM_UP):
                    made[workload]()
            answer: object = timed(made[workload], seconds)
        except Exception as error:
            answer = f"{type(error).__name__}: {error}"
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
