"""Jobs: a program, and the workers that are to run it together."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ...core.common.launch import SECRET

PROGRAM = "cntk.plugins.launchers.worker"
"""The module that each worker runs, which runs the user's program."""


class Host(NamedTuple):
    """A machine.

    Attributes:
        name: its name.
        workers: how many workers it has room for.
    """

    name: str
    workers: int


class Ended(NamedTuple):
    """What a worker that has ended leaves.

    Attributes:
        status: its exit status; that of a shell if a signal has ended it.
        output: what it has printed.
    """

    status: int
    output: str


@dataclass(frozen=True)
class Job:
    """What a launcher is to start.  It can be pickled, so that engines can send it to their machines.

    Attributes:
        workers: how many.
        program: path of a Python program, which all machines have there.
        arguments: the program's.
        hosts: the machines; this one if there are none.
        hostfile: file that names them as ``mpiexec`` takes it.
        gpus: GPUs of a machine; its workers take one each, in turn.
        address: where an engine listens that is to start the workers.
        environment: variables that workers have besides those of their machine.
        secret: what workers prove to one another that they know.
    """

    workers: int
    program: str
    arguments: tuple[str, ...] = ()
    hosts: tuple[Host, ...] = ()
    hostfile: str = ""
    gpus: int = 0
    address: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    secret: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def command(self, python: str = sys.executable) -> list[str]:
        """The command that runs a worker."""
        return [python, "-m", PROGRAM, str(self.gpus), self.program, *self.arguments]

    def variables(self, rank: int, address: str, port: int, local_rank: int = 0) -> dict[str, str]:
        """The environment variables by which a worker finds the others.

        Args:
            rank: its number.
            address, port: where the first one is to listen.
            local_rank: its number among those of its machine.
        """
        meeting = {"RANK": rank, "WORLD_SIZE": self.workers, "MASTER_ADDR": address, "MASTER_PORT": port, "LOCAL_RANK": local_rank}
        return {**self.environment, **{name: str(value) for name, value in meeting.items()}, SECRET: self.secret}

    def run_worker(self, rank: int, address: str, port: int, local_rank: int = 0) -> Ended:
        """Run a worker on this machine, until it ends; the arguments are those of :meth:`variables`."""
        environment = {**os.environ, **self.variables(rank, address, port, local_rank)}
        done = subprocess.run(self.command(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        return Ended(shell_status(done.returncode), done.stdout)


def shell_status(status: int) -> int:
    """The exit status by which shells tell of a process."""
    return 128 - status if status < 0 else status


def free_port(address: str = "127.0.0.1") -> int:
    """A port of this machine at which nothing listens."""
    family, *_ = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, socket.SOCK_STREAM) as found:
        found.bind((address, 0))
        return int(found.getsockname()[1])


def processors(workers: int) -> int:
    """The processors that each of so many workers of this machine has."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(count // workers, 1)
