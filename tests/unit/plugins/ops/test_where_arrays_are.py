"""Operators compute on the device's arrays: what has a context calls none of NumPy's functions, and picks rows by no index of the host.

Methods and functions with a context are read, not run.  ``infer`` and others without one are the host's.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[4]
FILES = sorted(
    [*(ROOT / "plugins" / "ops").glob("*.py"), *(ROOT / "core" / "operators").glob("*.py"), *(ROOT / "core" / "formulas").glob("*.py")]
)

OF_TYPES = {"broadcast_shapes", "dtype", "finfo", "min_scalar_type", "nextafter", "promote_types"}
"""NumPy's functions of types, shapes and single numbers, which say nothing of where arrays are."""

INDICES = {"order", "offsets", "pack_index", "rank", "sequence_of_row", "source", "starts", "step_of_row", "unpack_index"}
"""Index arrays of layouts, on the host."""

LAYOUTS = {"after", "before", "layout", "operand", "result", "states"}
"""What layouts are called."""

HOST_WORK = {
    "cosine.py:_partners": "which rows are compared depends on the layout alone: made once for each, and brought to the device",
    "delay.py:_outside": "the rows that read outside depend on layouts alone",
    "delay.py:_recall": "sequences that continue are checked one by one: values of the last minibatch are on the host",
    "delay.py:remember": "the steps that are kept for the next minibatch are the host's",
    "edit_distance.py:_tokens": "tokens are compared one after another, on the host as in CNTK",
    "sequence_gathering.py:decide_layout": "how many rows there are must be known on the host",
    "sequence_making.py:decide_layout": "how many rows there are must be known on the host",
    "sequence_rows.py:put_rows": "whether a row is taken twice depends on layouts alone",
}
"""By file and function: what is the host's by its nature, and why."""


def hosts(tree: ast.AST) -> Iterator[tuple[str, int, str]]:
    """What functions with a context do on the host: the function, the line, and what it is."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(argument.arg == "ctx" for argument in function.args.args):
            for node in ast.walk(function):
                what = _host_function(node) or _host_index(node)
                if what:
                    yield function.name, node.lineno, what


def _host_function(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        called = node.func
        if isinstance(called.value, ast.Name) and called.value.id == "np" and called.attr not in OF_TYPES:
            return f"np.{called.attr}"
    return ""


def _host_index(node: ast.AST) -> str:
    """A layout's own array where an array of the device is indexed or taken from."""
    places: list[ast.AST] = []
    if isinstance(node, ast.Subscript) and not _of_layout(node.value):
        places = [node.slice]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "take":
        places = [*node.args, *(keyword.value for keyword in node.keywords)]
    return next((f"an index by {place.attr}" for place in places if isinstance(place, ast.Attribute) and _of_layout(place)), "")


def _of_layout(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and node.attr in INDICES
        and any(
            (isinstance(part, ast.Name) and part.id in LAYOUTS) or (isinstance(part, ast.Attribute) and part.attr in ("layout", "layouts"))
            for part in ast.walk(node.value)
        )
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_arrays_stay_on_the_device(file: Path) -> None:
    found = [(f"{file.name}:{name}", line, what) for name, line, what in hosts(ast.parse(file.read_text("utf-8")))]
    assert [one for one in found if one[0] not in HOST_WORK] == [], "use ctx.xp, ctx.index and ctx.brought"


def test_the_table_has_what_it_must_and_no_more() -> None:
    there = {f"{file.name}:{name}" for file in FILES for name, _, _ in hosts(ast.parse(file.read_text("utf-8")))}
    assert set(HOST_WORK) - there == set()


@pytest.mark.parametrize(
    "line",
    [
        "terms = np.zeros(3)",
        "x = array[layout.rank]",
        "xp.take(x, ctx.layout.order, axis=0)",
        "x.take(ctx.layouts[0].sequence_of_row)",
    ],
)
def test_what_is_the_hosts_is_found(line: str) -> None:
    assert list(hosts(ast.parse(f"def forward(self, ctx, out):\n    {line}")))


@pytest.mark.parametrize("line", ["low = np.finfo(x.dtype).tiny", "x[ctx.index(layout, 'rank')]", "layout.offsets[layout.rank]"])
def test_what_is_no_array_of_the_device_is_not(line: str) -> None:
    assert list(hosts(ast.parse(f"def forward(self, ctx, out):\n    {line}"))) == []
