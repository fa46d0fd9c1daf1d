"""Fixtures that all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import shares
import skips
import standin

from cntk.backends import checking, numba_cuda
from cntk.backends.numpy.backend import NumpyBackend
from cntk.core.common import random, threads
from cntk.core.common import switches as process
from cntk.core.common.thresholds import TABLE, VARIABLE, thresholds
from cntk.core.extension import device as devices
from cntk.core.extension import plugins
from cntk.core.extension.device import DeviceDescriptor, all_devices, default_device
from cntk.core.machine.first_calls import SWITCH
from cntk.testing import isolated

ROOT = Path(__file__).resolve().parent.parent

os.environ[SWITCH] = "1"  # a test knows whether loops compute


if (tested := os.environ.get("CNTK_TEST_BACKEND", "")) in (IN_PLACE_OF_THE_CPU := {"checking": checking, "numba-cuda": numba_cuda}):
    if tested not in plugins.backends:
        plugins.register_plugin(IN_PLACE_OF_THE_CPU[tested], tested)
    devices.CPU_BACKEND = devices.cpu()._name = tested
    plugins.backends.get(tested).for_tests, NumpyBackend.for_tests = False, True  # type: ignore[attr-defined]

if os.environ.get("CNTK_TEST_BACKEND") == "standin":
    standin.install()
    process.default_device.value = devices.gpu(0)
    NumpyBackend.for_tests = True  # type: ignore[attr-defined]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--share", type=int, default=1, help="run one of so many tests")


def pytest_configure(config: pytest.Config) -> None:
    """Count what is skipped in continuous integration, and have default thresholds, whatever this machine's are."""
    skips.begin(config)
    os.environ[VARIABLE] = "0"
    for threshold in TABLE.values():
        setattr(thresholds, threshold.name, threshold.default)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A share of tests may be enough; what the stand-in for GPUs refuses by its strictness is known."""
    shares.keep_share(config, items)
    if os.environ.get("CNTK_TEST_BACKEND") == "standin":
        standin.expect_refusals(items)


@pytest.fixture(autouse=True)
def switches() -> Iterator[None]:
    """Let every test begin with the same seeds, and leave all switches as it found them."""
    with isolated():
        random.reset_random_seed(1)
        yield


@pytest.fixture
def three_threads(switches: None) -> None:
    """Three threads share the work of a call, whatever the machine has."""
    threads.set_max_threads(3)


@pytest.fixture
def note(monkeypatch: pytest.MonkeyPatch) -> Callable[[ModuleType, str], list[Any]]:
    """Notes from now on the objects of a class, which a module has under a name."""

    def noted(module: ModuleType, name: str) -> list[Any]:
        made: list[Any] = []
        kind = getattr(module, name)

        def begin(self: Any, *arguments: Any) -> None:
            kind.__init__(self, *arguments)
            made.append(self)

        monkeypatch.setattr(module, name, type(name, (kind,), {"__init__": begin}))
        return made

    return noted


@pytest.fixture(params=all_devices(), ids=lambda device: device.backend.name)
def device(request: pytest.FixtureRequest) -> Iterator[DeviceDescriptor]:
    """Each device that can be used here, as the default device."""
    with default_device(request.param):
        yield request.param


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def example(root: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Imports a module from the examples folder, as running a program there does."""
    monkeypatch.syspath_prepend(root / "examples")

    def load(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return __import__(name)

    return load


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder with real data that CNTK_TEST_DATA names."""
    folder = os.environ.get("CNTK_TEST_DATA", "")
    if not folder:
        pytest.skip("CNTK_TEST_DATA names no folder with real data")
    return Path(folder)
