"""Names that CNTK leaks are found where CNTK shows them, star imports bring them, and every entry of the tables leads somewhere."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import subprocess
import sys
import types
from typing import Any

import pytest

import cntk as C
from cntk import compatibility
from cntk.compatibility import NAMES, complete, offered, origins


def star(module: str) -> dict[str, Any]:
    brought: dict[str, Any] = {}
    exec(f"from {module} import *", brought)
    return brought


@pytest.mark.parametrize("module", list(NAMES))
def test_every_name_in_a_table_is_the_object_that_its_row_says(module: str) -> None:
    shown = importlib.import_module(module)
    for name, (home, there) in origins(module).items():
        found: Any = importlib.import_module(home)
        for part in there.split(".") if there else ():
            found = getattr(found, part)
        assert getattr(shown, name) == found, f"{module}.{name}"


@pytest.mark.parametrize("module", list(NAMES))
def test_names_in_a_table_are_listed_and_brought_by_star_imports(module: str) -> None:
    shown = importlib.import_module(module)
    brought = star(module)
    for name in origins(module):
        assert name in dir(shown)
        assert name.startswith("_") or name in brought, f"{module}.{name}"
    assert set(offered(shown)) <= set(brought)
    assert not set(offered(shown)) & set(origins(module))


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("cntk", "np os sys C MinibatchData sanitize_input sequence Constant"),
        ("cntk.layers", "np C splice times sigmoid tanh placeholder reshape combine Constant Parameter Axis sequence default_override_or"),
        ("cntk.ops", "np sanitize_input load_model CloneMethod"),
        ("cntk.learners", "np sgd adam typemap"),
        ("cntk.cntk_py", "times Dictionary DataType_Float NDShape"),
    ],
)
def test_star_imports_bring_what_programs_use_after_them(module: str, names: str) -> None:
    assert set(names.split()) <= set(star(module))


@pytest.mark.parametrize(
    "line",
    [
        "from cntk.layers import placeholder, Constant, Sequential",
        "from cntk.layers import placeholder, GlobalAveragePooling, Dropout, Dense",
        "from cntk.layers.blocks import _INFERRED",
        "from cntk.layers.blocks import _inject_name",
        "from cntk.layers.blocks import identity, _initializer_for",
        "from cntk.layers.blocks import Parameter, _get_initial_state_or_default",
        "from cntk.layers.layers import _as_tuple",
        "from cntk.io import MinibatchData, TraceLevel",
        "from cntk.ops import load_model, CloneMethod",
        "from cntk import MinibatchData, sanitize_input",
        "import _cntk_py",
        "from _cntk_py import InferredDimension",
        "from cntk.cntk_py import NDShape, InferredDimension",
        "from cntk.internal import typemap, sanitize_input, _as_tuple",
        "from cntk.internal.sanitize import sanitize_shape, sanitize_dtype_numpy, sanitize_axis",
        "from cntk.internal.swig_helper import typemap, map_if_possible",
        "from cntk.internal.utils import get_data_type, _to_cntk_dict_value",
        "from cntk.utils import get_train_loss, ProgressPrinter, sanitize_batch",
        "from cntk.sample_installer import install_samples",
        "import cntk.cntk_py_init",
        "import cntk.contrib",
    ],
)
def test_first_lines_of_programs(line: str) -> None:
    exec(line, {})


def test_a_name_that_modules_use_themselves_is_left_alone() -> None:
    """CNTK's operators ``slice``, ``abs`` and ``sum`` do not take the place of Python's in our modules."""
    assert C.layers.blocks.slice is C.slice
    assert "slice" not in vars(importlib.import_module("cntk.layers.blocks"))


def test_sequence_of_layers_is_the_module_of_operators() -> None:
    assert C.layers.sequence is C.sequence
    assert importlib.import_module("cntk.layers.sequence").Recurrence is C.layers.Recurrence


@pytest.mark.parametrize("module", [C, C.layers, C.ops, C.learners, C.io, C.logging, C.random, C.cntk_py, C.core])
def test_what_nobody_has_is_an_attribute_error_that_names_module_and_name(module: Any) -> None:
    assert not hasattr(module, "nonsense")
    with pytest.raises(AttributeError, match=f"{module.__name__}' has no .*'nonsense'"):
        _ = module.nonsense
    with pytest.raises(ImportError, match="cannot import name 'nonsense'"):
        exec(f"from {module.__name__} import nonsense", {})


def test_python_suggests_a_name_that_is_near() -> None:
    program = "import cntk; cntk.learning_parameter_shedule"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "Did you mean: 'learning_parameter_schedule'" in ran.stderr


def test_members_of_modules_can_be_had() -> None:
    members = dict(inspect.getmembers(C))
    assert set(dir(C)) == set(members)
    assert {"sanitize_input", "relu", "np"} <= set(members)


def test_help() -> None:
    assert "input_variable" in pydoc.render_doc(C)
    assert "placeholder" in pydoc.render_doc(C.layers.blocks)


def test_importing_resolves_nothing() -> None:
    program = (
        "import sys, cntk\n"
        "late = ['cntk.cntk_py.operators', 'cntk.cntk_py.readers', 'cntk.compatibility.layers', 'cntk.compatibility.internals',"
        " 'cntk.utils', 'cntk.contrib', '_cntk_py']\n"
        "print([name for name in late if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_star_import_leaves_out_what_an_optional_distribution_has_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("cntk.tensor")
    vars(module)["__all__"] = ["TensorOpsMixin"]
    monkeypatch.setattr(compatibility, "find_spec", lambda name: None)
    complete(module)
    assert module.__all__ == ["TensorOpsMixin", "AVAILABLE_TENSOR_OPS", "warnings"]
    assert module.AVAILABLE_TENSOR_OPS == C.tensor.AVAILABLE_TENSOR_OPS
    assert not hasattr(module, "sparse")
