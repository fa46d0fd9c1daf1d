"""Values, views and parameters as arrays of other libraries: ``__array__``, DLPack and the buffer protocol."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cntk as C

TWO = np.float32([[1, 2], [3, 4]])


def minibatch() -> Any:
    return C.io.MinibatchData(C.Value(TWO), 2, 2, False)


ALL = {
    "parameter": lambda: C.parameter(init=TWO),
    "constant": lambda: C.constant(TWO),
    "view": lambda: C.NDArrayView.from_dense(TWO),
    "value": lambda: C.Value(TWO),
    "minibatch": minibatch,
}
SHARING = ("view", "value", "minibatch")
each = pytest.mark.parametrize("kind", ALL)


@each
def test_arrays(kind: str) -> None:
    held = ALL[kind]()
    array = np.asarray(held)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, TWO)
    np.testing.assert_array_equal(np.array(held, dtype=np.float64), TWO.astype(np.float64))
    assert np.array(held, dtype=np.float64).dtype == np.float64
    assert np.mean(held) == 2.5


@each
def test_copies(kind: str) -> None:
    held = ALL[kind]()
    own = np.array(held)
    own[0, 0] = 7
    np.testing.assert_array_equal(np.asarray(held), TWO)
    if kind in SHARING:
        np.array(held, copy=False)[0, 0] = 7
        assert np.asarray(held)[0, 0] == 7
    else:
        with pytest.raises(ValueError, match="without a copy"):
            np.array(held, copy=False)
    with pytest.raises(ValueError, match="without a copy"):
        held.__array__(np.float64, copy=False)


def test_an_array_of_a_parameter_stays_as_it_was() -> None:
    p = C.parameter(init=TWO)
    before = np.asarray(p)
    p.value = TWO + 1
    np.testing.assert_array_equal(before, TWO)


@each
def test_dlpack(kind: str) -> None:
    held = ALL[kind]()
    np.testing.assert_array_equal(np.from_dlpack(held), TWO)
    assert held.__dlpack_device__() == (1, 0)
    if kind not in SHARING:
        with pytest.raises(BufferError, match="without a copy"):
            held.__dlpack__(copy=False)


@each
def test_pytorch_shares_the_memory(kind: str) -> None:
    torch = pytest.importorskip("torch", reason="needs PyTorch")
    held = ALL[kind]()
    for made in (torch.from_dlpack(held), torch.as_tensor(np.asarray(held))):
        np.testing.assert_array_equal(made.numpy(), TWO)


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes have buffers from Python 3.12 on")
@pytest.mark.parametrize("kind", SHARING)
def test_buffers(kind: str) -> None:
    shown = memoryview(ALL[kind]())
    assert (shown.format, shown.shape) == ("f", (2, 2))


def test_read_only_views_give_read_only_arrays() -> None:
    array = np.asarray(C.NDArrayView.from_dense(TWO, read_only=True))
    assert not array.flags.writeable
    assert np.asarray(C.NDArrayView.from_dense(TWO)).flags.writeable


def test_sequences_are_padded_with_a_warning() -> None:
    x = C.sequence.input_variable(1)
    value = C.Value.create(x, [np.float32([[1], [2]]), np.float32([[3]])])
    with pytest.warns(UserWarning, match="as_sequences"):
        array = np.asarray(value)
    np.testing.assert_array_equal(array[..., 0], [[1, 2], [3, 0]])


@pytest.mark.parametrize(
    "make",
    [
        lambda: C.Value(csr_matrix(TWO)),
        lambda: C.NDArrayView.from_csr(csr_matrix(TWO)),
        lambda: C.constant(csr_matrix(TWO)),
        lambda: C.io.MinibatchData(C.Value(csr_matrix(TWO)), 2, 2, False),
    ],
)
def test_sparse_data_are_no_arrays(make: Any) -> None:
    with pytest.raises(TypeError, match="is sparse"):
        np.asarray(make())
    with pytest.raises(TypeError, match="is sparse"):
        np.from_dlpack(make())


@pytest.mark.parametrize("make", [lambda: C.input_variable(2), lambda: C.input_variable(2) + 1, lambda: C.placeholder(2)])
def test_what_has_no_values_is_no_array(make: Any) -> None:
    with pytest.raises(TypeError, match="computed later"):
        np.asarray(make())


@pytest.mark.parametrize("other", [TWO, np.float64(2), np.float32(2), TWO[0]])
def test_arithmetic_with_parameters_makes_functions(other: Any) -> None:
    p = C.parameter(init=TWO)
    for made in (other * p, p * other, other - p, p - other):
        assert isinstance(made, C.Function)
    if getattr(other, "ndim", 0):
        assert isinstance(other @ p, C.Function)
