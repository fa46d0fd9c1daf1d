"""Names of CNTK's native engine that programs use."""

from __future__ import annotations

from typing import Any

from cntk.core.device import DeviceKind, always_allow_setting_default_device
from cntk.core.function import Function, allow_renaming_functions
from cntk.core.progress import ProgressWriter
from cntk.core.random import (
    generate_random_seed,
    get_random_seed,
    is_random_seed_fixed,
    reset_random_seed,
    set_fixed_random_seed,
)
from cntk.core.shape import FreeDimension, InferredDimension
from cntk.core.value import NDArrayView, Value
from cntk.core.variable import Constant, Parameter, Variable

DeviceKind_CPU = DeviceKind.CPU
DeviceKind_GPU = DeviceKind.GPU
DataType_Unknown, DataType_Float, DataType_Double, DataType_Float16 = 0, 1, 2, 4

_deterministic = False


def force_deterministic_algorithms() -> None:
    """Ask for algorithms whose results do not depend on the order of threads; the NumPy backend has no others."""
    global _deterministic
    _deterministic = True


def should_force_deterministic_algorithms() -> bool:
    """Whether :func:`force_deterministic_algorithms` has been called."""
    return _deterministic


def _accepted(*args: Any) -> None:
    """Accepted for compatibility: the switch concerns the native engine."""


set_computation_network_trace_level = _accepted
set_math_lib_trace_level = _accepted
set_gpumemory_allocation_trace_level = _accepted
enable_cpueval_optimization = _accepted
disable_cpueval_optimization = _accepted
enable_forward_values_sharing = _accepted
disable_forward_values_sharing = _accepted
enable_gradient_accumulation_optimization = _accepted
disable_gradient_accumulation_optimization = _accepted

__all__ = [
    "Constant",
    "DataType_Double",
    "DataType_Float",
    "DataType_Float16",
    "DataType_Unknown",
    "DeviceKind_CPU",
    "DeviceKind_GPU",
    "FreeDimension",
    "Function",
    "InferredDimension",
    "NDArrayView",
    "Parameter",
    "ProgressWriter",
    "Value",
    "Variable",
    "allow_renaming_functions",
    "always_allow_setting_default_device",
    "force_deterministic_algorithms",
    "generate_random_seed",
    "get_random_seed",
    "is_random_seed_fixed",
    "reset_random_seed",
    "set_fixed_random_seed",
    "should_force_deterministic_algorithms",
]
