"""How many workers a launcher has started, and which of them this is, as environment variables say it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from .environment import whole_in

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE")
"""Variables in which launchers of MPI programs say how many workers they have started."""
STEP_SIZE = "SLURM_STEP_NUM_TASKS"
"""The same by ``srun``, which sets it for single programs, too."""
RANKS = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK", "SLURM_PROCID")
"""Variables in which they say which of them this is."""


def is_launched(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether environment variables say that several workers were started: by ``mpiexec``, or by ``srun``."""
    sizes = _found(SIZES, environment)
    if sizes:
        return any(size != 1 for size in sizes)
    return bool(environment.get("PMIX_RANK")) or whole_in(STEP_SIZE, environment) not in (None, 1)


def launched_rank(environment: Mapping[str, str] = os.environ) -> int:
    """Number of this worker as the launcher says it, which needs no MPI; 0 where there is one."""
    found = _found(RANKS, environment)
    return found[0] if found and is_launched(environment) else 0


def launched_size(environment: Mapping[str, str] = os.environ) -> int:
    """How many workers there are as the launcher says it; a number above that where it numbers them only, and 1 without one."""
    if not is_launched(environment):
        return 1
    return max(_found((*SIZES, STEP_SIZE), environment), default=2**16)


def _found(names: Iterable[str], environment: Mapping[str, str]) -> list[int]:
    """The numbers that some variables hold, of those that are set."""
    return [number for name in names if (number := whole_in(name, environment)) is not None]
