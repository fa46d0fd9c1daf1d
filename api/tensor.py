"""Base classes: operators of variables and functions, and conversion of values to arrays."""

from cntk.core.graph.tensor import ArrayMixin
from cntk.core.graph.tensor import TensorOps as TensorOpsMixin

__all__ = ["ArrayMixin", "TensorOpsMixin"]
