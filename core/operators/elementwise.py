"""Operators that work element by element, on operands that broadcast."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from ..common.shape import InferredDimension, Shape, broadcast, size_of
from ..formulas import evaluation
from ..formulas.derivatives import reads
from ..types.spec import Spec
from .op import ALL, Op, Traits, Which

if TYPE_CHECKING:
    from ..types.context import Context


class Broadcasting(Op):
    """An operator whose operands arrive reshaped so that their static axes line up with the result's for broadcasting."""


class Elementwise(Broadcasting):
    """Base of ops that compute each element of the result from the operands' elements at the same, broadcast, place.

    Subclasses state what they compute by a :mod:`~cntk.core.formulas.formula`, from which everything else follows; broadcasting, and
    summing gradients back over it, is done here.  They write ``forward`` and ``gradient`` as well where that is faster, or where there is
    no formula.  Arrays need not be contiguous, so that nothing may be written through a reshaped one.  Traits of a subclass's own are to
    say ``recordable=True`` as well, where that is so.

    >>> from cntk.extend import Elementwise
    >>> class Cube(Elementwise):
    ...     op_name = 'Cube'
    ...
    ...     @staticmethod
    ...     def formula(x):
    ...         return x * x * x
    >>> x = C.input_variable(2)
    >>> cube = Cube()(x)
    >>> cube.eval([[2, 3]]), cube.grad({x: [[2, 3]]}, wrt=[x])
    (array([[ 8., 27.]], dtype=float32), array([[12., 27.]], dtype=float32))
    """

    passes_gradient: ClassVar[tuple[int, ...]] = ()
    """Operands whose gradient is the result's gradient unchanged; they need no :meth:`gradient`."""
    gradient_in_place: ClassVar[Which] = ()
    """Operands whose gradient, where no other is wanted, backward may write over *grad*."""
    keeps_order: ClassVar[bool] = False
    """Whether, of one operand, greater elements give greater results, or equal ones, and these only where the gradient is 0."""
    formula: ClassVar[Callable[..., Any] | None] = None
    """The result as a function of the operands; of the operator as well where its first argument is called *self*."""
    gradient_formula: ClassVar[Callable[..., Any] | None] = None
    """The gradient of operand i as a function of i, the result's gradient, the result and the operands, where it is not to be the
    derivative of the formula; it reads what is kept for backward."""

    traits = Traits(recordable=True)

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = set(vars(cls))
        if "formula" in own:
            for name in {"forward", "gradient", "gradient_formula"} - own:  # those of a base belong to another formula
                setattr(cls, name, getattr(Elementwise, name))
            if not {"gradient", "backward", "keep_inputs", "keep_output"} & own:
                cls.keep_inputs = property(lambda op: reads(op).inputs)  # type: ignore[assignment]
                cls.keep_output = property(lambda op: reads(op).output)  # type: ignore[assignment]
            if not {"forward", "gradient", "backward", "in_place", "gradient_in_place"} & own:
                cls.in_place = cls.gradient_in_place = ALL  # only the last step of an evaluation writes into the result's array

    def infer(self, *inputs: Any) -> Spec:
        common = self.common(*inputs)
        shape = broadcast(*(spec.dims for spec in inputs))
        if shape is None:
            raise ValueError("shapes do not broadcast; aligned on the last axis, dimensions must be equal or 1")
        return common.but(shape=shape)

    def resolve(self, *inputs: Any) -> Sequence[Shape]:
        return lined_up_shapes(inputs)

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        return [spec if spec.shape is not None else spec.but(shape=()) for spec in inputs]

    def accepts_strided(self, *inputs: Spec) -> bool:
        return True

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """Operations, for the profiler: one for each element of the result."""
        return size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        evaluation.forward(self, ctx, out, inputs)

    def gradient(self, i: int, ctx: Context, dx: Any, dy: Any, y: Any, *inputs: Any) -> None:
        """Write the gradient of one operand, before it is summed back over broadcasting.

        Args:
            i: number of the operand.
            ctx: the context of the forward step.
            dx: array to write to, of the result's shape, ``(rows, *static)``.
            dy: the result's gradient, ``(rows, *static)``.
            y: the result, ``(rows, *static)``, where ``keep_output`` says so, else None.
            inputs: the operands, lined up with the result; None for those that ``keep_inputs`` leaves out.
        """
        evaluation.gradient(self, i, ctx, dx, (dy, y, *inputs))

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        for i, dx in enumerate(grads):
            if dx is None:
                continue
            if dx.shape == grad.shape:
                if i in self.passes_gradient:
                    ctx.xp.copyto(dx, grad)
                else:
                    self.gradient(i, ctx, dx, grad, out, *inputs)
            elif i in self.passes_gradient:
                ctx.sum_to(grad, dx)
            else:
                full = ctx.scratch("broadcast", grad.shape, grad.dtype)
                self.gradient(i, ctx, full, grad, out, *inputs)
                ctx.sum_to(full, dx)


def lined_up_shapes(operands: Sequence[Spec]) -> list[Shape]:
    """Shapes of operands that broadcast, where inferred dimensions are those of the others."""
    known = [spec.dims for spec in operands if InferredDimension not in spec.dims]
    target = broadcast(*known) if known else None
    return [spec.dims if target is None else _fill(spec.dims, target) for spec in operands]


def _fill(shape: Shape, target: Shape) -> Shape:
    """Replace inferred dimensions by those of the aligned *target*."""
    tail = ((1,) * len(shape) + target)[-len(shape) :] if shape else ()
    return tuple(known if dim == InferredDimension else dim for dim, known in zip(shape, tail, strict=True))
