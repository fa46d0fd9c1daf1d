"""The ONNX format of model files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ....core.graph.function import Function
from ....core.storage.file_magic import is_onnx
from .messages import write_message


class Onnx:
    """What ``Function.save(..., format='onnx')`` and ``load_model`` use."""

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format."""
        return is_onnx(data)

    @staticmethod
    def write(function: Function, **options: Any) -> Iterable[Any]:
        """The bytes of the file, in pieces; options are those of :class:`~cntk.plugins.formats.onnx.writing.model.ModelWriter`."""
        from .writing.model import write_model

        return write_message(write_model(function, **options))
