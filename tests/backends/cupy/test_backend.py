"""The backend of GPUs: what it says of machines that have none, and the ways of data, on the stand-in."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest
from standin import cuda

import cntk as C
from cntk.backends.cupy.backend import CupyBackend
from cntk.core.common.dtypes import limits_of
from cntk.core.common.random import philox_normal, philox_uniform
from cntk.core.types.layout import Layout
from cntk.testing import check_backend


def test_it_conforms(standin: CupyBackend) -> None:
    check_backend(CupyBackend)


def test_what_it_tells_of_the_device(standin: CupyBackend) -> None:
    assert standin.describe() == "CuPy 14.2.0 on stand-in, GPU 0, CUDA 13.0"
    assert standin.properties() == (0, "stand-in", 9, 0, 132 * 128, 1 << 16)
    assert standin.device_count() == 1


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ModuleNotFoundError("No module named 'cupy'"), r"^CuPy is not installed; install it .* pip install 'opencntk\[gpu\]'"),
        (ImportError("libnvrtc.so.13: cannot open"), r"^CuPy cannot be imported: libnvrtc.so.13: cannot open; install it"),
    ],
)
def test_without_cupy_it_says_what_to_install(error: Exception, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    imported = builtins.__import__

    def refuse(name: str, *arguments: Any) -> Any:
        if name == "cupy":
            raise error
        return imported(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(CupyBackend().unavailable())


@pytest.mark.parametrize(
    ("known", "message"),
    [
        ({"driverGetVersion": 0}, "there is no NVIDIA driver: install one from"),
        ({"driverGetVersion": 12020}, "the NVIDIA driver is too old: it runs CUDA 12.2, and CuPy 14.2.0 needs 13.0; update the driver"),
        ({"getDeviceCount": 0}, "there is no GPU that CUDA can use; CUDA_VISIBLE_DEVICES is '7', which hides those"),
        (
            {"getDeviceCount": RuntimeError("cudaErrorNoDevice")},
            "there is no GPU that CUDA can use: cudaErrorNoDevice; CUDA_VISIBLE",
        ),
    ],
)
def test_without_a_device_it_says_what_is_missing(
    known: dict[str, Any], message: str, standin: CupyBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    for name, value in known.items():
        monkeypatch.setattr(standin.xp.cuda.runtime, name, lambda value=value: _given(value))
    assert standin.unavailable().startswith(message)


def _given(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def test_views_lie_in_memory_where_they_are_asked_for(standin: CupyBackend) -> None:
    memory = standin.allocate(1024)
    view = standin.view(memory, 256, (2, 3), np.float32)
    assert view.data.ptr == memory.data.ptr + 256
    standin.load(view, np.arange(3))
    assert standin.to_numpy(view).tolist() == [[0, 1, 2]] * 2
    assert standin.to_numpy(memory)[256:280].view(np.float32).tolist() == [0, 1, 2] * 2


def test_data_that_change_after_they_are_given_are_there_as_they_were(standin: CupyBackend) -> None:
    given = np.ones(5, np.float32)
    array = standin.asarray(given, np.float32)
    given[...] = 2
    assert standin.to_numpy(array).tolist() == [1] * 5


def test_data_go_where_arrays_are_not_contiguous(standin: CupyBackend) -> None:
    array = standin.asarray(np.zeros((2, 4)), np.float64)
    standin.load(array[:, ::2], np.array([1, 2]))
    assert standin.to_numpy(array).tolist() == [[1, 0, 2, 0]] * 2


@pytest.mark.parametrize("shape", [(), (7,), (3, 4), (0, 2)])
@pytest.mark.parametrize("dtype", [C.bfloat16, np.float16, np.float32, np.float64])
def test_random_numbers_are_those_of_the_host(shape: tuple[int, ...], dtype: Any, standin: CupyBackend) -> None:
    out, expected = standin.empty(shape, dtype), np.empty(shape, dtype)
    standin.uniform(out, 5, 2)
    philox_uniform(expected, 5, 2)
    np.testing.assert_array_equal(standin.to_numpy(out), expected)
    standin.normal(out, 5, 2)
    philox_normal(expected, 5, 2)  # by another library's logarithm, sine and cosine
    np.testing.assert_allclose(standin.to_numpy(out), expected, rtol=4 * float(limits_of(dtype).eps), atol=float(limits_of(dtype).eps))


def test_random_numbers_go_where_arrays_are_not_contiguous(standin: CupyBackend) -> None:
    array, expected = standin.asarray(np.zeros((2, 4)), np.float64), np.zeros((2, 2))
    standin.uniform(array[:, ::2], 5, 2)
    philox_uniform(expected, 5, 2)
    assert standin.to_numpy(array).tolist() == [[a, 0, b, 0] for a, b in expected]


def test_indices_of_a_layout_are_brought_once(standin: CupyBackend) -> None:
    layout = Layout(2, [1, 3])
    order = standin.index(layout, "order")
    assert standin.to_numpy(order).tolist() == [1, 0]
    assert standin.index(layout, "order") is order
    layout.resize(1, np.ones(1, np.intp))
    assert standin.to_numpy(standin.index(layout, "order")).tolist() == [0]


def test_blocks_that_may_wait_for_each_other(standin: CupyBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert standin.blocks_together == 132
    assert standin.shared_memory == 232448
    known = cuda.runtime.getDeviceProperties(0)
    monkeypatch.setattr(cuda.runtime, "getDeviceProperties", lambda device: {**known, "cooperativeLaunch": 0})
    assert CupyBackend().blocks_together == 0
