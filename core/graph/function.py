"""Functions, as users see them: what every node of a graph offers.

The kinds of nodes are in ``nodes`` and ``block``.  Methods of more than a few lines are implemented in modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, overload

from ..common.options import get_global_option
from ..common.phrasebook import METHODS, lacking
from ..common.services import services
from ..common.switches import functions_may_be_renamed
from ..common.tracebacks import answers, end_at_user
from ..common.user_frame import warn_user
from ..storage.model_format import ModelFormat
from ..types.arguments import checked
from . import graph
from .tensor import TensorOps
from .variable import Constant, Parameter, Placeholder, Variable

if TYPE_CHECKING:
    from .arguments import FunctionLike, TensorLike
    from .nodes import Composite, Primitive


class CloneMethod(Enum):
    """How parameters are cloned.

    >>> z = C.layers.Dense(1)(C.input_variable(2))
    >>> for method in C.CloneMethod:
    ...     copy = z.clone(method)
    ...     print(method.name, len(copy.parameters), len(copy.constants), copy.W is z.W)
    share 2 0 True
    clone 2 0 False
    freeze 0 2 False
    """

    share = "share"
    """The clone has the same parameters."""
    clone = "clone"
    """The clone has parameters of its own, with the same values."""
    freeze = "freeze"
    """The clone has constants instead."""

    @classmethod
    def _missing_(cls, value: object) -> CloneMethod:
        raise ValueError(f"clone: {value!r} is not a method of cloning; use 'share', 'clone' or 'freeze'")


def allow_renaming_functions() -> None:
    """Let ``function.name = …`` change a name that has been given."""
    functions_may_be_renamed.value = True


class _FunctionType(type):
    """Lets ``Function(f)`` convert a Python function, while the classes of nodes are constructed as usual."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Function:
            from .python_function import function_from_python

            return function_from_python(*args, **kwargs)
        return super().__call__(*args, **kwargs)


class Function(TensorOps, metaclass=_FunctionType):
    """A function of a graph: maps values to values, can be called, and holds parameters.

    ``Function(f)`` and the decorator ``@Function`` convert a Python function, by running it once on placeholders.

    >>> @C.Function
    ... def f(x):
    ...     return x * x
    >>> print(f)
    ElementTimes(x: Sequence[tensor]) -> Sequence[tensor]
    >>> f(C.input_variable(2)).eval([[3, 4]])
    array([[ 9., 16.]], dtype=float32)
    """

    uid: str
    _name: str

    if TYPE_CHECKING:  # set by the public package, which has training and evaluation loops
        train: Callable[..., Any]
        test: Callable[..., Any]

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    @staticmethod
    def with_signature(*types: Any, **named_types: Any) -> Callable[[Callable[..., Any]], Function]:
        """Decorator: convert a Python function whose arguments have these types; see :func:`cntk.layers.typing.Signature`.

        >>> from cntk.layers.typing import Tensor
        >>> @C.Function.with_signature(Tensor[2])
        ... def f(x):
        ...     return x * x
        >>> print(f)
        ElementTimes(x: Tensor[2]) -> Tensor[2]
        """
        from .python_function import Signature, function_from_python

        return lambda f: function_from_python(Signature(*types, **named_types)(f))

    # ---- structure ----

    @property
    def root_function(self) -> Primitive:
        """The primitive that computes the outputs."""
        raise NotImplementedError

    @property
    def op_name(self) -> str:
        """Name of the operator."""
        raise NotImplementedError

    @property
    def inputs(self) -> tuple[Variable, ...]:
        """Variables that the function depends on: for a primitive its operands, for a composite the leaves of its graph."""
        raise NotImplementedError

    @property
    def outputs(self) -> tuple[Variable, ...]:
        """Results, in order."""
        return self.root_function.outputs

    @property
    def output(self) -> Variable:
        """The result.

        Raises:
            RuntimeError: there are several, or none.
        """
        outputs = self.outputs
        if len(outputs) != 1:
            many = f"{len(outputs)} outputs; choose one of .outputs" if outputs else "no outputs"
            raise RuntimeError(f"{self} has {many}")
        return outputs[0]

    @property
    def arguments(self) -> tuple[Variable, ...]:
        """Inputs and placeholders that values must be given for; with the global option ``python_operand_order`` set to False the right
        operand of a product comes before the left, as in CNTK's engine."""
        return self._arguments(not get_global_option("python_operand_order", True))

    def _arguments(self, engine_order: bool) -> tuple[Variable, ...]:
        inputs = self._engine_inputs() if engine_order else self.inputs
        return tuple(v for v in dict.fromkeys(inputs) if not isinstance(v, (Parameter, Constant)))

    def _engine_inputs(self) -> Sequence[Variable]:
        """The inputs with the operands of products right before left."""
        raise NotImplementedError

    @property
    def signature(self) -> tuple[Variable, ...]:
        """The arguments, without placeholders of a Python function that is being converted around this one."""
        from .python_function import under_construction

        hidden = under_construction()
        return tuple(v for v in self.arguments if v not in hidden)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters: for a primitive those among its operands, for a composite all, in CNTK's order: depth first from the root."""
        return tuple(v for v in self._leaves() if isinstance(v, Parameter))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Constants, as for :attr:`parameters`."""
        return tuple(v for v in self._leaves() if isinstance(v, Constant))

    def _leaves(self) -> Iterable[Variable]:
        return graph.leaves_of(self.root_function, engine_order=True)

    @property
    def placeholders(self) -> tuple[Placeholder, ...]:
        """Placeholders that are still to be bound."""
        return tuple(v for v in dict.fromkeys(self.inputs) if isinstance(v, Placeholder))

    @property
    def is_primitive(self) -> bool:
        """Whether it is one operator (or block)."""
        return False

    @property
    def is_composite(self) -> bool:
        """Whether it is the whole graph behind its outputs."""
        return False

    @property
    def is_block(self) -> bool:
        """Whether it is a named graph that shows as one node."""
        return False

    @property
    def block_root(self) -> Function:
        """The last operator of the graph inside a block; ValueError for anything else."""
        raise ValueError(f"{self} is not a block; block_root belongs to blocks (is_block)")

    @property
    def block_arguments_mapping(self) -> tuple[tuple[Variable, Variable], ...]:
        """Pairs of a block's inner argument and the outer variable it stands for; ValueError for anything else."""
        raise ValueError(f"{self} is not a block; block_arguments_mapping belongs to blocks (is_block)")

    @property
    def type(self) -> Any:
        """Type of the only output."""
        return self.output.type

    # ---- names and attributes ----

    @property
    def name(self) -> str:
        """The user's name for it, or ``''``; an unnamed function can be named once."""
        return self._name

    @name.setter
    @answers
    def name(self, name: str) -> None:
        if self._name and not functions_may_be_renamed.value:
            raise ValueError(f"function '{self._name}' cannot be renamed '{name}': a function is named once")
        self._name = name

    @property
    def attributes(self) -> dict[str, Any]:
        """Attributes of the operator, by CNTK's names."""
        return self.root_function.op.attributes

    @answers
    def set_attribute(self, name: str, value: Any) -> None:
        """Change ``dropoutRate`` or ``rngSeed`` of an operator; later evaluations use the new value.

        Raises:
            RuntimeError: the operator has no such attribute, or it is not one of the two.

        >>> noisy = C.dropout(C.input_variable(4), 0.5)
        >>> noisy.set_attribute('dropoutRate', 0.25)
        >>> noisy.root_function.attributes['dropoutRate']
        0.25
        """
        if name not in ("dropoutRate", "rngSeed"):
            raise RuntimeError(f"set_attribute: '{name}' cannot be changed; only 'dropoutRate' and 'rngSeed' can")
        self.root_function.op.set_attribute(name, value)

    @property
    def custom_attributes(self) -> dict[str, Any]:
        """The user's own attributes, a dictionary to read and write."""
        return self.root_function._custom

    @custom_attributes.setter
    @answers
    def custom_attributes(self, values: dict[str, Any]) -> None:
        if not isinstance(values, dict):
            raise TypeError(f"custom_attributes: expected a dictionary, got {type(values).__name__}")
        self.root_function._custom = dict(values)

    @answers
    def find_by_name(self, name: str, depth: int = 0) -> Any:
        """The node called *name* in this graph, or None; *depth* levels of blocks are searched, all if -1.

        Raises:
            ValueError: several nodes have the name.

        >>> z = C.layers.Dense(1)(C.relu(C.input_variable(2, name='x'), name='hidden'))
        >>> print(z.find_by_name('hidden'))
        hidden: ReLU(x: Tensor[2]) -> Tensor[2]
        """
        return graph.find_by_name(self, name, depth)

    def find_all_with_name(self, name: str, depth: int = 0) -> list[Any]:
        """All nodes called *name* in this graph, to *depth* levels of blocks.

        >>> x = C.input_variable(2, name='x')
        >>> z = C.relu(C.relu(x, name='layer'), name='layer')
        >>> [node.op_name for node in z.find_all_with_name('layer')]
        ['ReLU', 'ReLU']
        """
        return graph.find_all_with_name(self, name, depth)

    @answers
    def __getattr__(self, name: str) -> Any:
        """A named node inside (``model.layer.W``), else a property of the only output (``f.shape``)."""
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(Variable, name) and name not in ("spec", "uid", "needs_gradient"):
            inside = self.block_root if self.is_block else self
            found = graph.find_by_name(inside, name, depth=1)
            if found is not None:
                return found
        outputs = self.outputs
        if len(outputs) != 1:
            raise lacking(f"{self} has no '{name}', nor one output to look for it in", METHODS, name)
        try:
            return getattr(outputs[0], name)
        except AttributeError:
            raise lacking(f"neither the function {self} nor its output has '{name}'", METHODS, name) from None

    # ---- graph surgery ----

    @checked
    def clone(self, method: CloneMethod | str, substitutions: dict[Any, Any] | None = None) -> Composite:
        """Copy the graph.

        Args:
            method: ``'share'`` keeps the parameters, ``'clone'`` copies them, ``'freeze'`` makes them constants.
            substitutions: variables or functions of this graph, and what takes their place in the copy.

        Raises:
            ValueError: an unknown method, or shapes that are no longer compatible.
            TypeError: *substitutions* is not a dictionary.

        >>> x = C.input_variable(2)
        >>> features = C.layers.Dense(3, name='features')(x)
        >>> z = C.layers.Dense(1)(features)
        >>> other = C.input_variable(3)
        >>> head = z.clone('share', {z.features: other})
        >>> head.arguments == (other,), head.parameters == z.parameters[:2]
        (True, True)
        """
        from .clone import clone

        return clone(self, CloneMethod(method), substitutions)

    @answers
    def replace_placeholders(self, substitutions: dict[Any, Any]) -> Function:
        """Bind placeholders, in place; returns the function.

        Raises:
            ValueError: something is not a placeholder of this function.

        >>> p, q = C.placeholder(), C.placeholder()
        >>> x = C.input_variable(2)
        >>> (p - q).replace_placeholders({p: x, q: 2 * x}).eval([[1, 2]])
        array([[-1., -2.]], dtype=float32)
        """
        from .clone import replace_placeholders

        replace_placeholders(self, substitutions)
        return self

    @answers
    def replace_placeholder(self, substitution: Any) -> Function:
        """Bind the only placeholder, in place; returns the function.

        Raises:
            ValueError: there is not exactly one.

        >>> (2 * C.placeholder()).replace_placeholder(C.input_variable(2)).eval([[1, 2]])
        array([[2., 4.]], dtype=float32)
        """
        from .clone import open_placeholders

        placeholders = open_placeholders(self)
        if len(placeholders) != 1:
            raise ValueError(f"replace_placeholder: {self} has {len(placeholders)} placeholders; use replace_placeholders")
        return self.replace_placeholders({placeholders.pop(): substitution})

    @answers
    def update_signature(self, *types: Any, **named_types: Any) -> None:
        """Give arguments their types, in place: an int or shape, a type such as ``Tensor[3]``, or None to leave one open.

        Raises:
            TypeError: a wrong number of types, or something that is not a type.

        >>> layer = C.layers.Dense(1, init=1)
        >>> layer.update_signature(3)
        >>> layer.W.shape
        (3, 1)
        """
        from .call import inputs_of_types

        self.replace_placeholders(inputs_of_types(self, types, named_types))

    def declare_args(self, *types: Any) -> None:
        """The old name of :meth:`update_signature`."""
        warn_user("declare_args is the old name of update_signature", DeprecationWarning)
        self.update_signature(*types)

    # ---- calling ----

    @answers
    def argument_map(self, *args: Any, **kwargs: Any) -> dict[Variable, Any]:
        """Match positional and keyword arguments to the signature, as Python does.

        Raises:
            TypeError: a wrong number of arguments, or an unknown one.
            SyntaxError: an argument is given by position and by name.

        >>> x, y = C.input_variable(1, name='x'), C.input_variable(1, name='y')
        >>> (x + y).argument_map(1, y=2)
        {Input('x', [#], [1]): 1, Input('y', [#], [1]): 2}
        """
        from .call import argument_map

        return argument_map(self, args, kwargs)

    @overload
    def __call__(self, *args: TensorOps, **kwargs: TensorOps) -> Function: ...

    @overload
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function: to variables and functions giving a function with shared parameters, to data giving arrays.

        Returns:
            A Function; or for data an array, a tuple of arrays where there are several outputs.

        Raises:
            TypeError: a wrong number of arguments, or one of a type that the argument does not take.
        """
        from .call import call

        try:
            return call(self, args, kwargs)
        except Exception as error:
            end_at_user(error)
            raise

    @answers
    def __rshift__(self, other: FunctionLike | tuple[FunctionLike, ...]) -> Any:
        """``f >> g`` is ``g(f)``; a tuple on the right applies its functions side by side, several outputs become arguments."""
        from .block import combine

        for g in other if isinstance(other, tuple) else (other,):
            if not callable(g):
                raise TypeError(f"{self} can be followed by functions only, got {type(g).__name__} {g!r:.80}")
        outputs: Sequence[Any] = self.outputs
        if isinstance(other, tuple):
            return combine([g(outputs[i if len(outputs) > 1 else 0]) for i, g in enumerate(other)])
        return other(*outputs) if len(outputs) > 1 else other(self)

    @answers
    def __lshift__(self, other: TensorLike) -> Any:
        """``f << g`` is ``f(g)``."""
        return self(other)

    @answers
    def __getitem__(self, key: Any) -> Any:
        """An output by number where there are several; otherwise slicing."""
        if len(self.outputs) == 1:
            return super().__getitem__(key)
        if not isinstance(key, int):
            raise KeyError(f"{self} has several outputs; index them with an int, got {key!r}")
        return self.outputs[key]

    @answers
    def __iter__(self) -> Iterator[Any]:
        """The outputs where there are several; otherwise the parts along the first static axis."""
        return super().__iter__() if len(self.outputs) == 1 else iter(self.outputs)

    @answers
    def __bool__(self) -> bool:
        """True, as in CNTK: there is a model, or a node.  What comparisons give is refused: it is not known while the graph is built.

        Raises:
            TypeError: it is the result of a comparison.
        """
        from .python_function import under_construction

        if not self.is_composite or not self.root_function.op.traits.is_condition:
            return True
        arguments = self.arguments
        if not arguments or any(not isinstance(v, Placeholder) or v in under_construction() for v in arguments):
            return super().__bool__()
        return True

    @answers
    def __len__(self) -> int:
        raise TypeError(f"{self} has no length; len(f.outputs) counts outputs")

    # ---- evaluating: see core/run/evaluate.py ----

    def eval(self, arguments: Any = None, outputs: Any = None, device: Any = None, as_numpy: bool = True) -> Any:
        """Compute the outputs.

        Args:
            arguments: data by variable or name; or just the data, where there is one input.  A pair of this and a list of bools says of
                each sequence whether it is new, or goes on with the one in its place in the previous minibatch.
            outputs: variables to compute instead, any of the graph.
            device: the device to compute on; the default device if None.
            as_numpy: whether to return NumPy arrays rather than :class:`~cntk.core.Value` objects.

        Returns:
            An array (a list of arrays with a sequence axis), or for several outputs a dictionary by output.

        Raises:
            ValueError: data that does not fit an input, missing or unknown inputs, unbound placeholders.

        >>> x = C.input_variable(2)
        >>> (x * 2).eval({x: [[1, 2]]})
        array([[2., 4.]], dtype=float32)
        """
        try:
            return services.evaluate(self, arguments, outputs, device, as_numpy)
        except Exception as error:
            end_at_user(error)
            raise

    def forward(
        self, arguments: Any, outputs: Any = None, keep_for_backward: Any = None, device: Any = None, as_numpy: bool = True
    ) -> tuple[Any, dict[Variable, Any]]:
        """Compute outputs and, where *keep_for_backward* names any, keep what :meth:`backward` from them needs.

        Returns:
            ``(state, values)``: a state for :meth:`backward` (None when nothing is kept) and the values by output.

        >>> x = C.input_variable(2, needs_gradient=True)
        >>> f = x * x
        >>> state, values = f.forward({x: [[3, 4]]}, [f.output], {f.output})
        >>> f.backward(state, {f.output: np.ones((1, 2))}, {x})[x]
        array([[6., 8.]], dtype=float32)
        """
        try:
            return services.forward(self, arguments, outputs, keep_for_backward, device, as_numpy)
        except Exception as error:
            end_at_user(error)
            raise

    @checked
    def backward(self, state: Any, root_gradients: Any, variables: Iterable[Any], as_numpy: bool = True) -> dict[Variable, Any]:
        """Propagate gradients of one output back to *variables*.

        Args:
            state: what :meth:`forward` returned; it serves one backward pass.
            root_gradients: ``{output: gradient}``, or the gradient alone where there is one output.
            variables: where gradients are wanted.

        Raises:
            ValueError: *state* is None or used up, a gradient has the wrong shape, a variable gets no gradient.
        """
        return services.backward(self, state, root_gradients, variables, as_numpy)

    def grad(self, at: Any, wrt: Any = None, outputs: Any = None, device: Any = None, as_numpy: bool = True, grad_root: Any = None) -> Any:
        """Gradient of the sum of the output's elements; runs in training mode.

        Args:
            at: data, as for :meth:`eval`.
            wrt: variables to differentiate by; by default the inputs with ``needs_gradient``.
            outputs: outputs whose values are wanted as well.
            grad_root: output to differentiate, where there are several.

        Returns:
            An array for one variable, else a dictionary; with *outputs* a pair of that and the values.

        >>> x = C.input_variable(2, needs_gradient=True)
        >>> (x * x).grad([[3, 4]])
        array([[6., 8.]], dtype=float32)
        """
        try:
            return services.grad(self, at, wrt, outputs, device, as_numpy, grad_root)
        except Exception as error:
            end_at_user(error)
            raise

    @answers
    def bind(self, shapes: Any, device: Any = None) -> Any:
        """Prepare the function for data of these sizes, for those who evaluate again and again and cannot wait.

        Args:
            shapes: the shape of each argument's data by argument or name, or just the one: samples first, then steps where there is a
                sequence axis, then the argument's own shape.
            device: the device to compute on; the default device if None.

        Returns:
            A function with arrays of its own, ``inputs`` and ``outputs``; calling it computes the one from the other, and gives what
            :meth:`eval` does: arrays that the next call overwrites, ``(samples, steps, *shape)`` for sequences.  It follows the
            parameters, serves one thread at a time, and can be pickled.

        Raises:
            ValueError: a shape does not fit an argument; an argument or output is sparse; the number of steps depends on the data.

        >>> x = C.input_variable(2)
        >>> bound = (x * 2).bind({x: (1, 2)})
        >>> bound.inputs[x][:] = [1, 2]
        >>> bound()
        array([[2., 4.]], dtype=float32)
        >>> bound([[3, 4]])
        array([[6., 8.]], dtype=float32)
        """
        return services.bind(self, shapes, device)

    # ---- files: see plugins/models/files.py ----

    @answers
    def save(
        self,
        filename: Any,
        format: ModelFormat | str = ModelFormat.CNTKv2,
        use_external_files_to_store_parameters: bool = False,
        **options: Any,
    ) -> None:
        """Save the graph with its names, uids, custom attributes, and the values of parameters and constants.

        CNTK 2.7 loads the file as well, and what it saves is loaded here.  The file is written completely or not at all.

        Args:
            filename: path of the file.
            format: format of the file, which a plugin provides: a :class:`ModelFormat` or the plugin's name for it, such as ``'onnx'``, or
                ``'safetensors'`` for parameters alone.
            use_external_files_to_store_parameters: store parameters in another file beside it, where the format has that, as ONNX has;
                otherwise it warns that they are in the file itself.
            options: options of the format; for ONNX ``opset``, ``lengths``, ``sparse`` and ``outputs``.

        Raises:
            ValueError: a parameter has dimensions that are not known yet, or an operator has no counterpart in the format.
            TypeError: the format has no such option; a custom attribute, or the result of a user function's ``serialize``, is of a type
                that files cannot store.
            NotImplementedError: no plugin provides the format.

        >>> import os, tempfile
        >>> x = C.input_variable(2, name='x')
        >>> y = C.times(x, C.parameter((2, 1), init=2, name='W'), name='y')
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     y.save(os.path.join(folder, 'model.dnn'))
        ...     z = C.load_model(os.path.join(folder, 'model.dnn'))
        >>> z.eval([[1, 2]]), z.W.uid == y.W.uid
        (array([[6.]], dtype=float32), True)
        """
        services.save(self, filename, format, use_external_files_to_store_parameters, options)

    @answers
    def restore(self, filename: Any) -> None:
        """Take the values of parameters and constants from a file saved with :meth:`save`, in any format, in place.

        Raises:
            ValueError: there is no such file, or the function in it differs in more than these values.
            RuntimeError: the file is damaged.

        >>> import os, tempfile
        >>> w = C.parameter(2, init=1)
        >>> z = C.input_variable(2) * w
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     z.save(os.path.join(folder, 'model.dnn'))
        ...     w.value = np.float32([3, 4])
        ...     z.restore(os.path.join(folder, 'model.dnn'))
        >>> w.value
        array([1., 1.], dtype=float32)
        """
        services.restore(self, filename)

    @staticmethod
    @answers
    def load(model: Any, device: Any = None, format: ModelFormat | str = ModelFormat.CNTKv2) -> Function:
        """Load a function that was saved, here or by CNTK.

        Args:
            model: path of the file, or its content as bytes or bytearray.
            device: the device of parameters and constants; the default device if None.
            format: format of the file, if it cannot be recognised.

        Raises:
            ValueError: there is no such file.
            RuntimeError: it is damaged, or of another format.
            NotImplementedError: no plugin provides the format.

        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, 'model.dnn')
        ...     C.tanh(C.input_variable(2, name='x'), name='y').save(path)
        ...     model = C.load_model(path)
        >>> print(model)
        y: Tanh(x: Tensor[2]) -> Tensor[2]
        """
        loaded: Function = services.load(model, device, format)
        return loaded

    @staticmethod
    def register_udf_deserialize_callback(op_name: str, callback: Callable[..., Any]) -> None:
        """Register a callback that recreates a user function when a model with it is loaded, instead of its class.

        Args:
            op_name: module and class of the user function, ``'module.Class'``.
            callback: called with the list of inputs, the name, and the result of ``serialize``; returns the function.

        Raises:
            ValueError: it has a callback already.
        """
        services.register_callback(op_name, callback)

    # ---- pickles and copies: see plugins/models/pickling.py ----

    def __reduce__(self) -> Any:
        return services.reduce(self)

    def __copy__(self) -> Function:
        made: Function = services.shallow_copy(self)
        return made

    def __deepcopy__(self, memo: dict[Any, Any]) -> Function:
        made: Function = services.deep_copy(self, memo)
        return made

    # ---- printing ----

    def __str__(self) -> str:
        alike = all(mine is roots for mine, roots in zip(self.inputs, self.root_function.inputs, strict=False))
        op_name = self.op_name if self.is_primitive else self.root_function.op.op_name
        shown = op_name if alike else "Composite"
        arguments = ", ".join(f"{v.name}: {v.type}" if v.name else str(v.type) for v in self.signature)
        results = [str(v.type) for v in self.outputs]
        result = results[0] if len(results) == 1 else f"Tuple[{', '.join(results)}]"
        return f"{self.name + ': ' if self.name else ''}{shown}({arguments}) -> {result}"

    def __repr__(self) -> str:
        op_name = self.root_function.op.op_name
        kind = f"Composite({op_name})" if self.is_composite else op_name
        return f"{kind}: {', '.join(map(repr, self.arguments))} -> {', '.join(map(repr, self.outputs))}"
