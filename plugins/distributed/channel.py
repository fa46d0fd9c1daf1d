"""Channels: workers announce each exchange to one another, so that different exchanges never meet."""

from __future__ import annotations

import threading
import zlib
from typing import Any

import numpy as np

from .group import Group
from .whereabouts import whereabouts

ROOM = 64
"""Bytes of its own that each worker sends along."""

_WORDS = ROOM // 8


class Channel:
    """A group in which every exchange begins in the same way: every worker sends all others a description of it, and a few bytes.

    Neither MPI nor sockets check that workers use them alike: if they do not, they are ended by a signal, misread one another's messages,
    or wait for ever.  These announcements always have one size, and the few bytes make a second message unnecessary for
    small sums and for sizes.

    Args:
        number: which of the worker's channels this is.
        group: carries the exchanges, and nothing else uses it.

    Attributes:
        begun: how many exchanges this worker has begun on it.
        lock: held during an exchange, of which there is one at a time.
    """

    def __init__(self, number: int, group: Group) -> None:
        self.number, self.group, self.begun = number, group, 0
        self.lock = threading.Lock()
        self._own = np.zeros(1 + _WORDS, np.int64)
        self._all = np.zeros((group.size, 1 + _WORDS), np.int64)
        self._payload, self._payloads = self._own[1:].view(np.uint8), self._all[:, 1:]

    def meet(self, what: str, thread: int, payload: Any = None) -> Any:
        """Begin an exchange.

        Args:
            what: names the exchange and everything about it in which the workers must agree.
            thread: the thread whose program this is part of.
            payload: at most :data:`ROOM` bytes, as an array.

        Returns:
            All workers' bytes, as a matrix of integers of 64 bits with a row for each; valid until the next exchange.

        Raises:
            RuntimeError: the workers are in different exchanges; raised on all of them.
        """
        self._own[0] = zlib.crc32(what.encode())
        if payload is not None:
            self._payload[: len(payload)] = payload
        self.group.gather_equal(self._own, self._all)
        kinds = self._all[:, 0].tolist()
        if kinds.count(kinds[0]) != len(kinds):
            raise RuntimeError(unlike_exchanges(self._texts(f"{whereabouts(thread)} ({what})")))
        return self._payloads

    def _texts(self, text: str) -> list[str]:
        """The texts of all workers."""
        own, sizes = np.frombuffer(text.encode(errors="replace"), np.uint8), np.zeros((self.group.size, 1), np.int64)
        self.group.gather_equal(np.array([own.size], np.int64), sizes)
        texts = self.group.gather(own, sizes[:, 0])
        return [bytes(part).decode() for part in np.split(texts, np.cumsum(sizes)[:-1])]


def unlike_exchanges(places: list[str]) -> str:
    """The message that workers are in different exchanges, each at its place."""
    lines = [f"\n  worker {worker}: {place}" for worker, place in enumerate(places)]
    return "the workers do different things, and none can go on; all must call the same in the same order:" + "".join(lines)
