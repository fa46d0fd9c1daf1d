"""How a stream is described to a deserializer."""

from __future__ import annotations

from typing import Any

from cntk.core.types.arguments import checked
from cntk.variables import Record


@checked
def StreamDef(
    field: str | None = None,
    shape: Any = None,
    is_sparse: bool = False,
    transforms: Any = None,
    context: Any = None,
    scp: Any = None,
    mlf: Any = None,
    broadcast: bool | None = None,
    defines_mb_size: bool = False,
    max_sequence_length: int = 65535,
) -> Record:
    """Describe a stream to a deserializer; which arguments mean something depends on it.

    Args:
        field: name of the stream in the file.
        shape: number of elements of a sample.
        is_sparse: whether the data is sparse; data of an *mlf* is.
        transforms: the transforms of each image.
        context: left and right context of a frame.
        scp, mlf: list files and label files of speech data.
        broadcast: whether a single frame stands for the whole sequence.
        defines_mb_size: whether the samples of this stream alone are counted when a minibatch is filled.
        max_sequence_length: longer sequences are left out.

    Returns:
        A Record: ``stream_alias`` (the field), ``dim`` (the shape) and the other arguments, those that are None left out.

    >>> C.io.StreamDef(field="S0", shape=943, is_sparse=True).stream_alias
    'S0'
    """
    given = {"dim": shape, "transforms": transforms, "context": context, "scp": scp, "mlf": mlf, "broadcast": broadcast}
    return Record(
        stream_alias=field,
        is_sparse=is_sparse or mlf is not None,
        **{name: value for name, value in given.items() if value is not None},
        defines_mb_size=bool(defines_mb_size),
        max_sequence_length=max_sequence_length,
    )


StreamDefs = Record
"""Streams by name: ``StreamDefs(features=StreamDef(...), labels=StreamDef(...))``."""
