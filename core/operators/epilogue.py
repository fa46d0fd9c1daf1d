"""Epilogues: element-wise operators that a kernel applies to its result before writing it to memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from ..common.shape import size_of
from ..types.spec import Spec
from .abilities import CountsOperations, GivesRowSparse
from .elementwise import Elementwise
from .op import Op, includes

if TYPE_CHECKING:
    from ..types.context import Context
    from ..types.spec import Shape


class Step(NamedTuple):
    """One operator of an epilogue.

    Attributes:
        op: the operator.
        position: which of its operands is the result so far.
        others: specs of its other operands, in order.
        goes_back: whether gradients may be asked for.
    """

    op: Elementwise
    position: int
    others: tuple[Spec, ...]
    goes_back: bool = True

    def operands(self, value: Any, others: Iterator[Any]) -> list[Any]:
        """The operator's operands in order: *value* where the result so far goes, and as many of *others* as it takes."""
        return [value if i == self.position else next(others) for i in range(len(self.others) + 1)]


class Epilogue(NamedTuple):
    """An epilogue with the arrays of one call, for the kernel that has taken it.

    Attributes:
        steps: its operators; the last one alone may need its result for the gradient.
        others: the steps' other operands one after another, each None in a backward step.
        grads: in a backward step the arrays of their gradients, None where none is wanted.
    """

    steps: Sequence[Step]
    others: Sequence[Any]
    grads: Sequence[Any] = ()

    def forward(self, ctx: Context, out: Any) -> None:
        """Apply the steps to *out* in place, for a kernel that has not applied them itself."""
        for call in self.calls(ctx, out):
            call()

    def calls(self, ctx: Context, out: Any) -> list[Callable[[], None]]:
        """The function that :meth:`forward` calls."""
        others = iter(self.others)
        return [partial(step.op.forward, ctx, out, *step.operands(out, others)) for step in self.steps]

    def backward(self, ctx: Context, grad: Any, out: Any) -> Any:
        """Write the gradients of the other operands, and give that of the result before the steps: *grad* itself, or scratch space."""
        grads, end = self.grads, len(self.grads)
        for number, step in reversed(list(enumerate(self.steps))):
            begin = end - len(step.others)
            passes = step.position in step.op.passes_gradient
            before = None if passes else ctx.scratch(f"epilogue {number}", grad.shape, grad.dtype)
            wanted = step.operands(before, iter(grads[begin:end]))
            if any(dx is not None for dx in wanted):
                step.op.backward(ctx, grad, wanted, out, *[None] * len(wanted))
            grad, end = grad if passes else before, begin
        return grad


class WithEpilogue(Op):
    """An operator together with the steps that its kernel applies to its result.

    Args:
        op: the operator.
        kernel: the kernel.
        count: how many operands the operator has; those of the steps follow.
        steps: the steps.
    """

    def __init__(self, op: Op, kernel: Any, count: int, steps: Sequence[Step]) -> None:
        super().__init__()
        self._op, self._kernel, self._count, self._steps = op, kernel, count, tuple(steps)
        own = range(count)
        others = [(step.op, i) for step in steps for i in range(len(step.others) + 1) if i != step.position]
        wanted = [includes(op.gradient_inputs, i) for i in own] + [includes(of.gradient_inputs, i) for of, i in others]
        same = ("op_name", "sparse_inputs", "in_place", "by_rows", "traits")
        self.__dict__.update({name: getattr(op, name) for name in same})
        self.__dict__["keep_inputs"] = tuple(i for i in own if includes(op.keep_inputs, i))
        self.__dict__["keep_output"] = steps[-1].op.keep_output
        self.__dict__["gradient_inputs"] = tuple(i for i, is_wanted in enumerate(wanted) if is_wanted)

    @property
    def has_effects(self) -> bool:
        return self._op.has_effects

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        return self._op.infer(*inputs[: self._count])

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        return [*self._op.resolve(*inputs[: self._count]), *(spec.dims for spec in inputs[self._count :])]

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        return index < self._count and issubclass(type(self._op), GivesRowSparse) and self._op.row_sparse(index, inputs[: self._count])

    def flop(self, ctx: Context, out: Any, *inputs: Any) -> int:
        """The operator's, and one for each element and step."""
        own = self._op.flop(ctx, out, *inputs[: self._count]) if issubclass(type(self._op), CountsOperations) else 0
        return own + len(self._steps) * size_of(out.shape)

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        epilogue = Epilogue(self._steps, inputs[self._count :])
        self._kernel.forward(self._op, ctx, out, *inputs[: self._count], epilogue=epilogue)

    def bind(self, ctx: Context, out: Any, *inputs: Any) -> Callable[[], None] | None:
        """A function to call in place of :meth:`forward` with these arrays, if the kernel offers one."""
        epilogue = Epilogue(self._steps, inputs[self._count :])
        bound: Callable[[], None] | None = self._kernel.bind(self._op, ctx, out, *inputs[: self._count], epilogue=epilogue)
        return bound

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        epilogue = Epilogue(self._steps, inputs[self._count :], grads[self._count :])
        self._kernel.backward(self._op, ctx, grad, grads[: self._count], out, *inputs[: self._count], epilogue=epilogue)
