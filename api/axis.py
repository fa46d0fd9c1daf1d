"""Axes of tensors and minibatches."""

from cntk.core.axis import Axis

__all__ = ["Axis"]
