"""``cntk doctor``: what this machine has, what is missing, and how to install it."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from cntk.core.common.thresholds import TABLE, own_file, thresholds
from cntk.core.extension import plugins

from . import loops_report
from .plugins import faults


@dataclass(frozen=True)
class Part:
    """A library that something here can use: the module to look for, its distribution, what it is for, and what to ``pip install``."""

    module: str
    distribution: str
    purpose: str
    install: str


PARTS = (
    Part("scipy", "scipy", "faster products with sparse data, and results as its matrices", "scipy"),
    Part("numba", "numba", "compiled loops on the CPU", "numba"),
    Part("mpi4py", "mpi4py", "training on several workers", "opencntk[mpi]"),
    Part("tensorboard", "tensorboard", "showing TensorBoard logs", "opencntk[tensorboard]"),
    Part("mlflow", "mlflow-skinny", "logging to MLflow", "opencntk[mlflow]"),
    Part("PIL", "pillow", "reading images", "opencntk[image]"),
    Part("pyarrow", "pyarrow", "reading Parquet files", "opencntk[parquet]"),
    Part("rich", "rich", "progress bars", "opencntk[rich]"),
    Part("matplotlib", "matplotlib", "pictures of graphs, layers and profiles", "opencntk[plot]"),
    Part("sklearn", "scikit-learn", "data for the examples", "opencntk[demo]"),
)


def run(arguments: Sequence[str]) -> int:
    """Say what this machine has and lacks, and how to fix that.

    Args:
        arguments: none but ``--help``.

    Returns:
        0, or 1 when a plugin, or a backend of another distribution, cannot be used; ours for GPUs wait for a machine that has one.
    """
    parser = argparse.ArgumentParser(prog="cntk doctor", description="Say what this machine has and lacks, and how to fix that.")
    parser.parse_args(arguments)
    backends = dict(_backends())
    broken = [(record, fault) for record in plugins.records for fault in faults(record)]
    _section("machine", _machine())
    _section("backends", [f"{name}: {why or 'ready, ' + described}" for name, (why, described) in backends.items()])
    _section("compiled loops", loops_report.lines())
    _section("optional parts", _parts())
    _section(
        "broken plugins", [f"{record.name} of {record.distribution} ({record.value}): {fault}" for record, fault in broken] or ["none"]
    )
    _section("plugins of others", _plugins() or ["none"])
    of_others = [why for name, (why, _) in backends.items() if not plugins.backends.owner(name).startswith(f"{plugins.DISTRIBUTION}:")]
    return 1 if broken or any(of_others) else 0


def _section(title: str, lines: Iterable[str]) -> None:
    print(title)
    for line in lines:
        print(f"  {line}")


def _machine() -> list[str]:
    return [
        f"{plugins.DISTRIBUTION} {version(plugins.DISTRIBUTION)}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        f"NumPy {version('numpy')} with {_blas()}",
        f"{_cores()} cores",
        _tuned(),
    ]


def _tuned() -> str:
    """Whether thresholds were measured on this machine."""
    path = own_file()
    if path is None or not path.exists():
        return "thresholds are the defaults; cntk tune measures those of this machine"
    changed = sum(getattr(thresholds, name) != line.default for name, line in TABLE.items())
    return f"thresholds are those of {path}, {changed} of which are not the defaults"


def _blas() -> str:
    """Name and version of the BLAS that NumPy multiplies matrices with."""
    import numpy as np

    config: Any = np.show_config(mode="dicts")
    found = config["Build Dependencies"]["blas"]
    return f"{found['name']} {found.get('version', '')}".strip()


def _cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _backends() -> Iterator[tuple[str, tuple[str, str]]]:
    """Name of each backend with why it cannot be used and its description, one of which is empty."""
    for name in plugins.backends:
        try:
            backend = plugins.backends.get(name)()
            why = backend.unavailable()
            yield name, (why, "" if why else backend.describe())
        except Exception as error:
            yield name, (f"broken, {type(error).__name__}: {error}", "")


def _parts() -> Iterator[str]:
    for part in PARTS:
        if find_spec(part.module) is None:
            yield f"{part.module:12} missing  for {part.purpose}; install it with: pip install '{part.install}'"
        else:
            yield f"{part.module:12} {_version(part.distribution):8} for {part.purpose}"


def _plugins() -> list[str]:
    """What else was loaded, the slowest first."""
    loaded = [record for record in plugins.records if record.state == "loaded" and record.distribution != plugins.DISTRIBUTION]
    slowest = sorted(loaded, key=lambda record: -record.seconds)
    return [f"{record.name} of {record.distribution} {record.version}: loaded in {record.seconds:.3f} s" for record in slowest]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except (PackageNotFoundError, KeyError, ValueError):  # installed in another way, or with damaged metadata
        return "there"
