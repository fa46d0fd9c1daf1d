"""What the host does in a step on a GPU: ``python benchmarks/gpu_host.py [mlp tagger ...] [--device gpu] [--out gpu_host.json]``.

For each workload of :mod:`gpu_plan`: the time in which the host has sent a step, the time between steps that end, and the functions in
which the host spends its time, as shares, since the profiler makes each call longer.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_worker import TIMES_EACH, our_workload

STEPS, NAMED = 200, 25
"""Steps that are timed, and functions that are named."""


def main(arguments: Sequence[str]) -> None:
    import cntk as C
    from cntk.core.extension.device import default_device

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=["mlp", "logistic_regression", "tagger", "inference"], help="what to run")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="gpu", help="where to compute")
    parser.add_argument("--out", type=Path, default=Path("gpu_host.json"), help="file of the results")
    given = parser.parse_args(arguments)
    device = C.device.gpu(0) if given.device == "gpu" else C.device.cpu()
    found: dict[str, Any] = {"measured_on": device.backend.describe()}
    with default_device(device), device.backend.guard():
        for workload in given.workloads:
            found[workload] = host_time(workload, device.backend)
            print(workload, json.dumps(found[workload]), flush=True)
            given.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def host_time(workload: str, backend: Any) -> dict[str, Any]:
    """Times of the host in a step of a workload, in microseconds, and where they go."""
    step, data = our_workload(workload, backend)
    for minibatch in (TIMES_EACH + 1) * data:
        step(*minibatch)
    backend.synchronize()
    sent, whole = list[float](), list[float]()
    for number in range(STEPS):
        began = time.perf_counter()
        step(*data[number % len(data)])
        sent.append(time.perf_counter() - began)
        backend.synchronize()
        whole.append(time.perf_counter() - began)
    profile = cProfile.Profile()
    profile.enable()
    for number in range(STEPS):
        step(*data[number % len(data)])
    profile.disable()
    backend.synchronize()
    stats = pstats.Stats(profile)
    entries = sorted(stats.stats.items(), key=lambda entry: -entry[1][2])[:NAMED]  # type: ignore[attr-defined]
    total = stats.total_tt  # type: ignore[attr-defined]
    return {
        "sent_us": round(1e6 * statistics.median(sent), 1),
        "alone_us": round(1e6 * statistics.median(whole), 1),
        "profiled_us": round(1e6 * total / STEPS, 1),
        "share_of_functions": {
            f"{Path(file).name}:{line} {name}": [round(own / total, 3), round(calls / STEPS, 2)]
            for (file, line, name), (_, calls, own, _, _) in entries
        },
    }


if __name__ == "__main__":
    main(sys.argv[1:])
