"""Data of inputs as rows: what users have becomes :class:`StreamData`, and that what functions take; and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cntk.core.common.dtypes import computing_type, is_real
from cntk.core.common.shape import size_of
from cntk.core.graph.foreign import as_data
from cntk.core.types.csr import csr_of, fault_of, is_csr
from cntk.readers.rows import StreamData, join_rows, one_hot_rows
from cntk.readers.values import SequencesValue

if TYPE_CHECKING:
    from cntk.eval.signature import TensorInfo


def rows_of(info: TensorInfo, given: Any, lengths: Any = None) -> StreamData:
    """Data of an input as rows; see :meth:`Signature.rows`.

    Args:
        info: the input.
        given: its data.
        lengths: of its sequences, where the data does not tell them.

    Raises:
        ValueError: it does not fit.
    """
    if isinstance(given, StreamData):
        return _of_stream(info, given)
    given = _known(info, given)
    if info.sequence_axis is None:
        return StreamData.of_steps(_steps(info, _stacked(info, given)))
    if lengths is not None:
        return _of_lengths(info, _stacked(info, given), _stacked(info, _known(info, lengths)))
    if is_csr(given):
        raise unfit(info, "one CSR matrix, which does not tell where sequences end")
    if isinstance(given, (list, tuple)):
        return _of_sequences(info, given)
    array = _stacked(info, given)
    if not has_steps(info, array):
        hint = " (rows of one step each are array[:, np.newaxis])" if _fits(array.shape[1:], info.shape) else ""
        raise unfit(info, f"{_shown(array)}, without an axis of steps{hint}")
    return _of_lengths(info, array, np.full(len(array), array.shape[1]))


def static_array(info: TensorInfo, given: Any) -> Any:
    """Data of an input without batch axis, the same for all rows."""
    array = _numbers(info, _known(info, given))
    if not _fits(array.shape, info.shape):
        raise unfit(info, _shown(array))
    return array.astype(info.dtype, copy=False)


def rows_of_column(info: TensorInfo, given: Any) -> StreamData:
    """A column of a table as rows: numbers, or lists of numbers, nested or not; those of sequences have any number of steps."""
    given = _known(info, given)
    if info.sequence_axis is None or isinstance(given, (list, StreamData)):
        return rows_of(info, given)
    array = _stacked(info, given)
    return _of_sequences(info, list(array)) if array.ndim > 1 else StreamData.of_steps(_steps(info, array))


def value_of(info: TensorInfo, rows: StreamData) -> Any:
    """Rows as a function takes them."""
    if info.sequence_axis is not None:
        return SequencesValue(rows, tuple(size or 0 for size in info.shape))
    if is_csr(rows.rows) and len(info.shape) > 1:
        return rows.rows.reshape(-1, info.shape[-1]).tocsr()
    return rows.rows.tocsr() if is_csr(rows.rows) else rows.rows


def result_of(info: TensorInfo, value: Any) -> Any:
    """What a function gave for an output: an array, or a list of them for sequences; sparse results as dense ones."""
    return _dense(info, value) if info.sequence_axis is None else [_dense(info, part) for part in value]


def joined_result(info: TensorInfo, value: Any) -> StreamData:
    """A result as rows."""
    if info.sequence_axis is None:
        return StreamData.of_steps(value)
    return StreamData.of_lengths(np.concatenate(value), [len(part) for part in value])


def unfit(info: TensorInfo, found: str, place: int | None = None) -> ValueError:
    """An error about data that does not fit an input."""
    return ValueError(f"the input {info} was given {found}{_at(place)}; expected {_expected(info)}, for example {info.example_text()}")


# ---- sequences -----------------------------------------------------------------------------------


def has_steps(info: TensorInfo, array: Any) -> bool:
    """Whether an array has an axis of steps behind that of rows."""
    rank = len(info.shape)
    return array.ndim == rank + 2 or (array.ndim == rank + 1 and (info.shape == (1,) or _is_of_integers(info, array)))


def _of_lengths(info: TensorInfo, array: Any, lengths: Any) -> StreamData:
    """Sequences that are padded to one length, or lie one after another."""
    if is_csr(lengths) or lengths.ndim != 1 or lengths.dtype.kind not in "iu":
        raise ValueError(f"the lengths of the input {info.name!r} must be a whole number for each row, got {_shown(lengths)}")
    if not is_csr(array) and has_steps(info, array):
        if len(lengths) != len(array) or lengths.max(initial=0) > array.shape[1]:
            raise unfit(info, f"{_shown(array)} with {len(lengths)} lengths up to {lengths.max(initial=0)}")
        array = array[np.arange(array.shape[1]) < lengths[:, np.newaxis]]
    rows = _steps(info, array)
    if lengths.min(initial=1) < 1:
        raise unfit(info, "a sequence without steps", int(lengths.argmin()))
    if lengths.sum() != rows.shape[0]:
        raise unfit(info, f"{rows.shape[0]} steps with lengths that add up to {lengths.sum()}")
    return StreamData.of_lengths(rows, lengths)


def _of_sequences(info: TensorInfo, given: Sequence[Any]) -> StreamData:
    """A list of sequences, each an array, a list or a CSR matrix."""
    parts = [_steps(info, _sequence(info, part, place), place) for place, part in enumerate(given)]
    if not parts:
        return StreamData.of_lengths(no_rows(info), np.zeros(0, np.intp))
    lengths = [part.shape[0] for part in parts]
    if 0 in lengths:  # of CSR matrices
        raise unfit(info, "a sequence without steps", lengths.index(0))
    if len(shapes := sorted({part.shape[1:] for part in parts})) > 1:
        raise unfit(info, f"steps of the shapes {shapes[0]} and {shapes[1]}")
    return StreamData.of_lengths(join_rows(parts), lengths)


def _sequence(info: TensorInfo, part: Any, place: int) -> Any:
    """One sequence with a leading axis of steps, which numbers one after another and a single step do not have."""
    part = _known(info, part)
    if is_csr(part):
        return part
    array = _numbers(info, part, place)
    if not array.size:
        raise unfit(info, "a sequence without steps", place)
    elements = _elements(info)
    if array.ndim == 0:
        return array[np.newaxis]
    if array.ndim == 1 and len(info.shape) > 0 and elements and not _is_of_integers(info, array[np.newaxis]):
        if len(array) % elements:
            raise unfit(info, f"{len(array)} numbers, which are not whole steps of {elements}", place)
        return array.reshape(-1, elements)
    return array[np.newaxis] if array.ndim == len(info.shape) and array.ndim > 1 and _fits(array.shape, info.shape) else array


def _of_stream(info: TensorInfo, given: StreamData) -> StreamData:
    """Rows that a reader gave."""
    if info.sequence_axis is None and not given.is_single:
        row = int((given.lengths != 1).argmax())
        raise unfit(info, f"a sequence of {given.lengths[row]} steps", row)
    if (given.lengths < 1).any():
        raise unfit(info, "a sequence without steps", int(given.lengths.argmin()))
    return StreamData(_steps(info, given.rows), given.starts)


# ---- samples and steps ---------------------------------------------------------------------------


def _steps(info: TensorInfo, given: Any, place: int | None = None) -> Any:
    """Samples or steps ``(rows, *shape)``; of sparse inputs CSR rows of all elements."""
    if is_csr(given):
        return _steps_of_csr(info, given, place)
    if not len(given):
        return no_rows(info)
    if info.is_sparse and given.dtype.kind in "iu" and given.ndim == len(info.shape):
        return _one_hot(info, given, place)
    if not _fits(given.shape[1:], info.shape):
        if not _is_rearranged(info, given.shape[1:]):
            raise unfit(info, _shown(given), place)
        given = given.reshape(-1, *_shape(info))
    return _csr(given, computing_type(info.dtype)) if info.is_sparse else given.astype(info.dtype, copy=False)


def _steps_of_csr(info: TensorInfo, given: Any, place: int | None) -> Any:
    if why := fault_of(given):
        raise ValueError(f"the input {info}{_at(place)}: {why}")
    elements, width = _elements(info), given.shape[1]
    leading = _elements(info, info.shape[:-1])
    if elements is None:
        if len(info.shape) != 1:
            raise unfit(info, f"a CSR matrix of shape {given.shape}, which does not tell the sizes of free axes", place)
    elif width != elements:
        if not info.shape or width != info.shape[-1] or given.shape[0] % (leading or 1):
            raise unfit(info, f"a CSR matrix of shape {given.shape}", place)
        given = given.reshape(given.shape[0] // (leading or 1), elements).tocsr()
    if info.is_sparse:
        return given.astype(computing_type(info.dtype))
    return given.toarray().astype(info.dtype, copy=False).reshape(given.shape[0], *(_shape(info) if elements else (width,)))


def _one_hot(info: TensorInfo, numbers: Any, place: int | None) -> Any:
    """Vectors that are given by the number of the element that is 1."""
    width = info.shape[-1]
    if width is None or (elements := _elements(info)) is None:
        raise unfit(info, "numbers of elements, which do not tell how many there are", place)
    rows = one_hot_rows(numbers, width, f"the input {info}{_at(place)}", computing_type(info.dtype))
    return rows.tocsr() if numbers.ndim == 1 else rows.tocsr().reshape(len(numbers), elements).tocsr()


def _csr(array: Any, dtype: Any) -> Any:
    """Vectors as CSR rows of all their elements."""
    flat = array.reshape(len(array), -1)
    filled = flat != 0
    return csr_of(flat[filled].astype(dtype), np.nonzero(filled)[1].astype(np.int32), filled.sum(1), flat.shape[1]).tocsr()


def no_rows(info: TensorInfo) -> Any:
    """An array of no rows."""
    return np.zeros((0, *(size or 0 for size in info.shape)), info.dtype)


# ---- arrays --------------------------------------------------------------------------------------


def _known(info: TensorInfo, given: Any) -> Any:
    """An array, a list, a number or a CSR matrix."""
    if hasattr(given, "tocsr"):
        return given.tocsr()
    return as_data(f"the input {info}", given)


def _stacked(info: TensorInfo, given: Any) -> Any:
    """A list of samples as one array or CSR matrix; anything else as it is."""
    if is_csr(given):
        return given
    if isinstance(given, (list, tuple)) and len(given) and not isinstance(given[0], (list, tuple, int, float)):
        parts = given if all(type(part) is np.ndarray for part in given) else [_known(info, part) for part in given]
        if all(map(is_csr, parts)):
            return join_rows(parts).tocsr()
        given = parts
    array = _numbers(info, given)
    if not array.ndim:
        raise unfit(info, f"the number {array}, without an axis of rows")
    return array


def _numbers(info: TensorInfo, given: Any, place: int | None = None) -> Any:
    try:
        array = np.asarray(given)
    except ValueError:
        raise unfit(info, "rows of unequal shapes", place) from None
    if not is_real(array.dtype) and array.size:
        raise unfit(info, f"{_shown(array)}, which are no numbers", place)
    return array


def _dense(info: TensorInfo, value: Any) -> Any:
    return value.toarray().astype(info.dtype, copy=False) if is_csr(value) else value


def _is_of_integers(info: TensorInfo, array: Any) -> bool:
    """Whether an array with an axis of steps holds numbers of elements, rather than sparse vectors."""
    return info.is_sparse and array.dtype.kind in "iu" and array.ndim == len(info.shape) + 1


def _is_rearranged(info: TensorInfo, shape: tuple[int, ...]) -> bool:
    """Whether it is the static shape up to axes of length 1, or all of its elements one after another."""
    elements = _elements(info)
    if elements is None or size_of(shape) != elements:
        return False
    return len(shape) < 2 or [size for size in shape if size != 1] == [size for size in info.shape if size != 1]


def _elements(info: TensorInfo, shape: Any = None) -> int | None:
    """How many elements a step has; None where axes are free."""
    sizes = info.shape if shape is None else shape
    return None if None in sizes else size_of([size or 0 for size in sizes])


def _shape(info: TensorInfo) -> tuple[int, ...]:
    return tuple(size or 0 for size in info.shape)


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return len(shape) == len(wanted) and all(want in (None, size) for size, want in zip(shape, wanted, strict=True))


def _expected(info: TensorInfo) -> str:
    dims = ", ".join("free" if size is None else str(size) for size in info.shape)
    if info.sequence_axis is not None:
        return f"for each row a sequence of steps of shape ({dims})"
    return f"for each row numbers of shape ({dims})" if info.has_batch_axis else f"numbers of shape ({dims})"


def _shown(array: Any) -> str:
    kind = "a CSR matrix" if is_csr(array) else f"{array.dtype} data"
    return f"{kind} of shape {array.shape}"


def _at(place: int | None) -> str:
    return "" if place is None else f" in row {place}"
