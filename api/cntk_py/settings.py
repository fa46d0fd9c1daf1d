"""Switches and answers of the engine."""

from __future__ import annotations

import operator
from typing import Any

from cntk.core.common import threads
from cntk.core.common.switches import Switch, deterministic_algorithms


def force_deterministic_algorithms() -> None:
    """Ask for algorithms whose results depend neither on the order of threads nor on times.

    All are of this kind already, unless :func:`cntk.device.set_benchmark` lets a GPU choose them by their times, which this overrules.

    >>> C.cntk_py.force_deterministic_algorithms()
    >>> C.cntk_py.should_force_deterministic_algorithms()
    True
    """
    deterministic_algorithms.value = True


def should_force_deterministic_algorithms() -> bool:
    """Whether :func:`force_deterministic_algorithms` has been called.

    >>> C.cntk_py.force_deterministic_algorithms()
    >>> C.cntk_py.should_force_deterministic_algorithms()
    True
    """
    return deterministic_algorithms.value


def set_max_num_cputhreads(num_cpu_threads: int) -> None:
    """Set the maximum number of threads for an update; the libraries below have their own settings.

    Raises:
        ValueError: the number is less than 1.

    >>> before = C.cntk_py.get_max_num_cputhreads()
    >>> C.cntk_py.set_max_num_cputhreads(2)
    >>> C.cntk_py.get_max_num_cputhreads()
    2
    >>> C.cntk_py.set_max_num_cputhreads(before)
    """
    threads.set_max_threads(operator.index(num_cpu_threads))


def get_max_num_cputhreads() -> int:
    """The number last set; without one, that of the processors this process may run on.

    >>> C.cntk_py.get_max_num_cputhreads() >= 1
    True
    """
    return threads.max_threads()


def _accepted(*args: Any) -> None:
    """Accepted for compatibility: the switch concerns the native engine.

    >>> C.cntk_py.set_math_lib_trace_level(1)
    """


set_computation_network_trace_level = _accepted
set_math_lib_trace_level = _accepted
set_gpumemory_allocation_trace_level = _accepted
use_sparse_gradient_aggregation_in_data_parallel_sgd = _accepted
print_built_info = _accepted
enable_cpueval_optimization = _accepted
disable_cpueval_optimization = _accepted
enable_forward_values_sharing = _accepted
disable_forward_values_sharing = _accepted
enable_gradient_accumulation_optimization = _accepted
disable_gradient_accumulation_optimization = _accepted
print_gpu_info = _accepted
enable_synchronous_gpukernel_execution = _accepted
enable_reversing_tensor_shapes_in_error_messages = _accepted
set_automatic_unpacking_of_packed_values = _accepted


def is_synchronous_gpukernel_execution_enabled() -> bool:
    """False: kernels are not waited for one by one.

    >>> C.cntk_py.enable_synchronous_gpukernel_execution()
    >>> C.cntk_py.is_synchronous_gpukernel_execution_enabled()
    False
    """
    return False


def should_use_sparse_gradient_aggregation_in_data_parallel_sgd() -> bool:
    """False: workers exchange dense gradients.

    >>> C.cntk_py.should_use_sparse_gradient_aggregation_in_data_parallel_sgd()
    False
    """
    return False


_packing_threshold = Switch("mpipack_threshold", 2**25)


def set_mpipack_threshold(size_in_bytes: int) -> None:
    """Keep a number of bytes below which the engine packs gradients for an exchange; here it has no effect.

    >>> before = C.cntk_py.get_mpipack_threshold()
    >>> C.cntk_py.set_mpipack_threshold(1024)
    >>> C.cntk_py.get_mpipack_threshold()
    1024
    >>> C.cntk_py.set_mpipack_threshold(before)
    """
    _packing_threshold.value = operator.index(size_in_bytes)


def get_mpipack_threshold() -> int:
    """The number last set.

    >>> C.cntk_py.get_mpipack_threshold()
    33554432
    """
    return _packing_threshold.value
