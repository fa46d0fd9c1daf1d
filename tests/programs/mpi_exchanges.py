"""What workers exchange, by every method of a transport; run by test_mpi.py."""

import numpy as np

import cntk as C

communicator = C.distributed.mpi_communicator()
transport, rank, size = communicator.transport, C.Communicator.rank(), C.Communicator.num_workers()
assert [worker.global_rank for worker in communicator.workers()] == list(range(size))
assert communicator.current_worker().is_main() == communicator.is_main() == (rank == 0)

for kind in (C.bfloat16, "float16", "float32", "float64", "int64"):
    np.testing.assert_array_equal(communicator.aggregate(np.full((2, 3), rank + 1, kind)), np.full((2, 3), size * (size + 1) / 2, kind))
    pending = transport.start_sum(early := np.full(5, rank, kind))
    transport.barrier()
    pending.wait()
    np.testing.assert_array_equal(early, np.full(5, size * (size - 1) / 2, kind))
    gathered = communicator.gather(np.full((rank, 2), rank, kind))
    assert [part.shape for part in gathered] == [(other, 2) for other in range(size)]
    assert all((part == other).all() for other, part in enumerate(gathered))
    received = transport.exchange([np.full(other, 10 * rank + other, kind) for other in range(size)])
    assert [part.tolist() for part in received] == [[10 * other + rank] * rank for other in range(size)]
    assert communicator.broadcast(np.full((), rank, kind), root=size - 1) == size - 1

before = transport.bytes_sent
communicator.aggregate(np.zeros(1000, np.float32))
assert transport.bytes_sent - before == 2 * 4000 * (size - 1) // size

values = np.array([rank * np.pi, 1e30, -1e-30, 1 / 3], np.float64)  # whose sum depends on the order, and must not on the worker
total = communicator.aggregate(values)
assert all((other == total).all() for other in communicator.gather(total))
print("done")
C.Communicator.finalize()
