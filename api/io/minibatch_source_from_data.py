"""A minibatch source over data in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cntk.core.types import VariableType, as_type
from cntk.core.value import NDArrayView, Value, is_csr
from cntk.core.variable import input_variable
from cntk.io.constants import INFINITELY_REPEAT
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.readers.streams import MinibatchData, StreamInformation


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

    def __init__(self, data_streams: Mapping[str, Any], max_samples: int = INFINITELY_REPEAT) -> None:
        if not data_streams:
            raise ValueError("MinibatchSourceFromData: no streams are given; say dict(name=data) or dict(name=(data, type))")
        self._data: dict[str, Any] = {}
        self._types: dict[str, VariableType] = {}
        for name, given in data_streams.items():
            data, stated = given if isinstance(given, tuple) else (given, None)
            self._data[name], self._types[name] = data, _type_of(name, data, stated)
        lengths = {name: _length(data) for name, data in self._data.items()}
        if len(set(lengths.values())) > 1:
            raise TypeError(f"MinibatchSourceFromData: all streams must have the same number of samples or sequences, got {lengths}")
        self._length = next(iter(lengths.values()))
        self._counts = self._samples_of_each()
        self._max_samples = max_samples
        self._cursor = 0
        self._total_num_samples = 0
        super().__init__()

    def stream_infos(self) -> list[StreamInformation]:
        return [
            StreamInformation(name, i, "sparse" if type.is_sparse else "dense", type.dtype, type.shape)
            for i, (name, type) in enumerate(self._types.items())
        ]

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
        longest = np.cumsum(np.max([counts[begin:] for counts in self._counts.values()], axis=0))
        room = min(num_samples, self._max_samples - self._total_num_samples)
        end = begin + max(int(np.searchsorted(longest, room, side="right")), 1)
        self._total_num_samples += int(longest[end - begin - 1])
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

    def _samples_of_each(self) -> dict[str, Any]:
        """By stream, the samples of each sequence; 1 where samples are single."""
        return {
            name: np.array([part.shape[0] for part in data]) if self._is_sequence(name) else np.ones(self._length, np.int64)
            for name, data in self._data.items()
        }

    def _is_sequence(self, name: str) -> bool:
        return len(self._types[name].dynamic_axes or ()) > 1

    def _part(self, name: str, places: slice, sweep_end: bool, device: Any) -> MinibatchData:
        data = self._data[name]
        samples = int(self._counts[name][places].sum())
        count = len(self._counts[name][places])
        if isinstance(data, list):
            value = Value.create(input_variable(**self._types[name]), data[places], device=device)
        else:
            held = data.data._data if isinstance(data, Value) else data
            value = Value(NDArrayView.from_data(_contiguous(held[places]), device))
        return MinibatchData(value, count, samples, sweep_end)


def _contiguous(data: Any) -> Any:
    return data if is_csr(data) else np.ascontiguousarray(data)


def _type_of(name: str, data: Any, stated: Any) -> VariableType:
    """The type of a stream: what is stated, with what is open taken from the data."""
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
    known = as_type(stated) if stated is not None else VariableType(is_sparse=is_csr(parts[0]) or getattr(parts[0], "is_sparse", False))
    if known is None:
        raise ValueError(f"{where}: expected a type such as Tensor[13] or Sequence[Tensor[13]], got {stated!r:.60}")
    is_sequence = len(known.dynamic_axes or ()) > 1
    if is_sequence != isinstance(data, list):
        raise TypeError(f"{where}: a list goes with a type such as Sequence[Tensor[3]], and such a type with a list; got {stated}")
    found = tuple(parts[0].shape[1:])
    if not known.shape_is_known:
        known = known.updated_with(shape=found)
    elif not is_csr(parts[0]) and known.shape != found:
        raise ValueError(f"{where}: the type says shape {known.shape}, the data has {found}")
    if known.is_sparse is None:
        known = known.updated_with(is_sparse=is_csr(parts[0]))
    return known if known.dtype is not None else known.updated_with(dtype=np.dtype(parts[0].dtype).type)


def _length(data: Any) -> int:
    return len(data) if isinstance(data, (list, Value)) else int(data.shape[0])
