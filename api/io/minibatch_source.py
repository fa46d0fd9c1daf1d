"""The minibatch source: sequences of deserializers, shuffled and cut into minibatches."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from cntk.core.common.displayed import Displayed
from cntk.core.common.tracebacks import end_at_user
from cntk.core.types.arguments import Count, checked
from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, FULL_DATA_SWEEP, INFINITELY_REPEAT
from cntk.logging.report import TraceLevel
from cntk.readers.bundle import Bundle
from cntk.readers.deserializer import Deserializer
from cntk.readers.packer import Batch, Request
from cntk.readers.partitions import Share
from cntk.readers.reader import Kind, Order, Reader
from cntk.readers.sequencer import Limits
from cntk.readers.streams import MinibatchData, StreamInformation
from cntk.readers.user import UserChunks, UserDeserializer
from cntk.readers.values import SequencesValue
from cntk.variables import Record


class MinibatchSource(Displayed):
    """Serves minibatches of the sequences that deserializers read.

    By default it never ends, and shuffles: every sweep over the data has another order, which depends on the seed alone.  A minibatch
    may hold the end of a sweep and the beginning of the next.

    Args:
        deserializers: a deserializer, or several: sequences with the same id are put together then.
        max_samples: samples after which it ends; the last sequence is served whole.
        max_sweeps: sweeps after which it ends, in place of *max_samples*.
        randomization_window_in_chunks: chunks that are shuffled together, which are in memory at the same time; 0 for no shuffling.
        randomization_window_in_samples: the same as a number of samples, in place of chunks, which must be 0 then.
        randomization_seed: chooses the orders.
        trace_level: verbosity; kept for compatibility, warnings go through Python's ``warnings``.
        multithreaded_deserializer: False for no threads.  By default a few read chunks ahead, and one prepares minibatches that take
            long to make; True lets several call a ``UserDeserializer`` at once too.  The data is the same.
        frame_mode: whether every sequence has one sample; others are refused.
        truncation_length: serve pieces of sequences of so many steps, for training through time: a minibatch of *n* samples has
            ``n // truncation_length`` slots, in each of which sequences follow each other, and recurrences go on from the minibatch before.
        randomize: whether to shuffle.
        max_errors: how many sequences that cannot be read are left out before that is an error.

    Raises:
        RuntimeError: limits, windows or modes that exclude each other, streams of one name, data that is missing or of another format.
        ValueError: no deserializer, or a user's among others.
        TypeError: something that is not a deserializer.

    >>> points = C.io.NumpyDeserializer({'x': np.arange(6, dtype=np.float32).reshape(3, 2)})
    >>> source = C.io.MinibatchSource(points, randomize=False, max_sweeps=1)
    >>> x = C.input_variable(2)
    >>> while minibatch := source.next_minibatch(2, {x: source.streams.x}):
    ...     print(C.reduce_sum(x).eval(minibatch), minibatch[x].sweep_end)
    [1. 5.] False
    [9.] True
    """

    @checked
    def __init__(
        self,
        deserializers: Any,
        max_samples: Count = INFINITELY_REPEAT,
        max_sweeps: Count = INFINITELY_REPEAT,
        randomization_window_in_chunks: int = DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS,
        randomization_window_in_samples: int = 0,
        randomization_seed: int = 0,
        trace_level: Any = TraceLevel.Warning,
        multithreaded_deserializer: bool | None = None,
        frame_mode: bool = False,
        truncation_length: int = 0,
        randomize: bool = True,
        max_errors: int = 0,
    ) -> None:
        if frame_mode and truncation_length:
            raise RuntimeError("MinibatchSource: frame_mode and truncation_length exclude each other")
        if truncation_length < 0:
            raise ValueError(f"MinibatchSource: truncation_length must be a number of steps, got {truncation_length}")
        if max_samples != INFINITELY_REPEAT and max_sweeps != INFINITELY_REPEAT:
            raise RuntimeError(f"MinibatchSource: give max_samples or max_sweeps, not both; got {max_samples} and {max_sweeps}")
        if not randomize:
            randomization_window_in_chunks = randomization_window_in_samples = 0
        if randomization_window_in_chunks and randomization_window_in_samples:
            raise RuntimeError(
                "MinibatchSource: the randomization window is given in chunks or in samples, not both; "
                f"for {randomization_window_in_samples} samples say randomization_window_in_chunks=0 too"
            )
        deserializer = _one_of(deserializers, multithreaded_deserializer is True)
        self._streams = _checked(deserializer.stream_infos())
        self._is_infinite = max_samples == max_sweeps == INFINITELY_REPEAT
        sweeps = 1 if max_samples == FULL_DATA_SWEEP else None if max_sweeps == INFINITELY_REPEAT else max_sweeps
        samples = None if sweeps is not None or max_samples == INFINITELY_REPEAT else max_samples
        self._reader = Reader(
            deserializer,
            Order(randomization_window_in_chunks, randomization_window_in_samples, randomization_seed),
            Limits(samples, sweeps),
            Kind(frame_mode, truncation_length),
            multithreaded_deserializer is not False,
            max_errors,
        )
        weakref.finalize(self, self._reader.stop)

    def __reduce__(self) -> Any:
        raise TypeError(
            "a MinibatchSource has files and threads of its own and cannot be pickled or copied; make one where it is needed, and bring "
            "it to the same place: source.restore_from_checkpoint(other.get_checkpoint_state())"
        )

    def stream_infos(self) -> list[StreamInformation]:
        """The streams, in the order of the deserializers."""
        return list(self._streams)

    @property
    def streams(self) -> Record:
        """The streams by name."""
        return Record(**{info.name: info for info in self._streams})

    def stream_info(self, name: str) -> StreamInformation:
        """The stream called *name*.

        Raises:
            RuntimeError: there is none.
        """
        return stream_called(name, self._streams)

    __iter__ = None  # streams have names and not numbers

    def __getitem__(self, name: str) -> StreamInformation:
        return self.stream_info(name)

    def is_infinite(self) -> bool:
        """Whether it never ends."""
        return self._is_infinite

    def next_minibatch(
        self,
        minibatch_size_in_samples: int,
        input_map: Mapping[Any, StreamInformation] | None = None,
        device: Any = None,
        num_data_partitions: int | None = None,
        partition_index: int | None = None,
    ) -> dict[Any, MinibatchData]:
        """The next minibatch.

        Whole sequences are served, as many as have at most so many samples together, but one at least.  The samples of a sequence are
        those of its longest stream, or of the one that defines the minibatch size.  Of several partitions each has sequences of its own:
        without shuffling each so manieth, else those in each so manieth chunk of the sweep.

        Args:
            minibatch_size_in_samples: how many samples, of all partitions together.
            input_map: by input variable the stream that is for it.
            device: where the data is to live.
            num_data_partitions: how many share the data, and the samples of a minibatch.
            partition_index: which of them reads here.

        Returns:
            The data by stream, or by the keys of *input_map*; nothing at the end, or if there is no chunk for this partition.

        Raises:
            ValueError: a size or a partition that is none.
            RuntimeError: the data cannot be read.

        >>> points = C.io.NumpyDeserializer({'x': np.arange(4, dtype=np.float32)})
        >>> source = C.io.MinibatchSource(points, randomize=False, max_sweeps=1)
        >>> [data] = source.next_minibatch(3).values()
        >>> data.num_samples, data.asarray().ravel().tolist(), data.end_of_sweep
        (3, [0.0, 1.0, 2.0], False)
        """
        try:
            size = operator.index(minibatch_size_in_samples)
            if size < 1:
                raise ValueError(f"next_minibatch: the minibatch size must be a positive number of samples, got {size}")
            partitions, partition = num_data_partitions or 1, partition_index or 0
            if not 0 <= partition < partitions:
                raise ValueError(f"next_minibatch: the partition_index must lie in 0 … {partitions - 1}, got {partition}")
            wanted = input_map or {info: info for info in self._streams}
            for key, info in wanted.items():
                if info not in self._streams:
                    raise KeyError(f"next_minibatch: {key!r} is mapped to {info!r}, which is not a stream of this source: {self._streams}")
            place = self._reader.place
            try:
                batch = self._reader.next(Request(size, Share(partitions, partition)))
                return {} if batch is None else {key: _minibatch_data(batch, info, device) for key, info in wanted.items()}
            except KeyboardInterrupt:
                self._reader.go_back(place)  # the minibatch has not been delivered
                raise
        except Exception as error:
            end_at_user(error)
            raise

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Where it stands: how many samples lie before, and lists of numbers that tell the place with *truncation_length*, or where the
        sizes of chunks are not known before they are read, and which partition it has read.
        """
        return self._reader.state

    def restore_from_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        """Go on where a source over the same data, with the same arguments, stood.

        Raises:
            ValueError: it is not a state of such a source.

        >>> points = C.io.NumpyDeserializer({'x': np.arange(4, dtype=np.float32)})
        >>> source = C.io.MinibatchSource(points, randomize=False)
        >>> first, state, second = source.next_minibatch(2), source.get_checkpoint_state(), source.next_minibatch(2)
        >>> source.restore_from_checkpoint(state)
        >>> source.next_minibatch(2)[source.streams.x].asarray().ravel().tolist()
        [2.0, 3.0]
        """
        self._reader.state = checkpoint

    @property
    def memory_limit(self) -> int:
        """Bytes that data read from files may take, which can be set before the first minibatch: half for chunks that are shuffled
        together, half for chunks that are read ahead.  A larger chunk is in memory nevertheless."""
        return self._reader.memory_limit

    @memory_limit.setter
    def memory_limit(self, limit: int) -> None:
        self._reader.memory_limit = limit

    @property
    def current_position(self) -> dict[str, Any]:
        """Where it stands, which can be set: what :meth:`get_checkpoint_state` returns."""
        return self.get_checkpoint_state()

    @current_position.setter
    def current_position(self, position: Mapping[str, Any]) -> None:
        self.restore_from_checkpoint(position)


def stream_called(name: str, infos: Sequence[StreamInformation]) -> StreamInformation:
    """The stream called *name*.

    Raises:
        RuntimeError: there is not exactly one.
    """
    found = [info for info in infos if info.name == name]
    if len(found) != 1:
        raise RuntimeError(f"{'no stream' if not found else 'more than one stream'} is called '{name}'; the streams are {list(infos)}")
    return found[0]


def _one_of(deserializers: Any, is_parallel: bool) -> Deserializer:
    listed = list(deserializers) if isinstance(deserializers, (list, tuple)) else [deserializers]
    if not listed:
        raise ValueError("MinibatchSource: no deserializer is given")
    for one in listed:
        if isinstance(one, UserDeserializer):
            if len(listed) > 1:
                raise ValueError(
                    f"MinibatchSource: {type(one).__name__} is a UserDeserializer, which cannot be read together with others; derive it "
                    "from cntk.readers.deserializer.Deserializer, which knows keys and lengths"
                )
            return UserChunks(one, is_parallel)
        if not isinstance(one, Deserializer):
            raise TypeError(f"MinibatchSource: expected deserializers such as CTFDeserializer(...), got {type(one).__name__} {one!r:.80}")
    _checked([info for one in listed for info in one.stream_infos()])
    return listed[0] if len(listed) == 1 else Bundle(listed)


def _checked(infos: Sequence[StreamInformation]) -> list[StreamInformation]:
    names = [info.name for info in infos]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise RuntimeError(f"MinibatchSource: every stream needs a name of its own; {', '.join(twice)} is there more than once")
    defining = [info.name for info in infos if info.m_defines_mb_size]
    if len(defining) > 1:
        raise RuntimeError(f"MinibatchSource: one stream at most may define the minibatch size, got {', '.join(defining)}")
    return list(infos)


def _minibatch_data(batch: Batch, info: StreamInformation, device: Any) -> MinibatchData:
    data = batch.streams[info.name]
    value = SequencesValue(data, info.sample_shape, device, batch.continues)
    return MinibatchData(value, len(data), int(data.starts[-1]), batch.sweep_end)
