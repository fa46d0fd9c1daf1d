"""What variables and functions have in common: operators; and values: being had as arrays."""

from cntk.core.graph.tensor import ArrayMixin
from cntk.core.graph.tensor import TensorOps as TensorOpsMixin

__all__ = ["ArrayMixin", "TensorOpsMixin"]
