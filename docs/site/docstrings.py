"""Docstrings as they are written here, for Sphinx: signatures as ``help`` shows them, and first words that are no types."""

from __future__ import annotations

import inspect
import re
from enum import Enum
from typing import Any

from sphinx.application import Sphinx

import cntk

FIRST_COLON = re.compile(r"^((?:[^:`]|``?[^`]*``?)*):\s+(?=\S)")
RESULTS = re.compile(r"^(\s*)(Returns|Yields):$")
STAR = re.compile(r"(?<=[(\s])\*(?=\w+'?[),])")
"""As in a shape of (channels, *image)."""

ATTRIBUTES = ("attribute", "data", "property")


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-skip-member", lambda app, what, name, value, skip, options: True if _is_of_sklearn(value) else None)
    app.connect("autodoc-process-signature", lambda app, what, name, value, *rest: _signature(value))


def _is_of_sklearn(value: Any) -> bool:
    """Whether a method is inherited from scikit-learn, whose own pages describe it."""
    return str(getattr(value, "__module__", "")).partition(".")[0] == "sklearn"


def _process(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Napoleon takes what stands before a colon, of results and attributes, for a type; here it is a part of the sentence."""
    if what in ATTRIBUTES and lines:
        lines[:1] = FIRST_COLON.sub(r"\1:\n", lines[0]).split("\n")
    for place, line in enumerate(lines):
        if heading := RESULTS.match(line):
            lines[place] = f"{heading[1]}:{heading[2].lower()}:"
        elif not line.lstrip().startswith((">>>", "...")):
            outside_code = "``".join(STAR.sub(r"\\*", part) if i % 2 == 0 else part for i, part in enumerate(line.split("``")))
            lines[place] = outside_code


def _signature(value: Any) -> tuple[str, None] | None:
    """The arguments without types, their defaults as a program would write them."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    shown = [p.replace(annotation=p.empty, default=_Default(p.default)) if p.default is not p.empty else p.replace(annotation=p.empty)
             for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=shown, return_annotation=signature.empty)), None


class _Default:
    """A default that prints as a program would write it."""

    def __init__(self, value: Any) -> None:
        self.value = value.value if cntk.is_default_override(value) else value

    def __repr__(self) -> str:
        if isinstance(self.value, cntk.Function):
            return "identity"
        if isinstance(self.value, Enum):
            return f"{type(self.value).__name__}.{self.value.name}"
        return getattr(self.value, "__name__", None) or repr(self.value)
