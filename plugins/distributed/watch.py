"""What ends a job of several workers when one of them fails, and tells of one that does not come."""

from __future__ import annotations

import atexit
import faulthandler
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

STALL_SECONDS = "CNTK_STALL_SECONDS"
"""Environment variable: after so many seconds of waiting for others every worker says where it is; 0 for never, by default 300."""

LEFT_SECONDS = 2.0
"""So long may a worker wait for others one of which has ended without having taken part."""

_PERIOD = 0.2
_STALLED, _LEFT = 1, 2


class Watch:
    """Watches over a worker, on a thread of its own.

    * An exception that nobody catches, on any thread, is printed with the worker's number and ends all workers.
    * While a worker waits for others longer than :data:`STALL_SECONDS`, all print where they are.
    * A worker that waits for one that has ended with fewer exchanges than this one has begun, ends all workers.

    Args:
        mpi: the module ``mpi4py.MPI``.
        comm: a communicator that nothing else uses.
    """

    def __init__(self, mpi: Any, comm: Any) -> None:
        self._mpi, self._comm = mpi, comm
        self._name = f"worker {comm.rank} of {comm.size} on {mpi.Get_processor_name()}"
        self._limit = float(os.environ.get(STALL_SECONDS, "300")) or float("inf")
        self._waits: dict[int, tuple[float, str]] = {}
        self._told: dict[int, float] = {}
        self._left: dict[int, int] = {}
        self._exchanges = 0
        self._counting = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cntk-watch", daemon=True)
        if mpi.Query_thread() == mpi.THREAD_MULTIPLE:
            self._thread.start()
        self._excepthook, self._thread_excepthook = sys.excepthook, threading.excepthook
        sys.excepthook, threading.excepthook = self._end_job, self._end_job_from_thread
        atexit.register(self.leave)

    @contextmanager
    def waiting(self, what: str) -> Iterator[None]:
        """While this worker waits for others."""
        thread = threading.get_ident()
        with self._counting:
            self._exchanges += 1
        self._waits[thread] = time.monotonic(), what
        try:
            yield
        finally:
            del self._waits[thread]

    def leave(self) -> None:
        """Tell the others that this worker has come to its end, wait until they have, too, and end MPI."""
        atexit.unregister(self.leave)
        if self._mpi.Is_finalized():
            return
        if self._thread.is_alive():
            self._tell_others(_LEFT, self._exchanges)
            together = self._comm.Ibarrier()
            while not together.Test():
                time.sleep(0.01)
            self._stop.set()
            self._thread.join()
        sys.excepthook, threading.excepthook = self._excepthook, self._thread_excepthook
        self._mpi.Finalize()

    # ---- failures ----

    def _end_job(self, kind: Any, error: Any, trace: Any) -> None:
        self._abort("".join(traceback.format_exception(kind, error, trace)) + f"{self._name} has failed; this ends the job")

    def _end_job_from_thread(self, failure: Any) -> None:
        self._end_job(failure.exc_type, failure.exc_value, failure.exc_traceback)

    def _abort(self, message: str) -> None:
        self._say(message)
        sys.stdout.flush()
        self._mpi.COMM_WORLD.Abort(1)

    def _say(self, message: str) -> None:
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()

    # ---- the thread ----

    def _run(self) -> None:
        while not self._stop.wait(_PERIOD):
            self._receive()
            for began, what in list(self._waits.values()):
                waited = time.monotonic() - began
                missed = [worker for worker, exchanges in self._left.items() if exchanges < self._exchanges]
                if missed and waited > LEFT_SECONDS:
                    self._abort(f"{self._name} waits in {what} for workers that have ended: {sorted(missed)}; this ends the job")
                if waited > self._limit and self._told.get(-1) != began:
                    self._told[-1] = began
                    self._report(f"has waited for the others in {what} for {waited:.0f} s")
                    self._tell_others(_STALLED)

    def _receive(self) -> None:
        status, exchanges = self._mpi.Status(), np.zeros(1, np.int64)
        while self._comm.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            source = status.Get_source()
            self._comm.Recv(exchanges, source, status.Get_tag())
            if status.Get_tag() == _LEFT:
                self._left[source] = int(exchanges[0])
            elif not self._waits and time.monotonic() - self._told.get(-2, -self._limit) >= self._limit:
                self._told[-2] = time.monotonic()
                self._report(f"is what worker {source} waits for")

    def _report(self, why: str) -> None:
        self._say(f"{self._name} {why}; it is here:")
        faulthandler.dump_traceback(all_threads=True)

    def _tell_others(self, tag: int, exchanges: int = 0) -> None:
        for worker in range(self._comm.size):
            if worker != self._comm.rank:
                self._comm.Send(np.array([exchanges], np.int64), worker, tag)
