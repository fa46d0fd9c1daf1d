"""Values passed on, replaced by constants, stored, or converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.common.dtypes import as_dtype
from ...core.common.shape import Shape
from ...core.graph.arguments import DTypeLike, TensorLike
from ...core.operators.effects import Assignment, Finishing
from ...core.operators.op import Op, Traits
from ...core.operators.samples import Operand, operator, sample
from ...core.operators.view import GradientView, View
from ...core.types.sparse import SparseRows
from ...core.types.spec import Spec

if TYPE_CHECKING:
    from ...core.graph.function import Function
    from ...core.types.context import Context


class NoOp(View, GradientView):
    """The operand itself."""

    op_name = "NoOp"
    traits = Traits(recordable=True)
    sparse_inputs = (0,)

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0]

    def view(self, x: Any, out_shape: Shape) -> Any:
        return x

    def grad_view(self, grad: Any, in_shape: Shape) -> Any:
        return grad


class StopGradient(View):
    """The operand itself, which gets no gradient."""

    op_name = "StopGradient"
    sparse_inputs = (0,)
    traits = Traits(array_types=(1,), recordable=True)
    gradient_inputs = ()

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0]

    def view(self, x: Any, out_shape: Shape) -> Any:
        return x


class ConstantOp(Op):
    """A constant, ``fill_value``, of the operand's shape and dynamic axes."""

    op_name = "ConstantOp"
    traits = Traits(recordable=True)
    fill_value: float
    sparse_inputs = (0,)
    gradient_inputs = ()

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0].but()

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        out.fill(self.fill_value)


class Assign(Assignment, Finishing):
    """The second operand; when the pass is over the first holds its value."""

    op_name = "Assign"
    assigns = (0,)
    gradient_inputs = ()
    traits = Traits(uniform_inputs=(1,))

    def infer(self, *inputs: Spec) -> Spec:
        ref, value = inputs
        if ref.sparse:
            raise ValueError("a sparse constant cannot be assigned to; set its value with .value = csr_matrix")
        if value.axes:
            raise ValueError("a value with dynamic axes cannot be assigned; reduce it over them, or use unpack_batch")
        if ref.is_concrete and value.is_concrete and ref.shape != value.shape:
            raise ValueError("the value must have the shape of the parameter or constant")
        return self.common(*inputs).but(shape=value.shape)

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        ref, value = inputs
        return [ref.dims if ref.is_concrete else value.dims, value.dims]

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        ctx.xp.copyto(out, inputs[1])

    def finish(self, ctx: Context, out: Any, *inputs: Any) -> None:
        """Store the value: only now, so that whatever else reads the parameter in this pass still finds the old one."""
        ctx.xp.copyto(inputs[0], out)


class Cast(Op):
    """The operand as another element type."""

    op_name = "Cast"
    sparse_inputs = (0,)
    traits = Traits(array_types=(1,), recordable=True)
    new_data_type: type[np.floating[Any]]

    def infer(self, *inputs: Spec) -> Spec:
        return inputs[0].but(dtype=self.new_data_type, sparse=inputs[0].sparse)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        (x,) = inputs
        if isinstance(x, SparseRows):
            out.set(x.data.astype(out.dtype), x.indices, x.indptr)
        else:
            ctx.xp.copyto(out, x)

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        if grads[0] is not None:
            ctx.xp.copyto(grads[0], grad)


# ---- public operators ----------------------------------------------------------------------------


@operator(
    sample((2, 3), expected=lambda x: x),
    sample((), expected=lambda x: x),
    sample(Operand((3,), kind="parameter"), expected=lambda x: x),
    sample(Operand((2, 3), sparse=True, gradient=False), expected=lambda x: x),
)
def alias(x: TensorLike, name: str = "") -> Function:
    """*x* under another name; nothing is computed or copied.

    Example:
        >>> C.alias([1, 2], name='numbers').eval()
        array([1., 2.], dtype=float32)
    """
    return NoOp()(x, name=name)


@operator(
    sample(Operand((2, 3), gradient=False), expected=lambda x: x),
    sample(Operand((3,), kind="parameter", gradient=False), expected=lambda x: x),
    sample(Operand((3,), sparse=True, gradient=False), expected=lambda x: x),
)
def stop_gradient(input: TensorLike, name: str = "") -> Function:
    """*input* itself, with a gradient of 0: training leaves alone what it was computed from.

    Example:
        >>> x = C.input_variable(2, needs_gradient=True)
        >>> (x + C.stop_gradient(x)).grad({x: np.float32([[1, 2]])})
        array([[1., 1.]], dtype=float32)
    """
    return StopGradient()(input, name=name)


@operator(
    sample((2, 3), expected=np.ones_like),
    sample((), expected=np.ones_like),
    sample(Operand((4,), sparse=True), expected=np.ones_like),
)
def ones_like(x: TensorLike, name: str = "") -> Function:
    """Ones of the shape, dynamic axes and element type of *x*, which gets no gradient.

    Example:
        >>> C.ones_like([2, 3, 4]).eval()
        array([1., 1., 1.], dtype=float32)
    """
    return ConstantOp(fill_value=1.0)(x, name=name)


@operator(
    sample((2, 3), expected=np.zeros_like),
    sample((), expected=np.zeros_like),
    sample(Operand((4,), sparse=True), expected=np.zeros_like),
)
def zeros_like(x: TensorLike, name: str = "") -> Function:
    """Zeros of the shape, dynamic axes and element type of *x*, which gets no gradient.

    Example:
        >>> C.zeros_like([2, 3, 4]).eval()
        array([0., 0., 0.], dtype=float32)
    """
    return ConstantOp(fill_value=0.0)(x, name=name)


@operator(
    sample(
        Operand((2, 3), kind="parameter", gradient=False),
        Operand((2, 3), kind="parameter", gradient=False),
        expected=lambda ref, value: value,
    )
)
def assign(ref: TensorLike, input: TensorLike, name: str = "") -> Function:
    """Store a value in a parameter or constant whenever this is evaluated.

    The value is stored when the whole pass is over, the backward pass included: other functions evaluated together with this
    one still see the old value of *ref*.

    Args:
        ref: parameter or constant.
        input: new value, of the same shape and without dynamic axes.  Neither gets a gradient.
        name: name of the Function.

    Returns:
        Function that gives the new value.

    Raises:
        TypeError: *ref* is neither parameter nor constant.
        ValueError: *input* has dynamic axes or another shape.

    Example:
        >>> total = C.parameter(2, init=1)
        >>> C.assign(total, total + [1, 2]).eval()
        array([2., 3.], dtype=float32)
        >>> total.value
        array([2., 3.], dtype=float32)
    """
    if not (getattr(ref, "is_parameter", False) or getattr(ref, "is_constant", False)):
        raise TypeError(f"assign: expected a Parameter or Constant to assign to, got {ref!r:.80}")
    return Assign()(ref, input, name=name)


@operator(
    sample((2, 3), call=lambda f, x: f(f(x, np.float64), x.dtype), expected=lambda x: x),
    sample((), call=lambda f, x: f(x, x.dtype), expected=lambda x: x),
    sample(Operand((3,), kind="parameter"), call=lambda f, x: f(f(x, np.float64), x.dtype), expected=lambda x: x),
    sample(Operand((3,), sparse=True, gradient=False), call=lambda f, x: f(f(x, np.float64), x.dtype), expected=lambda x: x),
)
def cast(node_input: TensorLike, dtype: DTypeLike, name: str = "") -> Function:
    """*node_input* as another element type; its gradient is converted back.

    Args:
        node_input: operand; the result's shape and dynamic axes are the same.  A sparse value stays sparse.
        dtype: float16, bfloat16, float32 or float64.
        name: name of the Function.

    Raises:
        ValueError: *dtype* is another type.

    Example:
        >>> C.cast([1, 2], np.float64).eval()
        array([1., 2.])
    """
    return Cast(new_data_type=as_dtype(dtype))(node_input, name=name)
