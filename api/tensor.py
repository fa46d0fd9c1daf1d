"""Operators on variables and functions."""

from cntk.core.tensor import TensorOps as TensorOpsMixin

__all__ = ["TensorOpsMixin"]
