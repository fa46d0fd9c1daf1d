"""Workers that ``mpiexec`` starts and MPI connects."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from .job import Job, processors

WAY = "pip install 'opencntk[mpi]', or your system's package"


def launch(job: Job) -> int:
    """Run a job by ``mpiexec``; gives its exit status.

    Raises:
        FileNotFoundError: there is none.
    """
    launcher = mpiexec()
    if launcher is None:
        raise FileNotFoundError(f"there is no mpiexec; install it with: {WAY}")
    hosts = ["--host", ",".join(f"{name}:{workers}" for name, workers in job.hosts)] if job.hosts else []
    if job.hostfile:
        hosts = ["--hostfile", job.hostfile]
    environment = {**_environment(os.environ, 1 if hosts else job.workers), **job.environment}
    return subprocess.run([launcher, "-n", str(job.workers), *hosts, *job.command()], env=environment, check=False).returncode


def mpiexec() -> str | None:
    """The launcher that came with this environment's MPI, else the one on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def is_installed() -> bool:
    """Whether there is a launcher, and what programs call MPI by."""
    return mpiexec() is not None and find_spec("mpi4py") is not None


def _environment(given: Mapping[str, str], workers: int) -> dict[str, str]:
    """What lets Open MPI start more workers than there are cores, in containers as root, too; and each compute on its share of cores."""
    made = {"OMP_NUM_THREADS": str(processors(workers))}
    if workers > processors(1):
        made.update({"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"})
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        made.update(dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"))
        made.update(dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"))
    return {**made, **given}
