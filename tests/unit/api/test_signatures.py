"""Public functions take the arguments that programs written for CNTK 2 give them, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import cntk as C
from cntk.compatibility import offered
from cntk.core.extension.plugins import DISTRIBUTION, Registry, deserializers, learners, ops, progress_writers

TABLE = Path(__file__).resolve().parents[2] / "data" / "signatures.txt"
"""Signatures below the name of the module they are imported from.  ``~`` marks a default that ``default_options`` overrides."""


def table() -> dict[str, list[str]]:
    modules = (part.splitlines() for part in TABLE.read_text(encoding="utf-8").split("\n\n"))
    return {module: [signature.strip() for signature in signatures] for module, *signatures in modules}


CLAIMED = table()
REGISTRIES = (ops, learners, progress_writers, deserializers)


def rows() -> Iterator[Any]:
    for module, signatures in CLAIMED.items():
        for signature in signatures:
            yield pytest.param(module, signature, id=f"{module}.{signature.partition('(')[0]}")


def shown(path: str, target: Any) -> str:
    """The signature without annotations and ``self``, its defaults as the table writes them."""
    parameters = [p for p in inspect.signature(target).parameters.values() if p.name != "self"]
    return f"{path}({', '.join(_parameter(p) for p in parameters)})"


def _parameter(parameter: inspect.Parameter) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
    default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
    return f"{stars}{parameter.name}{default}"


def _default(value: Any) -> str:
    if C.is_default_override(value):
        return f"~{_default(value.value)}"
    if isinstance(value, C.Function):
        return "identity"
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return getattr(value, "__name__", None) or repr(value)


@pytest.mark.parametrize(("module", "signature"), list(rows()))
def test_the_signature_is_the_one_in_the_table(module: str, signature: str) -> None:
    path = signature.partition("(")[0]
    target: Any = import_module(module)
    for name in path.split("."):
        target = getattr(target, name)
    assert shown(path, target) == signature


SHORT = ("cntk.layers", "cntk.learners", "cntk.losses", "cntk.metrics", "cntk.ops", "cntk.ops.sequence", "cntk.random", "cntk.variables")
"""Modules whose functions say what they take."""


@pytest.mark.parametrize("module", [module for module in SHORT if module in CLAIMED])
def test_help_shows_short_signatures(module: str) -> None:
    """No argument is anything, and no default an address."""
    home = import_module(module)
    for signature in CLAIMED[module]:
        path = signature.partition("(")[0]
        if "." in path or path in LOOSE:
            continue
        shown = inspect.signature(getattr(home, path))
        assert " at 0x" not in str(shown), path
        assert [p.name for p in shown.parameters.values() if p.annotation in ("Any", Any) and p.kind is not p.VAR_KEYWORD] == [], path


LOOSE = frozenset(
    [
        "Record",
        "Signature",
        "combine",
        "custom_proxy_op",
        "default_options",
        "default_options_for",
        "hierarchical_softmax_layer",
        "minibatch_size_schedule",
        "native_user_function",
    ]
)
"""What takes things of any kind."""


@pytest.mark.parametrize("module", list(CLAIMED))
def test_every_public_function_is_in_the_table(module: str) -> None:
    home = import_module(module)
    claimed = {signature.partition("(")[0] for signature in CLAIMED[module]}
    functions = [name for name in _public(home) if inspect.isfunction(getattr(home, name))]
    assert [name for name in functions if name not in claimed] == []


def _public(module: Any) -> list[str]:
    """What a module offers; what installed plugins add to it is theirs to test."""
    return [name for name in offered(module) if not any(_is_foreign(name, registry) for registry in REGISTRIES)]


def _is_foreign(name: str, registry: Registry) -> bool:
    return name in registry and not registry.owner(name).startswith(f"{DISTRIBUTION}:")
