"""The format as a plugin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....core.graph.function import Function
from . import stream
from .reader import read_legacy
from .writer import write_legacy


class CNTKv1:
    """What ``save_as_legacy_model`` writes, and ``Function.load`` finds by its first bytes."""

    @staticmethod
    def recognises(head: Any) -> bool:
        """Whether a file that begins like this is one."""
        return bytes(head[:8]) == stream.text("BCN")

    @staticmethod
    def write(function: Function) -> Iterable[Any]:
        """The bytes of the file, in pieces."""
        return write_legacy(function)

    @staticmethod
    def read(data: Any, device: Any, source: str) -> Function:
        """The function that the bytes of a file describe."""
        return read_legacy(data, device, source)
