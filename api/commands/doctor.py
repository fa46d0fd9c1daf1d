"""``cntk doctor``: what this machine has, what is missing, and how to install it."""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

from cntk.core.common.environment import processors
from cntk.core.common.thresholds import TABLE, own_file, thresholds
from cntk.core.extension import plugins
from cntk.core.extension.backend import Need

from . import busyness, loops_report
from .arguments import Parser
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
    Part("ml_dtypes", "ml_dtypes", "computing in bfloat16", "opencntk[bfloat16]"),
    Part("mpi4py", "mpi4py", "training on several workers", "opencntk[mpi]"),
    Part("cupy", "cupy-cuda13x", "computing on NVIDIA GPUs, and sums over several", "opencntk[gpu]"),
    Part("tensorboard", "tensorboard", "showing TensorBoard logs", "opencntk[tensorboard]"),
    Part("onnxruntime", "onnxruntime", "comparing models with their ONNX files", "opencntk[onnx]"),
    Part("mlflow", "mlflow-skinny", "logging runs and models to MLflow", "opencntk[mlflow]"),
    Part("PIL", "pillow", "reading images", "opencntk[image]"),
    Part("pyarrow", "pyarrow", "reading Parquet files", "opencntk[parquet]"),
    Part("rich", "rich", "progress bars", "opencntk[rich]"),
    Part("matplotlib", "matplotlib", "pictures of graphs, layers and profiles", "opencntk[plot]"),
    Part("uvicorn", "uvicorn", "serving models over HTTP", "opencntk[serve]"),
    Part("sklearn", "scikit-learn", "networks as its estimators, and data for the examples", "opencntk[sklearn]"),
    Part("jupytext", "jupytext", "notebooks of the examples", "opencntk[notebooks]"),
)


def run(arguments: Sequence[str]) -> int:
    """Say what this machine has and lacks, and how to fix that.

    Args:
        arguments: none but ``--help``.

    Returns:
        0, or 1 when a plugin that is installed, or a backend of another package, cannot be used.
    """
    parser = Parser(prog="cntk doctor", description="Say what this machine has and lacks, and how to fix that.")
    parser.add_argument("--json", action="store_true", help="print what was found for programs")
    options = parser.parse_args(arguments)
    backends = list(_backends())
    broken = [(record, fault) for record in plugins.records for fault in faults(record)]
    status = 1 if broken or any(backend.is_fault for backend in backends) else 0
    if options.json:
        print(json.dumps(_as_data(backends, broken), indent=2))
        return status
    _section("machine", _machine())
    _section("backends", _lines_of(backends))
    _section("compiled loops", loops_report.lines())
    _section("optional parts", _parts())
    _section(
        "broken plugins", [f"{record.name} of {record.distribution} ({record.value}): {fault}" for record, fault in broken] or ["none"]
    )
    _section("plugins of others", _plugins() or ["none"])
    return status


def _as_data(backends: Iterable[_Backend], broken: Iterable[tuple[plugins.PluginRecord, str]]) -> dict[str, Any]:
    """What was found, for programs."""
    return {
        "machine": {
            plugins.DISTRIBUTION: version(plugins.DISTRIBUTION),
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "numpy": version("numpy"),
            "blas": _blas(),
            "cores": processors(),
            "load": busyness.load_average(),
            "thresholds": _tuned(),
        },
        "backends": [{**asdict(backend), "usable": not backend.why} for backend in backends],
        "compiled_loops": list(loops_report.lines()),
        "optional_parts": [
            {**asdict(part), "version": None if find_spec(part.module) is None else _version(part.distribution)} for part in PARTS
        ],
        "broken_plugins": [{"name": record.name, "distribution": record.distribution, "fault": fault} for record, fault in broken],
        "plugins": [
            {"name": record.name, "distribution": record.distribution, "version": record.version, "seconds": record.seconds}
            for record in _of_others()
        ],
    }


def _section(title: str, lines: Iterable[str]) -> None:
    print(title)
    for line in lines:
        print(f"  {line}")


def _machine() -> list[str]:
    return [
        f"{plugins.DISTRIBUTION} {version(plugins.DISTRIBUTION)}",
        f"Python {platform.python_version()} on {platform.system()} {platform.machine()}",
        f"NumPy {version('numpy')} with {_blas()}",
        *busyness.lines(),
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


@dataclass(frozen=True)
class _Backend:
    """What is known of a backend.

    Attributes:
        name: its name.
        why: why it cannot be used; empty where it can.
        described: what it says of itself.
        needs: the pieces that it computes with.
        is_fault: whether something is wrong: one that comes with this package may lack what few machines have, as GPUs.
    """

    name: str
    why: str
    described: str = ""
    needs: Sequence[Need] = ()
    is_fault: bool = True


def _lines_of(backends: Iterable[_Backend]) -> Iterator[str]:
    """What is known of backends, and of pieces that several compute with, once."""
    told: dict[tuple[Need, ...], str] = {}
    for backend in backends:
        yield f"{backend.name}: {backend.why or 'ready, ' + backend.described}"
        needs = tuple(backend.needs)
        if needs and told.setdefault(needs, backend.name) != backend.name:
            yield f"  with the pieces of {told[needs]}"
            continue
        for need in needs:
            yield f"  {need.name}: {need.found or 'missing'}, for {need.purpose}{'' if need.found else f'; {need.remedy}'}"


def _backends() -> Iterator[_Backend]:
    for name in plugins.backends:
        try:
            made = plugins.backends.get(name)
            backend = made()
            why = backend.unavailable()
            record = plugins.record_of(made.__module__)
            is_fault = bool(why) and (record is None or record.distribution != plugins.DISTRIBUTION)
            needs = backend.needs() if hasattr(backend, "needs") else ()
            yield _Backend(name, why, "" if why else backend.describe(), needs, is_fault)
        except Exception as error:
            yield _Backend(name, f"broken, {type(error).__name__}: {error}")


def _parts() -> Iterator[str]:
    for part in PARTS:
        if find_spec(part.module) is None:
            yield f"{part.module:12} missing  for {part.purpose}; install it with: pip install '{part.install}'"
        else:
            yield f"{part.module:12} {_version(part.distribution):8} for {part.purpose}"


def _of_others() -> list[plugins.PluginRecord]:
    """What else was loaded, the slowest first."""
    loaded = [record for record in plugins.records if record.state == "loaded" and not record.is_built_in]
    return sorted(loaded, key=lambda record: -record.seconds)


def _plugins() -> list[str]:
    return [f"{record.name} of {record.distribution} {record.version}: loaded in {record.seconds:.3f} s" for record in _of_others()]


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except (PackageNotFoundError, KeyError, ValueError):  # installed in another way, or with damaged metadata
        return "there"
