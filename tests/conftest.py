"""Fixtures that all tests share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cntk.core import random
from cntk.core.device import DeviceDescriptor, all_devices

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(autouse=True)
def seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every test begin with the same seeds."""
    monkeypatch.setattr(random, "_fixed", False)
    monkeypatch.setattr(random, "_next_seed", 1)


@pytest.fixture(params=all_devices(), ids=lambda device: device.backend.name)
def device(request: pytest.FixtureRequest) -> DeviceDescriptor:
    """A device of each backend that can be used here."""
    return request.param


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data that CNTK_TEST_DATA names."""
    folder = os.environ.get("CNTK_TEST_DATA", "")
    if not folder:
        pytest.skip("CNTK_TEST_DATA names no folder with real data")
    return Path(folder)
