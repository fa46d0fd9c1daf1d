"""Axes of tensors and minibatches."""

from cntk.core.types.axis import Axis

__all__ = ["Axis"]
