"""The operator protocol: one small class an op, with three methods and some data.

An operator says what it makes of its operands' types (:meth:`Op.infer`), computes (:meth:`Op.forward`) and differentiates
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

**What backward gets.** Only what the class says it keeps; every other operand and the output arrive as None, for their memory
has been used again.  ``grads[i]`` is None where operand *i* needs no gradient; else it is overwritten, never added to.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from inspect import BoundArguments, Parameter, signature
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeVar

from ..common.services import services
from ..common.shape import InferredDimension, Shape, broadcast, size_of
from ..types.arguments import checked
from ..types.spec import Spec, merge_axes, merge_dtypes
from . import evaluation
from .derivatives import reads
from .op_names import claim

if TYPE_CHECKING:
    from ..graph.function import Function
    from ..program.slots import Instruction
    from ..types.context import Context

ALL = "all"
"""Value of :attr:`Op.keep_inputs` and :attr:`Op.gradient_inputs` that means: every operand."""

Which = tuple[int, ...] | str


def includes(which: Which, index: int) -> bool:
    """Tell whether operand *index* is among *which*."""
    return which == ALL or index in which


class Op:
    """Base class of operators.

    Attributes given to the constructor become fields in snake case (``self.dropout_rate``) and show in
    ``Function.attributes`` in CNTK's camel case (``dropoutRate``).
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
    expands_operands: ClassVar[bool] = True
    """Whether operands on the batch axis alone are expanded to the rows of operands on a sequence axis."""
    reversed_operands: ClassVar[bool] = False
    """Whether CNTK's engine holds the operands last first, which shows in the order of a function's parameters."""
    uniform_inputs: ClassVar[Which] = ALL
    """Operands of one element type: constants among them are cast to it, the others are taken as they are."""
    array_types: ClassVar[tuple[int, ...]] = (2,)
    """Numbers of operands of which NumPy arrays, where they meet no variable, keep the most precise type; else they become float32."""
    aligned: ClassVar[bool] = False
    """Whether operands arrive reshaped so that their static axes line up with the result's for broadcasting."""
    layout_inputs: ClassVar[tuple[int, ...]] = ()
    """Operands of which only shape and layout are asked; in a recurrence they are no dependency, and their arrays must not be read."""
    by_rows: ClassVar[bool] = True
    """Whether a row of the result depends on the same rows of the operands alone and forward keeps nothing for backward beside what
    the class says; a recurrence takes the gradients of operands from outside then for all steps at once."""
    varies_in_training: ClassVar[bool] = False
    """Whether, in training, a row of the result depends on the other rows of the minibatch, or on chance."""
    whole_sequences: ClassVar[bool] = False
    """Whether a row of the result depends on other steps of the operands, so that the op cannot be a part of a recurrence."""
    compares: ClassVar[bool] = False
    """Whether it compares results with targets, so that a target which is repeated along a sequence is worth a warning."""
    selects: ClassVar[bool] = False
    """Whether ``view`` gives a part of the operand, which need not be contiguous; it is used where all ops that read it take parts."""
    has_effects: ClassVar[bool] = False
    """Whether forward does more than compute the result, or gives another one each time: then it runs as often as the graph says.  What
    has checkpoints or a ``finish`` needs no such mark."""
    assigns: ClassVar[tuple[int, ...]] = ()
    """Operands, parameters or constants, that it gives new values."""
    in_place: ClassVar[Which] = ()
    """Operands that forward may write the result over: it reads none of their elements after it has written that element of the result."""
    gradient_in_place: ClassVar[Which] = ()
    """Operands whose gradient, where no other is wanted, backward may write over *grad*."""
    steps_back: int = 0
    """How many steps earlier (positive) or later (negative) operand 0 is read.  Only such an op, a delay, may close a cycle of a graph,
    which then runs step by step; it also defines ``fill`` and ``remember``."""

    def __new__(cls, *arguments: Any, **named: Any) -> Self:
        made = super().__new__(cls)
        made._given = arguments, named
        return made

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "op_name" in vars(cls):
            claim(cls, cls.op_name)

    def __init__(self, **attributes: Any) -> None:
        self._attribute_names = tuple(attributes)
        self.__dict__.update(attributes)

    if TYPE_CHECKING:
        _given: tuple[tuple[Any, ...], dict[str, Any]]

        def __getattr__(self, name: str) -> Any:
            """An attribute given to the constructor."""

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes under CNTK's camel-case names."""
        return {_camel(name): getattr(self, name) for name in self._attribute_names}

    def set_attribute(self, name: str, value: Any) -> None:
        """Change an attribute by its camel-case name; later evaluations see it."""
        for field in self._attribute_names:
            if _camel(field) == name:
                setattr(self, field, value)
                self._give(field, value)
                return
        raise RuntimeError(f"{self.op_name} has no attribute '{name}'; it has {sorted(self.attributes)}")

    def constructor_arguments(self) -> dict[str, Any]:
        """What :meth:`made_of` makes the operator anew of: the arguments of its constructor, by name.

        These are what it was called with, and what :meth:`set_attribute` has changed since.  An operator whose constructor takes what no
        file can hold overrides this, and has a constructor that takes what it returns as well.
        """
        positional, named = self._given
        bound = signature(self.__init__).bind(*positional, **named)  # type: ignore[misc]
        rest = _rest_of(bound.signature.parameters)
        others = bound.arguments.pop(rest, {}) if rest else {}
        return {**bound.arguments, **others}

    @classmethod
    def made_of(cls, arguments: Mapping[str, Any]) -> Self:
        """The operator whose :meth:`constructor_arguments` these are.

        Raises:
            Exception: its constructor does not take them.
        """
        taken = signature(cls.__init__)
        known = {name: arguments[name] for name in list(taken.parameters)[1:] if name in arguments}
        others = {name: value for name, value in arguments.items() if name not in known}
        rest = _rest_of(taken.parameters)
        bound = BoundArguments(taken, {"self": None, **known, **({rest: others} if rest else {})})
        return cls(*bound.args[1:], **({} if rest else others), **bound.kwargs)

    def _give(self, name: str, value: Any) -> None:
        """Take *value* for what the constructor was given under this name."""
        positional, named = self._given
        places = [place for place, known in enumerate(signature(self.__init__).parameters) if known == name]  # type: ignore[misc]
        if places and places[0] < len(positional):
            self._given = (*positional[: places[0]], value, *positional[places[0] + 1 :]), named
        else:
            self._given = positional, {**named, name: value}

    def copy(self) -> Op:
        """A copy for a cloned graph: attributes are its own, so changing them leaves the original alone."""
        return copy.copy(self)

    def create_checkpoint(self) -> dict[str, Any]:
        """What it keeps from pass to pass beside its operands, such as where its random numbers stand; empty for nothing."""
        return {}

    def restore_from_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Go on from what :meth:`create_checkpoint` returned.

        It is first tried on a shallow copy: what the operator holds is exchanged, not changed.

        Raises:
            Exception: it is something else.
        """

    # ---- types ----

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        """Types of the results.  Called only when every operand's shape is known; dimensions may still be -1 or -3.

        Raises:
            ValueError: the operands do not go together; the message need not name the op, callers add that.
        """
        raise NotImplementedError(f"{type(self).__name__}.infer")

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
        """Shapes of the operands with inferred dimensions (-1) of parameters filled in, where the others tell them."""
        return [spec.dims for spec in inputs]

    def assume(self, *inputs: Spec) -> Sequence[Spec] | None:
        """The operands with shapes put in for those of unknown shape, as far as they do not matter; None where they do.

        A recurrence starts its inference of types with this, where operands depend on the result itself.
        """
        return None

    def common(self, *inputs: Spec) -> Spec:
        """A dense scalar spec with the operands' common dtype and merged dynamic axes: where most ``infer`` methods begin."""
        return Spec((), merge_dtypes(inputs), merge_axes(inputs))

    # ---- values ----

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        """Compute the result into *out* (a tuple of arrays for an op with several results)."""
        raise NotImplementedError(f"{type(self).__name__}.forward")

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        """Write the gradient of each operand with a place in *grads*, given the result's gradient *grad*.

        For an op with several results *grad* is a tuple, None where no gradient arrives.
        """
        raise NotImplementedError(f"{type(self).__name__}.backward")

    def row_sparse(self, index: int, inputs: Sequence[Spec]) -> bool:
        """Whether the gradient of operand *index* comes as a :class:`~cntk.core.types.sparse.RowSparse` for *inputs* of this kind."""
        return False

    def commutes_with_monotone(self, operand: Spec) -> bool:
        """Whether each element of the result is the greatest of some elements of this only operand, and the gradient goes there."""
        return False

    def after(self, before: Instruction, own: Instruction, inputs: Sequence[Spec]) -> Op | None:
        """An operator that does the work of two, where that takes less; None where there is none.

        Args:
            before: what computes one of the operands, which this operator reads once, and others only if they too do without it.
            own: what this operator is at work in.
            inputs: types of the new operator's operands: this operator's, with those of *before* in the place of its result.
        """
        return None

    # Optional: defined only by ops that need it.
    #
    # view(self, x, out_shape) -> array            the result shares memory with the first operand: no forward step runs
    # grad_view(self, grad, in_shape) -> array     the first operand's gradient shares memory with the result's: no backward step
    # finish(self, ctx, out, *inputs)              runs after the pass, backward included (assignments)
    # array_shape(self, layouts, shapes) -> shape  static shape of the result (a tuple of them for several results), where it depends on
    #                                              rows or lengths; it is given the operands' layouts (None without dynamic axes) and
    #                                              shapes with rows
    # make_layout(self, layouts, shapes) -> Layout how the result's rows lie, where they are not those of an operand
    # decide_layout(self, ctx, *inputs) -> Layout  the same, where it takes the operands' values to know
    # fill(self, ctx, out, initial)                of a delay: write the rows of the result that lie outside the sequences
    # remember(self, ctx, x)                       of a delay: keep what sequences need that the next minibatch continues
    # flop(self, ctx, out, *inputs) -> int         floating-point operations of a forward step, for the profiler; of arrays it reads the
    #                                              shapes alone.  For a backward step it is given gradients in place of values, and None
    #                                              for an operand that backward neither reads nor differentiates.  Without it an op counts
    #                                              as moving data.  An element-wise op has one for each element of the result

    def accepts_strided(self, *inputs: Spec) -> bool:
        """Whether arrays of these operands and their gradients need not be contiguous, so that nothing is written through reshaped ones."""
        return False

    # ---- building graphs ----

    def __call__(self, *operands: Any, name: str = "") -> Function:
        """Apply the op to variables, functions, numbers or arrays; return the Function."""
        made: Function = services.apply(self, operands, name)
        return made


class Elementwise(Op):
    """Base of ops that compute each element of the result from the operands' elements at the same, broadcast, place.

    Subclasses say what they compute by a :mod:`~cntk.core.operators.formula`, from which everything else follows; broadcasting, and
    summing gradients back over it, is done here.  They write ``forward`` and ``gradient`` as well where that is faster, or where there is
    no formula.  Arrays need not be contiguous, so that nothing may be written through a reshaped one.
    """

    aligned = True
    passes_gradient: ClassVar[tuple[int, ...]] = ()
    """Operands whose gradient is the result's gradient unchanged; they need no :meth:`gradient`."""
    keeps_order: ClassVar[bool] = False
    """Whether, of one operand, greater elements give greater results, or equal ones, and these only where the gradient is 0."""
    formula: ClassVar[Callable[..., Any] | None] = None
    """The result as a function of the operands; of the operator as well where its first argument is called *self*."""
    gradient_formula: ClassVar[Callable[..., Any] | None] = None
    """The gradient of operand i as a function of i, the result's gradient, the result and the operands, where it is not to be the
    derivative of the formula; it reads what is kept for backward."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = set(vars(cls))
        if "formula" in own:
            for name in {"forward", "gradient", "gradient_formula"} - own:  # those of a base are about another formula
                setattr(cls, name, getattr(Elementwise, name))
            if not {"gradient", "backward", "keep_inputs", "keep_output"} & own:
                cls.keep_inputs = property(lambda op: reads(op).inputs)  # type: ignore[assignment]
                cls.keep_output = property(lambda op: reads(op).output)  # type: ignore[assignment]
            if not {"forward", "gradient", "backward", "in_place", "gradient_in_place"} & own:
                cls.in_place = cls.gradient_in_place = ALL  # only the last step of an evaluation writes into the result's array

    def infer(self, *inputs: Spec) -> Spec:
        common = self.common(*inputs)
        shape = broadcast(*(spec.dims for spec in inputs))
        if shape is None:
            raise ValueError("shapes do not broadcast; aligned on the last axis, dimensions must be equal or 1")
        return common.but(shape=shape)

    def resolve(self, *inputs: Spec) -> Sequence[Shape]:
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
        """Write the gradient of operand *i*, at the result's full shape, into *dx*."""
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


def _rest_of(parameters: Mapping[str, Parameter]) -> str | None:
    """Name of the parameter that takes all other named arguments; None where there is none."""
    return next((name for name, one in parameters.items() if one.kind is Parameter.VAR_KEYWORD), None)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


# ---- public operator functions -------------------------------------------------------------------


class Operand:
    """An operand of a sample: a static shape with the range its values are drawn from, or a fixed array."""

    def __init__(
        self, shape: Shape | Any, low: float = -1.0, high: float = 1.0, *, sparse: bool = False, kind: str = "batch", gradient: bool = True
    ) -> None:
        """
        Args:
            shape: static shape, or an array to use as it is (without batch axis for ``kind='constant'``).
            low, high: range of the values.
            sparse: feed it as one-hot CSR rows.
            kind: ``'batch'`` (an input with batch axis), ``'sequence'`` (one with a sequence axis as well), ``'static'`` (an input without
                dynamic axes) or ``'parameter'``.
            gradient: whether the op is differentiable there, so that finite differences must agree.
        """
        self.shape, self.low, self.high = shape, low, high
        self.sparse, self.kind, self.gradient = sparse, kind, gradient


Sequences = Literal["any", "all", "none"]
"""Which operands of a sample may be sequences."""


class Sample:
    """One way of calling an operator, which the generic tests try on every backend and dtype."""

    def __init__(
        self,
        operands: Sequence[Operand],
        attributes: dict[str, Any],
        call: Callable[..., Any] | None,
        expected: Any,
        sequences: Sequences = "any",
    ) -> None:
        self.operands, self.attributes, self.call, self.expected, self.sequences = operands, attributes, call, expected, sequences

    def build(self, function: Callable[..., Any], variables: Sequence[Any]) -> Any:
        """Apply *function* to *variables* the way this sample wants it."""
        call = self.call or (lambda f, *xs: f(*xs, **self.attributes))
        return call(function, *variables)


def sample(
    *operands: Any,
    call: Callable[..., Any] | None = None,
    expected: Callable[..., Any] | None = None,
    sequences: Sequences = "any",
    **attributes: Any,
) -> Sample:
    """Describe one way of calling an operator.

    Args:
        operands: :class:`Operand` objects, or plain shapes for batch inputs in [-1, 1].
        call: ``call(function, *variables)`` when the operands do not come first and in order.
        expected: NumPy function of one sample's operand arrays that gives the right result.
        sequences: which of the operands on the batch axis may have a sequence axis as well: ``'any'``, ``'all'`` if they do so together,
            or ``'none'``; calls with others must be refused.
        attributes: keyword arguments of the call.
    """
    made = [operand if isinstance(operand, Operand) else Operand(operand) for operand in operands]
    return Sample(made, attributes, call, expected, sequences)


F = TypeVar("F", bound=Callable[..., Any])


def operator(*samples: Sample) -> Callable[[F], F]:
    """Mark a function as the public face of an operator, with the samples that the generic tests run.

    Its arguments are :func:`~cntk.core.types.arguments.checked`.
    """

    def mark(function: F) -> F:
        public = checked(function)
        public.samples = samples  # type: ignore[attr-defined]
        return public

    return mark
