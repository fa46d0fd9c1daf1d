"""Fail in one of several ways on the last worker; run by test_mpi.py."""

import os
import sys
import time

import cntk as C

communicator = C.distributed.mpi_communicator()
communicator.barrier()
if C.Communicator.rank() == C.Communicator.num_workers() - 1:
    if sys.argv[1] == "raises":
        raise ValueError("lost the thread")
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), 9)
    if sys.argv[1] == "leaves":
        sys.exit()
    if sys.argv[1] == "sleeps":
        time.sleep(2.5)
communicator.barrier()
C.Communicator.finalize()
