"""What a server takes at most."""

from __future__ import annotations

from typing import NamedTuple


class Limits(NamedTuple):
    """Limits of a server; a request beyond one is refused.

    Attributes:
        body: bytes of a request.
        rows: samples of a request, and of those that are computed together.
        elements: numbers of a request's tensors, all together.
        queue: samples that wait for a model.
        deadline: seconds that a request may take.
        delay: seconds that a request waits for others to be computed with.
        grace: seconds that requests have to end when the server is told to stop.
        connections: connections at a time.
    """

    body: int = 16 * 2**20
    rows: int = 1024
    elements: int = 2**24
    queue: int = 8192
    deadline: float = 30.0
    delay: float = 0.0
    grace: float = 30.0
    connections: int = 1000
