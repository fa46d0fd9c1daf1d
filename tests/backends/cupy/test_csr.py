"""Products of CSR rows as CUDA texts: SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from standin.host_backend import HostBackend, array

import cntk as C
from cntk.backends.cupy.csr import PIECE, column_sums, product
from cntk.core.common.dtypes import computing_type
from cntk.core.types.columns import Columns, columns_of

pytestmark = pytest.mark.usefixtures("on_host")

TOLERANCES = {C.bfloat16: 8 * 5e-3, np.float16: 5e-3, np.float32: 2e-6, np.float64: 1e-14}


def matrix(rows: int, columns: int, density: float, dtype: Any) -> Any:
    random = np.random.default_rng(rows)
    dense = (random.random((rows, columns)) < density) * random.normal(size=(rows, columns))
    return scipy.sparse.csr_matrix(dense.astype(computing_type(dtype)))


def parts(csr: Any, dtype: Any, places: Any) -> Any:
    return array(csr.data, dtype), array(csr.indices, places), array(csr.indptr, places)


def columns_with_room(rows: Any) -> Columns:
    """The columns in arrays with room for more, in which nothing is to be read."""
    *found, count = columns_of(*(np.asarray(part) for part in rows))
    return Columns(*(array(np.concatenate([part, np.full(9, 99, part.dtype)]), part.dtype) for part in found), count)


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
        product(parts(csr, dtype, places), array(right), out)()
        wide = csr.astype(np.float64)
        np.testing.assert_allclose(out, wide @ right.astype(np.float64), rtol=TOLERANCES[dtype], atol=2 * TOLERANCES[dtype])
        whole = wide.T @ below.astype(np.float64)
        found = columns_with_room(parts(csr, dtype, places))
        present, sums = np.unique(csr.indices), array(np.full((len(found.numbers), width), 7), dtype)
        column_sums(found, array(below), sums, by_number=False)()
        assert found.present == len(present)
        np.testing.assert_array_equal(found.numbers[: found.present], present)
        np.testing.assert_allclose(sums[: found.present], whole[present], rtol=TOLERANCES[dtype], atol=2 * TOLERANCES[dtype])
        assert (sums[found.present :] == 7).all()
        everywhere = array(np.zeros((columns, width)), dtype)
        column_sums(found, array(below), everywhere, by_number=True)()
        np.testing.assert_array_equal(everywhere[present], sums[: found.present])


def test_long_rows_are_added_up_in_pieces() -> None:
    entries = 100 * PIECE + 3
    data, indices, starts = np.full(entries, 0.1, np.float32), np.zeros(entries, np.int32), np.array([0, 1, entries], np.int32)
    out = HostBackend().empty((2, 1), np.float32)
    product((array(data), array(indices), array(starts)), array([[1.0]], np.float32), out)()
    np.testing.assert_allclose(out[:, 0], [0.1, np.float64(np.float32(0.1)) * (entries - 1)], rtol=1e-5)
