"""Sums over workers of arrays on GPUs: a stand-in for CuPy's NCCL adds up across threads, in the host's memory."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import cntk as C
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common.dtypes import float_types
from cntk.core.extension import plugins
from cntk.core.extension.device import default_device
from cntk.core.extension.hookspecs import Register, hookimpl
from cntk.core.values.minibatch import Minibatch
from cntk.plugins.distributed.base import sum_over_workers
from cntk.plugins.distributed.data_parallel import DataParallel
from cntk.plugins.distributed.nccl import NcclTransport
from cntk.testing import check_strategy
from cntk.testing.strategies import run_workers

KINDS = {7: ctypes.c_float, 8: ctypes.c_double}
NUMBER = tuple(range(-64, 64))


class DeviceArray(np.ndarray[Any, Any]):
    """An array that counts as one on a GPU."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {"data": (self.ctypes.data, False), "shape": self.shape, "typestr": self.dtype.str, "version": 3}


class GpuBackend(NumpyBackend):
    """NumPy whose arrays count as those of a GPU, and come to the host by :meth:`to_numpy` alone."""

    name = "gpu-like"
    read = 0

    def view(self, memory: Any, offset: int, shape: Any, dtype: Any) -> Any:
        return super().view(memory, offset, shape, dtype).view(DeviceArray)

    def empty(self, shape: Any, dtype: Any) -> Any:
        return super().empty(shape, dtype).view(DeviceArray)

    def asarray(self, data: Any, dtype: Any) -> Any:
        return super().asarray(data, dtype).view(DeviceArray)

    def to_numpy(self, array: Any) -> Any:
        GpuBackend.read += 1
        return np.array(array)


class Provider:
    """A plugin with this backend."""

    @hookimpl
    def cntk_register_backends(self, register: Register) -> None:
        register("gpu-like", GpuBackend)


class Group:
    """What the workers' communicators meet in."""

    def __init__(self, size: int) -> None:
        self.barrier, self.shown, self.calls = threading.Barrier(size, timeout=60), [None] * size, 0


class Cuda:
    """``cupy.cuda`` as one worker sees it; events and streams note the order of what was asked."""

    def __init__(self, group: Group, available: bool = True) -> None:
        self.log: list[str] = []
        log = self.log

        class Communicator:
            def __init__(self, size: int, number: Any, rank: int) -> None:
                assert number == NUMBER
                self.rank, self.size = rank, size

            def allReduce(self, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
                assert (op, stream, source) == (0, 77, target)
                log.append("sum")
                own = np.ctypeslib.as_array((KINDS[kind] * count).from_address(source))
                group.shown[self.rank] = own.copy()  # type: ignore[call-overload]
                group.barrier.wait()
                own[...] = sum(group.shown)  # type: ignore[arg-type]
                group.barrier.wait()
                group.calls += 1

            def destroy(self) -> None:
                log.append("destroy")

        class Event:
            def __init__(self, disable_timing: bool = False) -> None:
                assert disable_timing

            def record(self, stream: Any) -> None:
                log.append(f"record on {stream.ptr}")

        class Stream:
            def __init__(self, ptr: int = 77, non_blocking: bool = False) -> None:
                self.ptr = ptr

            def wait_event(self, event: Any) -> None:
                log.append(f"{self.ptr} waits")

        self.Event, self.Stream, self.get_current_stream = Event, Stream, lambda: Stream(1)
        self.nccl = SimpleNamespace(
            available=available, NcclCommunicator=Communicator, get_unique_id=lambda: NUMBER, NCCL_SUM=0, NCCL_FLOAT32=7, NCCL_FLOAT64=8
        )


@pytest.fixture(autouse=True)
def gpu_like() -> Iterator[None]:
    plugins.register_plugin(Provider(), "gpu-like")
    with default_device(C.device.device("gpu-like")):
        yield
    plugins.unregister_plugin("gpu-like")


def learnt(transport: Any, dtype: Any = np.float32, rows: int = 2200, steps: int = 3) -> list[Any]:
    """What two parameters become; one gradient makes a message of its own, others travel together."""
    parameters = [*(C.parameter(5, init=1, dtype=dtype) for _ in range(2)), C.parameter((rows, 1000), init=0, dtype=dtype)]
    strategy = DataParallel(C.sgd(parameters, C.learning_parameter_schedule_per_sample(0.5)), transport)
    strategy.begin()
    for step in range(steps):
        minibatch = Minibatch(1, 0.0, 0.0)
        sum_over_workers(transport, minibatch)
        gradients = [p.backend.asarray(np.full(p.shape, transport.rank + step + 1), dtype) for p in parameters]
        for index in reversed(range(3)):
            strategy.gradient_is_final(index, gradients[index])
        strategy.update(gradients, minibatch)
    return [parameter.value for parameter in parameters]


@pytest.mark.parametrize("dtype", float_types())
def test_gradients_are_summed_where_they_lie(dtype: Any) -> None:
    group = Group(2)
    expected = run_workers(2, lambda transport: learnt(transport, dtype))
    GpuBackend.read = 0
    found = run_workers(2, lambda transport: learnt(NcclTransport(transport, Cuda(group)), dtype))
    assert GpuBackend.read == 2 * (3 + 3), "initial values and results; no gradient"
    assert group.calls == 2 * 3 * 2
    for own, other in zip(found, expected, strict=True):
        assert all(map(np.array_equal, own, other))


def test_a_sum_waits_for_what_is_before_it_and_the_host_for_nothing() -> None:
    group = Group(1)
    cuda = Cuda(group)
    (transport,) = run_workers(1, lambda host: NcclTransport(host, cuda))
    array = GpuBackend().asarray(np.arange(3), np.float32)
    assert transport.sums_on_device([array])
    pending = transport.start_sum(array)
    assert cuda.log == ["record on 1", "77 waits", "sum", "record on 77"]
    pending.wait()
    transport.finalize()
    assert cuda.log[4:] == ["1 waits", "destroy"]


@pytest.mark.parametrize("lacking", [[0], [1], [0, 1]])
def test_all_sum_on_the_host_where_one_cannot_otherwise(lacking: list[int], recwarn: pytest.WarningsRecorder) -> None:
    group = Group(2)
    with pytest.warns(RuntimeWarning, match=r"NCCL is missing.*opencntk\[gpu\]"):
        found = run_workers(2, lambda transport: learnt(NcclTransport(transport, Cuda(group, transport.rank not in lacking)), rows=2))
    assert group.calls == 0
    expected = run_workers(2, lambda transport: learnt(transport, rows=2))
    assert all(map(np.array_equal, found[0], expected[0]))


def test_arrays_of_the_host_go_the_host_s_way() -> None:
    def work(host: Any) -> tuple[Any, ...]:
        transport = NcclTransport(host)
        array = np.array([transport.rank + 1.0])
        host.start_sum = None  # which is on another thread, where errors do not reach the caller
        transport.sum(array)
        told = np.array([float(transport.rank)])
        transport.broadcast(told, 1)
        gathered = transport.gather(np.array([transport.rank]))
        assert not transport.sums_on_device([array])
        return array[0], told[0], len(gathered), transport.messages, transport.next_number()

    assert run_workers(2, work) == [(3.0, 1.0, 2, 4, 0)] * 2


def test_what_nccl_cannot_sum_is_refused() -> None:
    def work(host: Any) -> None:
        transport = NcclTransport(host, Cuda(Group(1)))
        array = GpuBackend().asarray(np.zeros((3, 4)), np.float32)
        with pytest.raises(RuntimeError, match="have not agreed to sum arrays of GPUs"):
            transport.sum(array)
        assert transport.sums_on_device([array])
        with pytest.raises(TypeError, match="NCCL sums contiguous arrays of float32"):
            transport.sum(array.T)
        with pytest.raises(TypeError, match="got uint8"):
            transport.sum(array.astype(np.uint8))

    run_workers(1, work)


def test_data_parallel_training_over_it_keeps_the_contract() -> None:
    groups: dict[int, Group] = {}
    lock = threading.Lock()

    def factory(learner: Any, transport: Any) -> Any:
        with lock:
            group = groups.setdefault(transport.size, Group(transport.size))
        return DataParallel(learner, NcclTransport(transport, Cuda(group)))

    check_strategy(factory)
