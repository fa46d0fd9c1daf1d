"""cuBLASLt over NumPy: products of column-major matrices as given by descriptors, with the library's checks of arguments."""

from __future__ import annotations

from ctypes import c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p, sizeof
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np

from cntk.backends.cupy.cublaslt import SIGNATURES

from .library import Names, Refused, StandIn, Version, memory, read, strided

VERSION = 130500
INVALID_VALUE, NOT_SUPPORTED = 7, 15
NAMES = {7: b"CUBLAS_STATUS_INVALID_VALUE", 14: b"CUBLAS_STATUS_INTERNAL_ERROR", 15: b"CUBLAS_STATUS_NOT_SUPPORTED"}
TYPES = {0: np.float32, 1: np.float64, 2: np.float16, 14: ml_dtypes.bfloat16}
F32, F32_FAST_TF32, F64 = 68, 77, 70
WIDE = {F32: np.float32, F32_FAST_TF32: np.float32, F64: np.float64}
RELU, BIAS, BGRADA, BGRADB = 2, 4, 256, 512


@dataclass
class Layout:
    """Layout descriptor of a column-major matrix, or of a batch."""

    dtype: Any
    rows: int
    columns: int
    leading: int
    count: int = 1
    apart: int = 0

    def array(self, address: int) -> Any:
        """Return the matrices at an address, ``(count, rows, columns)``."""
        return strided(address, self.dtype, (self.count, self.rows, self.columns), (self.apart, 1, self.leading))


@dataclass
class Description:
    """Descriptor of an operation."""

    compute: int
    scale: int
    turned: dict[int, bool] = field(default_factory=lambda: {3: False, 4: False})
    epilogue: int = 1
    vector: int = 0


@dataclass
class Preference:
    """Limits on the algorithms that the heuristics return."""

    workspace: int = 0
    alignments: dict[int, int] = field(default_factory=dict)


class Cublaslt(StandIn):
    """The stand-in for cuBLASLt.

    Args:
        refuses: epilogues that no algorithm supports, besides those of float64.

    Attributes:
        launched: the epilogue of each product.
    """

    launches = ("cublasLtMatmul",)

    def __init__(self, refuses: tuple[int, ...] = ()) -> None:
        self.refuses, self.launched = refuses, list[int]()
        self.cublasLtGetVersion = Version(VERSION)
        self.cublasLtGetStatusName = Names(NAMES)
        super().__init__(SIGNATURES)

    def on_cublasLtCreate(self, target: Any) -> None:
        self.handle(target, "handle")

    def on_cublasLtDestroy(self, handle: int) -> None:
        self.forget(handle)

    def on_cublasLtMatrixLayoutCreate(self, target: Any, dtype: int, rows: int, columns: int, leading: int) -> None:
        if leading < max(rows, 1) or not rows or not columns:
            raise Refused(INVALID_VALUE)
        self.handle(target, Layout(TYPES[dtype], rows, columns, leading))

    def on_cublasLtMatrixLayoutDestroy(self, layout: int) -> None:
        self.forget(layout)

    def on_cublasLtMatrixLayoutSetAttribute(self, layout: int, attribute: int, address: int, size: int) -> None:
        made, (name, kind) = self.objects[layout], {5: ("count", c_int), 6: ("apart", c_int64)}[attribute]
        _sized(kind, size)
        setattr(made, name, read(address, kind))

    def on_cublasLtMatmulDescCreate(self, target: Any, compute: int, scale: int) -> None:
        assert TYPES[scale] is WIDE[compute]
        self.handle(target, Description(compute, scale))

    def on_cublasLtMatmulDescDestroy(self, description: int) -> None:
        self.forget(description)

    def on_cublasLtMatmulDescSetAttribute(self, description: int, attribute: int, address: int, size: int) -> None:
        made = self.objects[description]
        _sized(c_void_p if attribute == 8 else c_int, size)
        match attribute:
            case 3 | 4:
                made.turned[attribute] = {0: False, 1: True}[read(address, c_int)]
            case 7:
                made.epilogue = read(address, c_uint32)
            case 8:
                made.vector = read(address, c_void_p)
            case _:
                raise Refused(INVALID_VALUE)

    def on_cublasLtMatmulPreferenceCreate(self, target: Any) -> None:
        self.handle(target, Preference())

    def on_cublasLtMatmulPreferenceDestroy(self, preference: int) -> None:
        self.forget(preference)

    def on_cublasLtMatmulPreferenceSetAttribute(self, preference: int, attribute: int, address: int, size: int) -> None:
        made = self.objects[preference]
        if attribute == 1:
            _sized(c_size_t, size)
            made.workspace = read(address, c_size_t)
        else:
            _sized(c_uint32, size)
            made.alignments[attribute] = read(address, c_uint32)

    def on_cublasLtMatmulAlgoGetHeuristic(
        self, handle: int, operation: int, a: int, b: int, c: int, d: int, preference: int, wanted: int, found: Any, count: Any
    ) -> None:
        assert self.objects[handle] == "handle"
        made, liked = self.objects[operation], self.objects[preference]
        self._check(made, *(self.objects[layout] for layout in (a, b, d)))
        assert c == d
        assert wanted == 1
        assert sorted(liked.alignments) == [5, 6, 7, 8]
        if made.epilogue in self.refuses or (made.epilogue != 1 and made.compute == F64):
            raise Refused(NOT_SUPPORTED)
        found[0].algo[0], found[0].workspace, found[0].state = operation, liked.workspace, 0
        count[0] = 1

    def _check(self, operation: Description, a: Layout, b: Layout, d: Layout) -> tuple[int, int, int]:
        """Refuse inconsistent arguments, and return the sizes of the product."""
        m, depth = (a.columns, a.rows) if operation.turned[3] else (a.rows, a.columns)
        inner, n = (b.columns, b.rows) if operation.turned[4] else (b.rows, b.columns)
        if (m, inner, n) != (d.rows, depth, d.columns) or a.dtype is not b.dtype or not a.count == b.count == d.count:
            raise Refused(INVALID_VALUE)
        if d.count > 1 and d.apart < d.leading * (d.columns - 1) + d.rows and d.leading < d.apart * (d.count - 1) + d.rows:
            raise Refused(INVALID_VALUE)  # the results would overlap
        if a.dtype in (np.float16, ml_dtypes.bfloat16) and operation.compute != F32:
            raise Refused(NOT_SUPPORTED)
        if operation.epilogue != 1 and (not operation.vector or d.count > 1):
            raise Refused(NOT_SUPPORTED)
        return m, n, depth

    def on_cublasLtMatmul(
        self,
        handle: int,
        operation: int,
        alpha: int,
        a: int,
        a_layout: int,
        b: int,
        b_layout: int,
        beta: int,
        c: int,
        c_layout: int,
        d: int,
        d_layout: int,
        algorithm: int,
        workspace: int,
        workspace_size: int,
        stream: int | None,
    ) -> None:
        made = self.objects[operation]
        left, right, out = (self.objects[layout] for layout in (a_layout, b_layout, d_layout))
        m, n, _ = self._check(made, left, right, out)
        self.launched.append(made.epilogue)
        scalar = c_double if made.compute == F64 else c_float
        assert (read(alpha, scalar), read(beta, scalar)) == (1, 0)
        assert (c, c_layout) == (d, d_layout)
        assert (c_uint64 * 8).from_address(algorithm)[0] in self.objects
        assert memory(workspace, workspace_size).size == workspace_size
        wide = WIDE[made.compute]
        x, y = (_turned(of.array(at), turned).astype(wide) for of, at, turned in ((left, a, made.turned[3]), (right, b, made.turned[4])))
        if made.compute == F32_FAST_TF32:
            x, y = _rounded(x), _rounded(y)
        result = np.matmul(x, y)
        if made.epilogue & BIAS:
            result += strided(made.vector, out.dtype, (m, 1), (1, 1)).astype(wide)
        if made.epilogue & RELU:
            result = np.maximum(result, 0)
        if made.epilogue == BGRADA:
            strided(made.vector, out.dtype, (m,), (1,))[...] = x[0].sum(1)
        if made.epilogue == BGRADB:
            strided(made.vector, out.dtype, (n,), (1,))[...] = y[0].sum(0)
        out.array(d)[...] = result


def _sized(kind: Any, size: int) -> None:
    if sizeof(kind) != size:
        raise Refused(INVALID_VALUE)


def _turned(array: Any, turned: bool) -> Any:
    return array.swapaxes(-1, -2) if turned else array


def _rounded(array: Any) -> Any:
    """Return numbers rounded to TF32, with ten fraction bits."""
    return ((array.view(np.uint32) + 0x1000) & 0xFFFFE000).view(np.float32)
