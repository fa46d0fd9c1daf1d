"""Products of CSR rows as CUDA texts: SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy.csr import PIECE, Csr
from cntk.core.common.dtypes import computing_type

pytestmark = pytest.mark.usefixtures("on_host")

TOLERANCES = {C.bfloat16: 8 * 5e-3, np.float16: 5e-3, np.float32: 2e-6, np.float64: 1e-14}


def matrix(rows: int, columns: int, density: float, dtype: Any) -> Any:
    random = np.random.default_rng(rows)
    dense = (random.random((rows, columns)) < density) * random.normal(size=(rows, columns))
    return scipy.sparse.csr_matrix(dense.astype(computing_type(dtype)))


def parts(csr: Any, dtype: Any, places: Any) -> Any:
    return array(csr.data, dtype), array(csr.indices, places), array(csr.indptr, places)


@pytest.mark.parametrize("dtype", list(TOLERANCES), ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("places", [np.int32, np.int64], ids=["int32", "int64"])
def test_products(places: Any, dtype: Any) -> None:
    random = np.random.default_rng(0)
    for rows, columns, width, density in (
        (7, 11, 5, 0.3),
        (1, 1, 1, 1.0),
        (40, 3, 33, 0.5),
        (5, 9, 70, 0.0),
        (0, 4, 3, 1.0),
        (4, 4, 0, 1.0),
    ):
        csr = matrix(rows, columns, density, dtype)
        right, below = random.normal(size=(columns, width)).astype(dtype), random.normal(size=(rows, width)).astype(dtype)
        out = HostBackend().empty((rows, width), dtype)
        Csr.product(parts(csr, dtype, places), array(right), out)
        wide = csr.astype(np.float64)
        np.testing.assert_allclose(out, wide @ right.astype(np.float64), rtol=TOLERANCES[dtype], atol=2 * TOLERANCES[dtype])
        present, found = Csr.transposed_product(parts(csr, dtype, places), columns, array(below))
        whole = np.zeros((columns, width))
        whole[present] = found
        np.testing.assert_array_equal(present, np.unique(csr.indices))
        np.testing.assert_allclose(whole, wide.T @ below.astype(np.float64), rtol=TOLERANCES[dtype], atol=2 * TOLERANCES[dtype])


def test_long_rows_are_added_up_in_pieces() -> None:
    entries = 100 * PIECE + 3
    data, indices, starts = np.full(entries, 0.1, np.float32), np.zeros(entries, np.int32), np.array([0, 1, entries], np.int32)
    out = HostBackend().empty((2, 1), np.float32)
    Csr.product((array(data), array(indices), array(starts)), array([[1.0]], np.float32), out)
    np.testing.assert_allclose(out[:, 0], [0.1, np.float64(np.float32(0.1)) * (entries - 1)], rtol=1e-5)
