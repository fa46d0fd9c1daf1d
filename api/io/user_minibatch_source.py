"""Minibatch sources that users write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cntk.core.common.displayed import Displayed
from cntk.io.minibatch_source import stream_called
from cntk.readers.streams import MinibatchData, StreamInformation
from cntk.variables import Record


class UserMinibatchSource(Displayed):
    """Base class of minibatch sources that users write: implement ``stream_infos`` and ``next_minibatch``.

    Everything that ``stream_infos`` needs must exist before this class's ``__init__`` is called.

    >>> class Ones(C.io.UserMinibatchSource):
    ...     def stream_infos(self):
    ...         return [C.io.StreamInformation("x", 0, "dense", np.float32, (2,))]
    ...
    ...     def next_minibatch(self, num_samples, number_of_workers, worker_rank, device=None):
    ...         value = C.Value(np.ones((num_samples, 2), np.float32))
    ...         return {self.streams.x: C.io.MinibatchData(value, num_samples, num_samples, False)}
    >>> source = Ones()
    >>> source.next_minibatch(3, 1, 0)[source["x"]]
    MinibatchData(data=Value([3 x 2], CPU), samples=3, seqs=3)
    """

    def __init__(self) -> None:
        self.streams = Record(**{info.name: info for info in self.stream_infos()})

    def stream_infos(self) -> list[StreamInformation]:
        """The streams; to be implemented."""
        raise NotImplementedError(f"{type(self).__name__} must implement stream_infos: a list of StreamInformation")

    def next_minibatch(self, num_samples: int, number_of_workers: int, worker_rank: int, device: Any = None) -> dict[Any, MinibatchData]:
        """The next minibatch by stream, nothing at the end; to be implemented.

        Args:
            num_samples: how many samples are wanted.
            number_of_workers: how many share the data.
            worker_rank: for which of them the data is.
            device: where it is to live.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement next_minibatch, which returns MinibatchData by stream")

    def stream_info(self, name: str) -> StreamInformation:
        """The stream called *name*.

        Raises:
            RuntimeError: there is not exactly one.
        """
        return stream_called(name, self.stream_infos())

    __iter__ = None  # streams have names and not numbers

    def __getitem__(self, name: str) -> StreamInformation:
        return self.stream_info(name)

    def is_infinite(self) -> bool:
        """Whether it never ends."""
        return False

    def get_checkpoint_state(self) -> dict[str, Any]:
        """Where it stands; to be implemented by sources that can go on from there."""
        return {}

    def restore_from_checkpoint(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that ``get_checkpoint_state`` returned; to be implemented together with that.

        Raises:
            NotImplementedError: it has not been.
        """
        if state:
            raise NotImplementedError(f"{type(self).__name__} must implement restore_from_checkpoint to go on from the state {state!r:.80}")
