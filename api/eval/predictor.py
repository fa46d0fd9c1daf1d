"""The predictor: a model that is applied to data as programs have it, in chunks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

import numpy as np

from cntk.core.common.dtypes import as_dtype, dtype_name
from cntk.core.common.lock import ForkSafeLock
from cntk.core.graph.function import Function
from cntk.core.types.arguments import checked
from cntk.eval.rows import no_rows, rows_of
from cntk.eval.signature import Signature, TensorInfo
from cntk.eval.tables import Table, table_of
from cntk.plugins.models.files import written_whole
from cntk.readers.rows import StreamData, joined

BATCH_ROWS = 256
"""How many rows are computed at once unless a program says otherwise."""


class Predictor:
    """Applies a model to data of any kind and size, and gives results of the same kind, in the same order.

    It is pickled and called by several threads or processes, which engines for large data do.  A model given by its path is loaded when
    it is first used, by each process itself; a function travels in the pickle.

    ============================================= =======================================================
    data                                          result
    ============================================= =======================================================
    dictionary of arrays or lists                 dictionary of arrays, of lists of arrays for sequences
    DataFrame of pandas or Polars, table or       the same, with a column for each output
    record batch of Arrow
    list of dictionaries, one a row               the same
    array, list of samples or of sequences, for   array, list of arrays for sequences; a dictionary where
    a model with one input                        there are several outputs
    iterator over any of these                    iterator
    ============================================= =======================================================

    Dictionaries are as :meth:`~cntk.eval.signature.Signature.rows` takes them.  The columns of a table are numbers, or lists of numbers,
    nested or not: as many as a sample has, or for a sequence any multiple of that.  An input takes the column of its name, or the columns
    ``name_0``, ``name_1`` and so on, one for each element; a model with one input takes all columns where none has its name.

    Args:
        model: path of a model of any format that is known; its content as bytes; or a function.
        outputs: what to compute: names, functions or variables of the graph; None for all results but losses and metrics.
        batch_rows: how many rows are computed at once.
        dtype: element type of the results; None for that of the model.
        columns: by input the column, or a list of columns, that it takes in tables and dictionaries.
        keep: names of columns that are passed on to the result.
        device: the device to compute on; the default device if None.

    Raises:
        ValueError: *batch_rows* is less than 1; when data is given, it does not fit: an input has no column, shapes differ.
        TypeError: *model* is none of these, or data is of no known kind.

    >>> x = C.input_variable(2, name='x')
    >>> predictor = C.eval.Predictor(C.layers.Dense(1, init=1, name='z')(x))
    >>> predictor({'x': [[1, 2], [3, 4]]})
    {'z': array([[3.],
           [7.]], dtype=float32)}
    >>> predictor([[5, 6]])
    array([[11.]], dtype=float32)
    """

    @checked
    def __init__(
        self,
        model: Any,
        outputs: Any = None,
        batch_rows: int = BATCH_ROWS,
        dtype: Any = None,
        columns: Mapping[str, str | Sequence[str]] | None = None,
        keep: Sequence[str] = (),
        device: Any = None,
    ) -> None:
        if batch_rows < 1:
            raise ValueError(f"Predictor: batch_rows must be a whole number of 1 at least, got {batch_rows!r}")
        if not isinstance(model, (str, os.PathLike, bytes, bytearray, Function)):
            raise TypeError(f"Predictor: expected a path, the bytes of a model or a function, got {type(model).__name__} {model!r:.80}")
        self._model = os.path.abspath(os.fspath(model)) if isinstance(model, (str, os.PathLike)) else model
        self._outputs = outputs
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._columns = {name: [given] if isinstance(given, str) else list(given) for name, given in (columns or {}).items()}
        self._keep = list(keep)
        self._device = device
        self.batch_rows = int(batch_rows)
        self._lock = ForkSafeLock()
        self._signature: Signature | None = None
        if isinstance(model, Function):
            self._require_columns(self.signature)

    @property
    def signature(self) -> Signature:
        """Names and types of inputs and outputs; the model is loaded for it.

        Raises:
            ValueError: there is no such file, or the model has no such output.
        """
        with self._lock:
            if self._signature is None:
                function = self._model if isinstance(self._model, Function) else Function.load(self._model, self._device)
                found = Signature(function, self._outputs)
                if without := [info for info in found.outputs if not info.has_batch_axis]:
                    raise ValueError(
                        f"Predictor: the output {without[0]} has no batch axis, so no value for each row; choose others with outputs="
                    )
                self._require_columns(found)
                self._signature = found
            return self._signature

    def __call__(self, data: Any) -> Any:
        """Compute the outputs; see :class:`Predictor`."""
        if isinstance(data, Iterator):
            return map(self, data)
        table = table_of(data)
        if table is not None:
            return table.made(self.kept_columns(table.names), self.predict_table(table))
        if isinstance(data, Mapping):
            return self._of_dictionary(data)
        if isinstance(data, (list, tuple)) and data and all(isinstance(row, Mapping) for row in data):
            return self._of_records(data)
        return self._of_one(data)

    def make_predict_fn(self) -> Callable[..., Any]:
        """What Spark's ``predict_batch_udf`` asks for: a function of one array for each input, in order.

        It returns an array, or a dictionary of arrays where there are several outputs; sequences that end earlier are padded with zeros.

        >>> x = C.input_variable(2)
        >>> predictor = C.eval.Predictor(C.layers.Dense(1, init=1)(x))
        >>> predictor.make_predict_fn()(np.array([[1., 2.]]))
        array([[3.]], dtype=float32)
        """
        signature = self.signature

        def predict(*arrays: Any) -> Any:
            if len(arrays) != len(signature.inputs):
                takes = ", ".join(map(str, signature.inputs))
                raise ValueError(f"the model takes {len(signature.inputs)} arrays, got {len(arrays)}: {takes}")
            found = signature.padded(self._of_dictionary({info.name: array for info, array in zip(signature.inputs, arrays, strict=True)}))
            return next(iter(found.values())) if len(signature.outputs) == 1 else found

        return predict

    # ---- tables ----

    def predict_table(self, table: Table) -> dict[TensorInfo, StreamData]:
        """Results for the rows of a table, as rows by output."""
        matched = self.columns_of_inputs(table.names)

        def rows(start: int, stop: int) -> dict[str, Any]:
            part = table.part(start, stop)
            return {info.name: _rows_of_columns(info, part, names) for info, names in matched.items()}

        return self._predict(rows, len(table))

    def columns_of_inputs(self, names: Sequence[str]) -> dict[TensorInfo, list[str]]:
        """The columns that each input takes, of these.

        Raises:
            ValueError: an input has none.
        """
        found = {}
        for info in self.signature.inputs:
            if not info.has_batch_axis:
                raise ValueError(f"the input {info} has no batch axis, so no column of a table; give a dictionary of arrays instead")
            found[info] = self._columns_of(info, names)
        return found

    def _columns_of(self, info: TensorInfo, names: Sequence[str]) -> list[str]:
        elements = None if None in info.shape else int(np.prod([size or 0 for size in info.shape]))
        if info.name in self._columns:
            wanted = self._columns[info.name]
        elif info.name in names:
            wanted = [info.name]
        elif elements and f"{info.name}_0" in names:
            wanted = [f"{info.name}_{i}" for i in range(elements)]
        else:
            wanted = [name for name in names if name not in self._keep]
            if len(self.signature.inputs) > 1 or len(wanted) not in (1, elements):
                raise ValueError(
                    f"no column for the input {info}; there are {_listed(names)}. Name it {info.name!r}, or say which ones it takes: "
                    f"columns={{{info.name!r}: {_listed(names[: elements or 1], '[{}]')}}}"
                )
        if missing := [name for name in wanted if name not in names]:
            raise ValueError(f"no column {missing[0]!r} for the input {info}; there are {_listed(names)}")
        if len(wanted) > 1 and len(wanted) != elements:
            raise ValueError(
                f"the input {info} takes one column, or one for each of its {elements} elements; got {len(wanted)}: {_listed(wanted)}"
            )
        return wanted

    def kept_columns(self, names: Sequence[str]) -> list[str]:
        """The columns that are passed on to the result.

        Raises:
            ValueError: one is not among these.
        """
        if missing := [name for name in self._keep if name not in names]:
            raise ValueError(f"keep: there is no column {missing[0]!r}; there are {_listed(names)}")
        return self._keep

    # ---- other kinds ----

    def _of_dictionary(self, data: Mapping[str, Any]) -> dict[str, Any]:
        named = self._by_input(data)
        batched = {info.name: named[info.name] for info in self.signature.inputs if info.has_batch_axis and info.name in named}
        found = self._predict(*self._parts(named, batched))
        kept = {name: data[name] for name in self.kept_columns(list(data))}
        return {**kept, **{info.name: _shown(info, rows) for info, rows in found.items()}}

    def _by_input(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data under the names of the inputs."""
        if all(info.name in data and info.name not in self._columns for info in self.signature.inputs):
            return dict(data)
        matched = self.columns_of_inputs(list(data))
        return {**data, **{info.name: _joined_columns([data[name] for name in names]) for info, names in matched.items()}}

    def _parts(self, named: Mapping[str, Any], batched: Mapping[str, Any]) -> tuple[Callable[[int, int], dict[str, Any]], int]:
        """How the rows from one to another are taken, and how many there are.  Arrays are converted part by part, as they may be large."""
        signature = self.signature
        with_lengths = any(signature.lengths_name(info) in named for info in signature.inputs if info.sequence_axis)
        if batched and not with_lengths and all(type(array) is np.ndarray and array.ndim for array in batched.values()):
            count = max(len(array) for array in batched.values())
            if all(len(array) == count for array in batched.values()):
                return lambda start, stop: signature.rows({**named, **{name: array[start:stop] for name, array in batched.items()}}), count
        rows = signature.rows(named)
        count = max((len(rows[name]) for name in batched), default=1)
        return lambda start, stop: {name: one.take(slice(start, stop)) if name in batched else one for name, one in rows.items()}, count

    def _of_records(self, data: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        first = list(data[0])
        for place, row in enumerate(data):
            if row.keys() != data[0].keys():
                raise ValueError(
                    f"row {place} has the entries {_listed(list(row))}, and row 0 has {_listed(first)}; all need the same ones"
                )
        found = self._of_dictionary({name: [row[name] for row in data] for name in first})
        return [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]

    def _of_one(self, data: Any) -> Any:
        inputs = self.signature.inputs
        if isinstance(data, (str, bytes, type(None))):
            raise TypeError(f"Predictor: expected arrays, tables, lists or iterators, got {type(data).__name__} {data!r:.80}")
        if len(inputs) != 1:
            raise ValueError(f"the model has {len(inputs)} inputs, so data comes as a dictionary or table: {', '.join(map(str, inputs))}")
        found = self._predict(*self._parts({inputs[0].name: data}, {inputs[0].name: data}))
        results = {info.name: _shown(info, rows) for info, rows in found.items()}
        return next(iter(results.values())) if len(results) == 1 else results

    # ---- computing ----

    def _predict(self, rows: Callable[[int, int], dict[str, Any]], count: int) -> dict[TensorInfo, StreamData]:
        """Results for so many rows, of which *rows* gives those from one to another."""
        outputs = {info: _Collected(info, count, self._dtype) for info in self.signature.outputs}
        for start in range(0, count, self.batch_rows):
            stop = min(start + self.batch_rows, count)
            for info, found in self.signature.compute(rows(start, stop), self._device).items():
                outputs[info].add(found)
        return {info: one.rows() for info, one in outputs.items()}

    # ---- pickles and descriptions ----

    def description(self) -> dict[str, Any]:
        """What is computed, in words and numbers that JSON has: equal ones give equal results."""
        if isinstance(self._model, str):
            model: Any = [self._model, *stamp_of(self._model)]
        else:
            pieces = written_whole(self._model) if isinstance(self._model, Function) else [self._model]
            digest = sha256()
            for piece in pieces:
                digest.update(piece)
            model = digest.hexdigest()
        columns, dtype = {name: list(given) for name, given in self._columns.items()}, dtype_name(self._dtype)
        return {"model": model, "signature": str(self.signature), "columns": columns, "keep": self._keep, "dtype": dtype}

    def _require_columns(self, signature: Signature) -> None:
        for name in self._columns:
            signature.input(name)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_lock": None, "_signature": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = ForkSafeLock()

    def __repr__(self) -> str:
        model = self._model if isinstance(self._model, (str, Function)) else f"{len(self._model)} bytes"
        return f"Predictor({model}, batch_rows={self.batch_rows})"


class _Collected:
    """Results of an output, chunk after chunk, in an array of all rows where each has one."""

    def __init__(self, info: TensorInfo, count: int, dtype: Any) -> None:
        self._info, self._count = info, count
        self._dtype = info.dtype if dtype is None else dtype
        self._array: Any = None
        self._parts: list[StreamData] = []
        self._filled = 0

    def add(self, part: StreamData) -> None:
        rows = part.rows
        if self._info.sequence_axis is not None:
            self._parts.append(StreamData(rows.astype(self._dtype, copy=False), part.starts))
            return
        if self._array is None:
            self._array = np.empty((self._count, *rows.shape[1:]), self._dtype)
        if rows.shape[1:] != self._array.shape[1:]:
            shapes = f"{self._array.shape[1:]} and {rows.shape[1:]}"
            raise ValueError(
                f"the output {self._info} has results of the shapes {shapes}; give data of one size, or batch_rows of all rows"
            )
        self._array[self._filled : self._filled + len(rows)] = rows
        self._filled += len(rows)

    def rows(self) -> StreamData:
        if self._array is not None:
            return StreamData.of_steps(self._array)
        if self._parts:
            return joined(self._parts)
        return StreamData(no_rows(self._info).astype(self._dtype), np.zeros(1, np.intp))


def stamp_of(path: str) -> list[int]:
    """Size of a file and time of its last change, which tell whether it has changed."""
    status = os.stat(path)
    return [status.st_size, status.st_mtime_ns]


def _rows_of_columns(info: TensorInfo, part: Table, names: Sequence[str]) -> StreamData:
    """The rows of an input, of one column or of one for each element."""
    if len(names) == 1:
        return part.rows(info, names[0])
    single = TensorInfo(info.name, info.dtype, (), info.sequence_axis)
    columns = [part.rows(single, name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if not np.array_equal(column.starts, columns[0].starts):
            raise ValueError(f"columns {names[0]!r} and {name!r} are elements of the input {info}, but have sequences of unequal lengths")
    rows = np.stack([column.rows for column in columns], axis=1)
    return rows_of(info, StreamData(rows, columns[0].starts))


def _joined_columns(columns: Sequence[Any]) -> Any:
    return columns[0] if len(columns) == 1 else np.stack([np.asarray(column) for column in columns], axis=-1)


def _shown(info: TensorInfo, rows: StreamData) -> Any:
    """Results as an array, or a list of arrays for sequences."""
    if info.sequence_axis is None:
        return rows.rows
    return [rows.rows[start:stop] for start, stop in pairwise(rows.starts.tolist())]


def _listed(names: Sequence[str], form: str = "{}") -> str:
    shown = ", ".join(map(repr, names[:20])) or "none"
    return form.format(f"{shown}, … ({len(names)} in all)" if len(names) > 20 else shown)
