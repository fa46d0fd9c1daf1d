"""A profile of a program: how long each operator takes, in a table and as a trace that browsers show."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from cntk.core import profiling
from cntk.core.profiling import BACKWARD, FORWARD, Recorder, Tally

_BYTES_OF_AN_EVENT = 128


class _Profile:
    """The profile that is being taken, and where it goes."""

    def __init__(self, folder: Path, room: int) -> None:
        self.folder, self.recorder = folder, Recorder(room)

    def write(self) -> None:
        import json

        self.folder.mkdir(parents=True, exist_ok=True)
        stem = time.strftime("%Y-%m-%d_%H-%M-%S")
        (self.folder / f"{stem}_summary_.txt").write_text(self._summary(), encoding="utf-8")
        (self.folder / f"{stem}_detail_.json").write_text(json.dumps(self._trace()), encoding="utf-8")

    def _summary(self) -> str:
        columns = "".join(f"{title:>12}" for title in ("mean ms", "deviation", "least", "most", "calls", "total ms"))
        lines = [f"{'operator':<40} {'pass':<8}{columns}"]
        longest_first = sorted(self.recorder.tallies.items(), key=lambda item: -item[1].total)
        lines += [_row(uid, direction, tally) for (uid, direction), tally in longest_first]
        return "\n".join(lines) + "\n"

    def _trace(self) -> list[dict[str, object]]:
        events = self.recorder.events
        start = events[0][3] if events else 0.0
        return [
            {
                "pid": os.getpid(),
                "tid": thread,
                "name": f"{uid}{direction.capitalize()}",
                "cat": "PERF",
                "ph": "X",
                "ts": 1e6 * (begin - start),
                "dur": 1e6 * (end - begin),
            }
            for uid, direction, thread, begin, end in events
        ]


_profile: _Profile | None = None
_lock = threading.Lock()


def start_profiler(dir: str = "profiler", sync_gpu: bool = True, reserve_mem: int = 32 * 1024 * 1024) -> None:
    """Prepare to take a profile; :func:`enable_profiler` begins to measure.

    Args:
        dir: folder for the results, made if it is not there.
        sync_gpu: taken for CNTK's sake; operators on the CPU end when their calls do.
        reserve_mem: bytes for single events; when they are full, later events count in the table only.

    Raises:
        RuntimeError: a profile is being taken.
    """
    global _profile
    with _lock:
        if _profile is not None:
            raise RuntimeError("start_profiler: the profiler has been started already; stop_profiler ends and writes its profile")
        _profile = _Profile(Path(dir), reserve_mem // _BYTES_OF_AN_EVENT)


def stop_profiler() -> None:
    """End the profile and write it: ``<time>_summary_.txt``, a table of operators, and ``<time>_detail_.json``, a Chrome trace.

    Raises:
        RuntimeError: no profile is being taken.

    >>> import tempfile, pathlib
    >>> folder = tempfile.mkdtemp()
    >>> C.debugging.start_profiler(folder)
    >>> C.debugging.enable_profiler()
    >>> value = C.relu(C.input_variable(2)).eval([[1, 2]])
    >>> C.debugging.stop_profiler()
    >>> sorted(path.name[20:] for path in pathlib.Path(folder).iterdir())
    ['detail_.json', 'summary_.txt']
    """
    global _profile
    with _lock:
        finished, _profile = _started("stop_profiler"), None
    profiling.end(finished.recorder)
    finished.write()


def enable_profiler() -> None:
    """Measure from now on.

    Raises:
        RuntimeError: the profiler has not been started.
    """
    profiling.begin(_started("enable_profiler").recorder)


def disable_profiler() -> None:
    """Measure no more, until :func:`enable_profiler`.

    Raises:
        RuntimeError: the profiler has not been started.
    """
    profiling.end(_started("disable_profiler").recorder)


def _started(who: str) -> _Profile:
    if _profile is None:
        raise RuntimeError(f"{who}: the profiler has not been started; call start_profiler first")
    return _profile


def _row(name: str, direction: str, tally: Tally) -> str:
    times = (tally.mean, tally.deviation, tally.least, tally.most)
    numbers = "".join(f"{1000 * seconds:12.3f}" for seconds in times)
    return f"{name:<40} {direction:<8}{numbers}{tally.count:12}{1000 * tally.total:12.3f}"


_timing = Recorder()


def set_node_timing(enable: bool) -> None:
    """Measure from now on how long each operator takes, for ``print_node_timing`` of trainers and evaluators; or no more.

    Measuring begins anew each time it is switched on.
    """
    global _timing
    profiling.end(_timing)
    if enable:
        _timing = Recorder()
        profiling.begin(_timing)


def node_timing(uids: set[str]) -> str:
    """What has been measured of the functions with these uids: a line for each, in the order in which they ran first."""
    lines = []
    for uid in dict.fromkeys(uid for uid, _ in _timing.tallies if uid in uids):
        forward, backward = (_timing.tallies.get((uid, direction), Tally()) for direction in (FORWARD, BACKWARD))
        lines.append(
            f"{uid:<30} forward avg {forward.mean:.6f}s, backward avg {backward.mean:.6f}s (fwd# {forward.count}|bwd# {backward.count})\n"
        )
    return "".join(lines)


__all__ = ["disable_profiler", "enable_profiler", "set_node_timing", "start_profiler", "stop_profiler"]
