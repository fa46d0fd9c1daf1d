"""Devices: the CPU, and those of other backends that are installed, such as GPUs."""

from cntk.core.extension.device import (
    DeviceDescriptor,
    DeviceKind,
    all_devices,
    cpu,
    get_gpu_properties,
    gpu,
    set_benchmark,
    set_excluded_devices,
    set_math,
    try_set_default_device,
    use_default_device,
)
from cntk.core.extension.device import device as device  # not in __all__: a star import would hide the module of this name
from cntk.core.machine.threads import get_threads, set_threads

__all__ = [
    "DeviceDescriptor",
    "DeviceKind",
    "all_devices",
    "cpu",
    "get_gpu_properties",
    "get_threads",
    "gpu",
    "set_benchmark",
    "set_excluded_devices",
    "set_math",
    "set_threads",
    "try_set_default_device",
    "use_default_device",
]
