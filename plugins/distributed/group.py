"""What MPI and sockets have in common: groups of workers that exchange bytes, and messages between watches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np


class Group(ABC):
    """Workers that exchange bytes, all of them at once and one exchange at a time.

    Arrays are contiguous; what is said of bytes are arrays of ``uint8``.

    Attributes:
        rank, size: number of this worker, and how many there are.
    """

    rank: int
    size: int

    @abstractmethod
    def gather_equal(self, own: Any, found: Any) -> None:
        """Write the workers' arrays, all of one size and type, into the rows of a matrix; meant for small ones."""

    @abstractmethod
    def gather(self, own: Any, sizes: Any) -> Any:
        """The bytes of all workers, one after another; *sizes* says how many each has."""

    @abstractmethod
    def exchange(self, pieces: Sequence[Any], sizes: Any) -> Any:
        """Send the first of these bytes to the first worker, …; what each has sent to this one, one after another.

        Args:
            pieces: bytes for each worker.
            sizes: how many bytes each worker has for this one.
        """

    @abstractmethod
    def broadcast(self, data: Any, root: int) -> None:
        """Overwrite bytes with those of the worker *root*."""

    @abstractmethod
    def swap(self, sent: Any, to: int, found: Any, source: int) -> None:
        """Send an array to one worker while another one's is received into *found*."""

    def add_up(self, array: Any) -> None:
        """Replace an array of one axis by its sum over the workers.

        Terms are added in an order that depends on sizes alone: every worker has the same bits, and so has every kind of group.
        """
        if array.nbytes * self.size <= GATHERED_BYTES:
            terms = np.empty((self.size, array.size), array.dtype)
            self.gather_equal(array, terms)
            np.add.reduce(terms, 0, out=array)
        else:
            self.add_up_in_ring(array)

    def add_up_in_ring(self, array: Any) -> None:
        """The same of an array that is large."""
        in_ring(self, array, self.swap, self._swap_and_add)

    def _swap_and_add(self, sent: Any, to: int, total: Any, source: int) -> None:
        """Send an array to one worker while another one's, of one element more or less, is added to *total*."""
        count = max(-(-total.nbytes // PIECE_BYTES), 1)
        room = np.empty(-(-total.size // count), total.dtype)
        for piece, part in zip(np.array_split(sent, count), np.array_split(total, count), strict=True):
            term = room[: part.size]
            self.swap(piece, to, term, source)
            np.add(term, part, out=part)


Swap = Callable[[Any, int, Any, int], None]


def in_ring(group: Group, array: Any, swap: Swap, swap_and_add: Swap) -> None:
    """Each worker's share of an array goes round all of them twice: terms are added on its first way, and the sum is left on its second."""
    rank, size = group.rank, group.size
    right, left = (rank + 1) % size, (rank - 1) % size
    shares = np.array_split(array, size)
    for step in range(size - 1):
        swap_and_add(shares[rank - step], right, shares[rank - step - 1], left)
    for step in range(size - 1):
        swap(shares[(rank + 1 - step) % size], right, shares[rank - step], left)


GATHERED_BYTES = 2**15
"""Where all workers' terms together take no more, each worker adds all of them up, which takes a single exchange."""

PIECE_BYTES = 2**21
"""Terms that are added travel in pieces of about this size, which stay in a processor's cache."""


class Post(ABC):
    """Messages between the watches of workers, for which nobody waits.

    Attributes:
        rank, size: number of this worker, and how many there are.
        host: name of its machine.
        has_threads: whether messages can be exchanged on one thread while groups exchange something on others.
    """

    rank: int
    size: int
    host: str
    has_threads: bool = True

    @abstractmethod
    def send(self, worker: int, tag: int, data: bytes) -> None:
        """Send a message to a worker."""

    @abstractmethod
    def received(self) -> list[tuple[int, int, bytes]]:
        """The messages that have come: from whom, tag and data."""

    def lost(self, left: Collection[int]) -> str:
        """Which worker, of those that have not *left*, cannot be reached any more, and how that shows; empty if all can."""
        return ""

    @abstractmethod
    def abort(self) -> None:
        """End this process and all others at once."""

    @abstractmethod
    def close(self) -> None:
        """Disconnect, after all workers have taken leave."""

    @abstractmethod
    def forget(self) -> None:
        """Let go of the connection in a forked process, without a word to the others."""
