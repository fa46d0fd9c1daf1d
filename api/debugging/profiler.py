"""A profile of a program: how long each operator takes and how near that is to the best, in a table, a trace and a picture."""

from __future__ import annotations

import itertools
import json
import time
from pathlib import Path

from cntk.core.common.launch import is_launched, launched_rank
from cntk.core.common.lock import ForkSafeLock
from cntk.core.common.switches import Switch
from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.variable import Variable
from cntk.core.run import profiling
from cntk.core.run.profiling import BACKWARD, FORWARD, Recorder, Tally
from cntk.debugging.profile_files import table, trace
from cntk.debugging.rates import Rates, machine_rates
from cntk.debugging.roofline import check_for_matplotlib, draw

_BYTES_OF_AN_EVENT = 512


class _Profile:
    """The profile that is being taken, and where it goes."""

    def __init__(self, folder: Path, max_events: int, rates: Rates | None, plot: bool) -> None:
        self.folder, self.recorder, self.rates, self.plot = folder, Recorder(max_events), rates, plot

    def _stem(self, now: str, worker: int | str) -> str:
        """How files of this moment begin; those of another profile stay, of the same second or from before the clock was set back."""
        stems = (f"{now}_{number}" if number else now for number in itertools.count())
        return next(stem for stem in stems if not (self.folder / f"{stem}_summary_{worker}.txt").exists())

    def write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        tallies, worker = self.recorder.tallies, launched_rank() if is_launched() else ""
        stem = self._stem(time.strftime("%Y-%m-%d_%H-%M-%S"), worker)
        (self.folder / f"{stem}_summary_{worker}.txt").write_text(table(tallies, self.rates), encoding="utf-8")
        (self.folder / f"{stem}_detail_{worker}.json").write_text(json.dumps(trace(self.recorder)), encoding="utf-8")
        if self.plot and self.rates:
            draw(tallies, self.rates, self.folder / f"{stem}_roofline_{worker}.svg")


_profile: Switch[_Profile | None] = Switch("profile", None)
_lock = ForkSafeLock()


def start_profiler(
    dir: str = "profiler", sync_gpu: bool = True, reserve_mem: int = 32 * 1024 * 1024, roofline: bool = False, plot: bool = False
) -> None:
    """Prepare to take a profile; :func:`enable_profiler` begins to measure.

    Args:
        dir: folder for the results, made if it is not there.
        sync_gpu: accepted for compatibility; operators on the CPU end when their calls do.
        reserve_mem: bytes for single events; when they are full, later events count in the table only.
        roofline: whether the table also shows the share of this machine's peak that each operator reaches, whose rates
            (:func:`machine_rates`) are measured now, if they have not been.
        plot: whether to draw that as well, as a file ``<time>_roofline_.svg``.

    Raises:
        RuntimeError: a profile is being taken.
        ImportError: *plot*, and matplotlib is missing.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     C.debugging.start_profiler(folder)
    ...     C.debugging.enable_profiler()
    ...     value = C.relu(C.input_variable(2)).eval([[1, 2]])
    ...     C.debugging.stop_profiler()
    ...     [summary] = pathlib.Path(folder).glob('*_summary_.txt')
    ...     print('ReLU' in summary.read_text())
    True
    """
    if plot:
        check_for_matplotlib()
    rates = machine_rates() if roofline or plot else None
    with _lock:
        if _profile.value is not None:
            raise RuntimeError("start_profiler: the profiler has been started already; stop_profiler ends and writes its profile")
        _profile.value = _Profile(Path(dir), reserve_mem // _BYTES_OF_AN_EVENT, rates, plot)


def stop_profiler() -> None:
    """End the profile and write it.

    ``<time>_summary_.txt`` is a table of operators: for each, forward and backward, its time, the floating-point operations and the bytes
    a second, and their ratio.  Bytes are those of operands and results; a backward step has the operations of the forward step for each
    gradient.  The calls of a recurrence's steps are summed up.  ``<time>_detail_.json`` is a trace for ``chrome://tracing`` or Perfetto.
    With several workers each writes files of its own, with its number before the ending.
    Nothing happens where no profile is being taken.

    >>> import tempfile, pathlib
    >>> folder = tempfile.mkdtemp()
    >>> C.debugging.start_profiler(folder)
    >>> C.debugging.enable_profiler()
    >>> value = C.relu(C.input_variable(2)).eval([[1, 2]])
    >>> C.debugging.stop_profiler()
    >>> sorted(path.name[20:] for path in pathlib.Path(folder).iterdir())
    ['detail_.json', 'summary_.txt']
    """
    with _lock:
        finished, _profile.value = _profile.value, None
    if finished is not None:
        profiling.end(finished.recorder)
        finished.write()


def enable_profiler() -> None:
    """Measure from now on, where the profiler has been started.

    >>> import pathlib, tempfile
    >>> x = C.input_variable(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     C.debugging.start_profiler(folder)
    ...     warm_up = C.tanh(x).eval([[1, 2]])
    ...     C.debugging.enable_profiler()
    ...     value = C.relu(x).eval([[1, 2]])
    ...     C.debugging.stop_profiler()
    ...     [summary] = pathlib.Path(folder).glob('*_summary_.txt')
    ...     print('ReLU' in summary.read_text(), 'Tanh' in summary.read_text())
    True False
    """
    if _profile.value is not None:
        profiling.begin(_profile.value.recorder)


def disable_profiler() -> None:
    """Measure no more, until :func:`enable_profiler`.

    >>> import pathlib, tempfile
    >>> x = C.input_variable(2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     C.debugging.start_profiler(folder)
    ...     C.debugging.enable_profiler()
    ...     value = C.relu(x).eval([[1, 2]])
    ...     C.debugging.disable_profiler()
    ...     unmeasured = C.tanh(x).eval([[1, 2]])
    ...     C.debugging.stop_profiler()
    ...     [summary] = pathlib.Path(folder).glob('*_summary_.txt')
    ...     print('ReLU' in summary.read_text(), 'Tanh' in summary.read_text())
    True False
    """
    if _profile.value is not None:
        profiling.end(_profile.value.recorder)


_timing = Switch("node_timing", Recorder())


def set_node_timing(enable: bool) -> None:
    """Measure from now on how long each operator takes, for ``print_node_timing`` of trainers and evaluators; or no more.

    Measuring starts over each time it is switched on.

    >>> x = C.input_variable(2)
    >>> evaluator = C.Evaluator(C.reduce_sum(x))
    >>> C.debugging.set_node_timing(True)
    >>> average = evaluator.test_minibatch({x: [[1, 2]]})
    >>> C.debugging.set_node_timing(False)
    >>> evaluator.print_node_timing()
    ReduceElements...  forward avg 0.00...s, backward avg 0.000000s (fwd# 1|bwd# 0)
    """
    profiling.end(_timing.value)
    if enable:
        _timing.value = Recorder()
        profiling.begin(_timing.value)


def timing_of(function: Function) -> str:
    """The measurements of :func:`set_node_timing` for a function's nodes: a line for each, in the order in which they ran first."""
    uids = {node.uid for node in depth_first_search(function.root_function, lambda node: not isinstance(node, Variable), -1)}
    lines = []
    for uid in dict.fromkeys(uid for uid, _ in _timing.value.tallies if uid in uids):
        forward, backward = (_timing.value.tallies.get((uid, direction), Tally()) for direction in (FORWARD, BACKWARD))
        lines.append(
            f"{uid:<30} forward avg {forward.mean:.6f}s, backward avg {backward.mean:.6f}s (fwd# {forward.count}|bwd# {backward.count})\n"
        )
    return "".join(lines)


__all__ = ["disable_profiler", "enable_profiler", "set_node_timing", "start_profiler", "stop_profiler"]
