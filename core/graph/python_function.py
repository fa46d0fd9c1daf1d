"""Python functions as Functions: they are run once on placeholders, and the result is the graph."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from ..common.options import default_options
from ..extension import plugins
from ..types.types import as_type
from .block import as_block, combine
from .call import input_of_type
from .function import Function
from .nodes import Composite
from .variable import Variable, placeholder

F = TypeVar("F", bound=Callable[..., Any])
_under_construction: ContextVar[frozenset[Variable]] = ContextVar("under_construction", default=frozenset())


def under_construction() -> frozenset[Variable]:
    """Arguments of the Python functions that are being converted."""
    return _under_construction.get()


def function_from_python(f: Callable[..., Any] | Function) -> Function:
    """Convert a Python function; see :class:`Function`.

    Parameters with defaults are not arguments; an annotation with a type (``x: Tensor[13]``) makes the argument an input.

    Raises:
        TypeError: it returns nothing, does not use an argument, uses one of another function, or creates parameters.
    """
    if isinstance(f, Function):
        return f
    if not callable(f):
        raise TypeError(f"Function: expected a Python function, got {type(f).__name__} {f!r:.80}")
    arguments = _arguments_of(f)
    result = _run(f, arguments)
    _check_arguments(f, result, arguments)
    return Composite(result.root_function, result.name, arguments)


def BlockFunction(op_name: str, name: str) -> Callable[[Callable[..., Any]], Function]:
    """Decorator: convert a Python function into a Function that shows as one node.

    Args:
        op_name: name of the node's operator.
        name: the node's own name, or ``''``.

    >>> @C.BlockFunction('Twice', 'double')
    ... def twice(x):
    ...     return x + x
    >>> print(twice)
    double: Twice(x: Sequence[tensor]) -> Sequence[tensor]
    """

    def convert(f: Callable[..., Any]) -> Function:
        inner, outer = _arguments_of(f), _arguments_of(f)
        result = _run(f, inner)
        _check_arguments(f, result, inner)
        return as_block(result, list(zip(inner, outer, strict=True)), op_name, name)

    return convert


def Signature(*args: Any, **kwargs: Any) -> Callable[[F], F]:
    """Decorator: annotate the arguments of a Python function with types, for ``@Function`` to read.

    Args:
        args: types of the first arguments.
        kwargs: types of the others, by name.

    Raises:
        TypeError: the types do not match the function's arguments.
        ValueError: the function has annotations already.

    >>> from cntk.layers.typing import Signature, Tensor
    >>> @C.Function
    ... @Signature(Tensor[13])
    ... def f(x):
    ...     return x * x
    >>> print(f)
    ElementTimes(x: Tensor[13]) -> Tensor[13]
    """

    def annotate(function: F) -> F:
        names = list(inspect.signature(function).parameters)
        if function.__annotations__:
            raise ValueError(f"Signature: the function '{function.__name__}' has annotations already; remove them or the decorator")
        types = dict(zip(names, args, strict=False)) | kwargs
        if len(args) + len(kwargs) != len(names) or set(types) != set(names):
            raise TypeError(f"Signature: '{function.__name__}' takes the arguments {names}, got types for {list(types)}")
        function.__annotations__ = types
        return function

    return annotate


def _arguments_of(f: Callable[..., Any]) -> list[Variable]:
    """A placeholder for each parameter without default, an input where it is annotated with a type.

    Parameters such as ``*more`` are left empty where others are named, as operators that take two operands or more have them.
    """
    variables: list[Variable] = []
    several = False
    for parameter in inspect.signature(f).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            several = True
        elif parameter.default is parameter.empty:
            annotation = _annotation(f, parameter)
            typed = as_type(annotation) is not None
            variables.append(input_of_type(annotation, parameter.name) if typed else placeholder(name=parameter.name))
    if several and not variables:
        raise TypeError(f"Function: {_name_of(f)} takes a variable number of arguments; name each of them")
    return variables


def _annotation(f: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """What a parameter is annotated with; an annotation that is a string is evaluated where the function is defined."""
    if not isinstance(parameter.annotation, str):
        return parameter.annotation
    while isinstance(f, partial) or hasattr(f, "__wrapped__"):
        f = f.func if isinstance(f, partial) else f.__wrapped__
    home = f if inspect.isroutine(f) else type(f).__call__
    return eval(parameter.annotation, home.__globals__)


def _run(f: Callable[..., Any], arguments: Sequence[Variable]) -> Function:
    with default_options(pure=True), _hidden(arguments):
        result = f(*arguments)
        if isinstance(result, tuple):
            return combine(_without_repetition(result))
        if isinstance(result, Variable):
            return combine([result])
        if isinstance(result, Function):
            return result
        raise TypeError(f"Function: {_name_of(f)} must return a Function, a Variable or a tuple of these, got {type(result).__name__}")


def _without_repetition(results: Sequence[Any]) -> list[Any]:
    """The results, with an alias where one comes a second time, so that outputs stay distinct."""
    alias = plugins.ops.get("alias")
    return [alias(result) if any(result is earlier for earlier in results[:i]) else result for i, result in enumerate(results)]


@contextmanager
def _hidden(arguments: Sequence[Variable]) -> Iterator[None]:
    token = _under_construction.set(_under_construction.get() | set(arguments))
    try:
        yield
    finally:
        _under_construction.reset(token)


def _check_arguments(f: Callable[..., Any], result: Function, arguments: Sequence[Variable]) -> None:
    used = result.signature
    unused = [v.name for v in arguments if v not in used]
    if unused:
        raise TypeError(f"Function: {_name_of(f)} does not use its arguments {unused}; leave them out")
    foreign = [v.name or v.uid for v in used if v not in arguments]
    if foreign:
        raise TypeError(f"Function: {_name_of(f)} uses the variables {foreign}, which are not among its arguments; pass them in")


def _name_of(f: Callable[..., Any]) -> str:
    return f"'{getattr(f, '__name__', type(f).__name__)}'"
