"""The pieces that computing on NVIDIA GPUs takes, on machines that have some of them."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import pytest

from cntk.backends.cupy import needs as module
from cntk.backends.cupy.needs import needs
from cntk.core.extension.backend import Need

ALL = {"cupy-cuda13x": "14.2.0", "nvidia-cublas": "13.10.0.20", "nvidia-cudnn-cu13": "9.28.1.4", "nvidia-cuda-nvrtc": "13.5.37"}


class Driver:
    """The functions of libcuda that are called.

    Args:
        cuda: version of CUDA that it is for.
        cards: how many there are.
        status: what its start returns.
    """

    def __init__(self, cuda: int = 13000, cards: int = 1, status: int = 0) -> None:
        self._cuda, self._cards, self._status = cuda, cards, status

    def cuDriverGetVersion(self, target: Any) -> int:
        target._obj.value = self._cuda
        return 0

    def cuInit(self, flags: int) -> int:
        return self._status

    def cuDeviceGetCount(self, target: Any) -> int:
        target._obj.value = self._cards
        return 0

    def cuDeviceGet(self, target: Any, number: int) -> int:
        return 0

    def cuDeviceGetName(self, target: Any, size: int, device: Any) -> int:
        target.value = b"NVIDIA H100"
        return 0


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that says what this machine has; what it returns are its pieces by name."""

    def having(packages: dict[str, str], libraries: dict[str, Any]) -> dict[str, Need]:
        monkeypatch.setattr(module, "_version_of", lambda package: packages.get(package, ""))
        monkeypatch.setattr(module, "find_spec", lambda name: SimpleNamespace() if any("cupy" in p for p in packages) else None)

        def load(file: str) -> Any:
            if file not in libraries:
                raise OSError(f"{file}: cannot open")
            return libraries[file]

        monkeypatch.setattr(module, "_load", load)
        return {need.name: need for need in needs()}

    monkeypatch.setattr(module, "DRIVER", ("libcuda.so.1",))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return having


def test_a_machine_with_nothing_is_told_what_to_install(machine: Any) -> None:
    found = machine({}, {})
    assert list(found) == ["CuPy", "driver", "card", "cuBLASLt", "cuDNN", "NVRTC", "NCCL", "numba-cuda"]
    assert not any(need.found for need in found.values())
    assert "pip install 'opencntk[gpu]'" in found["CuPy"].remedy
    assert "nvidia.com/drivers" in found["driver"].remedy
    assert found["card"].remedy == "there must be a driver first"
    for name, package in {"cuBLASLt": "nvidia-cublas", "cuDNN": "nvidia-cudnn-cu13", "NCCL": "nvidia-nccl-cu13"}.items():
        assert found[name].remedy.endswith(f"pip install {package}")


def test_what_is_there_is_told_with_its_version(machine: Any) -> None:
    found = machine({**ALL, "numba-cuda": "0.30.4"}, {"libcuda.so.1": Driver(13020, 2), "libnccl.so.2": ctypes.CDLL(None)})
    assert {name: need.found for name, need in found.items()} == {
        "CuPy": "14.2.0 of cupy-cuda13x",
        "driver": "for CUDA 13.2",
        "card": "NVIDIA H100 and 1 more",
        "cuBLASLt": "13.10.0.20 of nvidia-cublas",
        "cuDNN": "9.28.1.4 of nvidia-cudnn-cu13",
        "NVRTC": "13.5.37 of nvidia-cuda-nvrtc",
        "NCCL": "libnccl.so.2",
        "numba-cuda": "0.30.4",
    }


@pytest.mark.parametrize(
    ("driver", "piece", "remedy"),
    [
        (Driver(11080), "driver", "the one that is there is for CUDA 11.8, 12 or later is needed"),
        (Driver(cards=0), "card", "the driver finds none; this machine has none"),
        (Driver(status=100), "card", "the driver finds none (status 100); this machine has none"),
    ],
)
def test_a_driver_that_will_not_do_says_why(driver: Driver, piece: str, remedy: str, machine: Any) -> None:
    found = machine(ALL, {"libcuda.so.1": driver})
    assert remedy in found[piece].remedy
    assert not found[piece].found


def test_a_card_that_is_hidden_is_told(machine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    found = machine(ALL, {"libcuda.so.1": Driver(cards=0)})
    assert "CUDA_VISIBLE_DEVICES=7 hides it" in found["card"].remedy


def test_what_is_too_old_or_there_twice_is_missing(machine: Any) -> None:
    found = machine({**ALL, "cupy-cuda12x": "14.0", "nvidia-cudnn-cu13": "8.9.7"}, {})
    assert "cupy-cuda13x and cupy-cuda12x are installed, and disturb one another" in found["CuPy"].remedy
    assert found["cuDNN"].remedy == "nvidia-cudnn-cu13 8.9.7 is too old, 9.0.0 or later is needed: pip install --upgrade nvidia-cudnn-cu13"
    assert not found["CuPy"].found
    assert not found["cuDNN"].found


def test_this_machine_can_be_asked() -> None:
    assert all(need.remedy and need.purpose for need in needs())
