"""Operators: everything that plugins register, and functions that build graphs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cntk.core.common.user_frame import warn_user
from cntk.core.extension import plugins
from cntk.core.graph.arguments import AxesLike, DTypeLike, ShapeLike
from cntk.core.graph.block import as_block as as_block
from cntk.core.graph.block import as_composite as as_composite
from cntk.core.graph.block import combine as combine
from cntk.core.graph.variable import BATCH, Input
from cntk.core.graph.variable import constant as constant
from cntk.core.graph.variable import input_variable as input_variable
from cntk.core.graph.variable import parameter as parameter
from cntk.core.graph.variable import placeholder as placeholder
from cntk.ops import functions as functions
from cntk.ops import sequence as sequence
from cntk.ops.functions import Function as Function
from cntk.ops.functions import native_user_function as native_user_function
from cntk.ops.functions import register_native_user_function as register_native_user_function
from cntk.plugins.ops.custom_proxy import custom_proxy_op as custom_proxy_op
from cntk.plugins.ops.tree import associative_multi_arg as associative_multi_arg
from cntk.plugins.user_functions import output_variable as output_variable

MAX_POOLING = 0
AVG_POOLING = 1
MAX_UNPOOLING = 0
PoolingType_Max = 0
PoolingType_Average = 1
CONSTANT_PAD = 0
REFLECT_PAD = 1
SYMMETRIC_PAD = 2
TIMES_NO_INFERRED_INPUT_RANK = -1
TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK = -2

_BUILDERS = [
    "AVG_POOLING",
    "CONSTANT_PAD",
    "MAX_POOLING",
    "MAX_UNPOOLING",
    "PoolingType_Average",
    "PoolingType_Max",
    "REFLECT_PAD",
    "SYMMETRIC_PAD",
    "TIMES_NO_INFERRED_INPUT_RANK",
    "TIMES_REDUCE_SEQUENCE_AXIS_WITHOUT_INFERRED_INPUT_RANK",
    "input",
    "sequence",
    "Function",
    "as_block",
    "as_composite",
    "associative_multi_arg",
    "combine",
    "constant",
    "custom_proxy_op",
    "functions",
    "input_variable",
    "native_user_function",
    "output_variable",
    "parameter",
    "placeholder",
    "register_native_user_function",
]


def input(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    dynamic_axes: AxesLike = BATCH,
    name: str = "",
) -> Input:
    """The old name of :func:`input_variable`.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter('always')
    ...     x = C.input(3, name='x')
    >>> x, str(said[0].message)
    (Input('x', [#], [3]), 'input is the old name of input_variable')
    """
    warn_user("input is the old name of input_variable", DeprecationWarning)
    return input_variable(shape, dtype, needs_gradient, is_sparse, dynamic_axes, name)


if TYPE_CHECKING:
    from cntk.ops._names import *
else:

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return [*_BUILDERS, *plugins.names_to_import(plugins.ops, __name__)]
        if name in plugins.ops:
            return plugins.shown(plugins.ops, name, __name__)
        raise AttributeError(f"module 'cntk.ops' has no operator '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *plugins.names_shown(plugins.ops)})
