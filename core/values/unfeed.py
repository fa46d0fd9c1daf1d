"""Converts rows of a program's results to data as users see it, and back."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..common.dtypes import is_real
from ..common.shape import Shape, size_of
from ..types.axis import Axes
from ..types.csr import is_csr
from ..types.layout import Layout
from ..types.sparse import SparseRows, rows_of_steps
from .value import NDArrayView, Value


def unfeed(array: Any, axes: Axes, layout: Layout | None) -> Any:
    """Rows, on the host, as users see them: an array, or with a sequence axis a list of arrays in the user's order."""
    if len(axes) < 2 or layout is None or not layout.is_sequence:
        return array
    if layout.samples == 1:
        return [array]
    joined = array[layout.unpack_index]
    return [joined[start:end].copy() for start, end in pairwise((0, *layout.splits, layout.rows))]


def unfeed_sparse(matrix: Any, rows: SparseRows, axes: Axes, layout: Layout | None) -> Any:
    """CSR rows as users see them: CSR matrices, one for each sequence, but arrays for samples and steps of several axes.

    Args:
        matrix: the rows as a matrix on the host.
        rows: what tells their shape and element type.
        axes, layout: the dynamic axes and how rows lie on them.
    """
    shape = rows.shape
    static = shape[1:] if axes else shape
    parts = _sequences_of(matrix, static, layout) if len(axes) == 2 and layout is not None and layout.is_sequence else [matrix]
    if len(static) > (1 if axes else 2):
        arrays = (part.toarray().astype(rows.dtype, copy=False) for part in parts)
        parts = [array.reshape(-1, *static) if axes else array.reshape(static) for array in arrays]
    return parts if len(axes) == 2 else parts[0]


def sparse_value_of(matrix: Any, shape: Shape, axes: Axes, layout: Layout | None, device: Any) -> Value:
    """CSR rows as a sparse Value."""
    if len(axes) == 2 and layout is not None and layout.is_sequence:
        return Value._of_sequences(_sequences_of(matrix, shape[1:], layout), device, inner=shape[1:])
    return Value(NDArrayView.from_csr(matrix, device, borrow=True, shape=shape))


def _sequences_of(matrix: Any, static: Shape, layout: Layout) -> list[Any]:
    """CSR matrices of the sequences, in the user's order."""
    per_step = size_of(static[:-1])
    joined = matrix[rows_of_steps(layout.unpack_index, per_step)]
    return [joined[start * per_step : end * per_step] for start, end in pairwise((0, *layout.splits, layout.rows))]


def pack(data: Any, shape: Shape, layout: Layout | None) -> Any:
    """Rows, *shape* in all, from data as users see them: the inverse of :func:`unfeed`; axes of length 1 do not matter.

    Raises:
        ValueError: the data has another shape, or its sequences have other lengths.
    """
    data = getattr(data, "value_to_feed", data)
    if layout is not None and layout.lengths is not None:
        parts = [_host(part) for part in (data.as_sequences() if isinstance(data, Value) else data)]
        lengths = [part.shape[0] if part.ndim else 0 for part in parts]
        if lengths != layout.lengths.tolist():
            raise ValueError(f"expected a list of sequences of lengths {layout.lengths.tolist()}, got lengths {lengths}")
        rows = np.concatenate(parts)[layout.pack_index]
    else:
        rows = _host(data)
    if not is_real(rows.dtype) or [dim for dim in rows.shape if dim != 1] != [dim for dim in shape if dim != 1]:
        raise ValueError(f"expected numbers in the shape {shape}, got {rows.dtype} data of shape {rows.shape}")
    return rows.reshape(shape)


def _host(data: Any) -> Any:
    if is_csr(data):
        return data.toarray()
    return np.asarray(data.asarray() if hasattr(data, "asarray") else data)


def value_of(array: Any, axes: Axes, layout: Layout | None, device: Any) -> Value:
    """Rows, on the host, as a Value."""
    data = unfeed(array, axes, layout)
    return Value._of_sequences(data, device) if isinstance(data, list) else Value(np.asarray(data, order="C"), device=device)
