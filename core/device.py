"""Devices: which backend a program runs on, chosen as CNTK programs choose it."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum
from typing import Any

from . import plugins
from .lock import Lock


class DeviceKind(IntEnum):
    """The two kinds of device."""

    CPU = 0
    GPU = 1

    __str__ = Enum.__str__


_BACKENDS = {DeviceKind.CPU: "numpy", DeviceKind.GPU: "cupy"}
_instances: dict[str, Any] = {}
_lock = Lock()


def backend_named(name: str) -> Any:
    """The one instance of a registered backend.

    Raises:
        ValueError: no such backend, or it cannot be used here; the message says why and how to fix that.
    """
    instance = _instances.get(name)
    if instance is None:
        if name not in plugins.backends:
            raise ValueError(f"no backend is called '{name}'; there are {plugins.backends.names()}; `cntk doctor` shows what is missing")
        candidate = plugins.backends.get(name)()
        why = candidate.unavailable()
        if why:
            raise ValueError(f"backend '{name}' cannot be used here: {why}")
        with _lock:
            instance = _instances.setdefault(name, candidate)
    return instance


class DeviceDescriptor:
    """A device: the CPU, or a GPU by its number."""

    __slots__ = ("_backend", "_id", "_kind")

    def __init__(self, kind: DeviceKind, device_id: int = 0) -> None:
        self._kind, self._id = kind, device_id
        self._backend: Any = None

    def id(self) -> int:
        """Number of the device among those of its kind."""
        return self._id

    def type(self) -> DeviceKind:
        """Kind of the device."""
        return self._kind

    def is_locked(self) -> bool:
        """Whether another process holds the device for itself; never so for the CPU."""
        return False

    @property
    def backend(self) -> Any:
        """The backend that computes on it."""
        if self._backend is None:
            self._backend = backend_named(_BACKENDS[self._kind])
        return self._backend

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceDescriptor) and (self._kind, self._id) == (other._kind, other._id)

    def __hash__(self) -> int:
        return hash((self._kind, self._id))

    def __reduce__(self) -> Any:
        return DeviceDescriptor, (self._kind, self._id)

    def __repr__(self) -> str:
        return "CPU" if self._kind == DeviceKind.CPU else f"GPU[{self._id}]"

    __str__ = __repr__


_CPU = DeviceDescriptor(DeviceKind.CPU)
_default = _CPU
_frozen = False
_may_always_set = False
_excluded: list[DeviceDescriptor] = []


def cpu() -> DeviceDescriptor:
    """The CPU."""
    return _CPU


def gpu(device_id: int) -> DeviceDescriptor:
    """The GPU with this number.

    Raises:
        ValueError: there is no such GPU, or nothing installed can compute on it; the message says which.
    """
    for device in _gpus():
        if device.id() == device_id:
            return device
    from .source import user_line

    why = _why_no_gpu() or f"there are only {len(_gpus())} GPUs"
    raise ValueError(f"gpu({device_id}): {why}\n[CALL STACK]\n{user_line()}")


def all_devices() -> tuple[DeviceDescriptor, ...]:
    """Every usable device, GPUs first."""
    return (*_gpus(), _CPU)


def use_default_device() -> DeviceDescriptor:
    """The process-wide default device, which from now on stays what it is."""
    global _frozen
    _frozen = True
    return _default


def try_set_default_device(new_default_device: DeviceDescriptor, acquire_device_lock: bool = False) -> bool:
    """Make a device the default; False when it is excluded, or the default is in use already and is another one."""
    global _default
    if new_default_device in _excluded or (acquire_device_lock and new_default_device.type() == DeviceKind.CPU):
        return False
    if new_default_device == _default:
        return True
    if _frozen and not _may_always_set:
        return False
    _default = new_default_device
    return True


def set_excluded_devices(excluded_devices: Iterable[DeviceDescriptor]) -> None:
    """Name devices that must not become the default; has no effect once a default is in use."""
    if not _frozen:
        _excluded[:] = list(excluded_devices)


def always_allow_setting_default_device() -> None:
    """Let ``try_set_default_device`` change the default also when it is in use."""
    global _may_always_set
    _may_always_set = True


def get_gpu_properties(device: DeviceDescriptor) -> Any:
    """Properties of a GPU: ``device_id``, ``name``, ``version_major``, ``version_minor``, ``cuda_cores``, ``total_memory``.

    Raises:
        ValueError: the device is the CPU.
    """
    if device.type() != DeviceKind.GPU:
        raise ValueError("get_gpu_properties: the CPU has no GPU properties")
    return device.backend.properties(device.id())


def _gpus() -> tuple[DeviceDescriptor, ...]:
    if _why_no_gpu():
        return ()
    count = backend_named(_BACKENDS[DeviceKind.GPU]).device_count()
    return tuple(DeviceDescriptor(DeviceKind.GPU, number) for number in range(count))


def _why_no_gpu() -> str:
    name = _BACKENDS[DeviceKind.GPU]
    if name not in plugins.backends:
        return f"no GPU backend is installed (nothing registers '{name}'); `cntk doctor` shows what is missing"
    return str(plugins.backends.get(name)().unavailable())
