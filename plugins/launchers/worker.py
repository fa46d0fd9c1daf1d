"""What each worker does: take its GPU, then run the program."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID")
"""Variables in which launchers number the workers of a machine."""


def run(gpus: int, program: str) -> None:
    """Run a program as if Python had been called with its path.

    Args:
        gpus: GPUs of this machine; the worker takes the one of its number, in turn.
        program: its path.
    """
    if gpus:
        local = next((os.environ[name] for name in LOCAL_RANKS if name in os.environ), "0")
        os.environ["CUDA_VISIBLE_DEVICES"] = str(int(local) % gpus)
    sys.path[0] = str(Path(program).resolve().parent)
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    _, number, name, *rest = sys.argv
    sys.argv = [name, *rest]
    run(int(number), name)
