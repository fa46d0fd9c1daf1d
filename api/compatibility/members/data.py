"""Members of arrays, values, streams and minibatch sources."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from cntk.compatibility.members.engine import as_string, only_in_the_engine
from cntk.core.common.dtypes import is_float
from cntk.core.common.shape import as_shape
from cntk.core.graph.variable import Variable
from cntk.core.values.value import NDArrayView, Value
from cntk.io import MinibatchData, MinibatchSource, StreamInformation
from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, FULL_DATA_SWEEP, INFINITELY_REPEAT


class _ViewMembers:
    as_string = as_string

    def get_storage_format(self: Any) -> int:
        """Number of the storage format: 0 dense, 1 sparse."""
        return int(self.is_sparse)

    def is_slice_view(self: Any) -> bool:
        """Whether it is a part of another array."""
        data = self._data.data if self.is_sparse else self._data
        return data.base is not None

    @staticmethod
    def random_uniform_float(shape: Any, range_begin: float, range_end: float, seed: int = 0, device: Any = None) -> NDArrayView:
        """A float32 view of random numbers from a range."""
        return _random_view(shape, range_begin, range_end, seed, device, np.float32)

    @staticmethod
    def random_uniform_double(shape: Any, range_begin: float, range_end: float, seed: int = 0, device: Any = None) -> NDArrayView:
        """A float64 view of random numbers from a range."""
        return _random_view(shape, range_begin, range_end, seed, device, np.float64)


def _random_view(shape: Any, low: float, high: float, seed: int, device: Any, dtype: Any) -> NDArrayView:
    from cntk import random

    numbers = random.uniform(as_shape(shape), dtype, low, high, seed).eval()
    return NDArrayView.from_dense(np.ascontiguousarray(numbers), device)


def _maker(make: Callable[..., Value], dtype: Any) -> Any:
    def made(*args: Any) -> Value:
        return make(dtype, *args)

    made.__doc__ = make.__doc__
    return staticmethod(made)


def _batch(dtype: Any, shape: Any, data: Sequence[Any], device: Any = None, read_only: bool = False) -> Value:
    """Samples of a shape from their numbers in one list; given a number of classes, one-hot vectors of a list of class numbers."""
    if isinstance(shape, int):
        return Value.one_hot([[index] for index in data], shape, dtype, device)
    return Value(NDArrayView.from_dense(np.asarray(data, dtype).reshape(-1, *as_shape(shape)), device, read_only))


def _sequence(dtype: Any, shape: Any, data: Sequence[Any], is_start: bool = True, device: Any = None, read_only: bool = False) -> Value:
    """One sequence of samples of a shape from their numbers in one list; given a number of classes, of one-hot vectors."""
    if isinstance(shape, int):
        made = Value.one_hot([list(data)], shape, dtype, device)
        made.seq_starts = [is_start]
        return made
    return Value(NDArrayView.from_dense(np.asarray(data, dtype).reshape(1, -1, *as_shape(shape)), device, read_only), [is_start])


def _dense(dtype: Any, shape: Any, data: Sequence[Sequence[float]], *args: Any) -> Value:
    """Sequences of samples of a shape, each from its numbers in one list; then which are new, the device, whether it is read-only."""
    starts = list(args[0]) if args and isinstance(args[0], (list, tuple)) else None
    device, read_only = (*args[int(starts is not None) :], None, False)[:2]
    sequences = [np.asarray(part, dtype).reshape(-1, *as_shape(shape)) for part in data]
    return Value._of_sequences(sequences, device, starts, as_shape(shape), read_only)


def _one_hot(dtype: Any, shape: Any, data: Sequence[Sequence[int]], *args: Any) -> Value:
    """Sequences of one-hot vectors from class numbers; then which are new, the device, whether it is read-only."""
    starts = list(args[0]) if args and isinstance(args[0], (list, tuple)) else None
    device = (*args[int(starts is not None) :], None)[0]
    made = Value.one_hot([list(part) for part in data], shape, dtype, device)
    made.seq_starts = starts
    return made


class _ValueMembers:
    as_string = as_string
    get_storage_format = _ViewMembers.get_storage_format
    one_hot_skip = Value.ONE_HOT_SKIP
    create_batch_float, create_batch_double = _maker(_batch, np.float32), _maker(_batch, np.float64)
    create_sequence_float, create_sequence_double = _maker(_sequence, np.float32), _maker(_sequence, np.float64)
    create_dense_float, create_dense_double = _maker(_dense, np.float32), _maker(_dense, np.float64)
    create_one_hot_float, create_one_hot_double = _maker(_one_hot, np.float32), _maker(_one_hot, np.float64)

    @staticmethod
    def _as_best_data_type(var: Variable, sample: Any) -> Any:
        """Data as an array of the variable's type, where it is not one of floating-point numbers."""
        data = np.asarray(sample)
        return data if is_float(data.dtype) else data.astype(var.dtype or np.float32)

    def masked_count(self: Any) -> int:
        """How many steps are padding."""
        return 0 if self._lengths is None else max(self._lengths) * len(self._lengths) - sum(self._lengths)

    def erase(self: Any) -> None:
        """Nothing is to be done: memory is released with the last reference to the value."""

    def unpack_variable_value(self: Any, output_variable: Variable, *args: Any) -> Any:
        """The sequences as views, each with its steps; with True as second argument also which of them are new."""
        views = tuple(NDArrayView.from_data(part) for part in _with_steps(self, output_variable))
        starts = tuple(self.seq_starts or [True] * len(views))
        return (views, starts) if args and args[0] is True else views

    def copy_variable_value_to(self: Any, output_variable: Variable, sequences: list[Any]) -> None:
        """Fill a list: the numbers of each sequence in one list; class numbers where the variable is sparse."""
        sequences[:] = [
            part.argmax(axis=-1).reshape(-1).tolist() if output_variable.is_sparse else np.ravel(part).tolist()
            for part in map(_dense_of, _with_steps(self, output_variable))
        ]

    copy_variable_value_to_float = copy_variable_value_to_double = copy_variable_value_to


def _with_steps(value: Value, variable: Variable) -> list[Any]:
    parts = value.as_sequences(variable)
    return parts if variable.has_sequence_axis() else [part.reshape(1, *variable.shape) for part in parts]


def _dense_of(part: Any) -> Any:
    return part.toarray() if hasattr(part, "toarray") else part


class _DataMembers:
    data: Any = None
    num_sequences = number_of_sequences = num_samples = number_of_samples = 0
    end_of_sweep = sweep_end = False
    as_string = as_string


class _StreamMembers:
    _storage: ClassVar[dict[str, int]] = {"dense": 0, "sparse": 1}
    m_name, m_id = "", 0
    m_defines_mb_size = m_is_binary = False

    def as_string(self: Any) -> str:
        """Name and shape."""
        return f"{self.name}([{' x '.join(map(str, self.sample_shape))}])"

    @property
    def m_sample_layout(self: Any) -> Any:
        """Shape of a sample as an object of the engine."""
        from cntk.cntk_py.shapes import NDShape

        return NDShape.of(self.sample_shape)


class _SourceMembers:
    default_randomization_window_in_chunks = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
    full_data_sweep, infinitely_repeat = FULL_DATA_SWEEP, INFINITELY_REPEAT
    _runtime_deserializer_table: ClassVar[dict[int, Any]] = {}
    _deserializer_counter = 0
    _deserializer_factory = None
    _create_deserializer = only_in_the_engine("_create_deserializer", "deserializers go to the constructor")
    _get_config = only_in_the_engine("_get_config", "cntk_py.to_dictionary describes a MinibatchSourceConfig")

    def get_next_minibatch(
        self: Any, minibatch_size_in_samples: int, number_of_workers: int = 1, worker_rank: int = 0, device: Any = None
    ) -> Any:
        """See ``next_minibatch``."""
        return self.next_minibatch(
            minibatch_size_in_samples, device=device, num_data_partitions=number_of_workers, partition_index=worker_rank
        )


MEMBERS: dict[type, type] = {
    NDArrayView: _ViewMembers,
    Value: _ValueMembers,
    MinibatchData: _DataMembers,
    StreamInformation: _StreamMembers,
    MinibatchSource: _SourceMembers,
}
