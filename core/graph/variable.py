"""Variables: the values that flow along the edges of a graph, before there is data."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..common.dtypes import DataType, as_dtype, as_stored_dtype, data_type_of, is_float, is_real
from ..common.lock import ForkSafeLock
from ..common.options import option
from ..common.phrasebook import METHODS, lacking
from ..common.services import services
from ..common.shape import InferredDimension, Shape, UnknownDimension, as_shape, format_shape, is_concrete, size_of
from ..common.tracebacks import answers
from ..common.user_frame import user_line
from ..extension.device import DeviceDescriptor, use_default_device
from ..types.arguments import axes_in, checked
from ..types.axis import Axis, format_axes
from ..types.csr import is_csr, pruned, require_whole
from ..types.sparse import SparseRows
from ..types.spec import BATCH, Spec
from ..types.types import VariableType, type_of
from .foreign import as_data
from .initial_values import ConstantInitializer, Initializer
from .tensor import ArrayMixin, TensorOps

if TYPE_CHECKING:
    from .arguments import AxesLike, DTypeLike, InitLike, ShapeLike, ValueLike
    from .nodes import Primitive

_numbers = itertools.count()
_placeholders = itertools.count(1)


def new_uid(kind: str) -> str:
    """A name that no other node of this process has: the kind and a number that only grows."""
    return f"{kind}{next(_numbers)}"


class Variable(TensorOps):
    """A value of a graph: an input, a placeholder, the output of a function, a parameter or a constant.

    Attributes:
        spec: what is known of it: shape, element type, dynamic axes, sparseness.
        uid: a unique name.
        needs_gradient: whether gradients are wanted here (inputs, parameters) or pass through here (outputs).
        line: file and line where the user made it, for those that errors may have to speak of.
        in_block: whether it is an argument inside a block, which binds it to an outer variable.

    >>> x = C.sequence.input_variable(3, name='x')
    >>> x
    Input('x', [#, *], [3])
    >>> y = C.reduce_sum(x).output
    >>> y.shape, y.dynamic_axes == x.dynamic_axes, y.is_output, y.owner.op_name
    ((), True, True, 'ReduceElements')
    """

    kind = "Output"
    in_block = False
    line = ""

    def __init__(self, spec: Spec, name: str = "", *, needs_gradient: bool = False, uid: str | None = None) -> None:
        self.spec = spec
        self._name = name
        self.uid = uid or new_uid(self.kind)
        self.needs_gradient = needs_gradient

    @property
    def name(self) -> str:
        """The user's name for it, or ``''``."""
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        raise AttributeError(f"{self!r} cannot be named {name!r}: a variable is named when it is made, by name={name!r}")

    if not TYPE_CHECKING:  # so that checkers of types know which attributes there are

        @answers
        def __getattr__(self, name):
            raise lacking(f"'{type(self).__name__}' object has no attribute '{name}'", METHODS, name)

    @property
    def shape(self) -> Shape:
        """Static shape; -1 stands for an inferred and -3 for a free dimension, ``(-2,)`` for a shape not known at all."""
        return (UnknownDimension,) if self.spec.shape is None else self.spec.shape

    @property
    def dtype(self) -> Any:
        """NumPy type of the elements; None while unknown."""
        return self.spec.dtype

    @property
    def dynamic_axes(self) -> tuple[Axis, ...]:
        """Batch axis, then sequence axis; empty for a value that is the same for every sample."""
        return Axis.unknown_dynamic_axes() if self.spec.axes is None else self.spec.axes

    def get_data_type(self) -> DataType:
        """Number of the element type, as ``cntk_py.DataType_Float`` and the like."""
        return data_type_of(self.dtype)

    @property
    def is_sparse(self) -> bool:
        """Whether data comes as CSR rows."""
        return self.spec.sparse

    @property
    def is_input(self) -> bool:
        """Whether data is fed here."""
        return isinstance(self, Input)

    @property
    def is_output(self) -> bool:
        """Whether a function computes it."""
        return isinstance(self, Output)

    @property
    def is_parameter(self) -> bool:
        """Whether learners change it."""
        return isinstance(self, Parameter)

    @property
    def is_constant(self) -> bool:
        """Whether it holds a value that learners leave alone."""
        return isinstance(self, Constant)

    @property
    def is_placeholder(self) -> bool:
        """Whether it stands for a variable to be given later."""
        return isinstance(self, Placeholder)

    def has_batch_axis(self) -> bool:
        """Whether it has a value for each sample.

        >>> C.input_variable(2).has_batch_axis(), C.parameter(2).has_batch_axis()
        (True, False)
        """
        return Axis.default_batch_axis() in self.dynamic_axes

    def has_sequence_axis(self) -> bool:
        """Whether it has a value for each step of each sample.

        >>> C.sequence.input_variable(2).has_sequence_axis(), C.input_variable(2).has_sequence_axis()
        (True, False)
        """
        return any(axis.is_sequence_axis for axis in self.dynamic_axes)

    @property
    def owner(self) -> Primitive:
        """The function that computes it.

        Raises:
            RuntimeError: it is no output.
        """
        raise RuntimeError(f"{self!r} is not the output of a function and has no owner")

    @property
    def type(self) -> VariableType:
        """The type as it prints: ``Tensor[2,3]``, ``SparseTensor[4]``, ``Sequence[Tensor[2]]``."""
        return type_of(self.spec)

    @property
    def _type(self) -> VariableType:
        """The type with whether gradients are computed, as programs for CNTK ask for it."""
        return type_of(self.spec, self.needs_gradient)

    def as_parameter(self) -> Parameter:
        """This variable, where it is a parameter; TypeError otherwise."""
        if isinstance(self, Parameter):
            return self
        raise TypeError(f"{self!r} is not a Parameter")

    def as_constant(self) -> Constant:
        """This variable, where it is a constant; TypeError otherwise."""
        if isinstance(self, Constant):
            return self
        raise TypeError(f"{self!r} is not a Constant")

    def __getstate__(self) -> dict[str, Any]:
        return dict(self.__dict__)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __copy__(self) -> Variable:
        made: Variable = services.shallow_copy(self)
        return made

    def __deepcopy__(self, memo: dict[Any, Any]) -> Variable:
        made: Variable = services.deep_copy(self, memo)
        return made

    def __repr__(self) -> str:
        return f"{self.kind}('{self.name or self.uid}', {format_axes(self.spec.axes)}, {format_shape(self.spec.shape)})"

    __str__ = __repr__


class Input(Variable):
    """A variable that data is fed to."""

    kind = "Input"

    def __init__(self, spec: Spec, name: str = "", *, needs_gradient: bool = False) -> None:
        super().__init__(spec, name, needs_gradient=needs_gradient)
        self.line = user_line()


class Placeholder(Variable):
    """A variable that stands for another, given later by a call, ``replace_placeholders`` or ``clone``.

    Attributes:
        number: grows from one to the next that is made.
    """

    kind = "Placeholder"

    def __init__(self, spec: Spec, name: str = "", *, needs_gradient: bool = False, uid: str | None = None) -> None:
        super().__init__(spec, name, needs_gradient=needs_gradient, uid=uid)
        self.number = next(_placeholders)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, number=next(_placeholders))


class Output(Variable):
    """A result of a function."""

    def __init__(self, owner: Primitive, index: int, spec: Spec, name: str = "") -> None:
        super().__init__(spec, name, uid=f"{owner.uid}_Output_{index}")
        self._owner, self.index = owner, index

    def __reduce__(self) -> Any:
        return services.reduce(self)

    @property
    def dtype(self) -> Any:
        """NumPy type of the elements; beside placeholders that of the operands which have one, None if none has."""
        return self.spec.dtype or self._owner.assumed_dtype

    @property
    def owner(self) -> Primitive:
        return self._owner

    @property
    def line(self) -> str:  # type: ignore[override]
        """File and line where the user made the function."""
        return self._owner.line


class _Holder(ArrayMixin, Variable):
    """A variable that holds a value of its own: what parameters and constants have in common.

    Attributes:
        version: how often a value has been assigned, by operators as well.
        updates: how often a learner has written to the array.
        is_volatile: whether others write to the array as well, so that neither shows changes.
    """

    is_volatile = False
    updates = 0

    @property
    def changes(self) -> int:
        """How often the array has changed, as far as that is known."""
        return self.version + self.updates

    def __bool__(self) -> bool:
        return True

    def __init__(self, shape: Any, init: Any, dtype: Any, device: DeviceDescriptor | None, name: str, needs_gradient: bool) -> None:
        self.device = device or use_default_device()
        self.backend = self.device.backend
        self._init: Initializer | None = None
        self._array: Any = None
        self._lock = ForkSafeLock()
        self.version = 0
        if isinstance(init, Initializer):
            super().__init__(Spec(as_shape(() if shape is None else shape), dtype, ()), name, needs_gradient=needs_gradient)
            self._init = init.seeded()
            return
        given = np.asarray(_dense(init))
        if not is_real(given.dtype):
            raise TypeError(f"{self.kind} '{name}': cannot begin as {init!r:.80}; give a number, an array or an initializer")
        wanted = given.shape if given.ndim or shape is None else as_shape(shape)
        super().__init__(Spec(wanted, dtype, ()), name, needs_gradient=needs_gradient)
        if is_concrete(wanted):
            self._array = self.backend.asarray(np.broadcast_to(given, wanted), dtype)
        else:
            self._init = ConstantInitializer(given.item())

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the device: unpickled variables are on the default device."""
        stored = self._stored() if is_concrete(self.spec.shape) and self.spec.dtype is not None else None
        state = {name: held for name, held in self.__dict__.items() if name not in ("device", "backend", "_lock")}
        return {**state, "_array": stored}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.device = state.get("device") or use_default_device()
        self.backend = self.device.backend
        self._lock = ForkSafeLock()
        self._array = self._from_stored(state["_array"])

    @property
    def array(self) -> Any:
        """The array that programs compute with and learners update: the same object for the variable's whole life.

        Raises:
            ValueError: the shape still has inferred dimensions.
        """
        if self._array is None:
            with self._lock:
                if self._array is None:
                    self._array = self._initial_array()
                    self._init = None
        return self._array

    def _initial_array(self) -> Any:
        shape = self.spec.dims
        if not is_concrete(shape):
            raise ValueError(
                f"{self!r} has dimensions that are not known yet; apply the function that uses it to an input of known shape first"
            )
        if self.dtype is None:
            raise ValueError(f"{self!r} has no element type yet; use it beside an operand that has one first, or give it a dtype")
        assert self._init is not None
        return self.backend.asarray(self._init.fill(shape, self.dtype), self.dtype)

    @property
    def initial(self) -> Any:
        """The initial value of a copy: the value, or the initialiser while dimensions are unknown."""
        return self.value if is_concrete(self.spec.shape) else self._init

    def set_shape(self, shape: Shape) -> None:
        """Fill in inferred dimensions; called by shape inference."""
        self.spec = self.spec.but(shape=shape)

    @property
    def value(self) -> Any:
        """The value, the caller's own, as NumPy array (CSR matrix where a constant is sparse); assigning one of its shape changes it."""
        return self._copied()

    @value.setter
    @answers
    def value(self, value: Any) -> None:
        self._assign(value)
        self.version += 1

    def _copied(self) -> Any:
        return self.backend.to_numpy(self.array)

    def _stored(self) -> Any:
        """The array in the form in which it is pickled."""
        return self.backend.to_numpy(self.array)

    def _from_stored(self, stored: Any) -> Any:
        return None if stored is None else self.backend.asarray(np.array(stored), self.dtype)

    def _assign(self, value: Any) -> None:
        given = _dense(value)
        if not isinstance(given, (np.ndarray, np.generic)):
            raise TypeError(f"value of {self!r}: expected a NumPy array, CSR matrix or NDArrayView, got {type(value).__name__}")
        if given.size == 1 and not self.array.shape:
            given = given.reshape(())
        if given.shape != self.array.shape:
            raise RuntimeError(f"value of {self!r}: expected an array of shape {self.array.shape}, got {given.shape}")
        self.backend.load(self.array, given)

    def set_value(self, value: Any) -> None:
        """Take the value of an NDArrayView or array: what user-written learners call."""
        self.value = value

    def _to_array(self) -> Any:
        return self.value


class Parameter(_Holder):
    """A value that learners change.

    Args:
        shape: int or tuple of ints; -1 is filled in when the parameter is first used. Ignored where *init* is an array.
        init: a number for all elements (default 0), an array or list, or an initializer.
        dtype: float16, bfloat16, float32 (the default) or float64; ``cntk_py.DataType_Unknown`` for that of the first operand that it is
            used with.
        device: where it lives; the default device where None.
        name: a name to find it by.

    Raises:
        TypeError: created while a Python function is being converted to a Function, or *init* is none of the above.

    >>> p = C.Parameter((2, 3), init=1, name='W')
    >>> p
    Parameter('W', [], [2 x 3])
    >>> p.value.sum()
    np.float32(6.0)
    """

    kind = "Parameter"

    @checked
    def __init__(
        self,
        shape: ShapeLike | None = None,
        init: InitLike | None = None,
        dtype: DTypeLike | DataType | None = None,
        device: DeviceDescriptor | None = None,
        name: str = "",
    ) -> None:
        if option("pure", False):
            raise TypeError(
                "Parameter: parameters cannot be created inside a Python function that becomes a Function, "
                "for it runs once per conversion; create them outside and refer to them"
            )
        if dtype is DataType.Unknown and (init is None or isinstance(init, (int, float, Initializer))):
            fill = init if isinstance(init, Initializer) else ConstantInitializer(init or 0)
            super().__init__(shape, fill, None, device, name, True)
            return
        if dtype is DataType.Unknown:
            dtype = _float_type_of(init)
        super().__init__(shape, 0 if init is None else init, as_stored_dtype(dtype or option("dtype", np.float32)), device, name, True)

    def take_type(self, dtype: Any) -> None:
        """Set the element type, if there is none yet."""
        if self.spec.dtype is None:
            self.spec = self.spec.but(dtype=dtype)


class Constant(_Holder):
    """A value that learners leave alone; assigning to ``value``, or ``assign``, changes it.

    Args:
        value: a number, array, list, NDArrayView or Value; a CSR matrix, or a view of one, stays sparse.
        shape: shape to fill with a number *value*.
        dtype: float16, bfloat16, float32 (the default) or float64.
        device: where it lives; the default device where None.
        name: a name to find it by.

    >>> C.Constant(2, shape=(2,)).value
    array([2., 2.], dtype=float32)
    """

    kind = "Constant"

    @checked
    def __init__(
        self,
        value: ValueLike | None = None,
        shape: ShapeLike | None = None,
        dtype: DTypeLike | None = None,
        device: DeviceDescriptor | None = None,
        name: str = "",
    ) -> None:
        dtype = as_dtype(dtype or option("dtype", np.float32))
        held = _held(value)
        if not is_csr(held):
            super().__init__(shape, 0 if held is None else held, dtype, device, name, False)
            return
        super().__init__(cast(Any, value).shape if shape is None else shape, ConstantInitializer(0), dtype, device, name, False)
        self.spec = self.spec.but(sparse=True)
        self._init, self._array = None, SparseRows(self.spec.dims, dtype)
        self._assign(held)

    @property
    def initial(self) -> Any:
        return services.view_of(self.array.to_csr(self.backend), self.shape) if self.is_sparse else super().initial

    def _copied(self) -> Any:
        if not self.is_sparse:
            return super()._copied()
        matrix = self.array.to_csr(self.backend)
        return matrix if len(self.shape) <= 2 else matrix.toarray().reshape(self.shape)

    def _stored(self) -> Any:
        return tuple(map(self.backend.to_numpy, self.array.parts)) if self.is_sparse else super()._stored()

    def _from_stored(self, stored: Any) -> Any:
        if not self.is_sparse:
            return super()._from_stored(stored)
        made = SparseRows(self.spec.dims, self.dtype)
        made.set(*(self.backend.asarray(np.array(part), part.dtype) for part in stored))
        return made

    def _assign(self, value: Any) -> None:
        if not self.is_sparse:
            super()._assign(value)
            return
        matrix, shape = _held(value), self.spec.dims
        if not is_csr(matrix):
            raise TypeError(f"value of {self!r}: it is sparse and takes CSR matrices and sparse NDArrayViews, got {type(value).__name__}")
        wanted = (size_of(shape[:-1]), *shape[-1:])
        if matrix.shape != wanted:
            raise RuntimeError(f"value of {self!r}: expected a CSR matrix of shape {wanted}, got {matrix.shape}")
        indices, indptr = (self.backend.asarray(part, part.dtype) for part in (matrix.indices, matrix.indptr))
        self.array.set(self.backend.asarray(matrix.data, self.dtype), indices, indptr)


def _held(value: Any) -> Any:
    """What a Value or NDArrayView holds, an array or CSR matrix; what another library holds, as an array; anything else as it is."""
    held = services.held_by(value)
    if held is value:
        held = as_data("value", value)
    if not is_csr(held):
        return held
    require_whole("value", held)
    return pruned(held)


def _dense(value: Any) -> Any:
    """The same as :func:`_held`, but an array where it is sparse."""
    held = _held(value)
    return held.toarray().reshape(value.shape) if is_csr(held) else held


class Literal(Constant):
    """A number or array written beside operands of unknown element type, whose type it takes once that is known."""

    def __init__(self, given: Any) -> None:
        super().__init__(np.asarray(given))
        self.given = np.array(given)
        self._array = None
        self.spec = self.spec.but(dtype=None)

    @property
    def dtype(self) -> Any:
        """The type that it has taken; float32 until then, and if no other follows."""
        return self.spec.dtype or np.float32

    @property
    def initial(self) -> Any:
        return self.given if self.spec.dtype is None else super().initial

    def take_type(self, dtype: Any) -> None:
        """Set the element type, if there is none yet."""
        if self.spec.dtype is None:
            self.spec = self.spec.but(dtype=dtype)

    def _initial_array(self) -> Any:
        self.take_type(np.float32)
        return self.backend.asarray(self.given, self.dtype)


@checked
def input_variable(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    needs_gradient: bool = False,
    is_sparse: bool = False,
    dynamic_axes: AxesLike = BATCH,
    name: str = "",
) -> Input:
    """Declare an input: a place where data is fed.

    Args:
        shape: static shape of one sample, an int or tuple; ``()`` for scalars,
            ``C.FreeDimension`` for dimensions that each minibatch decides.
        dtype: float32 (the default), float64, float16 or bfloat16.
        needs_gradient: whether gradients with respect to it may be asked for.
        is_sparse: whether it is fed CSR matrices.
        dynamic_axes: ``[batch axis]`` by default; ``[]`` for a value without batch axis.
        name: a name to feed and find it by.

    Raises:
        TypeError: *dynamic_axes* holds something that is not an Axis.

    >>> C.input_variable((2, 3), name='x')
    Input('x', [#], [2 x 3])
    """
    axes = axes_in("input_variable", dynamic_axes)
    spec = Spec(_shape_or_unknown(shape), as_dtype(dtype or option("dtype", np.float32)), axes, is_sparse)
    return Input(spec, name, needs_gradient=needs_gradient)


@checked
def placeholder(shape: ShapeLike | str | None = None, dynamic_axes: AxesLike | None = None, name: str = "") -> Placeholder:
    """Declare a placeholder: a variable that a call, ``replace_placeholders`` or ``clone`` binds later.

    A string in place of the shape is the name.

    >>> C.placeholder(name='p')
    Placeholder('p', [???], [???])
    """
    if isinstance(shape, str):
        name = name or shape
        shape = None
    axes = None if dynamic_axes is None else axes_in("placeholder", dynamic_axes)
    return Placeholder(Spec(_shape_or_unknown(shape), None, None if axes == Axis.unknown_dynamic_axes() else axes), name)


def _shape_or_unknown(shape: Any) -> Shape | None:
    return None if shape is None or shape == (UnknownDimension,) else as_shape(shape)


@checked
def parameter(
    shape: ShapeLike | None = None,
    init: InitLike | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceDescriptor | None = None,
    name: str = "",
) -> Parameter:
    """Create a :class:`Parameter`; an array given as *init* keeps its floating-point type where *dtype* is None.

    >>> C.parameter(init=np.zeros((2, 2)), name='W').dtype
    <class 'numpy.float64'>
    """
    return Parameter(shape, init, _float_type_of(init) if dtype is None else dtype, device, name)


@checked
def constant(
    value: ValueLike | None = None,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    device: DeviceDescriptor | None = None,
    name: str = "",
) -> Constant:
    """Create a :class:`Constant`; an array given as *value* keeps its floating-point type where *dtype* is None.

    >>> C.constant([1, 2]).value
    array([1., 2.], dtype=float32)
    >>> from scipy.sparse import csr_matrix
    >>> links = C.constant(csr_matrix(np.float32([[0, 1], [0.5, 0]])))
    >>> links.is_sparse, C.times(links, np.float32([[1, 2], [3, 4]])).eval().tolist()
    (True, [[3.0, 4.0], [0.5, 1.0]])
    """
    return Constant(value, shape, dtype or _float_type_of(value), device, name)


def _float_type_of(value: Any) -> Any:
    held = _held(value)
    if isinstance(held, np.ndarray) or is_csr(held):
        return held.dtype.type if is_float(held.dtype) else np.float32
    return None


def has_inferred_dimensions(variable: Variable) -> bool:
    """Whether the variable waits for shape inference to fill in a dimension."""
    return variable.spec.shape is not None and InferredDimension in variable.spec.shape
