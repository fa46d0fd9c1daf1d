"""User functions: operators that users write as subclasses of :class:`UserFunction`, with NumPy or anything else inside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.common.dtypes import as_dtype
from ..core.common.shape import FreeDimension, Shape, UnknownDimension, as_shape
from ..core.common.user_frame import user_line
from ..core.extension.device import use_default_device
from ..core.graph.function import Function
from ..core.graph.inference import Assuming, as_variable, explained
from ..core.graph.nodes import Composite, Primitive
from ..core.graph.variable import Output, Variable, new_uid
from ..core.operators.effects import Effect
from ..core.operators.op import ALL, Traits
from ..core.operators.sequence_op import SequenceOp
from ..core.types.arguments import axes_in
from ..core.types.axis import Axes, Axis
from ..core.types.context import Context
from ..core.types.layout import ComputedLayout, Layout
from ..core.types.sparse import SparseRows
from ..core.types.spec import Spec
from ..core.values.as_methods import AsMethods
from ..core.values.unfeed import pack, sparse_value_of, unfeed, unfeed_sparse, value_of
from ..core.values.value import Value


class UserFunction(Primitive):
    """Base class of operators written by users.

    A subclass declares its results (:meth:`infer_outputs`), computes them (:meth:`forward`) and differentiates
    (:meth:`backward`); :func:`user_function` makes an object of it part of a graph.

    Data arrive as NumPy arrays that the method may keep and change.  A value with batch axis is an array
    ``(batch, *static)``, one with a sequence axis a list of arrays ``(steps, *static)`` in the user's order, one without
    dynamic axes has its static shape; sparse data come as CSR matrices, if samples have one axis.  Results are given the same way.

    Args:
        inputs: variables and functions that it is applied to.
        as_numpy: whether data come as arrays; else as values whose properties are methods: ``x.shape()``, ``x.data()``, ``x.device()``.
        attributes: what ``.attributes`` shows.
        name: a name to find it by.

    >>> class Double(C.ops.functions.UserFunction):
    ...     def __init__(self, x, name='double'):
    ...         super().__init__([x], name=name)
    ...     def infer_outputs(self):
    ...         x = self.inputs[0]
    ...         return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]
    ...     def forward(self, x, device=None, outputs_to_retain=None):
    ...         return None, 2 * x
    ...     def backward(self, state, root_gradients):
    ...         return 2 * root_gradients
    >>> x = C.input_variable(2, needs_gradient=True, name='x')
    >>> f = C.user_function(Double(x)) + 1
    >>> f.eval([[1, 2]])
    array([[3., 5.]], dtype=float32)
    >>> f.grad([[1, 2]])
    array([[2., 2.]], dtype=float32)
    """

    op: _UserOp

    def __init__(self, inputs: Iterable[Any], as_numpy: bool = True, attributes: dict[str, Any] | None = None, name: str = "") -> None:
        self.as_numpy = as_numpy
        self.uid = new_uid("UserDefinedFunction")
        self._name = name
        self._inputs = [as_variable(operand, op_name=self.op_name) for operand in inputs]
        self._declared: tuple[Output, ...] | None = None
        self._custom = {}
        self.op = _UserOp(self, attributes or {})
        self.line = user_line()

    # ---- implemented by subclasses ----

    def infer_outputs(self) -> list[Variable]:
        """The results' types, as a list of :func:`output_variable`, from those of ``self.inputs``; called again when these change."""
        raise NotImplementedError(f"{self.op_name} does not define infer_outputs")

    def forward(self, *arguments: Any) -> Any:
        """Compute; called as ``forward(argument, device, outputs_to_retain)``, where a subclass with

        * several operands gets a tuple of their data as ``argument``;
        * one result returns ``(state, result)``;
        * several results is called as ``forward(argument, outputs, device, outputs_to_retain)``, fills the dictionary
          ``outputs``, whose keys are ``self.outputs``, and returns ``state``.

        The state, any object, is handed to the :meth:`backward` that belongs to this call.
        """
        raise NotImplementedError(f"{self.op_name} does not define forward")

    def backward(self, *arguments: Any) -> Any:
        """Differentiate; called as ``backward(state, root_gradients)``, where a subclass with

        * one operand returns its gradient;
        * several operands is called as ``backward(state, root_gradients, variables)`` and fills the dictionary ``variables``,
          whose keys are those of ``self.inputs`` that need a gradient; what is left at None is zero;
        * several results gets ``root_gradients`` as a dictionary by output.
        """
        raise NotImplementedError(f"{self.op_name} does not define backward")

    def clone(self, cloned_inputs: Sequence[Variable]) -> Function:  # type: ignore[override]
        """A copy on other inputs, for ``Function.clone``; override it where the constructor takes more than inputs and name."""
        return type(self)(*cloned_inputs, name=self.name)  # type: ignore[arg-type,misc]

    def serialize(self) -> dict[str, Any] | None:
        """The state that a saved model stores: numbers, strings, arrays, lists and dictionaries of these."""
        return {}

    @staticmethod
    def deserialize(inputs: Sequence[Variable], name: str, state: dict[str, Any]) -> UserFunction:
        """Recreate the function for a loaded model, from the result of :meth:`serialize`."""
        raise NotImplementedError(f"the class of the user function '{name}' does not define deserialize")

    # ---- as a node of a graph ----

    @property
    def op_name(self) -> str:
        """Name of the operator: module and class."""
        return self._op_name()

    @classmethod
    def _op_name(cls) -> str:
        return f"{cls.__module__}.{cls.__name__}"

    def own_attributes(self) -> dict[str, Any]:
        """The attributes that it has as an object of the user's class, without those of a node."""
        return {name: value for name, value in self.__dict__.items() if name not in _OF_NODES}

    @property
    def outputs(self) -> tuple[Variable, ...]:
        if self._declared is None:
            self.refresh()
        return self._declared or ()

    def refresh(self, assuming: Assuming = Assuming.NOTHING) -> bool:
        made = self._declared
        self._declared = made or ()  # what infer_outputs sees if it asks for outputs, or for an attribute that is not there
        try:
            declared = self._infer()
        finally:
            self._declared = made
        if made is None:
            made = self._declared = tuple(Output(self, i, v.spec, v.name) for i, v in enumerate(declared))
        if len(made) != len(declared):
            raise explained(ValueError(f"infer_outputs gave {len(made)} outputs before and gives {len(declared)} now"), self)
        changed = False
        for output, now in zip(made, declared, strict=True):
            changed = changed or (output.spec, output.needs_gradient) != (now.spec, now.needs_gradient)
            output.spec, output.needs_gradient = now.spec, now.needs_gradient
        self.op.outputs = len(made)  # type: ignore[misc]
        self.op.learn_shapes([output.spec for output in made], [v.spec for v in self._inputs])
        self.op.gradient_inputs = ALL if any(output.needs_gradient for output in made) else ()  # type: ignore[misc]
        return changed

    def copy_on(self, inputs: Sequence[Variable], memo: dict[Variable, Variable]) -> Primitive:
        try:
            made = self.clone(inputs)
        except Exception as error:
            why = f"clone raised {type(error).__name__}: {error}; override it where the constructor takes more than the inputs and name"
            raise explained(RuntimeError(why), self) from error
        if not isinstance(made, Function):
            raise explained(TypeError(f"clone must return a UserFunction, got {type(made).__name__}"), self)
        root = made.root_function
        root._custom = dict(self._custom)
        return root

    def _infer(self) -> list[Variable]:
        """Results with their types for the inputs as they are."""
        try:
            return self.op.declared_by(self, [v.spec for v in self._inputs])
        except (ValueError, TypeError, RuntimeError) as error:
            raise explained(error, self) from error.__cause__


_OF_NODES = {
    *("uid", "op", "line", "latest_placeholder", "_name", "_inputs", "_declared", "_custom"),
    *("_programs", "_graph", "_number"),
}


class _UserOp(Effect, SequenceOp):
    """The operator of a user function: calls the user's methods, with data as users see it."""

    op_name = "UserFunction"
    traits = Traits(expands_operands=False)
    decides_layout = False
    by_rows = False

    def __init__(self, function: UserFunction, attributes: dict[str, Any]) -> None:
        super().__init__()
        self.function = function
        self.sparse_inputs = tuple(range(len(function.inputs)))  # type: ignore[misc]
        self._attributes = dict(attributes)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._attributes)

    # ---- types ----

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        function = object.__new__(type(self.function))
        function.__dict__.update(self.function.__dict__)
        ours = zip(function.inputs, inputs, strict=True)
        function._inputs = [Variable(spec, v.name, needs_gradient=v.needs_gradient) for v, spec in ours]
        function._declared = ()
        specs = tuple(variable.spec for variable in self.declared_by(function, inputs))
        for i, spec in enumerate(specs):
            if not spec.is_concrete and not self.decides_layout:
                raise ValueError(
                    f"output {i} has the shape {spec.shape}, and its free dimensions are neither those of an operand with as many axes "
                    "nor of a result with a batch axis; compute them from the shapes of self.inputs in infer_outputs"
                )
        return specs

    def declared_by(self, function: UserFunction, inputs: Sequence[Spec]) -> list[Variable]:
        """The results that *function* declares on *inputs*.

        Raises:
            RuntimeError: its ``infer_outputs`` failed.
            ValueError, TypeError: it gives no outputs, or some on other dynamic axes than its inputs.
        """
        try:
            outputs = list(function.infer_outputs())
        except Exception as error:
            raise RuntimeError(f"infer_outputs raised {type(error).__name__}: {error}") from error
        if not outputs or not all(isinstance(output, Variable) for output in outputs):
            raise TypeError(f"infer_outputs must return a list of output_variable(...), got {outputs!r}")
        _check_axes(outputs, inputs)
        return [Variable(_filled(output.spec, inputs), output.name, needs_gradient=output.needs_gradient) for output in outputs]

    def learn_shapes(self, outputs: Sequence[Spec], inputs: Sequence[Spec]) -> None:
        """Know whether results must be computed to know their shapes: they have free dimensions, and no operand has as many axes."""
        ranks = {spec.rank for spec in inputs if spec.shape is not None}
        is_open = any(spec.axes and spec.shape is not None and not spec.is_concrete and spec.rank not in ranks for spec in outputs)
        self.decides_layout = is_open and all(spec.shape is not None for spec in inputs)

    # ---- values ----

    def decide_layout(self, ctx: Context, *inputs: Any) -> Layout:
        """The layout of the results, and their shapes."""
        state, given = self._compute(ctx, inputs)
        layouts, shapes = zip(*(_layout_of(given[output], output) for output in self.function.outputs), strict=True)
        if any(layout != layouts[0] for layout in layouts):
            raise ValueError(f"forward gave values of {', '.join(map(str, layouts))}; the outputs have the same dynamic axes")
        return ComputedLayout(layouts[0], shapes, (state, given))

    def forward(self, ctx: Context, out: Any, *inputs: Any) -> None:
        function, results = self.function, out if self.outputs > 1 else (out,)
        state, given = ctx.layout.results if isinstance(ctx.layout, ComputedLayout) else self._compute(ctx, inputs)
        for output, result in zip(function.outputs, results, strict=True):
            _store(ctx, given[output], result, output, ctx.layout, "forward gave a value for")
        if ctx.training:
            ctx.state = state, [result.shape for result in results]

    def _compute(self, ctx: Context, inputs: Sequence[Any]) -> tuple[Any, dict[Variable, Any]]:
        """Call the user's ``forward``: the state and the value of each output."""
        function = self.function
        data = tuple(self._shown(ctx, *operand) for operand in zip(inputs, function.inputs, ctx.layouts, strict=True))
        argument = data[0] if len(data) == 1 else data
        device, retained = use_default_device(), list(function.outputs) if ctx.training else []
        given: dict[Variable, Any] = dict.fromkeys(function.outputs)
        if self.outputs > 1:
            state = _call(function.forward, argument, given, device, retained)
        else:
            returned = _call(function.forward, argument, device, retained)
            if not isinstance(returned, tuple) or len(returned) != 2:
                raise RuntimeError(f"forward of a function with one output must return (state, result), got {type(returned).__name__}")
            state, given[function.outputs[0]] = returned
        for output in function.outputs:
            if given[output] is None:
                raise RuntimeError(f"forward gave no value for {output!r}")
        return state, given

    def backward(self, ctx: Context, grad: Any, grads: Sequence[Any], out: Any, *inputs: Any) -> None:
        function, arrived = self.function, grad if self.outputs > 1 else (grad,)
        (state, shapes), ctx.state = ctx.state, None
        shown = [
            self._shown(ctx, g if g is not None and v.needs_gradient else ctx.xp.zeros(shape, v.dtype), v, ctx.layout)
            for v, g, shape in zip(function.outputs, arrived, shapes, strict=True)
        ]
        roots = dict(zip(function.outputs, shown, strict=True)) if self.outputs > 1 else shown[0]
        if len(grads) == 1:
            gradients = {function.inputs[0]: _call(function.backward, state, roots)}
        else:
            gradients = {v: None for v, dx in zip(function.inputs, grads, strict=True) if dx is not None}
            _call(function.backward, state, roots, gradients)
        for variable, dx, layout in zip(function.inputs, grads, ctx.layouts, strict=True):
            if dx is None:
                continue
            gradient = gradients.pop(variable, None)  # all of it, if a variable is an operand twice
            if gradient is None:
                dx[...] = 0
            else:
                _store(ctx, gradient, dx, variable, layout, "backward gave a gradient for")

    def _shown(self, ctx: Context, array: Any, variable: Variable, layout: Layout | None) -> Any:
        """Rows as the user's methods get them, in memory of their own."""
        as_numpy, axes = self.function.as_numpy, variable.dynamic_axes
        shown: Any
        if isinstance(array, SparseRows):
            matrix = array.to_csr(ctx.backend)
            shown = unfeed_sparse(matrix, array, axes, layout) if as_numpy else sparse_value_of(matrix, array.shape, axes, layout, None)
        else:
            host = ctx.backend.to_numpy(array)
            shown = unfeed(host, axes, layout) if as_numpy else value_of(host, axes, layout, None)
        return shown if as_numpy else AsMethods(shown)


def _check_axes(outputs: Sequence[Variable], inputs: Sequence[Spec]) -> None:
    """Check that all results lie on dynamic axes of an operand, or on its batch axis."""
    if any(spec.axes is None for spec in inputs):
        return
    known = {axes for spec in inputs for axes in (spec.axes, spec.axes[:1])} | {()}  # type: ignore[index]
    found = {output.spec.axes for output in outputs}
    if len(found) > 1 or not found <= known:
        listed = ", ".join(map(repr, outputs))
        raise ValueError(f"the outputs must all have the same dynamic axes: those of an input, its batch axis alone, or none; got {listed}")


def _filled(spec: Spec, inputs: Sequence[Spec]) -> Spec:
    """The type of a result with free dimensions taken from the first operand with as many axes, once operands have none."""
    if spec.shape is None or spec.is_concrete or not all(operand.is_concrete for operand in inputs):
        return spec
    for operand in inputs:
        if operand.rank == spec.rank:
            return spec.but(shape=tuple(known if dim < 0 else dim for dim, known in zip(spec.shape, operand.dims, strict=True)))
    return spec


def _call(method: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return method(*arguments)
    except Exception as error:
        raise RuntimeError(f"{method.__name__} raised {type(error).__name__}: {error}") from error


def _layout_of(data: Any, output: Variable) -> tuple[Layout, Shape]:
    """How the rows of a value lie that the user's ``forward`` gave, and its static shape."""
    data = getattr(data, "value_to_feed", data)
    if len(output.dynamic_axes) > 1:
        sequences = data.as_sequences() if isinstance(data, Value) else data
        layout, shape = Layout(len(sequences), [len(part) for part in sequences]), tuple(sequences[0].shape[1:])
    else:
        layout, shape = Layout(data.shape[0]), tuple(data.shape[1:])
    wanted = output.spec.dims
    if len(shape) != len(wanted) or any(dim not in (size, FreeDimension) for dim, size in zip(wanted, shape, strict=True)):
        raise ValueError(f"forward gave a value for {output!r} that does not fit: expected samples of shape {wanted}, got {shape}")
    return layout, shape


def _store(ctx: Context, data: Any, target: Any, variable: Variable, layout: Layout | None, what: str) -> None:
    """Copy the result of the user's method to the rows of *target*."""
    if layout is not None and len(variable.dynamic_axes) == 1:
        layout = layout.batch  # a recurrence has a sample's value in the rows of the step
    try:
        rows = pack(data, target.shape, layout)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{what} {variable!r} that does not fit: {error}") from error
    ctx.xp.copyto(target, ctx.backend.asarray(rows, target.dtype))


def output_variable(shape: Any, dtype: Any, dynamic_axes: Iterable[Axis], needs_gradient: bool = True, name: str = "") -> Variable:
    """Describe a result of a user function, for :meth:`UserFunction.infer_outputs`.

    Args:
        shape: static shape, an int or tuple.
        dtype: float16, bfloat16, float32 or float64; None while the operands' is not known.
        dynamic_axes: batch axis and sequence axis; empty for a result that is the same for every sample.
        needs_gradient: whether gradients flow back from here; if none of the results needs one, ``backward`` is not called.
        name: a name for the output.

    Raises:
        ValueError: one of *dynamic_axes* is static.

    >>> C.output_variable(3, np.float32, [C.Axis.default_batch_axis()], name='y')
    Output('y', [#], [3])
    """
    axes: Axes | None = axes_in("output_variable", dynamic_axes)
    if axes == Axis.unknown_dynamic_axes():
        axes = None
    for axis in axes or ():
        if not axis.is_dynamic_axis:
            raise ValueError(f"output_variable: dynamic_axes must be dynamic Axis objects, got {axis!r}")
    known = None if shape == (UnknownDimension,) else as_shape(shape)
    return Variable(Spec(known, None if dtype is None else as_dtype(dtype), axes), name, needs_gradient=needs_gradient)


def user_function(user_func: Function) -> Composite:
    """Make a user function part of a graph: the graph behind it, as a function that can be called, evaluated and trained.

    Args:
        user_func: an object of a subclass of :class:`UserFunction`, or any function.

    Raises:
        RuntimeError: its ``infer_outputs`` failed; the user's own error is the cause.
        TypeError: *user_func* is not a function.

    >>> class Cube(C.ops.functions.UserFunction):
    ...     def infer_outputs(self):
    ...         x = self.inputs[0]
    ...         return [C.output_variable(x.shape, x.dtype, x.dynamic_axes)]
    ...
    ...     def forward(self, x, device=None, outputs_to_retain=None):
    ...         return x, x**3
    ...
    ...     def backward(self, x, gradient):
    ...         return 3 * x**2 * gradient
    >>> x = C.input_variable(1, needs_gradient=True)
    >>> cube = C.user_function(Cube([x]))
    >>> cube.eval([[2]]), cube.grad([[2]])
    (array([[8.]], dtype=float32), array([[12.]], dtype=float32))
    """
    if not isinstance(user_func, Function):
        raise TypeError(f"user_function: expected an object of a subclass of UserFunction, got {type(user_func).__name__}")
    root = user_func.root_function
    if isinstance(root, UserFunction):
        if root is user_func:  # errors lead to where it is used, and not into the constructor of its class
            root.line = user_line()
        root.refresh()
    return Composite(root)
