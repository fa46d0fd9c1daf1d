"""``cntk launch``: run a program on several workers."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from cntk.core.extension import plugins
from cntk.plugins.launchers.job import Host, Job
from cntk.plugins.launchers.mpi import is_installed

from .arguments import Parser, number, text_in


def run(arguments: Sequence[str]) -> int:
    """Run a program on several workers, such as: cntk launch -n 4 train.py

    Args:
        arguments: how many workers, the program, and its own arguments.

    Returns:
        The exit status of the workers.

    Raises:
        ValueError: a machine is not named as it should be.
        OSError: what is to start the workers is missing, or the file of machines.
        ImportError: the plugin of the launcher cannot be imported.
    """
    parser = Parser(prog="cntk launch", description="Run a program on several workers.")
    parser.add_argument("-n", "--workers", type=int, help="how many; as many as --hosts have room for if they are given")
    parser.add_argument(
        "--with",
        dest="launcher",
        choices=list(plugins.launchers),
        help="what starts them: mpi is mpiexec; tcp are plain processes, on other machines by ssh; plugins add more. "
        "By default mpi where it is installed, else tcp",
    )
    parser.add_argument("--hosts", type=_hosts, default=(), help="the machines and how many workers on each, such as node1:4,node2:4")
    parser.add_argument("--hostfile", help="file that names the machines, a line each, such as: node1 slots=4")
    parser.add_argument("--at", default="", help="address of the cluster, for launchers of plugins")
    parser.add_argument("--gpus", type=number(int, 0), default=0, help="GPUs of a machine; its workers take one each, in turn")
    parser.add_argument("--stall", type=number(float, 0), help="after how many seconds of waiting workers say where they are; 0 for never")
    parser.add_argument("program", help="a Python program")
    parser.add_argument("rest", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(arguments)
    launcher = given.launcher or ("mpi" if is_installed() else "tcp")
    hosts = _hosts_in(Path(given.hostfile)) if given.hostfile and launcher != "mpi" else given.hosts
    workers = sum(host.workers for host in hosts) if given.workers is None else given.workers
    if workers < 1:
        parser.error(f"the number of workers must be positive, got {workers}; -n says how many")
    if not (hosts or given.hostfile or given.at):
        _require_program(Path(given.program))
    environment = {} if given.stall is None else {"CNTK_STALL_SECONDS": str(given.stall)}
    job = Job(workers, given.program, tuple(given.rest), hosts, given.hostfile or "", given.gpus, given.at, environment)
    return int(plugins.launchers.get(launcher)(job))


def _require_program(path: Path) -> None:
    """Refuse a program that each of the workers would fail to find."""
    if not path.exists():
        raise ValueError(f"there is no program '{path}'")
    if path.is_dir() and not (path / "__main__.py").exists():
        raise ValueError(f"'{path}' is a folder without a __main__.py; expected a Python program")


def _hosts(text: str) -> tuple[Host, ...]:
    """Machines as ``--hosts`` names them; each has room for one worker if it does not say for how many."""
    found = []
    for part in text.split(","):
        name, _, count = part.strip().partition(":")
        if not name or not (count or "1").isdecimal() or int(count or "1") < 1:
            raise argparse.ArgumentTypeError(f"machines must be named as in node1:4,node2:4, got {part!r}")
        found.append(Host(name, int(count or "1")))
    return tuple(found)


def _hosts_in(path: Path) -> tuple[Host, ...]:
    """Machines as a file names them that Open MPI reads, too.

    Raises:
        ValueError: a line is another one.
    """
    found = []
    for place, line in enumerate(text_in(str(path)).splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        name, *rest = words
        count = rest[0].removeprefix("slots=") if rest else "1"
        if len(rest) > 1 or not count.isdecimal() or int(count) < 1:
            raise ValueError(f"{path}, line {place}: expected a machine such as node1 slots=4, got {line!r}")
        found.append(Host(name, int(count)))
    if not found:
        raise ValueError(f"{path} names no machine")
    return tuple(found)
