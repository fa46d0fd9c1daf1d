"""The backend of GPUs on its stand-in, whatever is installed, and kernels on the host: their texts go through g++."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from standin import host_backend, host_cuda, module

from cntk.backends.cupy.backend import CupyBackend
from cntk.core.extension.device import DeviceDescriptor

MODULES = ("graphs", "memory", "namespace")


@pytest.fixture
def standin(monkeypatch: pytest.MonkeyPatch) -> Iterator[CupyBackend]:
    """A backend, of which nothing is left afterwards, within its guard."""
    made: Any = module.make()
    monkeypatch.setitem(sys.modules, "cupy", made)
    package = importlib.import_module("cntk.backends.cupy")
    held = {name: (sys.modules.pop(f"{package.__name__}.{name}", None), package.__dict__.pop(name, None)) for name in MODULES}
    backend = CupyBackend()
    with backend.guard():
        yield backend
    for name, (loaded, attribute) in held.items():
        sys.modules.pop(f"{package.__name__}.{name}", None)
        package.__dict__.pop(name, None)
        if loaded is not None:
            sys.modules[f"{package.__name__}.{name}"] = loaded
            setattr(package, name, attribute)


@pytest.fixture
def on_host() -> Iterator[list[str]]:
    """Kernels run on the host; the texts that a test has compiled."""
    if host_cuda.unavailable():
        pytest.skip(host_cuda.unavailable())
    with host_backend.host_kernels() as texts:
        yield texts


@pytest.fixture
def host_gpu(on_host: list[str]) -> Iterator[DeviceDescriptor]:
    """A device whose kernels run on the host, as the default device."""
    with host_backend.host_device(host_backend.is_generated) as device:
        yield device
