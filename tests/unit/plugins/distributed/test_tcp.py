"""Exchanges between workers over sockets: threads of this process, and programs of their own."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.core.common.launch import Rendezvous, is_launched, launched_rank, launched_size, rendezvous_in
from cntk.plugins.distributed.tcp import TcpTransport

MEETING = {"RANK": "1", "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def on_workers(size: int, work: Callable[[TcpTransport], Any]) -> list[Any]:
    """What *work* returns, or the exception it raises, by worker."""
    port, found = free_port(), [None] * size

    def run(rank: int) -> None:
        transport = TcpTransport(Rendezvous(rank, size, "127.0.0.1", port), is_watched=False)
        try:
            found[rank] = work(transport)
        except RuntimeError as error:
            found[rank] = error  # type: ignore[call-overload]
        finally:
            transport.finalize()

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def test_arrays_are_summed_gathered_exchanged_and_broadcast() -> None:
    def work(transport: TcpTransport) -> list[Any]:
        rank = transport.rank
        total, halves = (
            np.full((2, 3), rank + 1.0),
            [np.full(2, large if rank == 0 else 1, dtype) for large, dtype in ((2048, np.float16), (256, C.bfloat16))],
        )
        transport.sum(total)
        for half in halves:
            transport.sum(half)
        gathered = transport.gather(np.arange(rank, dtype=C.bfloat16))
        exchanged = transport.exchange([np.array([rank, other], np.int32) for other in range(3)])
        told = np.full(3, rank, np.float32)
        transport.broadcast(told, root=2)
        transport.barrier()
        assert len(transport.hosts()) == 3
        return [total, halves, gathered, exchanged, told, transport.messages]

    found = on_workers(3, work)
    for rank, (total, halves, gathered, exchanged, told, messages) in enumerate(found):
        assert np.array_equal(total, np.full((2, 3), 6.0))
        assert [half.tolist() for half in halves] == [[2050, 2050], [258, 258]]
        assert [part.tolist() for part in gathered] == [[], [0], [0, 1]]
        assert [part.tolist() for part in exchanged] == [[other, rank] for other in range(3)]
        assert told.tolist() == [2, 2, 2]
        assert messages == 8


@pytest.mark.parametrize("is_shared", [True, False])
@pytest.mark.parametrize("size", [2, 3, 5])
def test_sums_have_the_bits_that_their_order_gives(size: int, is_shared: bool) -> None:
    counts = (1, 7, 17, 5_001, 300_007)
    kinds = (np.float32, np.float64, np.complex64, np.int32)

    def terms(count: int, kind: type, rank: int) -> Any:
        return (100 * np.random.default_rng([rank, count]).standard_normal(count)).astype(kind)

    def work(transport: TcpTransport) -> list[Any]:
        for channel in (transport._main, transport._early):
            channel.group._memory.is_shared &= is_shared  # type: ignore[attr-defined]
        found = []
        for count in counts:
            for kind in kinds:
                array = terms(count, kind, transport.rank)
                transport.sum(array)
                early = terms(count, kind, transport.rank)
                transport.start_sum(early).wait()
                assert np.array_equal(array, early)
                found.append(array)
        return found

    everyones = on_workers(size, work)
    cases = [(count, kind) for count in counts for kind in kinds]
    for (count, kind), *found in zip(cases, *everyones, strict=True):
        values = [terms(count, kind, rank) for rank in range(size)]
        expected = np.add.reduce(values, 0)
        if expected.nbytes * size > 2**15:  # each share's terms in the order in which they pass it on
            passed = [np.array_split(np.roll(values, -n, 0), size, 1)[n] for n in range(size)]
            expected = np.concatenate([reduce(np.add, share) for share in passed])
        assert all(np.array_equal(one, expected) for one in found), (count, kind)


def test_another_secret_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cntk.plugins.distributed.meeting.CONNECT_SECONDS", 1.0)
    port, found = free_port(), []

    def work(rank: int) -> None:
        with pytest.raises(RuntimeError) as raised:
            TcpTransport(Rendezvous(rank, 2, "127.0.0.1", port, secret=f"known to {rank}"), is_watched=False)
        found.append(str(raised.value))

    first = threading.Thread(target=work, args=(0,))
    first.start()
    work(1)
    first.join(60)
    assert re.search(r"worker 0 cannot be reached at 127.0.0.1, port \d+: .*has another CNTK_SECRET", found[0])
    assert re.search(r"workers \[1\] have not come within 1 s", found[1])


def test_a_number_that_another_worker_has_is_told_of() -> None:
    port = free_port()

    def work(rank: int) -> None:
        TcpTransport(Rendezvous(rank, 3, "127.0.0.1", port), is_watched=False).finalize()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in (0, 1)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    with pytest.raises(RuntimeError, match="no place for worker 1 of 3: RANK is another worker's too, or WORLD_SIZE differs"):
        work(1)
    work(2)
    for thread in threads:
        thread.join(60)


def test_unlike_exchanges_are_an_error_on_all() -> None:
    def work(transport: TcpTransport) -> None:
        transport.sum(np.zeros(2 + transport.rank), "numbers")

    for error in on_workers(2, work):
        assert isinstance(error, RuntimeError)
        assert re.search(r"worker 0: .*numbers, sum of 2 of.*\n.*worker 1: .*numbers, sum of 3 of", str(error))


def test_a_worker_that_has_ended_is_told() -> None:
    def work(transport: TcpTransport) -> None:
        if transport.rank == 0:
            transport.sum(np.zeros(1))

    error, _ = on_workers(2, work)
    assert re.search(r"worker 0 of 2: worker 1 of 2 on .* has ended.*, in sum", str(error))


def test_a_stranger_who_connects_is_sent_away() -> None:
    port = free_port()
    found: list[Any] = []

    def work(rank: int) -> None:
        transport = TcpTransport(Rendezvous(rank, 2, "127.0.0.1", port), is_watched=False)
        found.append(transport.gather(np.array([rank])))
        transport.finalize()

    first = threading.Thread(target=work, args=(0,))
    first.start()
    for said in (b"", b"GET / HTTP/1.1\r\n\r\n" + b"x" * 50, b"opencntk workers 2\n" + bytes(16 + 24 + 32)):
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port), 10) as stranger:
                    stranger.sendall(said)
                break
            except ConnectionRefusedError:
                pass
    work(1)
    first.join(60)
    assert [[part.tolist() for part in parts] for parts in found] == [[[0], [1]]] * 2


def test_an_address_that_cannot_be_listened_at_is_explained() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        meeting = Rendezvous(0, 2, "127.0.0.1", taken.getsockname()[1])
        with pytest.raises(RuntimeError, match=r"the first worker cannot listen at 127\.0\.0\.1, port .*a free port"):
            TcpTransport(meeting)


def test_where_workers_meet_is_read_from_the_environment() -> None:
    assert rendezvous_in(MEETING) == Rendezvous(1, 3, "127.0.0.1", 29500, job="/")
    assert is_launched(MEETING)
    assert (launched_rank(MEETING), launched_size(MEETING)) == (1, 3)
    for missing in MEETING:
        assert rendezvous_in({name: value for name, value in MEETING.items() if name != missing}) is None
    assert rendezvous_in({**MEETING, "WORLD_SIZE": "1", "RANK": "0"}) is None
    assert rendezvous_in({**MEETING, "OMPI_COMM_WORLD_SIZE": "3", "OMPI_COMM_WORLD_RANK": "2"}) is None
    by_agent = {**MEETING, "TORCHELASTIC_USE_AGENT_STORE": "True", "TORCHELASTIC_RUN_ID": "a", "TORCHELASTIC_RESTART_COUNT": "2"}
    assert rendezvous_in({**by_agent, "CNTK_SECRET": "s"}) == Rendezvous(1, 3, "127.0.0.1", 29501, 16, "s", "a/2")
    by_slurm = {name: MEETING[name] for name in ("MASTER_ADDR", "MASTER_PORT")}
    assert rendezvous_in({**by_slurm, "SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "2"}) == Rendezvous(2, 3, "127.0.0.1", 29500, job="/")
    assert rendezvous_in({**by_slurm, "SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0"}) is None
    for wrong in ({"RANK": "3"}, {"MASTER_PORT": "0"}, {"MASTER_PORT": "70000"}):
        with pytest.raises(ValueError, match="RANK, WORLD_SIZE and MASTER_PORT must hold"):
            rendezvous_in({**MEETING, **wrong})


PROGRAM = """
import numpy as np, cntk as C
x, w = C.input_variable(2), C.parameter(2, init=C.uniform(1))
learner = C.data_parallel_distributed_learner(C.sgd([w], C.learning_parameter_schedule_per_sample(0.125)))
trainer = C.Trainer(None, C.reduce_sum(w * x), learner)
first = w.value
for _ in range(2):
    trainer.train_minibatch(np.full((1, 2), C.Communicator.rank() + 1, np.float32))
print((first - w.value).tolist(), trainer.total_number_of_samples_seen)
C.Communicator.finalize()
"""


def test_a_program_that_torchrun_starts_learns_together() -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PMI_"))}
    meeting = {**MEETING, "WORLD_SIZE": "2", "MASTER_PORT": str(free_port())}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM], env={**environment, **meeting, "RANK": str(rank)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["[0.75, 0.75] 4\n"] * 2
    assert C.Communicator.num_workers() == 1
