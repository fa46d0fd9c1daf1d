"""The format as a plugin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....core.graph.function import Function
from ....core.storage.file_magic import is_onnx, kind_of
from ...protobuf import DamagedFile, Piece
from .messages import Model, read_message
from .reading.importer import read_model


class Onnx:
    """What ``Function.load`` uses for ONNX files."""

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format."""
        return is_onnx(data)

    @staticmethod
    def write(function: Function) -> Iterable[Any]:
        """Functions are not written to this format."""
        raise NotImplementedError("ONNX files are read and not written; save the function in another format")

    @staticmethod
    def read(data: Any, device: Any, source: str) -> Function:
        """The function that the bytes of a file describe."""
        view = memoryview(data).cast("B")
        try:
            model = read_message(Model, Piece(view, 0, len(view)))
        except DamagedFile as error:
            kind = "" if is_onnx(view) else kind_of(view)
            seems = f"; it seems to be {kind}" if kind else ""
            raise DamagedFile(f"{source} is not an ONNX model, or damaged: {error}{seems}") from None
        return read_model(model, source)
