"""Default options: ``with default_options(...)`` gives arguments that a caller leaves out, and global options.

Scopes nest and the innermost wins.  They belong to the thread, or asynchronous task, that entered them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TypeVar

from .switches import global_options

T = TypeVar("T")

_RESERVED = ("_scope", "_outer")
_scopes: ContextVar[tuple[OptionsScope, ...]] = ContextVar("default_options", default=())


class OptionsScope:
    """Options in force inside a ``with`` block.

    Attributes:
        functions: the functions they are restricted to, None for all.
        options: values by argument name.
    """

    def __init__(self, functions: frozenset[Any] | None, options: dict[str, Any]) -> None:
        for name in _RESERVED:
            if name in options:
                raise ValueError(f"default_options: the name '{name}' is reserved; an option has the name of a function's argument")
        self.functions, self.options = functions, options

    def applies_to(self, function: Any) -> bool:
        """Whether a lookup on behalf of *function* (None: of no function in particular) sees these options."""
        return self.functions is None or function is None or function in self.functions

    def __enter__(self) -> OptionsScope:
        _scopes.set((self, *_scopes.get()))
        return self

    def __exit__(self, *exception: object) -> None:
        _scopes.set(_scopes.get()[1:])


def default_options(**kwargs: Any) -> OptionsScope:
    """Set default options inside a ``with`` block.

    They stand in for arguments left out of calls to layers, and to any function whose signature shows an overridable default,
    and for the ``dtype`` of parameters, constants and inputs.

    Args:
        kwargs: options by argument name.

    Raises:
        ValueError: an option is called ``_scope`` or ``_outer``.

    >>> with C.default_options(dtype=np.float64):
    ...     C.input_variable(2).dtype
    <class 'numpy.float64'>
    """
    return OptionsScope(None, kwargs)


def default_options_for(functions: Any, **kwargs: Any) -> OptionsScope:
    """Set default options inside a ``with`` block for some functions only.

    Args:
        functions: a function or a list of functions.
        kwargs: options by argument name.

    >>> from cntk.layers import Dense
    >>> with C.default_options(init_bias=1), C.default_options_for(Dense, init_bias=2):
    ...     model = Dense(1)
    >>> model.b.value
    array([2.], dtype=float32)
    """
    several = isinstance(functions, (list, tuple, set, frozenset))
    return OptionsScope(frozenset(functions) if several else frozenset([functions]), kwargs)


class Overridable:
    """Default of an argument that ``default_options`` may override; signatures show its value.

    Args:
        value: the value where nothing overrides it.

    >>> def scaled(x, factor=C.default_override_or(2)):
    ...     return x * C.get_default_override(scaled, factor=factor)
    >>> with C.default_options(factor=10):
    ...     scaled(1), scaled(1, factor=3)
    (10, 3)
    """

    def __init__(self, value: Any) -> None:
        self.value = value

    def __repr__(self) -> str:
        return getattr(self.value, "__name__", None) or repr(self.value)


if TYPE_CHECKING:

    def default_override_or(value: T) -> T:
        """It has the type of the argument whose default it is."""

else:
    default_override_or = Overridable


def is_default_override(value: Any) -> bool:
    """Whether an argument was left out, so that it still has its overridable default.

    >>> C.is_default_override(C.default_override_or(1)), C.is_default_override(1)
    (True, False)
    """
    return isinstance(value, Overridable)


def get_default_override(function_or_class: Callable[..., Any] | None, **kwargs: Any) -> Any:
    """The value of an argument: what the caller gave, else the innermost option in force, else the argument's default.

    Args:
        function_or_class: the function that asks, so that options restricted to it are seen; None asks for no function in particular.
        kwargs: exactly one argument of that function, by its own name.

    Raises:
        TypeError: not exactly one argument, or the function has none of that name.
        ValueError: *function_or_class* is neither a Python function nor a class.

    >>> C.get_default_override(None, pad=C.default_override_or(False))
    False
    """
    if len(kwargs) != 1:
        raise TypeError(f"get_default_override: expected one keyword argument, got {len(kwargs)}")
    ((name, value),) = kwargs.items()
    if function_or_class is not None:
        _check_argument(function_or_class, name)
    return _look_up(function_or_class, name, value.value) if is_default_override(value) else value


def option(name: str, default: Any) -> Any:
    """The innermost option called *name* that is in force, whatever function it is for, else *default*."""
    return _look_up(None, name, default)


def _look_up(function: Any, name: str, default: Any) -> Any:
    for scope in _scopes.get():
        if name in scope.options and scope.applies_to(function):
            return scope.options[name]
    return default


def _check_argument(function: Callable[..., Any], name: str) -> None:
    if not (inspect.isfunction(function) or inspect.isclass(function)):
        raise ValueError(f"get_default_override: expected a Python function or class as first argument, got {function!r}")
    arguments = inspect.signature(function).parameters
    if name not in arguments:
        raise TypeError(f"get_default_override: {function.__name__}() has no argument '{name}'; it has {', '.join(arguments)}")


def set_global_option(key: str, value: Any) -> None:
    """Set an option for the whole process; for code that no ``with`` block can surround.

    Args:
        key: ``'align_axis'``: 1 if the axes in ``x[...]`` begin with the dynamic ones, which take ``:`` (``x[:, 0]``), 0 if with the first
            static one; ``'python_operand_order'``: False if ``Function.arguments`` lists the right operand of a product first. Other keys
            are a program's own.
        value: its value.

    >>> C.set_global_option('align_axis', 0)
    >>> C.get_global_option('align_axis', 1)
    0
    """
    global_options.value = {**global_options.value, key: value}


def get_global_option(key: str, default_value: Any) -> Any:
    """The value that :func:`set_global_option` has set, else *default_value*.

    >>> C.get_global_option('python_operand_order', True)
    True
    """
    return global_options.value.get(key, default_value)
