"""Kernels on the host: their texts go through g++."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from standin import host_arrays, host_cuda

from cntk.core.extension import device as devices
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor, default_device


@pytest.fixture
def on_host() -> Iterator[list[str]]:
    """Kernels run on the host; the texts that a test has compiled."""
    if host_cuda.unavailable():
        pytest.skip(host_cuda.unavailable())
    with host_arrays.host_kernels() as texts:
        yield texts


@pytest.fixture
def host_gpu(on_host: list[str]) -> Iterator[DeviceDescriptor]:
    """A device whose kernels run on the host, as the default device."""
    plugins.register_plugin(host_arrays.HostPlugin(), "host-cuda")
    try:
        with default_device(devices.device("host-cuda")) as device:
            yield devices.device("host-cuda") if device is None else device
    finally:
        plugins.unregister_plugin("host-cuda")
