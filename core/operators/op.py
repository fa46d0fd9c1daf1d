"""The operator protocol: one small class an op, with three methods and some data.

An operator infers the types of its results (:meth:`Op.infer`), computes (:meth:`Op.forward`) and differentiates
(:meth:`Op.backward`).  It is written once over an array namespace and knows neither batch size nor backend::

    class Tanh(Elementwise):
        '''Hyperbolic tangent.'''
        op_name = "Tanh"
        keep_output = True

        def forward(self, ctx, y, x):
            ctx.xp.tanh(x, out=y)

        def gradient(self, i, ctx, dx, dy, y, x):
            ctx.xp.multiply(y, y, out=dx)
            ctx.xp.subtract(1, dx, out=dx)
            ctx.xp.multiply(dx, dy, out=dx)

    @operator(sample((2, 3)))
    def tanh(x, name=""):
        '''Docstring for users.'''
        return Tanh()(x, name=name)

**Arrays.** A value with dynamic axes is an array of shape ``(rows, *static)``, one row a sample (or a step of a sequence);
a value without dynamic axes has its static shape.  Results are written into the arrays that are handed in (``out``, and the
entries of ``grads``), which are uninitialised before: an op never returns an array and allocates nothing, but asks the context
for scratch space.  Operands on a subset of the result's dynamic axes arrive expanded to its rows.

**What backward gets.** Only what the class says it keeps; every other operand and the output arrive as None, since their memory
has been reused.  ``grads[i]`` is None where operand *i* needs no gradient; else it is overwritten, never added to.

**What is rare** is declared by kinds, base classes in files beside this one (``elementwise``, ``view``, ``sequence_op``, ``delay`` and
``effects``), by :class:`Traits`, and by methods that :mod:`~cntk.core.operators.abilities` has protocols of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

from ..common.shape import Shape
from ..types.spec import Spec, merge_axes, merge_dtypes
from .base import OpBase

if TYPE_CHECKING:
    from ..types.context import Context

ALL = "all"
"""Value of :attr:`Op.keep_inputs` and :attr:`Op.gradient_inputs` that means: every operand."""

Which = tuple[int, ...] | str


def includes(which: Which, index: int) -> bool:
    """Tell whether operand *index* is among *which*."""
    return which == ALL or index in which


@dataclass(frozen=True)
class Traits:
    """Flags that few operators set.

    Attributes:
        expands_operands: whether operands on the batch axis alone are expanded to the rows of operands on a sequence axis; those of delays
            never are, and those of others always within recurrences.
        layout_inputs: operands of which only shape and layout are asked; in a recurrence they are no dependency, and their arrays must not
            be read.
        uniform_inputs: operands of one element type: constants among them are cast to it, the others are taken as they are.
        array_types: numbers of operands of which NumPy arrays, where they meet no variable, keep the most precise type; else they become
            float32.
        compares: whether it compares results with targets, so that a target which is repeated along a sequence is worth a warning.
        varies_in_training: whether, in training, a row of the result depends on the other rows of the minibatch, or on chance.
        is_condition: whether results are truth values, so that ``if`` of one is a mistake: a graph does not branch by them.
        reversed_operands: whether CNTK's engine holds the operands last first, which shows in the order of a function's parameters.
        recordable: whether forward and backward make the same calls of ``ctx.xp`` for arrays of the same shapes, whatever these hold and
            however rows lie, and read nothing from them; a device may repeat them without Python then.  What index arrays hold may
            differ if they come from ``ctx.index`` and ``ctx.index_from``, and not from ``ctx.brought``.
    """

    expands_operands: bool = True
    layout_inputs: tuple[int, ...] = ()
    uniform_inputs: Which = ALL
    array_types: tuple[int, ...] = (2,)
    compares: bool = False
    varies_in_training: bool = False
    is_condition: bool = False
    reversed_operands: bool = False
    recordable: bool = False


class Op(OpBase):
    """Base class of operators.

    Attributes given to the constructor become fields in snake case (``self.dropout_rate``) and show in
    ``Function.attributes`` in CNTK's camel case (``dropoutRate``).

    >>> from cntk.extend import Op
    >>> class Centred(Op):
    ...     op_name = 'Centred'
    ...
    ...     def infer(self, x):
    ...         return x.but()
    ...
    ...     def forward(self, ctx, out, x):
    ...         ctx.xp.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
    ...
    ...     def backward(self, ctx, grad, grads, out, x):
    ...         self.forward(ctx, grads[0], grad)
    >>> Centred()(C.input_variable(3)).eval([[1, 2, 6]])
    array([[-2., -1.,  3.]], dtype=float32)
    """

    op_name: ClassVar[str] = ""
    """CNTK's name of the operator, which prints and model files use; no two packages have operators of one name."""
    outputs: ClassVar[int] = 1
    """Number of results."""
    keep_inputs: ClassVar[Which] = ()
    """Operands whose values backward reads."""
    keep_output: ClassVar[bool] = False
    """Whether backward reads the results."""
    gradient_inputs: ClassVar[Which] = ALL
    """Operands that a gradient flows to; the others get zero."""
    sparse_inputs: ClassVar[tuple[int, ...]] = ()
    """Operands accepted as :class:`~cntk.core.types.sparse.SparseRows`; a sparse value elsewhere arrives made dense."""
    in_place: ClassVar[Which] = ()
    """Operands that forward may write the result over: it reads none of their elements after it has written that element of the result."""
    by_rows: ClassVar[bool] = True
    """Whether a row of the result depends on the same rows of the operands alone and forward keeps nothing for backward beside what
    the class says; a recurrence takes the gradients of operands from outside then for all steps at once."""
    traits: ClassVar[Traits] = Traits()
    """What is rare."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for trait in fields(Traits):
            if trait.name in vars(cls):
                raise TypeError(f"{cls.__name__}: {trait.name} is one of the traits; write traits = Traits({trait.name}=...)")

    # ---- types ----

    def infer(self, *inputs: Any) -> Spec | tuple[Spec, ...]:
        """Types of the results.  Called only when every operand's shape is known; dimensions may still be -1 or -3.

        Args:
            inputs: types of the operands, a :class:`~cntk.core.types.spec.Spec` each.

        Raises:
            ValueError: the operands are incompatible; the message need not name the op, callers add that.
        """
        raise NotImplementedError(f"{type(self).__name__}.infer")

    def resolve(self, *inputs: Any) -> Sequence[Shape]:
        """Shapes of the operands with inferred dimensions (-1) of parameters filled in, where the others tell them.

        Args:
            inputs: types of the operands, a :class:`~cntk.core.types.spec.Spec` each.
        """
        return [spec.dims for spec in inputs]

    def common(self, *inputs: Spec) -> Spec:
        """A dense scalar spec with the operands' common dtype and merged dynamic axes: where most ``infer`` methods begin."""
        return Spec((), merge_dtypes(inputs), merge_axes(inputs))

    # ---- values ----

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        """Compute the result.

        Args:
            ctx: the context: array functions, scratch space, layouts.
            out: array to write the result to, ``(rows, *static)``; a tuple of them for an op with several results.
            inputs: the operands, ``(rows, *static)`` each, or ``static`` without dynamic axes.
        """
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        """Write the gradient of each operand with a place in *grads*.

        Args:
            ctx: the context of the forward step.
            grad: the result's gradient, ``(rows, *static)``; for an op with several results a tuple, None where no gradient arrives.
            grads: for each operand an array of its own shape, ``(rows, *static)``, to write to, or None where no gradient is wanted.
            out: the result, ``(rows, *static)``, where :attr:`keep_output` says so, else None.
            inputs: the operands, ``(rows, *static)`` each; None for those that :attr:`keep_inputs` leaves out.
        """
        raise NotImplementedError(f"{type(self).__name__}.backward")
