"""What files seem to be, by their first bytes, against files that others write."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import pickle
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import cntk as C
from cntk.core.storage.file_magic import is_safetensors, kind_of


def numpys(save: str) -> bytes:
    file = io.BytesIO()
    getattr(np, save)(file, np.arange(3))
    return file.getvalue()


def archive(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr(name, b"123")
    return file.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "an empty file"),
        (bytes(20), "nothing but zeros"),
        (gzip.compress(b"a", mtime=0), "compressed with gzip; unpack it first"),
        (bz2.compress(b"a"), "compressed with bzip2; unpack it first"),
        (lzma.compress(b"a"), "compressed with xz; unpack it first"),
        (numpys("save"), "a NumPy array"),
        (numpys("savez"), "a zip archive, such as NumPy and others write"),
        (archive("archive/data.pkl"), "a PyTorch file"),
        (Path(sys.executable).resolve().read_bytes()[:600], "a program or library"),
        (struct.pack("<Q", 2) + b"{}", "a safetensors file"),
        (b"\x08\x07\x12\x04torch", "an ONNX model"),
        (b"<!DOCTYPE html>\n<html>", "text, which begins with '<!DOCTYPE html>'"),
        ("Grüße, ".encode() * 20, "text, which begins with 'Grüße, Grüße, Grüße, Grüße, Grüße, Grüße'"),
        (b" \n\t ", "blank text"),
        (b"\xfe\xdc\xba", ""),
        (b"a\x01\x02", ""),
    ],
)
def test_kinds(data: bytes, kind: str) -> None:
    assert kind_of(data) == kind


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_of_every_protocol(protocol: int) -> None:
    data = pickle.dumps({"a": [1, 2]}, protocol)
    assert kind_of(data).startswith("a Python pickle, which can run any program")
    assert not kind_of(data[:-1]).startswith("a Python pickle")


def test_text_may_be_cut_within_a_letter() -> None:
    assert kind_of(b"a" + "ü".encode() * 400).startswith("text, ")


def test_data_of_any_type_of_numbers() -> None:
    assert kind_of(np.zeros(4, np.float32)) == "nothing but zeros"
    assert kind_of(memoryview(b"\x89PNG\r\n\x1a\n")) == "a PNG image"


def test_models_are_no_safetensors_files(tmp_path: Path) -> None:
    file = tmp_path / "model"
    C.relu(C.input_variable(2)).save(str(file))
    assert not is_safetensors(file.read_bytes())


@pytest.mark.parametrize("data", [struct.pack("<Q", 2) + b"[]", struct.pack("<Q", 2**32) + b"{}", b"\x02{", bytes(8)])
def test_what_is_no_safetensors_file(data: bytes) -> None:
    assert not is_safetensors(data)
