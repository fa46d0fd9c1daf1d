"""A minibatch source over data in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntk.core.common.tracebacks import answers
from cntk.core.graph.foreign import as_data
from cntk.core.types.arguments import Count, checked, mapping
from cntk.core.types.axis import Axis
from cntk.core.types.csr import is_csr, require_whole
from cntk.core.types.types import VariableType, as_type
from cntk.core.values.value import NDArrayView, Value
from cntk.io.constants import INFINITELY_REPEAT
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.readers.rows import StreamData, join_rows
from cntk.readers.streams import MinibatchData, StreamInformation
from cntk.readers.values import SequencesValue


class MinibatchSourceFromData(UserMinibatchSource):
    """Serves arrays, CSR matrices and lists of sequences in the order in which they lie.

    Minibatches end where the data ends, the last one may be short; then the data is served again.

    Args:
        data_streams: by name an array, CSR matrix or Value of samples, or a pair of the data and its type, which is how sequences
            are given: ``([array, array], Sequence[Tensor[3]])``.
        max_samples: samples after which it ends.  Of sequences, the longest of a place counts.

    Raises:
        ValueError: no streams, or no data in them.
        TypeError: data of another kind, or of different lengths.

    >>> source = C.io.MinibatchSourceFromData(dict(x=np.arange(5, dtype=np.float32)[:, None]), max_samples=5)
    >>> source.next_minibatch(3)[source.streams.x].asarray().ravel()
    array([0., 1., 2.], dtype=float32)
    >>> source.next_minibatch(3)[source.streams.x].asarray().ravel()
    array([3., 4.], dtype=float32)
    >>> source.next_minibatch(3)
    {}
    """

    @checked
    def __init__(self, data_streams: Mapping[str, Any], max_samples: Count = INFINITELY_REPEAT) -> None:
        if not mapping("MinibatchSourceFromData", "data_streams", data_streams):
            raise ValueError("MinibatchSourceFromData: no streams are given; say dict(name=data) or dict(name=(data, type))")
        self._data: dict[str, Any] = {}
        self._types: dict[str, VariableType] = {}
        for name, given in data_streams.items():
            data, stated = given if isinstance(given, tuple) else (given, None)
            if isinstance(data, Value):
                data = _sequences_of(data)
                if stated is None and isinstance(data, list):
                    stated = VariableType(dynamic_axes=Axis.default_input_variable_dynamic_axes())
            data = _as_arrays(f"MinibatchSourceFromData: stream '{name}'", data)
            self._types[name] = _type_of(name, data, stated)
            self._data[name] = data
        lengths = {name: _length(data) for name, data in self._data.items()}
        if len(set(lengths.values())) > 1:
            raise TypeError(f"MinibatchSourceFromData: all streams must have the same number of samples or sequences, got {lengths}")
        self._length = next(iter(lengths.values()))
        self._starts = {name: self._starts_of(name) for name in self._data}
        self._ends = np.cumsum(np.max([np.diff(starts) for starts in self._starts.values()], axis=0))
        self._max_samples = max_samples
        self._cursor = 0
        self._total_num_samples = 0
        super().__init__()

    def stream_infos(self) -> list[StreamInformation]:
        return [
            StreamInformation(name, i, "sparse" if type.is_sparse else "dense", type.dtype, type.shape)
            for i, (name, type) in enumerate(self._types.items())
        ]

    @answers
    def next_minibatch(
        self, num_samples: int, number_of_workers: int = 1, worker_rank: int = 0, device: Any = None
    ) -> dict[Any, MinibatchData]:
        """The next minibatch by stream, nothing at the end.

        Args:
            num_samples: how many samples, at most; a longer sequence is served alone.
            number_of_workers: into how many parts it is dealt out, sequence by sequence.
            worker_rank: which part to return.
            device: where the data is to live.
        """
        if self._total_num_samples >= self._max_samples:
            return {}
        begin = self._cursor
        before = int(self._ends[begin - 1]) if begin else 0
        room = min(num_samples, self._max_samples - self._total_num_samples)
        end = max(int(self._ends.searchsorted(before + room, side="right")), begin + 1)
        self._total_num_samples += int(self._ends[end - 1]) - before
        at_end = end == self._length
        sweep_end = at_end or self._total_num_samples >= self._max_samples
        self._cursor = 0 if at_end else end
        places = slice(begin + worker_rank, end, number_of_workers)
        if begin + worker_rank >= end:
            return {}
        return {info: self._part(info.name, places, sweep_end, device) for info in self.streams.values()}

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Where it stands: the place in the data, and the samples served."""
        return {"cursor": self._cursor, "total_num_samples": self._total_num_samples}

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Go on where a source over the same data stood."""
        self._cursor = checkpoint["cursor"]
        self._total_num_samples = checkpoint["total_num_samples"]

    def _starts_of(self, name: str) -> Any:
        """The first sample of each sequence of a stream, and the number of all at the end."""
        if not self._is_sequence(name):
            return np.arange(self._length + 1)
        return np.cumsum([0, *(part.shape[0] for part in self._data[name])])

    def _is_sequence(self, name: str) -> bool:
        return len(self._types[name].dynamic_axes or ()) > 1

    def _part(self, name: str, places: slice, sweep_end: bool, device: Any) -> MinibatchData:
        data, type, starts = self._data[name], self._types[name], self._starts[name]
        lengths = np.diff(starts)[places] if places.step > 1 else np.diff(starts[places.start : places.stop + 1])
        value: Value
        if self._is_sequence(name):
            rows = join_rows([_data_of(part) for part in data[places]]).astype(type.dtype, copy=False)
            value = SequencesValue(StreamData.of_lengths(rows, lengths), type.shape or (), device)
        else:
            value = Value(NDArrayView.from_data(_contiguous(_data_of(data)[places]), device))
        return MinibatchData(value, len(lengths), int(lengths.sum()), sweep_end)


def _as_arrays(owner: str, data: Any) -> Any:
    """The data with objects of other libraries converted to arrays."""
    data = as_data(owner, data)
    return [as_data(owner, part) for part in data] if isinstance(data, list) else data


def _sequences_of(value: Value) -> Any:
    """The sequences of a value, or the value if it holds single samples."""
    if value._lengths is None or (max(value._lengths) == 1 and value.seq_starts is None):
        return value
    return value._sparse_sequences(value.shape[2:]) if value.is_sparse else value.as_sequences()


def _data_of(given: Any) -> Any:
    return given.data._data if isinstance(given, Value) else given


def _contiguous(data: Any) -> Any:
    return data if is_csr(data) else np.ascontiguousarray(data)


def _type_of(name: str, data: Any, stated: Any) -> VariableType:
    """The type of a stream: the stated one, completed from the data."""
    where = f"MinibatchSourceFromData: stream '{name}'"
    if isinstance(data, list):
        parts = data
    elif isinstance(data, (np.ndarray, Value)) or is_csr(data):
        parts = [data]
    else:
        raise TypeError(f"{where}: expected a NumPy array, a CSR matrix, a Value or a list of arrays or CSR matrices, got {data!r:.60}")
    if not _length(data):
        raise ValueError(f"{where} is empty")
    wrong = [part for part in parts if not (isinstance(part, (np.ndarray, Value)) or is_csr(part))]
    if wrong:
        raise TypeError(f"{where}: expected a list of arrays or CSR matrices, got {type(wrong[0]).__name__} in it")
    for i, part in enumerate(parts):
        if is_csr(part):
            require_whole(where if part is data else f"{where}, position {i}", part)
    known = as_type(stated) if stated is not None else VariableType(is_sparse=is_csr(parts[0]) or getattr(parts[0], "is_sparse", False))
    if known is None:
        raise ValueError(f"{where}: expected a type such as Tensor[13] or Sequence[Tensor[13]], got {stated!r:.60}")
    is_sequence = len(known.dynamic_axes or ()) > 1
    if is_sequence != isinstance(data, list):
        raise TypeError(f"{where}: a list goes with a type such as Sequence[Tensor[3]], and such a type with a list; got {stated}")
    found = tuple(parts[0].shape[1:])
    for i, part in enumerate(parts):
        if tuple(part.shape[1:]) != found or not part.shape[0]:
            raise ValueError(f"{where}: expected sequences of shape {('steps', *found)}, got {part.shape} at position {i}")
    if not known.shape_is_known:
        known = known.updated_with(shape=found)
    elif not is_csr(parts[0]) and known.shape != found:
        raise ValueError(f"{where}: the type says shape {known.shape}, the data has {found}")
    if known.is_sparse is None:
        known = known.updated_with(is_sparse=is_csr(parts[0]))
    return known if known.dtype is not None else known.updated_with(dtype=np.dtype(parts[0].dtype).type)


def _length(data: Any) -> int:
    return len(data) if isinstance(data, (list, Value)) else int(data.shape[0])
