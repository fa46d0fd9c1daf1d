"""The model format of CNTK 2: a dictionary in protobuf's wire format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...core.graph.function import Function
from ...core.graph.nodes import Primitive
from ...core.storage.file_magic import kind_of
from ..protobuf import DamagedFile
from .reader import alike, read_function, read_structure
from .wire import MARK, view_dictionary, write_file
from .writer import write_function, write_structure


class CNTKv2:
    """What ``Function.save`` and ``Function.load`` use for ``ModelFormat.CNTKv2``."""

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format: with the version of a dictionary, and an entry, or as a large file."""
        return bytes(data[:3]) == b"\x08\x02\x12" or bytes(data[:4]) == MARK

    @staticmethod
    def write(function: Function) -> Iterable[Any]:
        """The bytes of the file, in pieces."""
        return write_file(write_function(function))

    @staticmethod
    def read(data: Any, device: Any, source: str) -> Function:
        """The function that the bytes of a file describe."""
        try:
            found = view_dictionary(data)
        except DamagedFile as error:
            kind = "" if CNTKv2.recognises(data) else kind_of(data)
            seems = f"; it seems to be {kind}" if kind else ""
            raise DamagedFile(f"{source} is not a model file of CNTK 2, or damaged: {error}{seems}") from None
        return read_function(found, device, source)

    @staticmethod
    def write_structure(root: Primitive) -> tuple[bytes, dict[str, Any], list[str]]:
        """The bytes of a graph without its leaves; by uid the primitives and leaves that belong to it; and the uids of those primitives of
        which the bytes have only the operands: user functions, and what has no counterpart in the format."""
        found, nodes, apart = write_structure(root)
        return b"".join(write_file(found)), nodes, apart

    @staticmethod
    def read_structure(
        data: Any, known: Mapping[str, Any], apart: Mapping[str, Callable[..., Primitive]], source: str
    ) -> dict[str, Primitive]:
        """The primitives, by uid, of a graph of which :meth:`write_structure` made the bytes.

        Args:
            known: by uid the leaves, and the primitives that are there already.
            apart: by uid the function that makes, from operands and name, a primitive of which the bytes have only the operands.
        """
        return read_structure(view_dictionary(data), known, apart, source)

    @staticmethod
    def pairs(function: Function, loaded: Function) -> dict[Any, Any] | None:
        """Which nodes of two functions belong together; None where their graphs are not the same.

        Some operators are read from a file as the graph they are written as.  Where the graphs differ as they are, what would be read of
        *function* is compared, and its parameters and constants are found by their uids.
        """
        pairs: dict[Any, Any] = {}
        if alike(function.root_function, loaded.root_function, pairs, values=False):
            return pairs
        try:
            written, pairs = read_function(write_function(function), None, "the function"), {}
        except (ValueError, TypeError):
            return None  # it cannot be what a file has
        if not alike(written.root_function, loaded.root_function, pairs, values=False):
            return None
        own = {leaf.uid: leaf for leaf in (*function.parameters, *function.constants)}
        return {own[leaf.uid]: saved for leaf, saved in pairs.items() if leaf.uid in own}
