"""Workers on a cluster of Ray: each is a process that a task starts, and takes one processor, and a GPU if the job has some.

Ray knows the nodes and places the tasks, in a placement group that has room for all of them or for none; the workers find one another
over sockets.
"""

from __future__ import annotations

import sys
from typing import Any

import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from cntk.extend import Ended, Job, free_port

PLACE_SECONDS = 300
"""So long may it take until there is room for all workers."""


def launch(job: Job) -> int:
    """Run a job on the cluster at its address, or on the one that Ray finds by itself; the status of the first worker that fails, else 0.

    Raises:
        ValueError: the cluster has no room for so many workers.
    """
    ray.init(job.address or "auto", log_to_driver=False)
    bundle = {"CPU": 1, **({"GPU": 1} if job.gpus else {})}
    group = placement_group([bundle] * job.workers, strategy="PACK")
    try:
        if not group.wait(PLACE_SECONDS):
            raise ValueError(f"{job.workers} workers of {bundle} were asked for, and the cluster has {ray.cluster_resources()}")
        return _run(job, group, bundle)
    finally:
        remove_placement_group(group)
        ray.shutdown()


def _run(job: Job, group: Any, bundle: dict[str, int]) -> int:
    """Start the workers where the group has room, and print what they print as each ends; when one has failed, the others end, too."""

    def at(rank: int, function: Any) -> Any:
        place = PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=rank)
        remote = ray.remote(num_cpus=1, num_gpus=bundle.get("GPU", 0), max_retries=0)(function)
        return remote.options(scheduling_strategy=place).remote

    address, port = ray.get(at(0, _meeting)())
    waiting = [at(rank, Job.run_worker)(job, rank, address, port) for rank in range(job.workers)]
    status = 0
    while waiting:
        (ended,), waiting = ray.wait(waiting)
        code, output = Ended(*ray.get(ended))
        print(output, end="", flush=True, file=sys.stderr if code else sys.stdout)
        status = status or code
    return status


def _meeting() -> tuple[str, int]:
    """Address of this node, and a port of it that is free."""
    address = ray.util.get_node_ip_address()
    return address, free_port(address)
