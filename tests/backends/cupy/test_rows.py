"""Kernels over rows of classes as CUDA texts: the numbers of the operators' own methods."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import cntk as C
from cntk.backends.cupy import rows
from cntk.core.extension import plugins
from cntk.testing import assert_close
from cntk.testing.kernels import _compare_gradients, _compare_values, without_kernels
from cntk.testing.ops import samples_of
from cntk.testing.samples import describe
from cntk.testing.tolerances import VALUES

pytestmark = pytest.mark.usefixtures("host_gpu")

NAMES = ("softmax", "log_softmax", "cross_entropy_with_softmax", "classification_error")
SAMPLES = [(name, sample) for name in NAMES for sample in samples_of(plugins.ops.get(name))[:3]]
all_types = pytest.mark.parametrize("dtype", [C.bfloat16, np.float32, np.float64, np.float16], ids=lambda dtype: dtype.__name__)

LOSSES: dict[str, Callable[[Any, Any], Any]] = {
    "cross entropy": C.cross_entropy_with_softmax,
    "error": C.classification_error,
}


@pytest.mark.parametrize(("name", "sample"), SAMPLES, ids=[describe(plugins.ops.get(name), sample) for name, sample in SAMPLES])
def test_samples(name: str, sample: Any) -> None:
    function = plugins.ops.get(name)
    _compare_values(function, sample, None, 5)
    _compare_gradients(function, sample, None, 5)


def both(compute: Callable[[], Any]) -> tuple[Any, Any]:
    found = compute()
    with without_kernels():
        return found, compute()


@all_types
@pytest.mark.parametrize(("shape", "axis"), [((1,), -1), ((3, 5), 0), ((3, 5), -1), ((2000,), -1)])
@pytest.mark.parametrize("function", [C.softmax, C.log_softmax], ids=["softmax", "log_softmax"])
def test_softmax(function: Any, shape: Any, axis: int, dtype: Any, on_host: list[str]) -> None:
    data = np.random.default_rng(0).uniform(-8, 8, (11, *shape)).astype(dtype)
    grad = np.random.default_rng(1).uniform(-1, 1, (11, *shape)).astype(dtype)

    def computed() -> list[Any]:
        x = C.input_variable(shape, dtype=dtype, needs_gradient=True)
        y = function(x, axis=axis)
        state, value = y.forward({x: data}, [y.output], {y.output})
        return [value[y.output], y.backward(state, {y.output: grad}, {x})[x]]

    for one, other in zip(*both(computed), strict=True):
        assert_close(np.asarray(one), np.asarray(other), str(shape), VALUES[dtype])
    assert any("softmax_gradient" in text for text in on_host)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("classes", [1, 33, 1500])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", LOSSES)
def test_losses(loss: str, sparse: bool, classes: int, dtype: Any, on_host: list[str]) -> None:
    random = np.random.default_rng(0)
    z = random.uniform(-5, 5, (13, classes)).astype(dtype)
    y = (random.random((13, classes)) < 2 / classes) * random.random((13, classes)).astype(dtype)
    z[3] = z[3, 0]

    def computed() -> list[Any]:
        logits = C.input_variable(classes, dtype=dtype, needs_gradient=True)
        target = C.input_variable(classes, dtype=dtype, is_sparse=sparse, needs_gradient=not sparse)
        value = LOSSES[loss](logits, target)
        given = {logits: z, target: scipy.sparse.csr_matrix(y) if sparse else y.astype(dtype)}
        wrt = [one for one in (logits, target) if one.needs_gradient and (one is target or loss != "error")]
        if not wrt:
            return [value.eval(given)]
        gradients, found = value.grad(given, wrt=wrt, outputs=[value.output])
        return [found, *(gradients.values() if isinstance(gradients, dict) else [gradients])]

    for one, other in zip(*both(computed), strict=True):
        assert_close(one, other, loss, VALUES[dtype])
    assert any("cross_entropy" in text or "error" in text for text in on_host)


def test_what_is_not_a_number_stays_in_its_row() -> None:
    data = np.float32([[1, np.nan, 2], [1, 2, 3], [-np.inf, 0, 0], [np.inf, 0, 1]])
    x = C.input_variable(3)
    for function in (C.softmax, C.log_softmax):
        found, expected = both(lambda function=function: function(x).eval({x: data}))
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    target = C.constant([0, 1, 0])
    found, expected = both(lambda: C.classification_error(x, target).eval({x: data}))
    np.testing.assert_array_equal(found, expected)


def test_a_block_goes_through_many_classes() -> None:
    assert "#define TEAM 32" in rows.text("softmax", np.float32, 1024, 1, "unsigned int")
    assert "#define TEAM 256" in rows.text("softmax", np.float32, 1025, 1, "unsigned int")
