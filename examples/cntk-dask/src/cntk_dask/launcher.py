"""Workers on a cluster of Dask: each is a process that a task starts, and takes one of a node's threads for as long as it runs.

Dask knows the nodes and places the tasks; the workers find one another over sockets.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from distributed import Client, Future, as_completed

from cntk.extend import Ended, Job, free_port


def launch(job: Job) -> int:
    """Run a job on the cluster whose scheduler listens at its address; gives the exit status of the first worker that fails, else 0.

    Raises:
        ValueError: the job has no address, or the cluster has too few threads.
    """
    if not job.address:
        raise ValueError("--at must say where Dask's scheduler listens, such as --at tcp://node0:8786")
    with Client(job.address) as client:
        places = _places(client, job.workers)
        first = places[0][0]
        port = client.submit(free_port, _host(first), workers=[first], pure=False).result()
        futures = [
            client.submit(job.run_worker, rank, _host(first), port, local_rank, workers=[node], pure=False, retries=0)
            for rank, (node, local_rank) in enumerate(places)
        ]
        return _status(futures)


def _places(client: Client, workers: int) -> list[tuple[str, int]]:
    """For each worker a node, by its address, and its number there: nodes are filled one after another.

    Raises:
        ValueError: the nodes have fewer threads.
    """
    threads = client.nthreads()
    places = [(node, number) for node in sorted(threads) for number in range(threads[node])]
    if len(places) < workers:
        raise ValueError(f"{workers} workers were asked for, each takes a thread, and the {len(threads)} nodes have {len(places)}")
    return places[:workers]


def _host(address: str) -> str:
    """The machine of an address of Dask, such as tcp://10.0.0.1:40000."""
    return address.rpartition("//")[2].rpartition(":")[0].strip("[]")


def _status(futures: Sequence[Future]) -> int:
    """Print what workers print, as each ends; the first status that is not 0.  When one has failed, the others end by themselves."""
    status = 0
    for _, ended in as_completed(futures, with_results=True):
        code, output = Ended(*ended)
        print(output, end="", flush=True, file=sys.stderr if code else sys.stdout)
        status = status or code
    return status
