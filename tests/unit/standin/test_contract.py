"""The stand-in has names and arguments that CuPy has, and its refusals."""

from __future__ import annotations

import inspect
import re
from typing import Any

import numpy as np
import pytest
from standin import cuda, functions, module
from standin.array import ndarray

cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
STANDIN = module.make()
NAMES = sorted(name for name in vars(STANDIN) if name[0] != "_")
METHODS = sorted(name for name, value in vars(ndarray).items() if name[0] != "_" and callable(value))
ATTRIBUTES = sorted(name for name, value in vars(ndarray).items() if isinstance(value, property))


def arguments(function: Any) -> list[str]:
    """Names of arguments, by the signature or, of what is compiled, the first line of its docstring."""
    try:
        found = list(inspect.signature(function).parameters)
    except ValueError:
        listed = re.match(r"\S*?\((.*?)\)", (function.__doc__ or "").replace("\n", " "))
        assert listed, f"{function} shows no arguments"
        found = [re.split(r"[=:]", part)[0].split()[-1].lstrip("*") for part in listed[1].split(",") if part.strip(" *")]
    return [name for name in found if name not in ("self", "/")]


@pytest.mark.parametrize("name", NAMES)
def test_cupy_has_what_it_has(name: str) -> None:
    assert hasattr(cupy, name)


@pytest.mark.parametrize("name", [name for name in NAMES if inspect.isfunction(getattr(STANDIN, name))])
def test_functions_take_what_cupys_take(name: str) -> None:
    assert arguments(getattr(STANDIN, name)) == arguments(getattr(cupy, name))


@pytest.mark.parametrize("name", METHODS)
def test_methods_take_what_cupys_take(name: str) -> None:
    theirs = [argument for argument in arguments(getattr(cupy.ndarray, name)) if argument not in ("args", "kwargs")]
    ours = arguments(getattr(ndarray, name))
    assert theirs in (ours, []) or name == "item"


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_cupys(name: str) -> None:
    assert hasattr(cupy.ndarray, name)


@pytest.mark.parametrize("name", module.UFUNCS.split())
def test_functions_of_elements_are_cupys(name: str) -> None:
    assert (getattr(cupy, name).nin, getattr(cupy, name).nout) == (functions.ufunc(name).nin, 1)


@pytest.mark.parametrize("name", [name for name, value in vars(cuda).items() if getattr(value, "__module__", "") == cuda.__name__])
def test_what_is_of_cuda_is_cupys(name: str) -> None:
    own = {"CUDARuntimeError", "_Thread", "_memcpy_async", "_require_stream", "_thread", "launch", "memory", "work"}
    assert name in own or hasattr(cupy.cuda, name)
    assert hasattr(cupy.cuda.runtime, "CUDARuntimeError")


@pytest.mark.parametrize("name", vars(cuda.runtime))
def test_what_is_of_the_runtime_is_cupys(name: str) -> None:
    assert hasattr(cupy.cuda.runtime, name)


def test_versions() -> None:
    assert cupy.__version__.split(".")[:2] == module.VERSION.split(".")[:2], "read what has changed, and follow it"


@pytest.mark.parametrize("wrong", [np.ones(2), [1.0], "x"])
def test_what_is_on_the_host_is_refused(wrong: Any) -> None:
    with cuda.Stream(), pytest.raises(TypeError, match="Unsupported type"):
        STANDIN.add(STANDIN.ones(2), wrong)


def test_work_on_the_null_stream_is_refused() -> None:
    with pytest.raises(RuntimeError, match="outside of the backend's guard"):
        STANDIN.ones(2)
