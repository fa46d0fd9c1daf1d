"""The backend of GPUs on its stand-in, whatever is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from standin import module

from cntk.backends.cupy.backend import CupyBackend

MODULES = ("memory", "namespace")


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[CupyBackend]:
    """A backend, of which nothing is left afterwards, within its guard."""
    made: Any = module.make()
    monkeypatch.setitem(sys.modules, "cupy", made)
    package = importlib.import_module("cntk.backends.cupy")
    held = {name: (sys.modules.pop(f"{package.__name__}.{name}", None), package.__dict__.pop(name, None)) for name in MODULES}
    backend = CupyBackend()
    with backend.guard():
        yield backend
    for name, (loaded, attribute) in held.items():
        sys.modules.pop(f"{package.__name__}.{name}", None)
        package.__dict__.pop(name, None)
        if loaded is not None:
            sys.modules[f"{package.__name__}.{name}"] = loaded
            setattr(package, name, attribute)
