"""Values: data as users hold it, a minibatch of samples or sequences with what is needed to tell them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..common.dtypes import DataType, as_dtype, data_type_of
from ..common.shape import Shape, as_shape, format_shape, size_of
from ..common.user_frame import warn_user
from ..extension.device import DeviceDescriptor, use_default_device
from ..graph.foreign import as_data
from ..graph.tensor import SharedArrayMixin
from ..types.arguments import checked
from ..types.csr import csr_matrix_of, is_csr, require_whole
from ..types.sparse import join, parts_of

if TYPE_CHECKING:
    from ..graph.variable import Variable


class NDArrayView(SharedArrayMixin):
    """An array on a device, dense or CSR.

    Args:
        shape: shape of an uninitialised dense array.
        data_type: its element type.
        device: where it lives.

    >>> C.NDArrayView.from_dense(np.ones((2, 3), dtype=np.float32))
    NDArrayView([2 x 3], CPU)
    """

    def __init__(self, shape: Any, data_type: Any, device: DeviceDescriptor | None = None) -> None:
        self._set(np.empty(as_shape(shape), as_dtype(data_type)), as_shape(shape), device, False)

    def _set(self, data: Any, shape: Shape, device: DeviceDescriptor | None, read_only: bool) -> None:
        self._data, self._shape, self._read_only = data, shape, read_only
        self._device = device or use_default_device()

    @classmethod
    def _of(cls, data: Any, shape: Shape, device: DeviceDescriptor | None, read_only: bool = False) -> NDArrayView:
        made = cls.__new__(cls)
        made._set(data, shape, device, read_only)
        return made

    @staticmethod
    def from_dense(np_array: Any, device: DeviceDescriptor | None = None, read_only: bool = False, borrow: bool = False) -> NDArrayView:
        """Take an array, NumPy's or one of another library, copied unless *borrow*.

        Raises:
            TypeError: it is not an array.
            ValueError: its element type is not float16, bfloat16, float32 or float64.

        >>> C.NDArrayView.from_dense(np.float32([[1, 2], [3, 4]])).asarray()
        array([[1., 2.],
               [3., 4.]], dtype=float32)
        """
        np_array = as_data("NDArrayView.from_dense", np_array)
        if not isinstance(np_array, np.ndarray):
            raise TypeError(f"NDArrayView.from_dense: expected a NumPy array, got {type(np_array).__name__}")
        dtype = as_dtype(np_array.dtype)
        if not np_array.flags.c_contiguous:
            warn_user("NDArrayView.from_dense: the array is not C-contiguous and is copied", RuntimeWarning)
            borrow = False
        data = np_array if borrow else np.array(np_array, dtype=dtype, order="C")
        return NDArrayView._of(data, data.shape, device, read_only)

    @staticmethod
    def from_csr(
        csr_array: Any, device: DeviceDescriptor | None = None, read_only: bool = False, borrow: bool = False, shape: Any = None
    ) -> NDArrayView:
        """Take a CSR matrix; *shape* may split its rows into several axes.

        Raises:
            TypeError: it is not a CSR matrix.
            ValueError: *shape* does not fit it, or it is damaged.
        """
        if not is_csr(csr_array):
            raise TypeError(f"NDArrayView.from_csr: expected a scipy.sparse CSR matrix, got {type(csr_array).__name__}")
        require_whole("NDArrayView.from_csr", csr_array)
        full = tuple(csr_array.shape) if shape is None else as_shape(shape)
        if full[-1] != csr_array.shape[1] or size_of(full) != csr_array.shape[0] * csr_array.shape[1]:
            raise ValueError(f"NDArrayView.from_csr: a CSR matrix of shape {csr_array.shape} cannot have the shape {full}")
        return NDArrayView._of(csr_array if borrow else csr_array.copy(), full, device, read_only)

    @staticmethod
    def from_data(data: Any, device: DeviceDescriptor | None = None, read_only: bool = False, borrow: bool = False) -> NDArrayView:
        """Take a NumPy array, a CSR matrix, or an NDArrayView, which is passed through."""
        if isinstance(data, NDArrayView):
            return data
        if is_csr(data):
            return NDArrayView.from_csr(data, device, read_only, borrow)
        return NDArrayView.from_dense(data, device, read_only, borrow)

    @property
    def shape(self) -> Shape:
        """Shape of the array."""
        return self._shape

    @property
    def device(self) -> DeviceDescriptor:
        """Where it lives."""
        return self._device

    @property
    def dtype(self) -> Any:
        """NumPy type of the elements."""
        return self._data.dtype.type

    def get_data_type(self) -> DataType:
        """Number of the element type, as ``cntk_py.DataType_Float`` and the like."""
        return data_type_of(self.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether it is held as CSR."""
        return is_csr(self._data)

    @property
    def is_read_only(self) -> bool:
        """Whether it refuses to be changed."""
        return self._read_only

    def _to_array(self) -> Any:
        if self.is_sparse and len(self._shape) > 2:
            return self._data.toarray().reshape(self._shape)
        return self._data.copy()

    def _shown(self) -> tuple[Any, bool]:
        if self.is_sparse:
            return super()._shown()
        shown = self._data.view()
        shown.flags.writeable = shown.flags.writeable and not self._read_only
        return shown, False

    to_ndarray = SharedArrayMixin.asarray

    def copy_from(self, source: Any) -> None:
        """Take the contents of another view or array of the same shape.

        Raises:
            ValueError: the shape differs, or this view is read-only or sparse.
        """
        data = source.asarray() if isinstance(source, NDArrayView) else np.asarray(source)
        if self._read_only or self.is_sparse:
            raise ValueError(f"{self!r} cannot be changed: it is {'read-only' if self._read_only else 'sparse'}")
        if data.shape != self._shape:
            raise ValueError(f"{self!r} cannot take data of shape {data.shape}")
        np.copyto(self._data, data, casting="same_kind")

    set_value = copy_from

    def deep_clone(self, read_only: bool = False) -> NDArrayView:
        """A view of its own memory with the same contents."""
        return NDArrayView._of(self._data.copy(), self._shape, self._device, read_only)

    def alias(self, read_only: bool = False) -> NDArrayView:
        """Another view of the same memory."""
        return NDArrayView._of(self._data, self._shape, self._device, read_only or self._read_only)

    def as_shape(self, shape: Any) -> NDArrayView:
        """The same memory in another shape of as many elements."""
        wanted = as_shape(shape)
        if size_of(wanted) != size_of(self._shape):
            raise ValueError(f"{self!r} cannot have the shape {wanted}")
        return NDArrayView._of(self._data if self.is_sparse else self._data.reshape(wanted), wanted, self._device, self._read_only)

    def change_device(self, device: DeviceDescriptor) -> None:
        """Move the data to another device."""
        self._device = device

    def slice_view(self, start_offset: Sequence[int], extent: Sequence[int], read_only: bool = True) -> NDArrayView:
        """A contiguous part, as a view: *extent* gives the trailing axes, leading ones are taken at *start_offset* and dropped.

        Raises:
            ValueError: the part lies outside or is not contiguous in memory.
        """
        offset, size = list(start_offset), list(extent)
        dropped = len(offset) - len(size)
        if self.is_sparse or len(offset) != len(self._shape) or dropped < 0:
            raise ValueError(f"slice_view: {self!r} cannot be sliced at {tuple(offset)} to the extent {tuple(size)}")
        index: list[Any] = offset[:dropped]
        for start, count, dim in zip(offset[dropped:], size, self._shape[dropped:], strict=True):
            if start + count > dim:
                raise ValueError(f"slice_view: {tuple(offset)} to extent {tuple(size)} lies outside {self!r}")
            index.append(slice(start, start + count))
        part = self._data[tuple(index)]
        if not part.flags.c_contiguous:
            raise ValueError(f"slice_view: the part of {self!r} at {tuple(offset)} with extent {tuple(size)} is not contiguous in memory")
        return NDArrayView._of(part, part.shape, self._device, read_only)

    def __repr__(self) -> str:
        return f"NDArrayView({format_shape(self._shape)}, {self._device})"

    __str__ = __repr__

    def __len__(self) -> int:
        return self._shape[0]


class Lease:
    """The validity that the values of one evaluation share: whether their function has not been evaluated again."""

    __slots__ = ("is_current",)

    def __init__(self) -> None:
        self.is_current = True


class Value(SharedArrayMixin):
    """A minibatch: samples, or sequences padded to one length with a mask that tells their steps from padding.

    Args:
        batch: an array, CSR matrix or NDArrayView with a leading batch axis and, for sequences, a time axis.
        seq_starts: for sequences, which of them are new and which continue those of the previous minibatch.
        device: where it lives.

    >>> C.Value(np.ones((2, 3), dtype=np.float32))
    Value([2 x 3], CPU)
    """

    @checked
    def __init__(self, batch: Any, seq_starts: Sequence[bool] | None = None, device: DeviceDescriptor | None = None) -> None:
        batch = getattr(batch, "value_to_feed", batch)
        if not isinstance(batch, NDArrayView):
            batch = as_data("Value", batch)
            batch = NDArrayView.from_data(batch if is_csr(batch) else np.asarray(batch, order="C"), device)
        self._view = batch
        self._lengths: list[int] | None = None
        self._sequences: list[Any] | None = None  # CSR matrices of a sparse value's sequences, kept since slicing is expensive
        self._lease: Lease | None = None
        self.seq_starts = None if seq_starts is None else list(seq_starts)

    @property
    def continues(self) -> Any:
        """For each sequence the number of the one in the previous minibatch that it continues, -1 if it is new; None without flags.  A
        sequence that is not new continues the one at its position."""
        return None if self.seq_starts is None else np.where(self.seq_starts, -1, np.arange(len(self.seq_starts)))

    @property
    def packed(self) -> tuple[Any, Any] | None:
        """The steps of all sequences one after another, in an array or CSR rows, and the lengths of the sequences; None if it is not held
        so."""
        return None

    @property
    def sample_shape(self) -> Shape | None:
        """The static shape of a sample as a stream describes it, which :meth:`in_samples` changes; None for other values."""
        return None

    def in_samples(self, shape: Shape) -> Value:
        """The same minibatch in samples of another static shape of as many elements.

        Raises:
            ValueError: the value does not come from a stream, so its shape is fixed.
        """
        raise ValueError(f"{self!r} does not come from a stream, so its samples keep their shape; reshape the array it was made of")

    @classmethod
    def _of_sequences(
        cls,
        sequences: Sequence[Any],
        device: DeviceDescriptor | None,
        seq_starts: Sequence[bool] | None = None,
        inner: Shape | None = None,
        read_only: bool = False,
    ) -> Value:
        """A value of several sequences, each an array with a leading time axis or CSR rows, whose steps have the shape *inner*."""
        per_step = 1 if inner is None or not is_csr(sequences[0]) else size_of(inner[:-1])
        lengths = [part.shape[0] // per_step for part in sequences]
        longest = max(lengths)
        if is_csr(sequences[0]):
            padded = _pad_csr(sequences, longest * per_step)
            shape = inner or (padded.shape[1],)
            view = NDArrayView.from_csr(padded, device, read_only, borrow=True, shape=(len(lengths), longest, *shape))
        else:
            dense = np.zeros((len(lengths), longest, *sequences[0].shape[1:]), sequences[0].dtype)
            for row, part in zip(dense, sequences, strict=True):
                row[: len(part)] = part
            view = NDArrayView.from_dense(dense, device, read_only, borrow=True)
        made = cls(view, seq_starts)
        made._sequences = list(sequences) if view.is_sparse else None
        made._lengths = lengths
        return made

    @staticmethod
    def create(
        var: Variable, data: Any, seq_starts: Sequence[bool] | None = None, device: DeviceDescriptor | None = None, read_only: bool = False
    ) -> Value:
        """Convert data as users give it for the input *var*.

        An array, a CSR matrix or a view becomes the value's data as it is.  A list holds the sequences, each an array, CSR matrix,
        view or nested list, which are padded to the longest; a sample counts as a sequence of one step.

        Args:
            var: the input.
            data: an array, CSR matrix, NDArrayView, list of these, or a Value, which is passed through.
            seq_starts: which sequences are new, and which continue those of the previous minibatch.
            device: where it lives.
            read_only: whether the value refuses to be changed.

        Raises:
            TypeError: *var* is not a variable.
            ValueError: the data does not fit the variable, or *seq_starts* not the data.

        >>> x = C.sequence.input_variable(2)
        >>> C.Value.create(x, [np.ones((3, 2), np.float32), np.ones((1, 2), np.float32)]).mask
        array([[2, 1, 1],
               [2, 0, 0]], dtype=int8)
        """
        from .feed import value_for

        return value_for(var, data, seq_starts, device, read_only)

    @staticmethod
    @checked
    def one_hot(batch: Any, num_classes: Any, dtype: Any = None, device: DeviceDescriptor | None = None) -> Value:
        """One-hot vectors, sparse: of a list of class numbers one sample each, of a list of lists one sequence each.

        Args:
            batch: class numbers; ``ONE_HOT_SKIP`` stands for a vector of zeros.
            num_classes: how many classes, or a sample shape whose last axis counts them.
            dtype: element type, float32 by default; float16 and bfloat16 are held as float32, since SciPy has no CSR matrices of them.

        Raises:
            ValueError: *batch* is no such list, a number is not a class, or the numbers do not fill samples of the shape.

        >>> value = C.Value.one_hot([[0, 2], [1]], num_classes=3)
        >>> value.is_sparse, value.shape
        (True, (2, 2, 3))
        >>> x = C.sequence.input_variable(3, is_sparse=True)
        >>> C.times(x, np.array([[1], [2], [3]], np.float32)).eval({x: value})
        [array([[1.],
               [3.]], dtype=float32), array([[2.]], dtype=float32)]
        """
        shape = as_shape(num_classes)
        if not shape or shape[-1] < 1:
            raise ValueError(f"Value.one_hot: num_classes must be a number of classes, or a shape that ends with it, got {num_classes!r}")
        batch = as_data("Value.one_hot", batch)
        if not isinstance(batch, (list, np.ndarray)) or not len(batch):
            raise ValueError(f"Value.one_hot: expected a list of class numbers, or of lists of these, got {batch!r:.80}")
        batch = [as_data("Value.one_hot", part) for part in batch] if isinstance(batch, list) else batch
        nested = isinstance(batch[0], (list, tuple, np.ndarray))
        sequences = [_one_hot_rows(np.asarray(part), shape[-1], dtype) for part in (batch if nested else [batch])]
        per_step = size_of(shape[:-1])
        for rows in sequences:
            if rows.shape[0] % per_step:
                raise ValueError(f"Value.one_hot: a sample of shape {shape} takes {per_step} class numbers, got {rows.shape[0]} in all")
        if not nested:
            rows = sequences[0]
            return Value(NDArrayView.from_csr(rows, device, borrow=True, shape=(rows.shape[0] // per_step, *shape)))
        return Value._of_sequences(sequences, device, inner=shape)

    ONE_HOT_SKIP = 2**32 - 1

    @property
    def data(self) -> NDArrayView:
        """The array behind it.

        Raises:
            RuntimeError: the value is not valid any more.
        """
        self._require_valid()
        return self._view

    def _require_valid(self) -> None:
        if not self.is_valid:
            raise RuntimeError(
                f"{self!r} was a function's result, which lasts until this is evaluated again; "
                "take a copy before (asarray, deep_clone), or evaluate with as_numpy=True"
            )

    def __getstate__(self) -> dict[str, Any]:
        self._require_valid()
        return {**self.__dict__, "_lease": None}

    @property
    def shape(self) -> Shape:
        """Shape with batch and, for sequences, time axis."""
        return self._view.shape

    @property
    def dtype(self) -> Any:
        """NumPy type of the elements."""
        return self._view.dtype

    @property
    def device(self) -> DeviceDescriptor:
        """Where it lives."""
        return self._view.device

    def get_data_type(self) -> DataType:
        """Number of the element type, as ``cntk_py.DataType_Float`` and the like."""
        return data_type_of(self.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether it is held as CSR."""
        return self._view.is_sparse

    @property
    def is_read_only(self) -> bool:
        """Whether it refuses to be changed."""
        return self._view.is_read_only

    @property
    def is_valid(self) -> bool:
        """Whether the contents are valid: False once the function that gave it has been evaluated again."""
        return self._lease is None or self._lease.is_current

    @property
    def mask(self) -> Any:
        """Array ``(sequences, longest)``: 2 at a sequence's start, 1 at its other steps, 0 for padding.

        Raises:
            AttributeError: all sequences are equally long, so that nothing is padded.

        >>> C.Value.create(C.sequence.input_variable(1), [np.float32([[1], [2]]), np.float32([[3]])]).mask
        array([[2, 1],
               [2, 0]], dtype=int8)
        """
        if self._lengths is None or (len(set(self._lengths)) == 1 and self.seq_starts is None):
            raise AttributeError("this Value has no mask: none of its sequences is padded")
        steps = np.arange(max(self._lengths))
        mask = (steps < np.asarray(self._lengths)[:, None]).astype(np.int8)
        mask[:, 0] += np.asarray(self.seq_starts if self.seq_starts is not None else True).astype(np.int8)
        return mask

    def as_sequences(self, variable: Variable | None = None) -> list[Any]:
        """The sequences one by one, without padding.

        Raises:
            ValueError: the value is sparse and *variable* is missing.

        >>> value = C.Value.create(C.sequence.input_variable(1), [np.float32([[1], [2]]), np.float32([[3]])])
        >>> value.shape, [sequence.tolist() for sequence in value.as_sequences()]
        ((2, 2, 1), [[[1.0], [2.0]], [[3.0]]])
        """
        if self.is_sparse and variable is None:
            raise ValueError("as_sequences: for a sparse Value give the variable it is meant for")
        if self.is_sparse:
            assert variable is not None
            shape = variable.shape
            sequences = self._sparse_sequences(shape)
            return sequences if len(shape) == 1 else [part.toarray().reshape(-1, *shape) for part in sequences]
        if not self.shape:
            return [self.data.asarray()]
        sequences = list(self.data.asarray())
        return sequences if self._lengths is None else [part[:steps] for part, steps in zip(sequences, self._lengths, strict=True)]

    def _sparse_sequences(self, shape: Shape) -> list[Any]:
        """CSR rows of each sequence, without padding, where steps have the static shape *shape*; one sequence if there is no time axis."""
        if self._sequences is not None:
            return list(self._sequences)
        held = self.data._data
        count = self.shape[0] if len(self.shape) == len(shape) + 2 else 1
        rows = held.shape[0] // count
        return [held[i * rows : (i + 1) * rows] for i in range(count)]

    def _to_array(self) -> Any:
        self._warn_of_padding()
        return self.data.asarray()

    def _shown(self) -> tuple[Any, bool]:
        self._warn_of_padding()
        return self.data._shown()

    def _warn_of_padding(self) -> None:
        if self._lengths is not None and len(set(self._lengths)) > 1:
            warn_user("asarray() ignores the mask of a Value; use as_sequences() to keep sequences apart")

    def deep_clone(self, read_only: bool = False) -> Value:
        """A value of its own memory with the same contents."""
        made = Value(self.data.deep_clone(read_only), self.seq_starts)
        made._lengths, made._sequences = self._lengths, self._sequences
        return made

    def copy_from(self, source: Value) -> None:
        """Take the contents of another value of the same shape."""
        self._view.copy_from(source.data)
        self._lengths = source._lengths

    def alias(self, read_only: bool = False) -> Value:
        """Another value on the same memory."""
        made = Value(self._view.alias(read_only), self.seq_starts)
        made._lengths, made._sequences = self._lengths, self._sequences
        return made

    def __len__(self) -> int:
        return self.shape[0] if self.shape else 1

    def __repr__(self) -> str:
        return f"Value({format_shape(self.shape)}, {self.device})"

    __str__ = __repr__


def _one_hot_rows(classes: Any, count: int, dtype: Any) -> Any:
    if classes.dtype.kind not in "iu" or classes.ndim != 1:
        raise ValueError(f"Value.one_hot: expected whole class numbers, got {classes!r:.80}")
    real = classes != Value.ONE_HOT_SKIP
    if ((classes < 0) | (classes >= count))[real].any():
        raise ValueError(f"Value.one_hot: class numbers must lie in 0 … {count - 1}, got {classes[real].min()} … {classes[real].max()}")
    starts = np.concatenate([[0], np.cumsum(real)])
    held = np.float64 if as_dtype(dtype or np.float32) is np.float64 else np.float32
    return csr_matrix_of(np.ones(int(real.sum()), held), classes[real], starts, count)


def _pad_csr(sequences: Sequence[Any], longest: int) -> Any:
    """The rows of sequences, each with empty ones behind it."""
    pieces = [parts_of(part) for part in sequences]
    padded = [(data, indices, np.append(starts, np.full(longest + 1 - len(starts), starts[-1]))) for data, indices, starts in pieces]
    return csr_matrix_of(*join(padded), sequences[0].shape[1])


def held_by(value: Any) -> Any:
    """The array or CSR matrix that a Value or NDArrayView holds; anything else as it is."""
    view = value.data if isinstance(value, Value) else value
    return view._data if isinstance(view, NDArrayView) else view


def view_of(matrix: Any, shape: Shape) -> NDArrayView:
    """A view of a CSR matrix, whose rows are the matrix rows of an array of a shape."""
    return NDArrayView.from_csr(matrix, shape=shape)
