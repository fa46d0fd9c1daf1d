"""The ONNX format of model files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from ....core.common.user_frame import warn_user
from ....core.extension.device import default_device
from ....core.graph.function import Function
from ....core.storage.file_bytes import FileBytes
from ....core.storage.file_magic import is_onnx, kind_of
from ...protobuf import DamagedFile, Piece
from ..wire import LARGEST_MESSAGE
from .messages import Graph, Model, Tensor, ValueInfo, read_message, write_message
from .record import has_record, read_record
from .tensors import NAMES, folder_of, move_apart

OLDEST, NEWEST, USUAL = 17, 24, 18
"""Versions of ONNX's operators: what can be asked for, and what is written unless another is."""
WITH_BFLOAT16 = 22
"""The version from which on operators take bfloat16."""
SMALLEST_APART = 1024
"""Bytes from which on an array is in the other file, where arrays are."""
PAGE = 4096


class Onnx:
    """What ``Function.save(..., format='onnx')`` and ``load_model`` use."""

    @staticmethod
    def described(data: Any, source: str) -> list[str]:
        """Lines about a file: versions of the operators, what has written it, inputs and outputs with types and sizes."""
        return _described(data, source)

    @staticmethod
    def recognises(data: Any) -> bool:
        """Whether bytes begin as a file of this format."""
        return is_onnx(data)

    @classmethod
    def write(
        cls,
        function: Function,
        *,
        opset: int | None = None,
        lengths: bool = True,
        sparse: str = "dense",
        outputs: Sequence[Any] | None = None,
        match: bool = True,
        record: bool = True,
    ) -> Iterable[Any]:
        """The bytes of the file, in pieces.

        Args:
            function: the function.
            opset: version of ONNX's operators; None for 18, or 22 where the function has values of type bfloat16.
            lengths: whether the model has an input with the lengths of sequences; without one they all are as long as the longest.
            sparse: ``'indices'`` if sparse inputs are to be the numbers of the elements that are 1, ``'dense'`` if they are to be vectors.
            outputs: the results to write: names, functions or variables; None for all but losses and metrics.
            match: whether recurrences that are ONNX's LSTM, GRU or RNN are written as these, rather than step by step.
            record: whether the file remembers the function, so that it comes back as it was when the file is read here.
        """
        return cls._pieces(cls._model(function, opset=opset, lengths=lengths, sparse=sparse, outputs=outputs, match=match, record=record))

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
        return cls._read(memoryview(data).cast("B"), device, source)

    @classmethod
    def read_file(cls, path: str, device: Any) -> Function:
        """The function that a file describes, each array of which is read for itself."""
        with open(path, "rb", buffering=0) as file:
            return cls._read(FileBytes(file), device, path)

    @staticmethod
    def _model(function: Function, **options: Any) -> Model:
        from .writing.model import write_model

        return write_model(function, **options)

    @classmethod
    def _read(cls, data: Any, device: Any, source: str) -> Function:
        """The function that a file was written from, where it remembers that, else that of its graph."""
        from .reading.importer import read_model

        model = message_of(data, source)
        with default_device(device):
            if has_record(model):
                try:
                    found = read_record(model, device, source, folder_of(source))
                except RuntimeError as error:
                    warn_user(f"load_model: {source} is read as one of any other program, and not as it was written: {error}", UserWarning)
                    found, model = None, message_of(data, source)
                if found is not None:
                    return found
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


def message_of(data: Any, source: str) -> Model:
    """The message that a file is.

    Raises:
        DamagedFile: it is none of ONNX's, or damaged.
    """
    try:
        return read_message(Model, Piece(data, 0, len(data)))
    except EOFError as error:
        raise DamagedFile(f"{source}: {error}") from None
    except DamagedFile as error:
        whole = data[:]
        kind = "" if is_onnx(whole) else kind_of(whole)
        seems = f"; it seems to be {kind}" if kind else ""
        raise DamagedFile(f"{source} is not an ONNX model, or damaged: {error}{seems}") from None


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
    with open(path, "rb", buffering=0) as file:
        data = FileBytes(file)
        graph = read_message(Model, Piece(data, 0, len(data))).graph or Graph()
    given = {tensor.name for tensor in graph.initializer}
    return [_shown(one) for one in graph.input if one.name not in given], [_shown(one) for one in graph.output]


def _shown(info: ValueInfo, typed: bool = False) -> str:
    of = info.type and info.type.tensor_type
    if not of:
        return f"{info.name}"
    label = f"{info.name} {NAMES.get(of.elem_type or 0, of.elem_type)}" if typed else f"{info.name}"
    if of.shape is None:
        return label
    sizes = [str(dim.dim_value) if dim.dim_value is not None else dim.dim_param or "?" for dim in of.shape.dim]
    return f"{label} [{', '.join(sizes)}]"


def _described(data: Any, source: str) -> list[str]:
    model = message_of(memoryview(data).cast("B"), source)
    graph = model.graph or Graph()
    versions = [f"version {one.version or 1} of {one.domain or 'ONNX'}'s operators" for one in model.opset_import]
    maker = " ".join(filter(None, (model.producer_name, model.producer_version)))
    given = {tensor.name for tensor in graph.initializer}
    inputs = [_shown(one, typed=True) for one in graph.input if one.name not in given]
    return [
        ", ".join([*versions, *([f"written by {maker}"] if maker else [])]),
        f"inputs: {', '.join(inputs) or 'none'}",
        f"outputs: {', '.join(_shown(one, typed=True) for one in graph.output) or 'none'}",
    ]
