"""The ONNX format of model files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....core.extension.device import default_device
from ....core.graph.function import Function
from ....core.storage.file_magic import is_onnx, kind_of
from ...protobuf import DamagedFile, Piece
from ..wire import LARGEST_MESSAGE
from .messages import Graph, Model, Tensor, ValueInfo, read_message, write_message
from .tensors import move_apart

OLDEST, NEWEST, USUAL = 17, 24, 18
"""Versions of ONNX's operators: what can be asked for, and what is written unless another is."""
SMALLEST_APART = 1024
"""Bytes from which on an array is in the other file, where arrays are."""
PAGE = 4096


class Onnx:
    """What ``Function.save(..., format='onnx')`` and ``load_model`` use."""

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format."""
        return is_onnx(data)

    @classmethod
    def write(
        cls,
        function: Function,
        *,
        opset: int = USUAL,
        lengths: bool = True,
        sparse: str = "dense",
        outputs: Sequence[Any] | None = None,
        match: bool = True,
    ) -> Iterable[Any]:
        """The bytes of the file, in pieces.

        Args:
            function: the function.
            opset: version of ONNX's operators.
            lengths: whether the model has an input with the lengths of sequences; without one they all are as long as the longest.
            sparse: ``'indices'`` if sparse inputs are to be the numbers of the elements that are 1, ``'dense'`` if they are to be vectors.
            outputs: the results to write: names, functions or variables; None for all but losses and metrics.
            match: whether recurrences that are ONNX's LSTM, GRU or RNN are written as these, rather than step by step.
        """
        return cls._pieces(cls._model(function, opset=opset, lengths=lengths, sparse=sparse, outputs=outputs, match=match))

    @classmethod
    def write_files(cls, function: Function, path: str, external: bool, **options: Any) -> Iterator[tuple[str, Iterable[Any]]]:
        """The files of a model by their paths: that of its arrays first, if they are apart, as they are beyond 2 GiB."""
        model = cls._model(function, **options)
        assert model.graph is not None
        large = [one for one in model.graph.initializer if len(one.raw_data) >= SMALLEST_APART]
        if not external and sum(len(one.raw_data) for one in model.graph.initializer) < LARGEST_MESSAGE - 2**26:
            large = []
        if large:
            data = f"{path}.data"
            yield data, _apart(large, os.path.basename(data))
        yield path, write_message(model)

    @classmethod
    def read(cls, data: Any, device: Any, source: str) -> Function:
        """The function that the bytes of a file describe."""
        view = memoryview(data).cast("B")
        try:
            model = read_message(Model, Piece(view, 0, len(view)))
        except DamagedFile as error:
            kind = "" if is_onnx(view) else kind_of(view)
            seems = f"; it seems to be {kind}" if kind else ""
            raise DamagedFile(f"{source} is not an ONNX model, or damaged: {error}{seems}") from None
        with default_device(device):
            return cls._function(model, source)

    @staticmethod
    def _model(function: Function, **options: Any) -> Model:
        from .writing.model import write_model

        return write_model(function, **options)

    @staticmethod
    def _function(model: Model, source: str) -> Function:
        from .reading.importer import read_model

        return read_model(model, source)

    @staticmethod
    def _pieces(model: Model) -> Iterable[Any]:
        made = write_message(model)
        if made.size > LARGEST_MESSAGE:
            raise ValueError(
                f"save: the model has {made.size} bytes, and an ONNX file may have {LARGEST_MESSAGE}; save it to a path with "
                "use_external_files_to_store_parameters=True"
            )
        return made


def _apart(tensors: Sequence[Tensor], location: str) -> list[Any]:
    """Put the values of tensors into another file; the pieces of that file.  Each begins where a page of memory may."""
    pieces: list[Any] = []
    end = 0
    for tensor in tensors:
        values = move_apart(tensor, location, end)
        gap = -len(values) % PAGE
        pieces += [values, bytes(gap)]
        end += len(values) + gap
    return pieces


def signature_of(path: str) -> tuple[list[str], list[str]]:
    """Inputs and outputs of a model file, each with its sizes, such as ``x [batch, 3]``."""
    with open(path, "rb") as file:
        data = memoryview(file.read())
    graph = read_message(Model, Piece(data, 0, len(data))).graph or Graph()
    given = {tensor.name for tensor in graph.initializer}
    return [_shown(one) for one in graph.input if one.name not in given], [_shown(one) for one in graph.output]


def _shown(info: ValueInfo) -> str:
    of = info.type and info.type.tensor_type
    if not of or of.shape is None:
        return f"{info.name}"
    sizes = [str(dim.dim_value) if dim.dim_value is not None else dim.dim_param or "?" for dim in of.shape.dim]
    return f"{info.name} [{', '.join(sizes)}]"
