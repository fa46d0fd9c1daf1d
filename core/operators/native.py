"""Native user functions: operators that plugins provide, made by name with attributes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..extension import plugins
from .effects import Effect
from .op import Op

if TYPE_CHECKING:
    from ..graph.function import Function

_factories: dict[str, Callable[[dict[str, Any]], Op]] = {}
_providers: dict[str, tuple[str, str]] = {}


class NativeOp(Effect):
    """Base class of the operators behind native user functions: like :class:`~cntk.core.operators.op.Op`, but made with a dictionary.

    The attributes keep their names; the operator reads them from :attr:`given`.

    Attributes:
        op_id: the name under which the function was registered.
        given: the attributes.
    """

    op_id: str = ""

    def __init__(self, attributes: dict[str, Any]) -> None:
        super().__init__()
        self.given = dict(attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        """The attributes by name."""
        return dict(self.given)


def register_native_user_function(op_id: str, module_name: str, factory_method_name: str) -> None:
    """Make an operator of a plugin or package known under *op_id*, for :func:`native_user_function`.

    Args:
        op_id: the name to register it under.
        module_name: where it is: a name that a plugin has registered factories under, or a Python module.
        factory_method_name: the factory in it: called with a dictionary of attributes it returns the operator, a
            :class:`~cntk.core.operators.native.NativeOp`.  It may be the operator's class itself.

    Raises:
        ValueError: *op_id* is taken.
        RuntimeError: there is no such module, or nothing of this name in it.

    >>> from cntk.ops.functions import native_user_function, register_native_user_function
    >>> register_native_user_function('UserTimes', 'Cntk.ExtensibilityExamples-2.7', 'CreateUserTimesFunction')
    >>> x, W = C.input_variable(2), C.parameter(init=np.float32([[1, 2], [3, 4]]))
    >>> f = native_user_function('UserTimes', [W, x], {'comment': 'the weights first'}, 'product')
    >>> f.eval([[1, 1]]), f.root_function.attributes
    (array([[4., 6.]], dtype=float32), {'comment': 'the weights first'})
    """
    if op_id in _factories:
        raise ValueError(f"register_native_user_function: '{op_id}' is registered already; each operator needs an id of its own")
    _factories[op_id] = _factory(module_name, factory_method_name)
    _providers[op_id] = module_name, factory_method_name


def is_native_user_function_registered(op_id: str) -> bool:
    """Whether :func:`register_native_user_function` has been called for *op_id*."""
    return op_id in _factories


def provider_of(op_id: str) -> tuple[str, str]:
    """Names of the module and of the factory in it that *op_id* was registered with."""
    return _providers[op_id]


def native_user_function(
    op_id: str, operands: Sequence[Any], attributes: dict[str, Any] | None = None, user_function_instance_name: str = ""
) -> Function:
    """Apply an operator that was registered with :func:`register_native_user_function`.

    Args:
        op_id: the name under which it was registered.
        operands: list of variables, functions, numbers and arrays, in the order that the operator takes them.
        attributes: the operator's attributes, which ``attributes`` of the function shows.
        user_function_instance_name: name of the function.

    Raises:
        ValueError: nothing is registered as *op_id*, or the operands are incompatible.
        TypeError: the registered factory does not return a :class:`~cntk.core.operators.native.NativeOp`.

    >>> from cntk.ops.functions import native_user_function, register_native_user_function
    >>> register_native_user_function('Product', 'Cntk.ExtensibilityExamples-2.7', 'CreateUserTimesFunction')
    >>> native_user_function('Product', [np.eye(2, dtype=np.float32), C.input_variable(2, name='x')])
    Composite(NativeUserTimesOp): Input('x', [#], [2]) -> Output('...', [#], [2])
    """
    if op_id not in _factories:
        known = ", ".join(sorted(_factories)) or "none"
        raise ValueError(
            f"native_user_function: nothing is registered as '{op_id}'; call register_native_user_function first. Registered: {known}"
        )
    op = _factories[op_id](dict(attributes or {}))
    if not isinstance(op, NativeOp):
        raise TypeError(f"native_user_function: the factory registered as '{op_id}' must return a NativeOp, got {type(op).__name__}")
    op.op_id = op_id
    return op(*operands, name=user_function_instance_name)


def _factory(module_name: str, factory_method_name: str) -> Any:
    provided = (module_name, factory_method_name)
    if provided in plugins.native_functions:
        return plugins.native_functions.get(provided)
    try:
        return getattr(import_module(module_name), factory_method_name)
    except (ImportError, AttributeError) as error:
        raise RuntimeError(
            f"register_native_user_function: no plugin provides '{factory_method_name}' under '{module_name}', "
            f"nor does a Python module of that name: {error}"
        ) from error
