"""The number of workers that a launcher has started, and the number of this one, from environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .environment import whole_in

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
"""Variables that launchers of MPI programs set to the number of workers."""
STEP_SIZE = "SLURM_STEP_NUM_TASKS"
"""The same for ``srun``, which also sets it for single programs."""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
"""Variables that they set to the number of this worker."""


RENDEZVOUS = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""Variables in which launchers of other programs, as ``torchrun``, say which worker this is and where the first one listens."""


SECRET = "CNTK_SECRET"
"""Environment variable: what the workers of a job know, and others do not."""

OWN_STORE = "TORCHELASTIC_USE_AGENT_STORE"
"""Variable by which ``torchrun`` says that it listens at the port itself."""

PORTS_BEHIND = 16
"""Ports behind that one of which the first worker then takes one."""


class Rendezvous(NamedTuple):
    """Where workers meet that something else than MPI's launcher has started.

    Attributes:
        rank, size: number of this worker, and how many there are.
        address, port: where the first worker listens.
        ports: of so many ports from this one on it takes the first that is free.
        secret: what those who connect must know; may be empty.
        job: names the job, where the launcher does.
    """

    rank: int
    size: int
    address: str
    port: int
    ports: int = 1
    secret: str = ""
    job: str = ""

    def __str__(self) -> str:
        return f"{self.address}, port {self.port}"


def rendezvous_in(environment: Mapping[str, str] = os.environ) -> Rendezvous | None:
    """What :data:`RENDEZVOUS` say; None where one of them is not set, or there is one worker, or MPI's launcher has started several.

    ``srun`` sets number and count of its own, so that address and port do.

    Raises:
        ValueError: a number is none, or the worker's is not below how many there are.
    """
    if whole_in(STEP_SIZE, environment) not in (None, 1):
        environment = {"RANK": environment.get("SLURM_PROCID", ""), "WORLD_SIZE": environment[STEP_SIZE], **environment}
    if any(not environment.get(name, "").strip() for name in RENDEZVOUS) or _is_launched_by_mpi(environment):
        return None
    rank, size, port = (whole_in(name, environment) or 0 for name in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    if size < 2:
        return None
    if rank >= size or not 0 < port < 2**16:
        raise ValueError(
            f"the environment variables RANK, WORLD_SIZE and MASTER_PORT must hold a number below that of workers, this, and a port; "
            f"got {rank}, {size} and {port}; correct or unset them"
        )
    first, count = (port + 1, PORTS_BEHIND) if environment.get(OWN_STORE) == "True" else (port, 1)
    job = "/".join(environment.get(name, "") for name in ("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"))
    return Rendezvous(rank, size, environment["MASTER_ADDR"].strip(), first, count, environment.get(SECRET, ""), job)


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether environment variables say that several workers were started: by ``mpiexec``, by ``srun``, or as :data:`RENDEZVOUS` say."""
    if _is_launched_by_mpi(environment) or rendezvous_in(environment) is not None:
        return True
    return not _found(SIZES, environment) and whole_in(STEP_SIZE, environment) not in (None, 1)


def _is_launched_by_mpi(environment: Mapping[str, str]) -> bool:
    sizes = _found(SIZES, environment)
    if sizes:
        return any(size != 1 for size in sizes)
    return bool(environment.get("PMIX_RANK"))


def launched_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Number of this worker by the launcher, without MPI; 0 if there is only one."""
    meeting = rendezvous_in(environment)
    if meeting is not None:
        return meeting.rank
    found = _found(RANKS, environment)
    return found[0] if found and is_launched(environment) else 0


def launched_size(environment: Mapping[str, str] = os.environ) -> int:
    """Number of workers by the launcher; an upper bound if it sets only their numbers, and 1 without a launcher."""
    if not is_launched(environment):
        return 1
    meeting = rendezvous_in(environment)
    if meeting is not None:
        return meeting.size
    return max(_found((*SIZES, STEP_SIZE), environment), default=2**16)


def _found(names: Iterable[str], environment: Mapping[str, str]) -> list[int]:
    """The numbers that some variables hold, of those that are set."""
    return [number for name in names if (number := whole_in(name, environment)) is not None]
