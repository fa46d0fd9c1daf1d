"""Stand-ins for operators of another engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.common.dtypes import as_dtype
from ...core.common.shape import Shape, as_shape
from ...core.graph.function import Function
from ...core.operators.op import Op, Traits
from ...core.types.context import Context
from ...core.types.spec import Spec, merge_axes

INTEGERS = {np.dtype(dtype): dtype for dtype in (np.int8, np.int16)}
"""Element types that results may have in another engine only."""


class CustomProxyOp(Op):
    """Operands of an operator that another engine computes."""

    op_name = "CustomProxyOp"
    traits = Traits(uniform_inputs=())
    gradient_inputs = ()
    custom_op: str
    output_shape: Shape
    new_data_type: Any

    def infer(self, *inputs: Spec) -> Spec:
        return Spec(self.output_shape, self.new_data_type, merge_axes(inputs))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        raise RuntimeError(f"'{self.custom_op}' is an operator of another engine, for which this stands in; it cannot be evaluated here")


def custom_proxy_op(custom_op: str, output_shape: Any, output_data_type: Any, *operands: Any, name: str = "") -> Function:
    """Stand in for an operator of another engine, so that a model with it can be built, saved and loaded, but not evaluated.

    Args:
        custom_op: the operator's name in the other engine.
        output_shape: static shape of its result.
        output_data_type: element type of its result: float16, bfloat16, float32, float64, int8 or int16.
        operands: its operands, of any shapes and element types, or one list of that; a Function with several results stands
            for all of them.
        name: name of the Function.

    Returns:
        a Function of the given shape and type, on the dynamic axes of the operands.

    Raises:
        ValueError: another element type, or operands whose dynamic axes do not combine.
        RuntimeError: the Function is evaluated.

    >>> x, W = C.input_variable((1, 4)), C.Parameter((4, 2))
    >>> C.custom_proxy_op('quantized_times', (1, 2), np.float32, x, W, name='product').output
    Output('product', [#], [1 x 2])
    """
    if len(operands) == 1 and isinstance(operands[0], (tuple, list)):
        operands = tuple(operands[0])
    op = CustomProxyOp(custom_op=str(custom_op), output_shape=as_shape(output_shape), new_data_type=_element_type(output_data_type))
    return op(*_results(operands), name=name)


def _results(operands: Sequence[Any]) -> list[Any]:
    """The operands, with the results of Functions that have several in the place of these."""
    found: list[Any] = []
    for operand in operands:
        found += operand.outputs if len(getattr(operand, "outputs", ())) > 1 else [operand]
    return found


def _element_type(dtype: Any) -> Any:
    try:
        return INTEGERS[np.dtype(dtype)]
    except (KeyError, TypeError):
        return as_dtype(dtype)
