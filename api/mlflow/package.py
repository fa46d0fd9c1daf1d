"""MLflow, which is imported when it is first needed."""

from __future__ import annotations

from importlib import import_module
from typing import Any


def mlflow_module(name: str) -> Any:
    """A module of MLflow.

    Raises:
        ImportError: MLflow or pandas, which its models need, is not installed.
    """
    try:
        import_module("pandas")
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"cntk.mlflow needs MLflow and pandas: pip install 'opencntk[mlflow]' ({error})") from None
