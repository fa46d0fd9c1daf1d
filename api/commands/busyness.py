"""What ``cntk doctor`` says of processors, of threads of the BLAS, and of how busy the machine is."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from cntk.core.common.environment import processors

BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS")
"""Environment variables with a number of threads for NumPy's BLAS, the most specific first."""

GROUPS = Path("/sys/fs/cgroup")
"""Where Linux tells what a container may use."""


def lines(environment: Mapping[str, str] = os.environ, groups: Path = GROUPS) -> Iterator[str]:
    """A line each on processors, threads of the BLAS and load; with advice where it matters."""
    cores, quota, load = processors(), quota_in(groups), load_average()
    yield f"{cores} cores{_of_all(cores)}"
    if quota is not None and quota < cores:
        threads = max(int(quota), 1)
        yield f"the container may use {quota:g} of these: set OMP_NUM_THREADS={threads}, so that no threads wait for their turn"
    name = next((name for name in BLAS_VARIABLES if environment.get(name)), None)
    yield (
        f"threads of the BLAS: {cores}, as no variable says"
        if name is None
        else f"threads of the BLAS: {environment[name]}, as {name} says"
    )
    if load is not None:
        yield f"load {load:.1f}{_busy(load, cores, name)}"


def quota_in(groups: Path) -> float | None:
    """Processors' time that a container may use, in processors; None where there is no limit."""
    for limit, period in (("cpu.max", None), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = (groups / limit).read_text().split()
            if period is not None:
                words += (groups / period).read_text().split()
            if float(words[0]) > 0:
                return float(words[0]) / float(words[1])
        except (OSError, ValueError, IndexError, ZeroDivisionError):  # there is none, or the word is max
            continue
    return None


def load_average() -> float | None:
    """How many threads have wanted a processor in the last minute; None where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _of_all(cores: int) -> str:
    there = os.cpu_count() or cores
    return f" of {there}, to which the process is bound" if there > cores else ""


def _busy(load: float, cores: int, name: str | None) -> str:
    if load <= cores:
        return ""
    advice = (
        ""
        if name is not None
        else "; OMP_NUM_THREADS=1 keeps threads of the BLAS from waiting for one another, which costs more than they gain"
    )
    return f": others keep the {cores} cores busy, so everything takes longer and times mean little{advice}"
