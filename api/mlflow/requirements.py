"""What a model needs beside its file: packages, and modules with classes of the program's own."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from cntk.core.extension import plugins
from cntk.core.graph.function import Function
from cntk.core.graph.graph import depth_first_search
from cntk.core.graph.nodes import Primitive
from cntk.plugins.user_functions import UserFunction


def get_default_pip_requirements(function: Function | None = None) -> list[str]:
    """Requirements for pip, in the versions that are installed: MLflow, opencntk, and the plugins whose operators a function has.

    >>> from cntk.mlflow import get_default_pip_requirements
    >>> get_default_pip_requirements()[-1]
    'opencntk[mlflow]==...'
    """
    found = (plugins.record_of(module) for module in ([] if function is None else _modules(function)))
    others = {f"{one.distribution}=={one.version}" for one in found if one is not None and one.distribution != plugins.DISTRIBUTION}
    return [*_mlflow(), f"{plugins.DISTRIBUTION}[mlflow]=={version(plugins.DISTRIBUTION)}", *sorted(others)]


def modules_to_import(function: Function) -> list[str]:
    """Modules with operators and user functions that belong to no plugin, which are imported before the function's file is read.

    Raises:
        ValueError: one is the main module of the program, which others cannot import.
    """
    own = sorted(module for module in _modules(function) if plugins.record_of(module) is None)
    if "__main__" in own:
        raise ValueError(
            "the model has a user function or operator whose class is in the main module of the program, where loading does not find it; "
            "put the class into a module, and the module's file into code_paths"
        )
    return own


def _modules(function: Function) -> set[str]:
    nodes = depth_first_search(function, lambda node: isinstance(node, Primitive), -1)
    return {type(node if isinstance(node, UserFunction) else node.op).__module__ for node in nodes}


def _mlflow() -> list[str]:
    """The whole of MLflow, or ``mlflow-skinny`` where there is no more."""
    for name in ("mlflow", "mlflow-skinny"):
        try:
            return [f"{name}=={version(name)}"]
        except PackageNotFoundError:
            continue
    return []
