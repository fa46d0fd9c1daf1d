"""The contract of a backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cntk.core.extension.device import DeviceKind
from cntk.core.types.layout import Layout
from cntk.testing.tolerances import assert_close

COUNT = 20_001


def check_backend(backend_class: Callable[..., Any]) -> None:
    """Check a backend that can be used here: memory, transfer, results written in place, and random numbers.

    Args:
        backend_class: the registered class.

    Raises:
        AssertionError: it does not conform, or cannot be used here.
        TypeError: an object is given in place of its class.

    >>> from cntk.backends.numpy.backend import NumpyBackend
    >>> from cntk.testing import check_backend
    >>> check_backend(NumpyBackend)
    """
    if not callable(backend_class):
        raise TypeError(f"check_backend: expected the class that is registered, got an object of it, {backend_class!r:.80}")
    backend = backend_class()
    _require(backend, backend.unavailable() == "", f"cannot be used here: {backend.unavailable()}")
    _require(backend, bool(backend.describe()), "describe() is empty")
    _require(backend, backend.kind in tuple(DeviceKind), f"kind is {backend.kind!r}, which is not a DeviceKind")
    _require(backend, backend.device_count() > 0, "device_count() is 0, but it can be used")
    _require(backend, _is_made_for(backend_class, backend.device_count() - 1), "its class does not take the number of a device")
    with backend.guard():
        for dtype in backend.dtypes:
            _check_memory(backend, dtype)
            _check_out(backend, dtype)
            _check_random(backend, dtype)


def _is_made_for(backend_class: Callable[..., Any], device_id: int) -> bool:
    try:
        backend_class(device_id)
    except TypeError:
        return False
    return True


def _check_memory(backend: Any, dtype: Any) -> None:
    host = np.arange(6).reshape(2, 3).astype(dtype)
    there = backend.asarray(host, dtype)
    back = backend.to_numpy(there)
    _require(backend, back.dtype == dtype and np.array_equal(back, host), f"{dtype.__name__} data comes back changed")
    back[...] = 0
    host[...] = 0
    _require(backend, float(backend.to_numpy(there)[1, 2]) == 5, "to_numpy or asarray shares memory with the host's array")

    backend.load(there, np.array([7.0, 8, 9]))
    _require(backend, np.array_equal(backend.to_numpy(there), [[7, 8, 9]] * 2), "load does not broadcast and convert what it brings")
    backend.load(there, 5)
    _require(backend, np.array_equal(backend.to_numpy(there), np.full((2, 3), 5)), "load does not take a number")
    (shown,) = backend.on_device(np.arange(3, dtype=dtype))
    _require(backend, np.array_equal(backend.to_numpy(shown), np.arange(3)), "on_device changes the data")
    order = backend.to_numpy(backend.index(Layout(2, [1, 2]), "order"))
    _require(backend, np.array_equal(order, [1, 0]), "index does not give the array of a layout")

    size = backend.nbytes((2, 3), dtype)
    _require(backend, size == 6 * np.dtype(dtype).itemsize, f"nbytes of (2, 3) {dtype.__name__} is {size}")
    memory = backend.allocate(backend.alignment + size)
    _require(backend, memory.nbytes >= backend.alignment + size, "allocate gives less memory than asked for")
    first, second = backend.view(memory, 0, (1,), dtype), backend.view(memory, backend.alignment, (2, 3), dtype)
    first[...], second[...] = 7, there
    backend.synchronize()
    _require(backend, float(backend.to_numpy(first)[0]) == 7, "views at different offsets overlap")
    _require(backend, float(backend.to_numpy(second)[1, 2]) == 5, "a view does not hold what is written to it")


def _check_out(backend: Any, dtype: Any) -> None:
    x = backend.asarray(np.array([[1, 2], [3, 4]]), dtype)
    doubled, product = backend.empty((2, 2), dtype), backend.empty((2, 2), dtype)
    backend.xp.multiply(x, 2, out=doubled)
    backend.xp.matmul(doubled, x, out=product)
    assert_close(backend.to_numpy(product), [[14, 20], [30, 44]], f"backend {backend.name}: multiply and matmul with out=")


def _check_random(backend: Any, dtype: Any) -> None:
    from cntk.backends.numpy.backend import NumpyBackend

    reference = NumpyBackend()
    for draw in ("uniform", "normal"):
        one, same, other = (backend.empty((COUNT,), dtype) for _ in range(3))
        right = reference.empty((COUNT,), dtype)
        getattr(backend, draw)(one, 5, 0)
        getattr(backend, draw)(same, 5, 0)
        getattr(backend, draw)(other, 5, 1)
        getattr(reference, draw)(right, 5, 0)
        numbers = backend.to_numpy(one)
        name = f"{draw} numbers in {dtype.__name__}"
        _require(backend, np.array_equal(numbers, backend.to_numpy(same)), f"{name} differ for one seed and draw")
        _require(backend, not np.array_equal(numbers, backend.to_numpy(other)), f"{name} are the same for two draws")
        assert_close(numbers, right, f"backend {backend.name}: {name} are not those of the NumPy backend")
    backend.uniform(one, 5, 0)
    numbers = backend.to_numpy(one)
    _require(backend, bool(numbers.min() >= 0 and numbers.max() < 1), "uniform numbers leave [0, 1)")


def _require(backend: Any, holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(f"backend {backend.name} does not conform: {message}")
