"""Functions and what makes them of Python functions."""

from cntk.core.function import CloneMethod, Function
from cntk.core.native import native_user_function, register_native_user_function
from cntk.core.python_function import BlockFunction
from cntk.core.user_function import UserFunction

__all__ = ["BlockFunction", "CloneMethod", "Function", "UserFunction", "native_user_function", "register_native_user_function"]
