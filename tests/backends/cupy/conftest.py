"""Kernels on the host: their texts go through g++."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from standin import host_arrays, host_cuda


@pytest.fixture
def on_host() -> Iterator[list[str]]:
    """Kernels run on the host; the texts that a test has compiled."""
    if host_cuda.unavailable():
        pytest.skip(host_cuda.unavailable())
    with host_arrays.host_kernels() as texts:
        yield texts
