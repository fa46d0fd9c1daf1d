"""Jobs, and what starts them: processes of this machine, of others by a stand-in for ssh, and plugins."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import cntk as C
from cntk.cli import main
from cntk.core.extension import plugins
from cntk.plugins.launchers.job import Host, Job, shell_status

NAMES = ("OMPI_", "PMIX_", "PMI_", "CNTK_SECRET", "RANK", "WORLD_SIZE", "MASTER_", "LOCAL_RANK")
PROGRAM = """
import os, sys
import numpy as np, cntk as C
found = C.distributed.mpi_communicator().aggregate(np.array([1.0 + C.Communicator.rank()]))
with open(os.path.join(sys.argv[1], str(C.Communicator.rank())), "w") as file:
    print(*found, C.Communicator.num_workers(), os.environ["LOCAL_RANK"], os.environ.get("SEEN_HOST"), os.getcwd(), file=file)
C.Communicator.finalize()
"""
SSH = """#!{python}
import os, sys
*options, host, shell, read = sys.argv[1:]
assert options == ["-o", "BatchMode=yes"] and (shell, read) == ("sh", "-s"), sys.argv
os.execvpe("sh", ["sh", "-s"], {{"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "SEEN_HOST": host}})
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(NAMES)}


def launch(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cntk", "launch", *map(str, arguments)]
    return subprocess.run(command, env={**clean(), **variables}, capture_output=True, text=True, timeout=120, check=False)


def test_processes_of_this_machine_and_of_others_work_together(tmp_path: Path, program: Path) -> None:
    done = launch("-n", 2, "--with", "tcp", program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / str(rank)).read_text().split()[:4] for rank in range(2)] == [["3.0", "2", str(rank), "None"] for rank in range(2)]

    ssh = tmp_path / "ssh"
    ssh.write_text(SSH.format(python=sys.executable))
    ssh.chmod(0o755)
    away = {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    done = launch("--hosts", "127.0.0.1:2,localhost", "--with", "tcp", program, tmp_path, **away)
    assert done.returncode == 0, done.stderr
    found = [(tmp_path / str(rank)).read_text().split() for rank in range(3)]
    assert [line[:4] for line in found] == [["6.0", "3", "0", "127.0.0.1"], ["6.0", "3", "1", "127.0.0.1"], ["6.0", "3", "0", "localhost"]]
    assert {line[4] for line in found} == {os.getcwd()}


def test_a_worker_that_fails_ends_the_job_with_its_status(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text("import os, time\nif os.environ['RANK'] == '1':\n    raise SystemExit(7)\n")
    assert launch("-n", 2, "--with", "tcp", path).returncode == 7


def test_a_launcher_that_is_ended_ends_its_workers(tmp_path: Path) -> None:
    path = tmp_path / "sleeps.py"
    path.write_text("import os, time\nos.write(1, f'{os.getpid()}\\n'.encode())\ntime.sleep(100)\n")
    command = [sys.executable, "-m", "cntk", "launch", "-n", "2", "--with", "tcp", str(path)]
    with subprocess.Popen(command, env=clean(), stdout=subprocess.PIPE, text=True) as launcher:
        assert launcher.stdout is not None
        workers = [int(launcher.stdout.readline()) for _ in range(2)]
        launcher.send_signal(signal.SIGTERM)
        assert launcher.wait(60) == shell_status(-signal.SIGTERM) == 143
    until = time.monotonic() + 10
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < until


@pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")
def test_torchrun_starts_workers(tmp_path: Path, program: Path) -> None:
    """Its own store listens at MASTER_PORT."""
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(program), str(tmp_path)]
    done = subprocess.run(command, env=clean(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / str(rank)).read_text().split()[:3] for rank in range(2)] == [["3.0", "2", str(rank)] for rank in range(2)]


def test_a_plugin_starts_what_a_command_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jobs: list[Job] = []
    registry = type(plugins.launchers)("launcher")
    registry.add("cluster", lambda job: jobs.append(job) or 5, "a plugin")
    monkeypatch.setattr(plugins, "launchers", registry)
    hosts = tmp_path / "hosts"
    hosts.write_text("node1 slots=4  # large\n\nnode2\n")
    assert main(["launch", "--with", "cluster", "--at", "node0:8786", "--hostfile", str(hosts), "--stall", "3", "train.py", "-x", "1"]) == 5
    (job,) = jobs
    assert (job.workers, job.program, job.arguments, job.address) == (5, "train.py", ("-x", "1"), "node0:8786")
    assert job.hosts == (Host("node1", 4), Host("node2", 1))
    assert job.environment == {"CNTK_STALL_SECONDS": "3.0"}
    assert pickle.loads(pickle.dumps(job)) == job
    assert job.secret not in repr(job)
    variables = job.variables(1, "node1", 7, 1)
    assert variables == {
        "RANK": "1", "WORLD_SIZE": "5", "MASTER_ADDR": "node1", "MASTER_PORT": "7", "LOCAL_RANK": "1",
        "CNTK_SECRET": job.secret, "CNTK_STALL_SECONDS": "3.0",
    }  # fmt: skip


def test_a_worker_of_an_engine_gives_its_status_and_what_it_has_printed(tmp_path: Path) -> None:
    path = tmp_path / "prints.py"
    path.write_text("import os, sys\nprint(os.environ['RANK'], sys.argv[1:])\nraise SystemExit(3)\n")
    assert Job(2, str(path), ("a",)).run_worker(1, "127.0.0.1", 1) == (3, "1 ['a']\n")


def test_what_cannot_be_launched_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("a:0", "a:b", ":2", "a,,b"):
        with pytest.raises(SystemExit):
            main(["launch", "--hosts", wrong, "train.py"])
        assert "machines must be named as in node1:4,node2:4" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["launch", "train.py"])
    assert "the number of workers must be positive, got 0; -n says how many" in capsys.readouterr().err
    hosts = tmp_path / "hosts"
    hosts.write_text("node1 slots=4 max_slots=5\n")
    assert main(["launch", "--with", "tcp", "--hostfile", str(hosts), "train.py"]) == 1
    assert "hosts, line 1: expected a machine such as node1 slots=4" in capsys.readouterr().err
    assert main(["launch", "-n", "3", "--with", "tcp", "--hosts", "a:2", "train.py"]) == 1
    assert "3 workers were asked for, and the machines have room for 2" in capsys.readouterr().err
    monkeypatch.setattr("cntk.plugins.launchers.mpi.mpiexec", lambda: None)
    assert main(["launch", "-n", "2", "train.py"]) == 1
    assert "there is no program 'train.py'" in capsys.readouterr().err
    assert main(["launch", "-n", "2", str(tmp_path)]) == 1
    assert "is a folder without a __main__.py" in capsys.readouterr().err
    assert main(["launch", "-n", "2", "--with", "mpi", __file__]) == 1
    assert "there is no mpiexec; install it with: pip install 'opencntk[mpi]'" in capsys.readouterr().err
    assert C.Communicator.num_workers() == 1
