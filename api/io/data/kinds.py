"""Which kind of data it is, and the minibatch source for it; libraries are looked for where a program has imported them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cntk.core.types.csr import is_csr
from cntk.eval.tables import Columns, table_of
from cntk.io.data.columns import values_in
from cntk.io.data.iteration import IteratedData, IterationSource
from cntk.io.data.recognition import Wishes
from cntk.io.data.tables import (
    ItemDeserializer,
    TableDeserializer,
    classes_told,
    hugging_face,
    labels_of,
    names_of_places,
    parquet,
    records,
)
from cntk.io.minibatch_source import MinibatchSource
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.readers.reader import SAMPLES
from cntk.readers.streams import MinibatchData, StreamInformation

TAKEN = (
    "frames of pandas or Polars, tables of Arrow, paths of Parquet files, dictionaries or tuples of arrays, lists of rows, datasets of "
    "Hugging Face and PyTorch, DataLoaders, generators and functions that make these"
)


Rows = TableDeserializer | ItemDeserializer
"""Deserializers of data that can be read from any row on."""


class DataSource(MinibatchSource):
    """A minibatch source over data that can be read from any row on; made by :func:`cntk.io.from_data`.

    Args:
        deserializer: reads the data.
        window: chunks that are shuffled together, 0 for none.
        seed: chooses the orders.
        max_samples, max_sweeps: where it ends.

    Attributes:
        classes: by column with classes what these are called, or how many there are.
        samples_in_sweep: how many samples there are; None where only reading tells.
    """

    is_single_pass = False

    def __init__(self, deserializer: Rows, window: int, seed: int, max_samples: int, max_sweeps: int) -> None:
        self.classes = deserializer.streams.classes
        samples = [info.samples for info in deserializer.chunk_infos()]
        self.samples_in_sweep = sum(samples) if min(samples) > 0 else None
        super().__init__(deserializer, max_samples, max_sweeps, window, randomization_seed=seed)

    def next_minibatch(
        self,
        minibatch_size_in_samples: int,
        input_map: Mapping[Any, StreamInformation] | None = None,
        device: Any = None,
        num_data_partitions: int | None = None,
        partition_index: int | None = None,
    ) -> dict[Any, MinibatchData]:
        """As of any minibatch source; but where the number of samples is known, a minibatch of one worker ends where a sweep does."""
        size = minibatch_size_in_samples
        if self.samples_in_sweep and (num_data_partitions or 1) == 1:
            size = min(size, self.samples_in_sweep - self._reader.state[SAMPLES] % self.samples_in_sweep)
        return super().next_minibatch(size, input_map, device, num_data_partitions, partition_index)


def source_of(
    data: Any, wishes: Wishes, batched: bool, randomize: bool | None, order: tuple[int, int], max_samples: int, max_sweeps: int
) -> DataSource | IterationSource:
    """See :func:`cntk.io.from_data`."""
    if (deserializer := _deserializer(data, wishes)) is not None:
        if batched:
            raise ValueError(f"from_data: batched is about what is iterated over; of {_name(data)} minibatches are made here")
        return DataSource(deserializer, *order, max_samples, max_sweeps)
    if (iterated := _iterated(data, batched)) is None:
        raise TypeError(f"from_data: expected {TAKEN}; got {_name(data)} {data!r:.60}")
    if randomize:
        raise ValueError(f"from_data: {iterated.what} gives its data in its own order and cannot be randomized; shuffle where it is made")
    return IterationSource(iterated, wishes, max_samples, max_sweeps)


def _deserializer(data: Any, wishes: Wishes) -> Rows | None:
    """A deserializer of data that can be read from any row on; None of other data."""
    _require_data(data)
    if _is_path(data) or (isinstance(data, list) and data and all(map(_is_path, data))):
        return parquet(wishes, data)
    if _is_of(data, "datasets", "Dataset"):
        return hugging_face(wishes, data)
    if (table := table_of(data)) is not None:
        return TableDeserializer.of_table(wishes, table, classes_told(table))
    if (columns := _columns(data)) is not None:
        return TableDeserializer.of_table(wishes, Columns(columns, values_in(columns)))
    if isinstance(data, list):
        return _of_list(wishes, data)
    if hasattr(data, "__getitem__") and hasattr(data, "__len__") and not _is_of(data, "torch.utils.data", "IterableDataset"):
        return ItemDeserializer(wishes, data)
    return None


def _require_data(data: Any) -> None:
    """Refuse what is data of another shape than is needed."""
    if isinstance(data, (MinibatchSource, UserMinibatchSource)):
        raise TypeError(f"from_data: {_name(data)} is a minibatch source already")
    if isinstance(data, (str, os.PathLike)) and not _is_path(data):
        raise ValueError(
            f"from_data: paths are of Parquet files, *.parquet, got {os.fspath(data)!r}; read other files with the library for them, "
            "such as pandas.read_csv, or with a deserializer of cntk.io"
        )
    if _is_of(data, "datasets", "DatasetDict") or _is_of(data, "datasets", "IterableDatasetDict"):
        listed = ", ".join(map(repr, data))
        raise ValueError(f"from_data: the {_name(data)} has the parts {listed}; give one of them, such as data['train']")
    if _is_of(data, "polars", "LazyFrame"):
        raise ValueError("from_data: a LazyFrame has no rows before it is collected; give frame.collect()")


def _columns(data: Any) -> dict[str, Any] | None:
    """Columns of what has arrays by name or place."""
    if isinstance(data, Mapping):
        if not data:
            raise ValueError("from_data: the dictionary has no columns")
        return {str(name): _column(column) for name, column in data.items()}
    names = getattr(getattr(data, "dtype", None), "names", None)
    if names:
        return {name: data[name] for name in names}
    if hasattr(data, "__pandas_priority__"):
        return {str(data.name) if getattr(data, "name", None) is not None else "x": data}
    if hasattr(data, "tocsr") or isinstance(data, np.ndarray) or _is_of(data, "torch", "Tensor"):
        return {"x": _column(data)}
    if isinstance(data, tuple) and data and all(hasattr(part, "__len__") for part in data):
        return dict(zip(names_of_places(len(data)), map(_column, data), strict=True))
    return None


def _column(given: Any) -> Any:
    """A column that has a length and parts."""
    if hasattr(given, "tocsr"):
        return given if is_csr(given) else given.tocsr()
    return given if hasattr(given, "shape") else list(given)


def _of_list(wishes: Wishes, rows: list[Any]) -> TableDeserializer:
    if not rows:
        raise ValueError("from_data: the data has no rows")
    return TableDeserializer.of_rows(wishes, records(rows[:1]).names, len(rows), lambda start, stop: records(rows[start:stop]))


def _iterated(data: Any, batched: bool) -> IteratedData | None:
    """What can be iterated over; None of other data."""
    what = f"the {_name(data)}"
    if _is_of(data, "torch.utils.data", "DataLoader"):
        return IteratedData(what, lambda: iter(data), False, data.batch_sampler is not None)
    if hasattr(data, "read_next_batch") or isinstance(data, Iterator):
        return IteratedData(what, lambda: iter(data), True, batched)
    if _is_of(data, "datasets", "IterableDataset"):
        return IteratedData(what, lambda: iter(data), False, batched, labels_of(data.features))
    if hasattr(data, "to_batches"):  # Arrow's datasets of files
        return IteratedData(what, lambda: iter(data.to_batches()), False, batched)
    if hasattr(data, "__iter__"):
        return IteratedData(what, lambda: iter(data), False, batched)
    if callable(data):
        what = f"what {getattr(data, '__name__', _name(data))} returns"
        return IteratedData(what, lambda: _iterator(what, data()), False, batched)
    return None


def _iterator(what: str, given: Any) -> Iterator[Any]:
    if not hasattr(given, "__iter__"):
        raise TypeError(f"from_data: {what} is to be iterated over, and is {_name(given)} {given!r:.60}")
    return iter(given)


def _is_path(data: Any) -> bool:
    return isinstance(data, (str, os.PathLike)) and os.fspath(data).endswith((".parquet", ".pq"))


def _is_of(data: Any, module: str, name: str) -> bool:
    """Whether it is an object of a class of a module, if that has been imported."""
    kind = getattr(sys.modules.get(module), name, None)
    return isinstance(kind, type) and isinstance(data, kind)


def _name(data: Any) -> str:
    return type(data).__name__
