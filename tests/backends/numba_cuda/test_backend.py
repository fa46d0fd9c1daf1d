"""The backend under Numba's simulator, and what it says where something is missing."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import ModuleSpec
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from simulated import on_the_simulator

import cntk as C
from cntk.backends.numba_cuda import availability
from cntk.core.extension.device import DeviceKind
from cntk.testing import check_backend, isolated


def of_modules(*present: str) -> Any:
    return lambda name: ModuleSpec(name, None) if name in present else None


def driver(error: int, cards: int) -> Any:
    def count(place: Any) -> int:
        place._obj.value = cards
        return 0

    return SimpleNamespace(cuInit=lambda flags: error, cuDeviceGetCount=count)


@pytest.mark.parametrize(
    ("modules", "found", "why"),
    [
        ((), None, "Numba is not installed; install it and numba-cuda: pip install 'numba-cuda"),
        (("numba",), None, "numba-cuda, which compiles for GPUs, is not installed beside Numba: pip install 'numba-cuda"),
        (("numba", "numba_cuda"), None, "there is no driver of NVIDIA's (libcuda.so.1 or nvcuda.dll); install the one for the card"),
        (("numba", "numba_cuda"), driver(100, 0), "the driver cannot be used (CUDA error 100)"),
        (("numba", "numba_cuda"), driver(0, 0), "the driver finds no card"),
        (("numba", "numba_cuda"), driver(0, 2), ""),
    ],
)
def test_what_is_missing_is_told(modules: tuple[str, ...], found: Any, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_ENABLE_CUDASIM", raising=False)
    monkeypatch.delenv("CNTK_FUSED", raising=False)
    monkeypatch.setattr(availability, "find_spec", of_modules(*modules))
    monkeypatch.setattr(availability, "_driver", lambda: found)
    assert availability.why_not().startswith(why)
    assert bool(availability.why_not()) == bool(why)


def test_compiled_code_may_be_turned_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CNTK_FUSED", "0")
    assert availability.why_not() == "CNTK_FUSED is 0, which turns compiled code off; set it to 1 or unset it"


def test_the_simulator_needs_no_card(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CNTK_FUSED", raising=False)
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    monkeypatch.setattr(availability, "find_spec", of_modules("numba", "numba_cuda"))
    monkeypatch.setattr(availability, "_driver", lambda: None)
    assert availability.why_not() == ""


def test_nothing_of_numba_is_imported_before_a_kernel_is_wanted() -> None:
    program = "import sys, cntk as C; C.device.all_devices(); C.softmax([1., 2.]).eval(); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("False", "")


@on_the_simulator
def test_it_conforms() -> None:
    from cntk.backends.numba_cuda.backend import NumbaCudaBackend

    check_backend(NumbaCudaBackend)
    backend = NumbaCudaBackend()
    assert DeviceKind(backend.kind) == DeviceKind.GPU
    assert backend.describe() == "kernels of Numba; Numba's simulator, in place of a GPU"
    with pytest.raises(ValueError, match="Numba's simulator has no GPU properties"):
        backend.properties()


@on_the_simulator
def test_the_environment_has_programs_use_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with isolated():
        monkeypatch.setenv("CNTK_GPU_BACKEND", "numba-cuda")
        device = C.device.gpu(0)
        assert (device.backend.name, device.type()) == ("numba-cuda", DeviceKind.GPU)
        x = C.input_variable(3)
        z = C.softmax(x)
        given = z.eval({x: np.array([[1.0, 2.0, 4.0]], np.float32)}, device=device)
        np.testing.assert_allclose(given, z.eval({x: np.array([[1.0, 2.0, 4.0]], np.float32)}, device=C.device.device("numpy")), rtol=1e-6)
