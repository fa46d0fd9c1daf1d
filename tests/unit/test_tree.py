"""Every module of the kernel has tests: at the mirrored place, in a file that imports it, or in one of the table, which says how."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = [str(file.relative_to(ROOT)) for file in sorted((ROOT / "core").rglob("*.py")) if file.name != "__init__.py"]

# What users reach through names of the package alone, or plugins by its hooks: the module, the tests, and what these hold of it.
ELSEWHERE = {
    "core/extension/kernel.py": ("backends/every/test_testing.py", "the protocols: the kit holds kernels to what operators compute"),
    "core/graph/arguments.py": ("programs/test_types.py", "what arguments take, as type checkers see it"),
    "core/graph/block.py": ("unit/core/graph/test_function.py", "functions put together, and shown as one node"),
    "core/graph/call.py": ("unit/core/graph/test_function.py", "functions called with data and with functions"),
    "core/graph/initial_values.py": ("unit/plugins/test_initializers.py", "the protocol: what initialisers fill in"),
    "core/graph/nodes.py": ("unit/core/graph/test_function.py", "primitives and composites as functions"),
    "core/graph/numpy_calls.py": ("unit/core/graph/test_conditions.py", "NumPy's functions on variables and functions"),
    "core/graph/python_function.py": ("unit/core/graph/test_function.py", "Python functions as functions"),
    "core/graph/tensor.py": ("unit/core/graph/test_conditions.py", "Python's operators on variables and functions"),
    "core/machine/intrinsics.py": ("unit/core/machine/test_loops.py", "what compiled loops ask the machine, as which thread's turn it is"),
    "core/operators/op_names.py": ("unit/core/extension/test_identity.py", "names that another package has"),
    "core/program/passes/accumulation.py": ("unit/core/program/passes/test_in_place.py", "gradients that are added without copies"),
    "core/program/passes/base.py": ("unit/core/program/passes/test_passes.py", "the protocol: passes of plugins"),
    "core/program/passes/dead.py": ("unit/core/program/passes/test_common.py", "instructions that nobody reads go"),
    "core/run/binding.py": ("backends/every/test_random_graphs.py", "steps on arrays: values and gradients, however memory is shared"),
    "core/run/row_blocks.py": ("unit/core/program/passes/test_row_blocking.py", "chains worked off in blocks of rows"),
    "core/storage/model_format.py": ("unit/plugins/formats/test_wire.py", "formats by their names"),
    "core/types/arrow.py": ("unit/core/graph/test_foreign.py", "Arrow's data, and what is refused of it"),
    "core/values/as_methods.py": ("backends/every/test_user_function.py", "values as user functions see them"),
}


def mirrored(module: str) -> Path:
    """Where the tests of a module are looked for first."""
    path = Path(module)
    return ROOT / "tests" / "unit" / path.with_name(f"test_{path.name}")


@cache
def imported() -> frozenset[str]:
    """Names of modules, and of what is in them, that tests import."""
    files = [file for folder in ("unit", "backends", "programs") for file in (ROOT / "tests" / folder).rglob("test_*.py")]
    return frozenset(name for file in files for node in ast.walk(ast.parse(file.read_text("utf-8"))) for name in _names(node))


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    if isinstance(node, ast.ImportFrom) and node.module is not None:
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "importorskip":
        yield from (one.value for one in node.args if isinstance(one, ast.Constant))


def named_by_tests(module: str) -> bool:
    return mirrored(module).exists() or ".".join(("cntk", *Path(module).with_suffix("").parts)) in imported()


@pytest.mark.parametrize("module", MODULES)
def test_every_module_of_the_kernel_has_tests(module: str) -> None:
    assert named_by_tests(module) or module in ELSEWHERE, f"write {mirrored(module).relative_to(ROOT)}"


@pytest.mark.parametrize("module", ELSEWHERE)
def test_the_table_has_what_it_must_and_no_more(module: str) -> None:
    assert module in MODULES
    assert not named_by_tests(module), "tests name it: take it out of the table"
    tests, _ = ELSEWHERE[module]
    assert (ROOT / "tests" / tests).exists()


def test_folders_mirror_folders() -> None:
    """The trials of tests/hostile and what is in examples have tests too; what belongs to no folder is about the checkout."""
    folders = [file.relative_to(ROOT / "tests" / "unit").parent for file in (ROOT / "tests" / "unit").rglob("test_*.py")]
    strange = [folder for folder in folders if not any((ROOT / place / folder).is_dir() for place in ("", "tests"))]
    assert strange == []


def test_tests_of_a_backend_are_in_its_folder() -> None:
    folders = {folder.name for folder in (ROOT / "tests" / "backends").iterdir() if any(folder.glob("test_*.py"))}
    assert folders - {folder.name for folder in (ROOT / "backends").iterdir()} == {"every"}
