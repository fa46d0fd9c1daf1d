"""Devices: which backend a program runs on, chosen as CNTK programs choose it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum, IntEnum
from typing import Any

from ..common import switches
from ..common.lock import ForkSafeLock
from ..common.tracebacks import answers
from . import plugins
from .backend import Backend


class DeviceKind(IntEnum):
    """The two kinds of device; a backend's ``kind`` is one of them, or its number.

    >>> device = C.device.cpu()
    >>> device.type() == C.device.DeviceKind.CPU
    True
    """

    CPU = 0
    GPU = 1

    __str__ = Enum.__str__


CPU_BACKEND = "numpy"
"""The backend of the device that is called the CPU."""

MATHS = ("ieee", "tf32")
"""How products of float32 numbers may be computed."""

GPU_BACKEND = "cupy"
"""The backend of the GPUs where several can compute on them and nobody has chosen one."""

GPU_CHOICE = "CNTK_GPU_BACKEND"
"""The environment variable that chooses the backend of the GPUs."""

_instances: dict[tuple[Any, int], Backend] = {}
_lock = ForkSafeLock()


def backend_named(name: str, device_id: int = 0) -> Backend:
    """The one instance of a registered backend for a device, by the device's number.

    Raises:
        ValueError: no such backend or device, or it cannot be used here; the message says why and how to fix it.
    """
    if name not in plugins.backends:
        raise ValueError(f"no backend is called '{name}'; there are {plugins.backends.names()}; `cntk doctor` shows what there is")
    make = plugins.backends.get(name)
    instance = _instances.get((make, device_id))
    if instance is None:
        candidate: Backend = make(device_id)
        why = candidate.unavailable()
        if why:
            raise ValueError(f"backend '{name}' cannot be used here: {why}")
        if candidate.name != name:
            raise ValueError(f"backend '{name}' calls itself '{candidate.name}'; kernels could not be found: give both the same name")
        if not 0 <= device_id < candidate.device_count():
            raise ValueError(
                f"backend '{name}' has no device {device_id}; its devices are numbered from 0 to {candidate.device_count() - 1}"
            )
        with _lock:
            instance = _instances.setdefault((make, device_id), candidate)
    return instance


class DeviceDescriptor:
    """A device: the backend that computes on it, and its number among those of this backend.

    Args:
        kind: kind of the device.
        device_id: its number.
        name: name of the backend; that of the CPU, or of the GPUs that there are, where it is left out.

    >>> device = C.device.cpu()
    >>> print(device, device.id(), device.type())
    CPU 0 DeviceKind.CPU
    >>> C.relu(C.input_variable(2)).eval([[-1, 1]], device=device)
    array([[0., 1.]], dtype=float32)
    """

    __slots__ = ("_backend", "_id", "_kind", "_name")

    def __init__(self, kind: DeviceKind, device_id: int = 0, name: str | None = None) -> None:
        self._kind, self._id = kind, device_id
        self._name = name or (CPU_BACKEND if kind == DeviceKind.CPU else _gpu_backend().name)
        self._backend: Backend | None = None

    def id(self) -> int:
        """Number of the device among those of its backend."""
        return self._id

    def type(self) -> DeviceKind:
        """Kind of the device."""
        return self._kind

    def is_locked(self) -> bool:
        """Whether another process holds the device for itself; never so for the CPU."""
        return False

    @property
    def backend(self) -> Backend:
        """The backend that computes on it."""
        if self._backend is None:
            self._backend = backend_named(self._name, self._id)
        return self._backend

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceDescriptor) and (self._name, self._id) == (other._name, other._id)

    def __hash__(self) -> int:
        return hash((self._name, self._id))

    def __reduce__(self) -> Any:
        return DeviceDescriptor, (self._kind, self._id, self._name)

    def __repr__(self) -> str:
        if self._name == CPU_BACKEND:
            return "CPU"
        return f"{'GPU' if self._kind == DeviceKind.GPU else self._name}[{self._id}]"

    __str__ = __repr__


_CPU = DeviceDescriptor(DeviceKind.CPU)


def device(name: str, id: int = 0) -> DeviceDescriptor:
    """The device of any registered backend.

    Args:
        name: name of the backend, such as ``'numpy'``.
        id: number of the device among those of this backend.

    Raises:
        ValueError: no such backend or device, or it cannot be used here; the message says why and how to fix it.

    >>> C.device.device('numpy') == C.device.cpu()
    True
    """
    return DeviceDescriptor(DeviceKind(backend_named(name, id).kind), id, name)


def device_of(backend: Backend) -> DeviceDescriptor:
    """The device that a backend's instance computes on."""
    number = next((number for (_, number), instance in _instances.items() if instance is backend), 0)
    return DeviceDescriptor(DeviceKind(backend.kind), number, backend.name)


def cpu() -> DeviceDescriptor:
    """The CPU.

    >>> C.parameter(2, device=C.device.cpu()).value
    array([0., 0.], dtype=float32)
    """
    return _CPU


@answers
def gpu(device_id: int) -> DeviceDescriptor:
    """The GPU with this number.

    Raises:
        TypeError: *device_id* is no whole number.
        ValueError: there is no such GPU, or nothing installed can compute on it; the message says which.

    >>> has_gpu = C.device.all_devices()[0].type() == C.device.DeviceKind.GPU
    >>> device = C.device.gpu(0) if has_gpu else C.device.cpu()
    >>> C.parameter(2, device=device).value
    array([0., 0.], dtype=float32)
    """
    if not hasattr(device_id, "__index__"):
        raise TypeError(f"gpu: device_id must be a whole number, got {type(device_id).__name__} {device_id!r:.80}")
    try:
        return device(_gpu_backend().name, device_id)
    except ValueError as error:
        from ..common.user_frame import user_line

        raise ValueError(f"gpu({device_id}): {error}\n[CALL STACK]\n{user_line()}") from None


def all_devices() -> tuple[DeviceDescriptor, ...]:
    """Every usable device of every backend, GPUs first and the CPU last; without those of backends for tests only.

    >>> C.device.all_devices()[-1]
    CPU
    """
    listed = [backend for backend in _usable() if not getattr(backend, "for_tests", False)]
    found = [device(backend.name, number) for backend in listed for number in range(backend.device_count())]
    return tuple(sorted(found, key=lambda one: (one.type() != DeviceKind.GPU, one == _CPU)))


def use_default_device() -> DeviceDescriptor:
    """The process-wide default device, which cannot be changed from now on.

    >>> device = C.device.use_default_device()
    >>> C.device.try_set_default_device(device)
    True
    """
    switches.default_device_is_in_use.value = True
    return _default()


@answers
def try_set_default_device(new_default_device: DeviceDescriptor, acquire_device_lock: bool = False) -> bool:
    """Make a device the default; False when it is excluded, or the default is in use already and is another one.

    Raises:
        TypeError: what is given is no device.

    >>> C.device.try_set_default_device(C.device.all_devices()[-1])
    True
    >>> C.device.use_default_device()
    CPU
    """
    require_device("try_set_default_device", new_default_device)
    if new_default_device in switches.excluded_devices.value or (acquire_device_lock and new_default_device.type() == DeviceKind.CPU):
        return False
    if new_default_device == _default():
        return True
    if switches.default_device_is_in_use.value and not switches.default_device_may_change.value:
        return False
    switches.default_device.value = new_default_device
    return True


def set_excluded_devices(excluded_devices: Iterable[DeviceDescriptor]) -> None:
    """Name devices that must not become the default; has no effect once a default is in use.

    Raises:
        TypeError: one of those given is no device.

    >>> gpus = [device for device in C.device.all_devices() if device.type() == C.device.DeviceKind.GPU]
    >>> C.device.set_excluded_devices(gpus)
    >>> C.device.use_default_device()
    CPU
    """
    excluded = tuple(excluded_devices)
    for one in excluded:
        require_device("set_excluded_devices", one)
    if not switches.default_device_is_in_use.value:
        switches.excluded_devices.value = excluded


def always_allow_setting_default_device() -> None:
    """Let ``try_set_default_device`` change the default also when it is in use."""
    switches.default_device_may_change.value = True


@contextmanager
def default_device(chosen: DeviceDescriptor | None) -> Iterator[None]:
    """Make a device the default inside a ``with`` block, whether one is in use or not; None changes nothing."""
    before = switches.default_device.value
    if chosen is not None:
        switches.default_device.value = chosen
    try:
        yield
    finally:
        switches.default_device.value = before


def _default() -> DeviceDescriptor:
    chosen: DeviceDescriptor | None = switches.default_device.value
    return _CPU if chosen is None else chosen


def set_math(mode: str) -> None:
    """Choose how GPUs multiply float32 numbers in products and convolutions; on the CPU this changes nothing.

    Args:
        mode: ``'ieee'``, the default, for numbers as they are; ``'tf32'`` for numbers rounded to ten bits of fraction, which matrix units
            multiply several times as fast. Sums, and what is no product, stay in float32 either way.

    Raises:
        ValueError: *mode* is neither.

    >>> C.device.set_math('tf32')
    >>> C.device.set_math('ieee')
    """
    if mode not in MATHS:
        raise ValueError(f"set_math: expected one of {', '.join(map(repr, MATHS))}, got {mode!r:.80}")
    switches.math.value = mode


def set_benchmark(enable: bool) -> None:
    """Choose whether GPUs time the algorithms for each convolution and take the fastest; on the CPU this changes nothing.

    The first minibatch of a size then takes longer, and needs more memory. Algorithms round differently, and which one is the fastest may
    differ from run to run: without this, the same program gives the same bits in each run. An algorithm once chosen is kept as long as the
    process. ``cntk_py.force_deterministic_algorithms`` leaves it out. It is what ``torch.backends.cudnn.benchmark`` is in PyTorch.

    Args:
        enable: whether to take times; False is the default, with which the library foretells them.

    >>> C.device.set_benchmark(True)
    >>> C.device.set_benchmark(False)
    """
    switches.benchmark.value = bool(enable)


def get_gpu_properties(device: DeviceDescriptor) -> Any:
    """Properties of a GPU: ``device_id``, ``name``, ``version_major``, ``version_minor``, ``cuda_cores``, ``total_memory``.

    Raises:
        TypeError: what is given is no device.
        ValueError: the device is not a GPU.

    >>> gpus = [device for device in C.device.all_devices() if device.type() == C.device.DeviceKind.GPU]
    >>> memory = {str(device): C.device.get_gpu_properties(device).total_memory for device in gpus}
    >>> C.device.get_gpu_properties(C.device.cpu())
    Traceback (most recent call last):
        ...
    ValueError: get_gpu_properties: CPU is not a GPU
    """
    require_device("get_gpu_properties", device)
    if device.type() != DeviceKind.GPU:
        raise ValueError(f"get_gpu_properties: {device} is not a GPU")
    return device.backend.properties()


def require_device(who: str, given: object) -> None:
    """Refuse what is no device.

    Raises:
        TypeError: *given* is none; the message says what is.
    """
    if not isinstance(given, DeviceDescriptor):
        raise TypeError(f"{who}: expected a device such as cntk.device.cpu(), got {type(given).__name__} {given!r:.80}")


def _usable() -> list[Backend]:
    """The first device of each backend that can be used here."""
    found = []
    for name in plugins.backends:
        with suppress(ValueError, ImportError):
            found.append(backend_named(name))
    return found


def _gpu_backend() -> Backend:
    """The backend that computes on GPUs: the one that the environment chooses, else one that can be used here."""
    chosen = os.environ.get(GPU_CHOICE, "").strip()
    if chosen:
        return _chosen_gpu_backend(chosen)
    usable = [backend for backend in _usable() if DeviceKind(backend.kind) == DeviceKind.GPU and not getattr(backend, "for_tests", False)]
    for backend in sorted(usable, key=lambda backend: backend.name != GPU_BACKEND):
        return backend
    whys = []
    for name in plugins.backends:
        try:
            backend_named(name)
        except (ValueError, ImportError) as error:
            if isinstance(error, ImportError) or not getattr(plugins.backends.get(name), "for_tests", False):
                whys.append(str(error))
    raise ValueError("; ".join(whys) or "no GPU backend is installed; `cntk doctor` shows what there is")


def _chosen_gpu_backend(name: str) -> Backend:
    try:
        backend = backend_named(name)
    except (ValueError, ImportError) as error:
        raise ValueError(f"the environment variable {GPU_CHOICE} is '{name}': {error}; correct or unset it") from None
    if DeviceKind(backend.kind) != DeviceKind.GPU:
        raise ValueError(
            f"the environment variable {GPU_CHOICE} is '{name}', which computes on the CPU; name a backend of GPUs or unset it"
        )
    return backend
