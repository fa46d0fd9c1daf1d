"""Recognises kinds of files by their first bytes, for errors about files of an unexpected kind."""

from __future__ import annotations

import codecs
from typing import Any

_BEGINNINGS = (
    (b"\x89PNG\r\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x1f\x8b", "compressed with gzip; unpack it first"),
    (b"BZh", "compressed with bzip2; unpack it first"),
    (b"\xfd7zXZ\x00", "compressed with xz; unpack it first"),
    (b"\x28\xb5\x2f\xfd", "compressed with Zstandard; unpack it first"),
    (b"\x89HDF\r\n", "an HDF5 file, such as Keras writes"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"B\x00C\x00N\x00", "a model of CNTK 1"),
    (b"\x7fELF", "a program or library"),
    (b"MZ", "a program or library"),
)
_PICKLES = tuple(bytes([0x80, protocol]) for protocol in range(2, 6))
_ONNX_VERSIONS = range(3, 64)
_ONNX_FIELDS = (0x12, 0x1A, 0x22, 0x28, 0x32, 0x3A, 0x42, 0x72)
"""The bytes that begin the fields that may come second: producer's name and version, domain, version, text, graph, operators, metadata."""


def kind_of(data: Any) -> str:
    """The kind of file that bytes begin, for the sentence *it seems to be ...*; empty if unknown."""
    view = memoryview(data).cast("B")
    begin = bytes(view[:512])
    if not len(view):
        return "an empty file"
    for beginning, kind in _BEGINNINGS:
        if begin.startswith(beginning):
            return kind
    if begin.startswith(b"PK\x03\x04"):
        return "a PyTorch file" if b"data.pkl" in begin else "a zip archive, such as NumPy and others write"
    if begin.startswith(_PICKLES) and bytes(view[-1:]) == b".":
        return "a Python pickle, which can run any program when it is read and is refused for that"
    if is_safetensors(view):
        return "a safetensors file"
    if is_onnx(view):
        return "an ONNX model"
    if not begin.strip(b"\0"):
        return "nothing but zeros"
    return _kind_of_text(begin)


def is_safetensors(data: Any) -> bool:
    """Whether bytes begin as a safetensors file does: with the length of a header, and a header in JSON."""
    view = memoryview(data).cast("B")
    if len(view) < 10 or view[8] != ord("{"):
        return False
    return int.from_bytes(view[:8], "little") < 2**32


def is_onnx(data: Any) -> bool:
    """Whether bytes begin as an ONNX file does: with a version, and another field of a model."""
    begin = bytes(memoryview(data).cast("B")[:260])
    if len(begin) < 4 or begin[0] != 8 or begin[1] not in _ONNX_VERSIONS or begin[2] not in _ONNX_FIELDS:
        return False
    return begin[2] != 0x12 or begin[4 : 4 + begin[3]].isascii()


def _kind_of_text(begin: bytes) -> str:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(begin)
    except UnicodeDecodeError:
        return ""
    if not all(letter.isprintable() or letter.isspace() for letter in text):
        return ""
    return f"text, which begins with {text.strip().splitlines()[0][:40]!r}" if text.strip() else "blank text"
