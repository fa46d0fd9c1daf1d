"""Workers that are plain processes, of this machine or by ``ssh`` of others, and that sockets connect."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

from .job import Host, Job, free_port, processors, shell_status

PORT = 29500
"""Where the first worker listens on another machine."""

END_SECONDS = 10.0
"""When a worker has failed, the others end by themselves, and say why; after so long they are ended."""


def launch(job: Job) -> int:
    """Run a job by starting its processes; gives the exit status of the first one that fails, else 0.

    Raises:
        ValueError: the machines have not room for so many workers.
        FileNotFoundError: there is no ``ssh``.
    """
    places = [(host, number) for host in job.hosts or (Host("", job.workers),) for number in range(host.workers)]
    if len(places) < job.workers:
        raise ValueError(f"{job.workers} workers were asked for, and the machines have room for {len(places)}: {job.hosts}")
    address, port = (job.hosts[0].name, PORT) if job.hosts else ("127.0.0.1", free_port())
    processes: list[subprocess.Popen[Any]] = []
    handler = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(shell_status(-number)))
    try:
        for rank, (host, local_rank) in enumerate(places[: job.workers]):
            variables = job.variables(rank, address, port, local_rank)
            processes.append(_start_there(job, host, variables) if job.hosts else _start_here(job, variables))
        return _watched(processes)
    finally:
        _end(processes)
        signal.signal(signal.SIGTERM, handler)


def _start_here(job: Job, variables: dict[str, str]) -> subprocess.Popen[Any]:
    environment = {"OMP_NUM_THREADS": str(processors(job.workers)), **os.environ, **variables}
    return subprocess.Popen(job.command(), env=environment)


def _start_there(job: Job, host: Host, variables: dict[str, str]) -> subprocess.Popen[Any]:
    """Start a worker by ``ssh``; variables, with the secret, go over its input, and so are not seen in lists of processes."""
    if shutil.which("ssh") is None:
        raise FileNotFoundError(f"there is no ssh, by which to start workers on {host.name}")
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    share = f"$(( ($(getconf _NPROCESSORS_ONLN) + {host.workers - 1}) / {host.workers} ))"
    lines.append(f"export OMP_NUM_THREADS=${{OMP_NUM_THREADS:-{share}}}")
    lines.append(f"cd {shlex.quote(os.getcwd())} && exec {shlex.join(job.command())} < /dev/null")
    process = subprocess.Popen(["ssh", "-o", "BatchMode=yes", host.name, "sh", "-s"], stdin=subprocess.PIPE, text=True)
    assert process.stdin is not None
    with process.stdin as script:
        script.write("\n".join(lines) + "\n")
    return process


def _watched(processes: Sequence[subprocess.Popen[Any]]) -> int:
    """Wait until all have ended, or one has failed and the others have had their time."""
    status, until = 0, float("inf")
    while time.monotonic() < until:
        found = [process.poll() for process in processes]
        if not status and any(found):
            status = shell_status(next(filter(None, found)))
            until = time.monotonic() + END_SECONDS
        if None not in found:
            break
        time.sleep(0.05)
    return status


def _end(processes: Sequence[subprocess.Popen[Any]]) -> None:
    """End those that still run."""
    running = [process for process in processes if process.poll() is None]
    for process in running:
        process.terminate()
    for process in running:
        try:
            process.wait(END_SECONDS / 2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
