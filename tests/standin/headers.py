"""Parsing of constants and function declarations in NVIDIA's headers."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from ctypes import POINTER, c_double, c_float, c_int, c_int64, c_size_t, c_uint32, c_uint64, c_void_p
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PLACES = ("cu13/include", "cublas/include", "cudnn/include")

KINDS: dict[str, Any] = {
    "int": c_int,
    "int32_t": c_int,
    "unsigned": c_int,
    "int64_t": c_int64,
    "uint64_t": c_uint64,
    "size_t": c_size_t,
    "float": c_float,
    "double": c_double,
    "cudaStream_t": c_void_p,
    "uint32_t": c_uint32,
}
"""ctypes of argument types; of all others, those named like handles are pointers, and the rest are enumerations."""


@cache
def text(file: str) -> str:
    """Return a header without its comments; skip the test if the wheel that contains it is not installed."""
    for folder in sys.path:
        for place in PLACES:
            path = Path(folder) / "nvidia" / place / file
            if path.exists():
                return re.sub(r"/\*.*?\*/|//[^\n]*", "", path.read_text(errors="replace"), flags=re.DOTALL)
    pytest.skip(f"the wheel that has {file} is not installed")


@cache
def constants(file: str) -> dict[str, int]:
    """Return the enumerators that a header defines."""
    found: dict[str, int] = {}
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", text(file), re.DOTALL):
        value = -1
        for entry in re.sub(r"^\s*#.*$", "", body, flags=re.MULTILINE).split(","):
            name, _, expression = (part.strip() for part in re.sub(r"\w+_DEPRECATED\w*", "", entry).partition("="))
            if not re.fullmatch(r"[A-Z]\w*", name):
                continue
            try:
                value = eval(re.sub(r"(?<=\d)[uUlL]+", "", expression), {}, found) if expression else value + 1
            except NameError:  # defined in another header
                continue
            found[name] = value
    return found


def arguments(file: str, name: str) -> tuple[Any, ...]:
    """Return the ctypes of a function's arguments."""
    declared = re.search(rf"\b{name}\s*\(([^)]*)\)", text(file))
    assert declared is not None, f"{file} declares no {name}"
    return tuple(_types(declared.group(1)))


def _types(declared: str) -> Iterator[Any]:
    for argument in declared.split(","):
        words = re.sub(r"\bconst\b|\bstruct\b", "", argument).replace("*", " * ").replace("[", " [").split()
        if words in ([], ["void"]):
            continue
        pointers = words.count("*") + any(word.startswith("[") for word in words)
        kind = "uint64_t" if words[:3] == ["unsigned", "long", "long"] else words[0]
        if pointers:
            yield c_void_p if kind == "void" and pointers == 1 else POINTER(c_void_p) if pointers == 1 and is_handle(kind) else "pointer"
        else:
            yield KINDS.get(kind) or (c_void_p if is_handle(kind) else c_int)


def is_handle(kind: str) -> bool:
    """Whether a type declared by the libraries is a pointer."""
    ends = ("Handle_t", "MatrixLayout_t", "Desc_t", "Preference_t", "Descriptor_t", "cudnnHandle_t")
    return kind.endswith(ends)


def agree(ours: tuple[Any, ...], declared: tuple[Any, ...]) -> bool:
    """Whether our argument types are compatible with the declared ones; any pointer may be passed as a void pointer."""
    return len(ours) == len(declared) and all(map(_agrees, ours, declared))


def _agrees(ours: Any, declared: Any) -> bool:
    is_pointer = ours is c_void_p or hasattr(ours, "contents") or (isinstance(ours, type) and issubclass(ours, type(POINTER(c_int))))
    if declared == "pointer" or (isinstance(declared, type) and hasattr(declared, "contents")):
        return bool(is_pointer or hasattr(ours, "_type_"))
    return ours is declared
