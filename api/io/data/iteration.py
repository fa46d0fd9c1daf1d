"""A minibatch source over what can only be iterated over: generators, data loaders, readers of record batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np

from cntk.eval.tables import Columns, Table, table_of
from cntk.io.constants import INFINITELY_REPEAT
from cntk.io.data.columns import Streams, values_in
from cntk.io.data.recognition import HEAD, Wishes, streams_of
from cntk.io.data.tables import as_record, records
from cntk.io.user_minibatch_source import UserMinibatchSource
from cntk.readers.deserializer import Chunk
from cntk.readers.rows import StreamData, joined
from cntk.readers.streams import MinibatchData, StreamInformation
from cntk.readers.values import SequencesValue


class IteratedData:
    """What gives its rows one after another, once or as often as it is asked.

    Args:
        what: what it is, for errors.
        begin: gives an iterator over rows, or over minibatches of them.
        is_single_pass: whether it does so once.
        are_minibatches: whether items are dictionaries, or tuples, of columns; tables always are minibatches.
        told: by column its classes, where its library tells them.
    """

    def __init__(
        self,
        what: str,
        begin: Callable[[], Iterator[Any]],
        is_single_pass: bool,
        are_minibatches: bool,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        self.what, self._begin, self.is_single_pass, self._are_minibatches = what, begin, is_single_pass, are_minibatches
        self.told = told or {}
        self._items: Iterator[Any] = iter(())
        self._is_begun = False

    def begin(self) -> None:
        """Begin to iterate, if possible.

        Raises:
            ValueError: it has been iterated over, and cannot be again.
        """
        if self._is_begun and self.is_single_pass:
            raise ValueError(
                f"from_data: {self.what} gives its data once, and has given them; for several sweeps, or validation again and again, give "
                "the function that makes it, from_data(rows) rather than from_data(rows()), or a list of what it gives"
            )
        self._is_begun = True
        self._items = self._begin()

    def head(self) -> Table:
        """The first rows, which come again.

        Raises:
            ValueError: there are none.
        """
        self.begin()
        first = self.next(1)
        if first is None:
            raise ValueError(f"from_data: {self.what} gives no data")
        if self.is_single_pass:
            self._items = chain([first], self._items)
        return first

    def next(self, rows: int) -> Table | None:
        """The next minibatch, or at most so many rows; None at the end."""
        item = next(self._items, None)
        if item is None:
            return None
        table = item if isinstance(item, Table) else table_of(item)
        if table is not None:
            return table
        if self._are_minibatches:
            columns = as_record(item)
            return Columns(columns, values_in(columns))
        return records([item, *islice(self._items, max(rows - 1, 0))])

    def read(self, streams: Streams, table: Table) -> Chunk:
        """The rows of a table, by stream.

        Raises:
            ValueError: values are missing or are not what they are to be.
        """
        try:
            return streams.read(table)
        except ValueError as error:
            hint = "" if self._are_minibatches else ". If its items are minibatches, and not rows, say C.io.from_data(data, batched=True)"
            raise ValueError(f"{error} (in {self.what}){hint}") from None


class IterationSource(UserMinibatchSource):
    """Serves the rows of an iteration in their order, in minibatches of the wanted size.

    Args:
        data: gives the rows.
        wishes: what streams are made of the columns.
        max_samples: samples after which it ends.
        max_sweeps: how often all rows are served.

    Attributes:
        classes: by column with classes what these are called, or how many there are.

    Raises:
        ValueError: there are no rows, a column can be no stream, or *max_sweeps* are more than there can be.
    """

    samples_in_sweep = None

    def __init__(self, data: IteratedData, wishes: Wishes, max_samples: int, max_sweeps: int) -> None:
        if data.is_single_pass and 1 < max_sweeps < INFINITELY_REPEAT:
            raise ValueError(
                f"from_data: {data.what} gives its data once, so there are no {max_sweeps} sweeps; give the function that makes it, "
                "from_data(rows) rather than from_data(rows()), or a list of what it gives"
            )
        self._data = data
        head = data.head()
        self._read: Streams = streams_of(wishes, head.names, head.part(0, min(len(head), HEAD)), None, data.told)
        self.classes = self._read.classes
        self._max_samples, self._max_sweeps = max_samples, 1 if data.is_single_pass else max_sweeps
        self._samples = self._sweeps = self._sequences = 0
        self._waiting: list[Chunk] = []
        self._is_begun, self._has_ended = data.is_single_pass, False
        super().__init__()

    @property
    def is_single_pass(self) -> bool:
        """Whether its data can be served once only."""
        return self._data.is_single_pass

    def stream_infos(self) -> list[StreamInformation]:
        return self._read.infos()

    def is_infinite(self) -> bool:
        return self._max_samples == self._max_sweeps == INFINITELY_REPEAT

    def next_minibatch(
        self,
        num_samples: int,
        number_of_workers: int = 1,
        worker_rank: int = 0,
        device: Any = None,
        input_map: Mapping[Any, StreamInformation] | None = None,
    ) -> dict[Any, MinibatchData]:
        """The next minibatch by stream, or by the keys of *input_map*; nothing at the end.

        Args:
            num_samples: how many samples, at most; a longer sequence is served alone.
            number_of_workers: into how many parts it is dealt out, row by row.
            worker_rank: which part to return.
            device: where the data is to live.
            input_map: by input variable the stream that is for it; may stand in the place of *number_of_workers*.

        Raises:
            ValueError: the data cannot be read, or all has been served and cannot be again.
        """
        if isinstance(number_of_workers, Mapping):
            number_of_workers, input_map = 1, number_of_workers
        left = self._max_samples - self._samples
        if left <= 0 or self._sweeps >= self._max_sweeps:
            if self._has_ended and self.is_single_pass:
                self._data.begin()  # which says why it cannot
            self._has_ended = True
            return {}
        found = self._taken(min(num_samples, left))
        sweep_end = not self._waiting
        first = next(iter(found.values()))
        samples = int(_lengths_in(found).sum())
        self._samples += samples
        self._sequences += len(first)
        if sweep_end:
            self._sweeps, self._sequences, self._is_begun = self._sweeps + 1, 0, False
        sweep_end = sweep_end or self._samples >= self._max_samples
        places = np.arange(worker_rank, len(first), number_of_workers)
        if not len(places):
            return {}
        wanted = input_map or {info: info for info in self.streams.values()}
        return {key: _minibatch_data(found[info.name].take(places), info, device, sweep_end) for key, info in wanted.items()}

    def _taken(self, size: int) -> Chunk:
        """At most so many samples, and what follows is waiting then unless the sweep ends."""
        if not self._is_begun:
            self._data.begin()
            self._is_begun = True
        self._wait_for(size + 1)
        together = _joined(self._waiting)
        ends = np.cumsum(_lengths_in(together))
        count = max(int(ends.searchsorted(size, side="right")), 1)
        total = len(ends)
        self._waiting = [_part(together, count, total)] if count < total else []
        return _part(together, 0, count) if count < total else together

    def _wait_for(self, samples: int) -> None:
        """Have so many samples waiting, two sequences at least, if that many are left."""
        held = sum(int(_lengths_in(chunk).sum()) for chunk in self._waiting)
        count = sum(len(next(iter(chunk.values()))) for chunk in self._waiting)
        while held < samples or count < 2:
            table = self._data.next(samples - held)
            if table is None:
                break
            if len(table):
                chunk = self._data.read(self._read, table)
                self._waiting.append(chunk)
                held += int(_lengths_in(chunk).sum())
                count += len(table)
        if not self._waiting:
            raise ValueError(f"from_data: {self._data.what} gives no data in this sweep")

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Where it stands: the sweep, the rows served in it, and the samples served in all."""
        return {"sweeps": self._sweeps, "sequences": self._sequences, "samples": self._samples}

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Go on where a source over the same data stood, whose rows are gone through again.

        Raises:
            ValueError: it is not the state of such a source, or the data is beyond that and cannot begin again.
        """
        if any(not isinstance(state.get(name), int) for name in ("sweeps", "sequences", "samples")):
            raise ValueError(f"from_data: expected a state with sweeps, sequences and samples, got {state!r:.80}")
        if dict(state) == self.get_checkpoint_state():
            return
        is_fresh = not self._samples and not self._waiting
        if not (is_fresh and self.is_single_pass):
            self._data.begin()
        self._waiting, self._is_begun, self._has_ended = [], True, False
        left = state["sequences"] if state["sweeps"] < self._max_sweeps else 0
        while left:
            table = self._data.next(left)
            if table is None:
                raise ValueError(f"from_data: {self._data.what} has fewer rows than the {state['sequences']} of the state, by {left}")
            if len(table) > left:
                self._waiting = [self._data.read(self._read, table.part(left, len(table)))]
            left -= min(len(table), left)
        self._sweeps, self._sequences, self._samples = state["sweeps"], state["sequences"], state["samples"]


def _lengths_in(chunk: Chunk) -> Any:
    """Samples of each sequence, those of the longest stream."""
    return np.max([data.lengths for data in chunk.values()], axis=0)


def _joined(chunks: list[Chunk]) -> Chunk:
    return chunks[0] if len(chunks) == 1 else {name: joined([chunk[name] for chunk in chunks]) for name in chunks[0]}


def _part(chunk: Chunk, start: int, stop: int) -> Chunk:
    return {name: data.take(slice(start, stop)) for name, data in chunk.items()}


def _minibatch_data(data: StreamData, info: StreamInformation, device: Any, sweep_end: bool) -> MinibatchData:
    return MinibatchData(SequencesValue(data, info.sample_shape, device), len(data), int(data.starts[-1]), sweep_end)
