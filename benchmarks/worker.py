"""Takes one measurement in a process of its own and prints it: ``python worker.py MEASURE WORKLOAD FRAMEWORK``.

It imports little, so that what a framework imports itself is counted as the framework's.
"""

import importlib
import itertools
import os
import sys
import time

import numpy as np

WARM_UP, MEASURED = 0.5, 1.0
"""Seconds before and while steps are timed."""

LEAST = 8
"""Steps that are timed at least."""

PEAK_STEPS = 64
"""Steps within which the most memory is held: each minibatch has come twice."""


def step_time(workload, framework):
    """Seconds that a step takes once everything is warm: those of the fastest tenth, and the median."""
    step, minibatches = step_of(workload, framework), itertools.cycle(data_of(workload, framework))
    timed(step, minibatches, WARM_UP)
    return np.percentile(timed(step, minibatches, MEASURED), [10, 50])


def first_call(workload, framework):
    """Seconds to build a network and take the first step, where the framework has been imported."""
    importlib.import_module(framework)
    minibatch = data_of(workload, framework)[0]
    start = time.perf_counter()
    step_of(workload, framework)(*minibatch)
    return [time.perf_counter() - start]


def memory(workload, framework):
    """Bytes resident before the first step, after 100 and after 1,000 steps."""
    return resident_after((100, 900), workload, framework)


def peak_memory(workload, framework):
    """Bytes resident before the first step, and at most until some steps have been taken."""
    before, _ = resident_after((PEAK_STEPS,), workload, framework)
    return [before, most_resident()]


def resident_after(counts, workload, framework):
    """Bytes resident before the first step and after so many more, again and again."""
    step, minibatches = step_of(workload, framework), itertools.cycle(data_of(workload, framework))
    sizes = [resident()]
    for count in counts:
        for minibatch in itertools.islice(minibatches, count):
            step(*minibatch)
        sizes.append(resident())
    return sizes


def import_time(workload, framework):
    """Seconds to import a framework where NumPy has been imported."""
    start = time.perf_counter()
    importlib.import_module(framework)
    return [time.perf_counter() - start]


def step_of(workload, framework):
    """Builds a workload, or one of those in a module, ``module:name``: a function that takes one step on a minibatch."""
    module, _, name = workload.partition(":")
    build = getattr(importlib.import_module(module), framework + "_step")
    return build(name) if name else build()


def data_of(workload, framework):
    """The minibatches that the framework's steps go through again and again."""
    module, _, name = workload.partition(":")
    build = getattr(importlib.import_module(module), framework + "_data")
    return build(name) if name else build()


def timed(step, minibatches, seconds):
    """Seconds of each of the steps that fit into some time."""
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < LEAST:
        minibatch = next(minibatches)
        start = time.perf_counter()
        step(*minibatch)
        times.append(time.perf_counter() - start)
    return times


def resident():
    """Bytes of memory that this process holds."""
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def most_resident():
    """Bytes of memory that this process has held at most."""
    with open("/proc/self/status") as status:  # getrusage would count what the process was forked from
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    measure, workload, framework = sys.argv[1:]
    print(*globals()[measure](workload, framework))
