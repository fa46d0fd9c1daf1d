"""A profile as text and as a trace."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any

from cntk.core.common.launch import is_launched, launched_rank
from cntk.core.run.profiling import Recorder, Tally
from cntk.debugging.rates import Rates

COLUMNS = ("mean ms", "deviation", "least", "most", "calls", "total ms", "GFLOP/s", "GB/s", "FLOP/byte")


def table(tallies: Mapping[tuple[str, str], Tally], rates: Rates | None = None) -> str:
    """A line for each operator and pass, the slowest first; with *rates* also the share of the machine's peak that they reach."""
    columns = "".join(f"{title:>12}" for title in (*COLUMNS, *(["roofline"] if rates else [])))
    longest_first = sorted(tallies.items(), key=lambda item: -item[1].total)
    lines = [f"{'operator':<40} {'pass':<8}{columns}"]
    lines += [_row(uid, direction, tally, rates) for (uid, direction), tally in longest_first]
    if rates:
        lines += ["", f"This machine: {rates}"]
    return "\n".join(lines) + "\n"


def _row(name: str, direction: str, tally: Tally, rates: Rates | None) -> str:
    times = (tally.mean, tally.deviation, tally.least, tally.most)
    numbers = "".join(f"{1000 * seconds:12.3f}" for seconds in times)
    numbers += f"{tally.count:12}{1000 * tally.total:12.3f}"
    seconds = tally.total or float("inf")
    numbers += f"{tally.flop / seconds / 1e9:12.3f}{tally.nbytes / seconds / 1e9:12.3f}{tally.flop / max(tally.nbytes, 1):12.2f}"
    return f"{name:<40} {direction:<8}{numbers}" + (f"{rates.share(tally):12.1%}" if rates else "")


def trace(recorder: Recorder) -> list[dict[str, Any]]:
    """The events as Chrome's trace viewer and Perfetto read them, a row for each thread.

    Times are in microseconds since 1970, and processes of workers have the workers' numbers, so that the events of several workers make one
    trace when their lists are put together.
    """
    process, title = (launched_rank(), f"worker {launched_rank()}") if is_launched() else (os.getpid(), "process")
    start = time.time() - time.perf_counter()
    names = [{"ph": "M", "pid": process, "name": "process_name", "args": {"name": title}}]
    names += [
        {"ph": "M", "pid": process, "tid": thread, "name": "thread_name", "args": {"name": name}}
        for thread, name in recorder.threads.items()
    ]
    events = [
        {
            "pid": process,
            "tid": event.thread,
            "name": event.name,
            "cat": event.category,
            "ph": "X",
            "ts": 1e6 * (event.begin + start),
            "dur": 1e6 * (event.end - event.begin),
            "args": event.details,
        }
        for event in recorder.events
    ]
    return [*names, *events]
