"""The example packages that start workers on clusters of Dask and Ray, on a cluster of two nodes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from cntk.extend import Job

ROOT = Path(__file__).parents[3]
PROGRAM = """
import sys
import numpy as np, cntk as C
if sys.argv[1:] == ["fails"] and C.Communicator.rank() == 1:
    raise ValueError("lost the thread")
found = C.distributed.mpi_communicator().aggregate(np.array([1.0 + C.Communicator.rank()]))
sys.stdout.write(f"{C.Communicator.rank()} of {C.Communicator.num_workers()}: {found[0]}\\n")
C.Communicator.finalize()
"""
CLUSTER = """
import json, sys
from distributed import LocalCluster
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as cluster:
        print(json.dumps(cluster.scheduler_address), flush=True)
        sys.stdin.read()
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def launch(package: str, job: Job) -> subprocess.CompletedProcess[str]:
    """Run a job by a launcher, in a process that has the package on its path."""
    code = "import sys; from cntk.extend import Job; from cntk_{0}.launcher import launch; sys.exit(launch(Job(*{1!r})))"
    given = (job.workers, job.program, job.arguments, (), "", 0, job.address, {"OPENBLAS_NUM_THREADS": "1"})
    names = ("OMPI_", "PMIX_", "PMI_", "RANK", "WORLD_SIZE", "MASTER_", "CNTK_SECRET")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {"PYTHONPATH": str(ROOT / "examples" / f"cntk-{package}" / "src"), "RAY_USAGE_STATS_ENABLED": "0"}
    command = [sys.executable, "-c", code.format(package, given)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)


def check(package: str, program: Path, address: str) -> None:
    """Two workers add up, the failure of one is the job's, and too many are refused."""
    done = launch(package, Job(2, str(program), address=address))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["0 of 2: 3.0", "1 of 2: 3.0"]
    failed = launch(package, Job(2, str(program), ("fails",), address=address))
    assert failed.returncode == 1
    assert "ValueError: lost the thread" in failed.stderr


@pytest.fixture
def dask_cluster(tmp_path: Path) -> Iterator[str]:
    path = tmp_path / "cluster.py"
    path.write_text(CLUSTER, encoding="utf-8")
    with subprocess.Popen([sys.executable, str(path)], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cluster:
        assert cluster.stdin is not None
        assert cluster.stdout is not None
        yield json.loads(cluster.stdout.readline())
        cluster.stdin.close()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("distributed") is None, reason="Dask is not installed")
def test_workers_on_a_cluster_of_dask(program: Path, dask_cluster: str) -> None:
    check("dask", program, dask_cluster)
    many = launch("dask", Job(3, str(program), address=dask_cluster))
    assert "ValueError: 3 workers were asked for, each takes a thread, and the 2 nodes have 2" in many.stderr
    assert "--at must say where Dask's scheduler listens" in launch("dask", Job(2, str(program))).stderr


@pytest.fixture
def ray_cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "examples" / "cntk-ray" / "src"))  # the nodes have the package, too
    ray: Any = pytest.importorskip("ray.cluster_utils", reason="Ray is not installed")
    cluster = ray.Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    cluster.add_node(num_cpus=1)
    yield cluster.address
    cluster.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed")
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_workers_on_a_cluster_of_ray(program: Path, ray_cluster: str) -> None:
    check("ray", program, ray_cluster)
