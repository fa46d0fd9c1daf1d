"""Functions, what makes them of Python functions, and their files."""

from cntk.core.function import CloneMethod, Function
from cntk.core.model_files import ModelFormat
from cntk.core.native import native_user_function, register_native_user_function
from cntk.core.python_function import BlockFunction
from cntk.core.user_function import UserFunction

load_model = Function.load

__all__ = [
    "BlockFunction",
    "CloneMethod",
    "Function",
    "ModelFormat",
    "UserFunction",
    "load_model",
    "native_user_function",
    "register_native_user_function",
]
