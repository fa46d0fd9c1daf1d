"""Runs a trial in processes of its own, and tells what became of each case: crashes, hangs and memory that never ends included."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from found import Trial

MOST_PROCESSES = 20
"""Processes that a trial may end before it is given up."""
LOOK = 0.1
"""Seconds between two looks at the memory of a process."""
TAIL = 2000
"""Characters that are told of what a process printed before its end."""


@dataclass
class Outcome:
    """What became of a trial.

    Attributes:
        name: of the trial.
        cases: that were tried.
        kinds: what the cases were, as the trial calls them.
        complaints: by number of the case.
        seconds: that it took.
        peak: bytes that a process of it held at most; 0 where the system does not tell.
        left_out: why it was not tried, or nothing.
    """

    name: str
    cases: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    complaints: list[tuple[int | str, str]] = field(default_factory=list)
    seconds: float = 0
    peak: int = 0
    left_out: str = ""


def supervise(trial: Trial, seconds: float, seed: int = 1, count: int = sys.maxsize) -> Outcome:
    """Try cases for so many seconds, and *count* at most.  A process that ends is told, and the next case tried in a new one."""
    outcome = Outcome(trial.name)
    if missing := trial.missing():
        outcome.left_out = f"it needs {', '.join(missing)}"
        return outcome
    begin = time.monotonic()
    first = 0
    for _ in range(MOST_PROCESSES):
        left = seconds - (time.monotonic() - begin)
        if first and (left <= 0 or first >= count):
            break
        process = _Process(trial, seed, first, left, count - first, outcome)
        ending = process.watch()
        if not ending:
            break
        number = process.number
        outcome.complaints.append((number, ending))
        if not isinstance(number, int):
            break
        first = number + 1
    outcome.seconds = time.monotonic() - begin
    return outcome


class _Process:
    """One process that tries cases."""

    def __init__(self, trial: Trial, seed: int, first: int, seconds: float, count: int, outcome: Outcome) -> None:
        self.trial, self.outcome = trial, outcome
        self.number: int | str = first
        self._told, writing = os.pipe()
        os.set_blocking(self._told, False)
        self._folder = tempfile.TemporaryDirectory(prefix="hostile-", ignore_cleanup_errors=True)
        self._printed = Path(self._folder.name, "printed")
        arguments = [str(trial.folder), trial.name, str(seed), str(first), str(seconds), str(count), str(writing)]
        temporary = Path(self._folder.name, "tmp")
        temporary.mkdir()
        with self._printed.open("wb") as printed:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("cases.py")), *arguments],
                stdin=subprocess.DEVNULL, stdout=printed, stderr=subprocess.STDOUT, pass_fds=[writing], start_new_session=True,
                cwd=temporary, env=os.environ | {"TMPDIR": str(temporary)},
            )  # fmt: skip
        os.close(writing)

    def watch(self) -> str:
        """Wait for the end; say what was wrong with it, or nothing."""
        wrong, rest = "", b""
        heard = time.monotonic()
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self._told, selectors.EVENT_READ)
                while self._process.poll() is None and not wrong:
                    if selector.select(LOOK) and (told := self._read()):
                        heard = time.monotonic()
                        rest = self._hear(rest + told)
                    wrong = self._memory() or self._hanging(time.monotonic() - heard)
            if wrong:
                self._show_stacks()
            self._hear(rest + self._read())
            return f"{wrong}\n{self._tail()}" if wrong else self._ending()
        finally:
            self._end()

    def _read(self) -> bytes:
        try:
            return os.read(self._told, 2**20)
        except BlockingIOError:
            return b""

    def _hear(self, told: bytes) -> bytes:
        """Note what the process tells; give back the beginning of a line that is not yet there as a whole."""
        *lines, rest = told.split(b"\n")
        for line in lines:
            event, self.number, what = json.loads(line)
            if event == "complaint":
                self.outcome.complaints.append((self.number, what))
            elif event == "end":
                self.outcome.kinds[what] += 1
            elif isinstance(self.number, int):
                self.outcome.cases += 1
        return rest

    def _memory(self) -> str:
        held, peak = memory_of(self._process.pid)
        self.outcome.peak = max(self.outcome.peak, peak)
        return f"the process holds {held / 2**30:.1f} GiB" if held > self.trial.memory * 2**30 else ""

    def _hanging(self, silent: float) -> str:
        return f"the case did not end in {self.trial.limit:g} s" if silent > self.trial.limit else ""

    def _show_stacks(self) -> None:
        """Have the process print where all its threads are."""
        self._process.send_signal(signal.SIGUSR1)
        try:
            self._process.wait(0.5)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _ending(self) -> str:
        status = self._process.wait()
        if status == 0:
            return ""
        ended = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return f"the process ended with {ended}\n{self._tail()}"

    def _tail(self) -> str:
        return self._printed.read_text(encoding="utf-8", errors="replace")[-TAIL:].strip()

    def _end(self) -> None:
        """End the process, and those that it started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        os.close(self._told)
        self._folder.cleanup()


def memory_of(process: int) -> tuple[int, int]:
    """Bytes that a process holds now, and held at most; zeros where the system does not tell."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0, 0
    found = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines) if name in ("VmRSS", "VmHWM")}
    return found.get("VmRSS", 0), found.get("VmHWM", 0)
