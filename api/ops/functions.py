"""Functions and what makes them of Python functions."""

from cntk.core.function import CloneMethod, Function
from cntk.core.python_function import BlockFunction

__all__ = ["BlockFunction", "CloneMethod", "Function"]
