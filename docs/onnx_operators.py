"""Writes docs/onnx_operators.md, the tables of operators in ONNX files, both ways: ``python docs/onnx_operators.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import cntk  # noqa: F401  (loads the plugins)
from cntk.core.extension.plugins import DISTRIBUTION, onnx_readers, ops
from cntk.plugins.formats.onnx.messages import Graph
from cntk.plugins.formats.onnx.reading.importer import NEWEST, OLDEST
from cntk.plugins.formats.onnx.writing.model import UnsupportedOperators, write_model
from cntk.testing.ops import samples_of
from cntk.testing.samples import Trial

PAGE = Path(__file__).with_suffix(".md")

HEAD = """# Operators in ONNX files

What becomes of operators when [models are written as ONNX files](onnx.md), and which operators of ONNX are read. This page is made by
`python docs/onnx_operators.py` from the registries behind the hooks `cntk_register_onnx_writers` and `cntk_register_onnx_readers`, through
which [plugins](plugin_reference.md#cntk_register_onnx_readersregister) add more.

## Written

The operators of ONNX in models of an operator's examples, one for each form that it has. Sequences add masks and lengths; delays in loops
make the loop a `Scan`, or one of `LSTM`, `GRU` and `RNN`.

| operator | ONNX |
| --- | --- |
"""

READ = f"""
## Read

The operators of ONNX up to version {NEWEST}. The versions are those that brought another definition of an operator, from the one on
that files of version {OLDEST}, the oldest that are read, have. Those without versions were experimental until ONNX 1.4. An operator that
is not read is refused with its name when the file is loaded.

| ONNX | versions | read |
| --- | --- | --- |
"""


def page() -> str:
    """The page as it should be: the operators of this distribution and of ONNX, those of installed plugins left out."""
    names = [name for name in ops if ops.owner(name).startswith(f"{DISTRIBUTION}:")]
    written = "".join(f"| `{name}` | {_written(ops.get(name))} |\n" for name in names)
    readers: dict[str, list[int]] = {name: [] for name, domain in onnx_readers if not domain}
    return HEAD + written + READ + "".join(_read(name, versions) for name, versions in sorted((readers | _versions()).items()))


def _written(function: Any) -> str:
    """What ONNX files have for an operator."""
    found: dict[str, None] = {}
    for sample in samples_of(function):
        try:
            model = write_model(Trial(function, sample, np.float32).result)
        except UnsupportedOperators:
            return "refused"
        found |= dict.fromkeys(_op_types(model.graph))
    own = [op_type for op_type in found if op_type != "Identity"] or ["Identity"]
    return ", ".join(f"`{op_type}`" for op_type in own)


def _op_types(graph: Graph) -> Iterator[str]:
    """The operators of a graph, and of the graphs inside its nodes."""
    for node in graph.node:
        yield node.op_type
        for attribute in node.attribute:
            if attribute.g is not None:
                yield from _op_types(attribute.g)


def _versions() -> dict[str, list[int]]:
    """By operator of ONNX the versions that brought another meaning, from the one that the oldest files have."""
    from onnx import defs

    found: dict[str, set[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain and schema.since_version <= NEWEST:
            found.setdefault(schema.name, set()).add(schema.since_version)
    return {name: [version for version in sorted(versions) if version >= _first(versions)] for name, versions in found.items()}


def _first(versions: set[int]) -> int:
    return max((version for version in versions if version <= OLDEST), default=OLDEST)


def _read(name: str, versions: list[int]) -> str:
    listed = ", ".join(map(str, versions))
    return f"| `{name}` | {listed} | {'yes' if (name, '') in onnx_readers else 'no'} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
