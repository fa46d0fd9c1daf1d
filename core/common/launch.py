"""The number of workers that a launcher has started, and the number of this one, from environment variables."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from .environment import whole_in

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
"""Variables that launchers of MPI programs set to the number of workers."""
STEP_SIZE = "SLURM_STEP_NUM_TASKS"
"""The same for ``srun``, which also sets it for single programs."""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
"""Variables that they set to the number of this worker."""


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether environment variables say that several workers were started: by ``mpiexec``, or by ``srun``."""
    sizes = _found(SIZES, environment)
    if sizes:
        return any(size != 1 for size in sizes)
    return bool(environment.get("PMIX_RANK")) or whole_in(STEP_SIZE, environment) not in (None, 1)


def launched_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Number of this worker by the launcher, without MPI; 0 if there is only one."""
    found = _found(RANKS, environment)
    return found[0] if found and is_launched(environment) else 0


def launched_size(environment: Mapping[str, str] = os.environ) -> int:
    """Number of workers by the launcher; an upper bound if it sets only their numbers, and 1 without a launcher."""
    if not is_launched(environment):
        return 1
    return max(_found((*SIZES, STEP_SIZE), environment), default=2**16)


def _found(names: Iterable[str], environment: Mapping[str, str]) -> list[int]:
    """The numbers that some variables hold, of those that are set."""
    return [number for name in names if (number := whole_in(name, environment)) is not None]
