"""cuDNN: the handle, its descriptors and functions, and its graph API.

A graph describes tensors and the operations on them; operations refer to tensors by their index in the graph.  A plan is a graph with an
engine, which is chosen when arrays are bound; a variant pack holds the addresses for one execution of a plan.  All of these are created
when arrays are bound: a call afterwards executes a plan with a variant pack, and can be captured.

Nondeterministic engines are skipped, and so are engines that round float32 before multiplying, unless TF32 is allowed.  Of the others the
one ranked first is taken, or, if that is allowed, the one that takes the least time.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import POINTER, byref, c_bool, c_double, c_float, c_int, c_int64, c_void_p
from enum import IntEnum
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from ...core.extension.compiled import switch_off
from . import libraries

LARGEST_WORKSPACE = 256 << 20
"""Bytes of workspace that a plan may use."""

MOST_TIMED = 8
"""Maximum number of engines that are timed for a graph."""

ALIGNMENT = 16
"""Largest alignment in bytes that makes a difference to engines."""

TYPES = {"float16": 2, "bfloat16": 9, "float32": 0, "float64": 1}
"""Element types by name: cudnnDataType_t."""

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cudnnCreate": (POINTER(c_void_p),),
    "cudnnDestroy": (c_void_p,),
    "cudnnSetStream": (c_void_p, c_void_p),
    "cudnnBackendCreateDescriptor": (c_int, POINTER(c_void_p)),
    "cudnnBackendDestroyDescriptor": (c_void_p,),
    "cudnnBackendFinalize": (c_void_p,),
    "cudnnBackendSetAttribute": (c_void_p, c_int, c_int, c_int64, c_void_p),
    "cudnnBackendGetAttribute": (c_void_p, c_int, c_int, c_int64, POINTER(c_int64), c_void_p),
    "cudnnBackendExecute": (c_void_p, c_void_p, c_void_p),
}
"""Argument types of the library functions that are used."""


class Kind(IntEnum):
    """Kinds of descriptors: cudnnBackendDescriptorType_t."""

    POINTWISE = 0
    CONVOLUTION = 1
    ENGINE = 2
    ENGINECFG = 3
    ENGINEHEUR = 4
    EXECUTION_PLAN = 5
    OPERATION_CONVOLUTION_FORWARD = 10
    OPERATION_CONVOLUTION_BACKWARD_FILTER = 11
    OPERATION_CONVOLUTION_BACKWARD_DATA = 12
    OPERATION_POINTWISE = 13
    OPERATIONGRAPH = 15
    VARIANT_PACK = 16
    TENSOR = 17


class Type(IntEnum):
    """Types of attributes: cudnnBackendAttributeType_t."""

    HANDLE = 0
    DATA_TYPE = 1
    BOOLEAN = 2
    INT64 = 3
    FLOAT = 4
    DOUBLE = 5
    VOID_PTR = 6
    CONVOLUTION_MODE = 7
    HEUR_MODE = 8
    NUMERICAL_NOTE = 11
    POINTWISE_MODE = 14
    BACKEND_DESCRIPTOR = 15


ELEMENTS: dict[Type, Any] = {
    Type.HANDLE: c_void_p,
    Type.BOOLEAN: c_bool,
    Type.INT64: c_int64,
    Type.FLOAT: c_float,
    Type.DOUBLE: c_double,
    Type.VOID_PTR: c_void_p,
    Type.BACKEND_DESCRIPTOR: c_void_p,
}
"""C types of attribute values; values of other attribute types are enumerators."""


class Attribute(IntEnum):
    """Attributes of descriptors: cudnnBackendAttributeName_t."""

    POINTWISE_MODE = 0
    POINTWISE_MATH_PREC = 1
    CONVOLUTION_COMP_TYPE = 100
    CONVOLUTION_CONV_MODE = 101
    CONVOLUTION_DILATIONS = 102
    CONVOLUTION_FILTER_STRIDES = 103
    CONVOLUTION_POST_PADDINGS = 104
    CONVOLUTION_PRE_PADDINGS = 105
    CONVOLUTION_SPATIAL_DIMS = 106
    ENGINEHEUR_MODE = 200
    ENGINEHEUR_OPERATION_GRAPH = 201
    ENGINEHEUR_RESULTS = 202
    ENGINECFG_ENGINE = 300
    EXECUTION_PLAN_HANDLE = 400
    EXECUTION_PLAN_ENGINE_CONFIG = 401
    EXECUTION_PLAN_WORKSPACE_SIZE = 402
    OPERATION_CONVOLUTION_FORWARD_ALPHA = 700
    OPERATION_CONVOLUTION_FORWARD_BETA = 701
    OPERATION_CONVOLUTION_FORWARD_CONV_DESC = 702
    OPERATION_CONVOLUTION_FORWARD_W = 703
    OPERATION_CONVOLUTION_FORWARD_X = 704
    OPERATION_CONVOLUTION_FORWARD_Y = 705
    OPERATION_CONVOLUTION_BWD_DATA_ALPHA = 706
    OPERATION_CONVOLUTION_BWD_DATA_BETA = 707
    OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC = 708
    OPERATION_CONVOLUTION_BWD_DATA_W = 709
    OPERATION_CONVOLUTION_BWD_DATA_DX = 710
    OPERATION_CONVOLUTION_BWD_DATA_DY = 711
    OPERATION_CONVOLUTION_BWD_FILTER_ALPHA = 712
    OPERATION_CONVOLUTION_BWD_FILTER_BETA = 713
    OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC = 714
    OPERATION_CONVOLUTION_BWD_FILTER_DW = 715
    OPERATION_CONVOLUTION_BWD_FILTER_X = 716
    OPERATION_CONVOLUTION_BWD_FILTER_DY = 717
    OPERATION_POINTWISE_PW_DESCRIPTOR = 750
    OPERATION_POINTWISE_XDESC = 751
    OPERATION_POINTWISE_BDESC = 752
    OPERATION_POINTWISE_YDESC = 753
    OPERATIONGRAPH_HANDLE = 800
    OPERATIONGRAPH_OPS = 801
    TENSOR_BYTE_ALIGNMENT = 900
    TENSOR_DATA_TYPE = 901
    TENSOR_DIMENSIONS = 902
    TENSOR_STRIDES = 903
    TENSOR_UNIQUE_ID = 906
    TENSOR_IS_VIRTUAL = 907
    VARIANT_PACK_UNIQUE_IDS = 1000
    VARIANT_PACK_DATA_POINTERS = 1001
    VARIANT_PACK_WORKSPACE = 1003
    ENGINE_NUMERICAL_NOTE = 1303


class Note(IntEnum):
    """Numerical properties of engines: cudnnBackendNumericalNote_t."""

    TENSOR_CORE = 0
    DOWN_CONVERT_INPUTS = 1
    NONDETERMINISTIC = 4


class Pointwise(IntEnum):
    """Modes of element-wise operations: cudnnPointwiseMode_t."""

    ADD = 0
    RELU_FWD = 100


class Direction(IntEnum):
    """The tensor that a convolution computes, as the descriptor kind of its operation."""

    RESULT = Kind.OPERATION_CONVOLUTION_FORWARD
    FILTERS = Kind.OPERATION_CONVOLUTION_BACKWARD_FILTER
    OPERAND = Kind.OPERATION_CONVOLUTION_BACKWARD_DATA


CROSS_CORRELATION = 1
HEURISTICS_A, HEURISTICS_FALLBACK = 3, 2
MOST_NOTES = 10

BY_DIRECTION = {
    Direction.RESULT: ("FORWARD", "X", "W", "Y"),
    Direction.OPERAND: ("BWD_DATA", "DX", "W", "DY"),
    Direction.FILTERS: ("BWD_FILTER", "X", "DW", "DY"),
}
"""Parts of the attribute names by direction: that of the operation, and those of operand, filters and result."""


class Tensor(NamedTuple):
    """Description of a tensor.

    Attributes:
        dims, strides: shape, and strides in elements.
        dtype: name of the element type.
        aligned: alignment of the address in bytes; 0 for a virtual tensor, an intermediate that is not in memory.
    """

    dims: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    aligned: int


class Convolution(NamedTuple):
    """A convolution, or a gradient of one.

    Attributes:
        direction: which of the tensors is computed.
        x, w, y: indices of operand, filters and result, or of their gradients.
        before, behind: padding before and after, per axis.
        strides, dilation: strides and dilation of the windows, per axis.
    """

    direction: Direction
    x: int
    w: int
    y: int
    before: tuple[int, ...]
    behind: tuple[int, ...]
    strides: tuple[int, ...]
    dilation: tuple[int, ...]

    @property
    def result(self) -> int:
        """The index of the tensor that is computed."""
        return {Direction.RESULT: self.y, Direction.FILTERS: self.w, Direction.OPERAND: self.x}[self.direction]


class Each(NamedTuple):
    """An element-wise operation that computes *y* from *x*, and from *b* if it is binary."""

    mode: Pointwise
    x: int
    b: int | None
    y: int

    @property
    def result(self) -> int:
        """The index of the tensor that is computed."""
        return self.y


class Graph(NamedTuple):
    """Operations on tensors, and the type in which they are computed."""

    tensors: tuple[Tensor, ...]
    operations: tuple[Convolution | Each, ...]
    computes_in: str

    @property
    def result(self) -> int:
        """The index of the tensor that is computed."""
        return self.operations[-1].result

    @property
    def numbers(self) -> list[int]:
        """The indices of the tensors that are in memory."""
        return [number for number, tensor in enumerate(self.tensors) if tensor.aligned]


class Cudnn:
    """cuDNN with a handle and a workspace for one backend.

    Args:
        library: the loaded library.
        backend: the backend whose arrays are used.

    Attributes:
        handle: the cuDNN handle.
    """

    def __init__(self, library: libraries.Loaded, backend: Any) -> None:
        self._library, self._call = library, {name: library.function(name, types) for name, types in SIGNATURES.items()}
        self._backend, self._stream, self._spaces = backend, libraries.current_stream(), [backend.allocate(0)]
        self.handle = c_void_p()
        with backend.guard():
            self._call["cudnnCreate"](byref(self.handle))
        weakref.finalize(self.handle, self._call["cudnnDestroy"], c_void_p(self.handle.value)).atexit = False
        self._plan = lru_cache(maxsize=4096)(self._planned)
        self._fastest: dict[tuple[Graph, bool], _Plan | None] = {}

    def bound(self, graph: Graph, arrays: Sequence[Any]) -> Callable[[], None] | None:
        """Return a function that executes a graph.

        Args:
            graph: the graph.
            arrays: arrays of its tensors in order, without those of virtual tensors.

        Returns:
            The function; None if cuDNN does not support the graph.
        """
        known = dict(zip(graph.numbers, arrays, strict=True))
        allows_tf32 = libraries.allows_tf32()
        plan = self._timed(graph, allows_tf32, known) if libraries.may_take_times() else self._plan(graph, allows_tf32)
        return None if plan is None else self._executing(plan, known, self.space(plan.workspace))

    def _executing(self, plan: _Plan, arrays: Mapping[int, Any], space: Any) -> Callable[[], None]:
        """Return a function that executes a plan with these arrays as tensors."""
        pack = self._descriptor(
            Kind.VARIANT_PACK,
            (Attribute.VARIANT_PACK_UNIQUE_IDS, Type.INT64, list(arrays)),
            (Attribute.VARIANT_PACK_DATA_POINTERS, Type.VOID_PTR, [array.data.ptr for array in arrays.values()]),
            (Attribute.VARIANT_PACK_WORKSPACE, Type.VOID_PTR, [space.data.ptr]),
        )
        return self.launching(self._call["cudnnBackendExecute"], plan.descriptor, pack)

    def launching(self, function: Callable[..., None], *arguments: Any) -> Callable[[], None]:
        """Return a function that calls a library function with the handle and these arguments on the current stream."""
        set_stream, handle, stream = self._call["cudnnSetStream"], self.handle, self._stream

        def call() -> None:
            set_stream(handle, stream())
            function(handle, *arguments)

        return call

    def functions(self, signatures: Mapping[str, tuple[Any, ...]]) -> dict[str, Callable[..., None]]:
        """Return functions of the library by name."""
        return {name: self._library.function(name, types) for name, types in signatures.items()}

    def made(self, create: Callable[..., None], destroy: Callable[..., None], *needs: Any) -> c_void_p:
        """Create a library object, which is destroyed when it is no longer referenced; it keeps alive what it *needs*."""
        made = c_void_p()
        create(byref(made))
        weakref.finalize(made, _destroy, destroy, c_void_p(made.value), needs).atexit = False
        return made

    def space(self, nbytes: int) -> Any:
        """Return a workspace of at least *nbytes* bytes; calls share it, and smaller ones stay allocated, as calls may be bound to them."""
        if self._spaces[-1].nbytes < nbytes:
            self._spaces.append(self._backend.allocate(nbytes))
        return self._spaces[-1]

    # ---- plans ----

    def _planned(self, graph: Graph, allows_tf32: bool) -> _Plan | None:
        """Return the plan ranked first; None if there is none."""
        return next(self._ranked(graph, allows_tf32), None)

    def _timed(self, graph: Graph, allows_tf32: bool, arrays: Mapping[int, Any]) -> _Plan | None:
        """Return the fastest of the plans ranked first, which is kept for the graph; None if there is none.

        Result and workspace get memory of their own, as what lies in theirs may still be needed.
        """
        key = graph, allows_tf32
        if key not in self._fastest:
            if self._backend.is_recording:
                return self._plan(*key)
            plans = list(islice(self._ranked(*key), MOST_TIMED))
            with self._backend.guard():
                elsewhere = {**arrays, graph.result: self._backend.allocate(_reach(arrays[graph.result]))}
                self._fastest[key] = min(plans, key=lambda plan: self._duration(plan, elsewhere), default=None)
        return self._fastest[key]

    def _duration(self, plan: _Plan, arrays: Mapping[int, Any]) -> float:
        space = self._backend.allocate(plan.workspace)
        duration: float = self._backend.duration(self._executing(plan, arrays, space))
        return duration

    def _ranked(self, graph: Graph, allows_tf32: bool) -> Iterator[_Plan]:
        """Yield plans with acceptable engines, those expected to be fastest first; cuDNN's fallbacks only if there are no others."""
        try:
            operations = self._operations(graph)
        except RuntimeError:  # raised for unsupported operations
            return
        for mode in (HEURISTICS_A, HEURISTICS_FALLBACK):
            found = False
            for config in self._configs(operations, mode):
                plan = self._finished(config, operations) if self._suits(config, graph, allows_tf32) else None
                if plan is not None:
                    found = True
                    yield plan
            if found:
                return

    def _operations(self, graph: Graph) -> c_void_p:
        tensors = [self._tensor(number, tensor) for number, tensor in enumerate(graph.tensors)]
        made = [self._operation(operation, tensors, graph.computes_in) for operation in graph.operations]
        return self._descriptor(
            Kind.OPERATIONGRAPH,
            (Attribute.OPERATIONGRAPH_HANDLE, Type.HANDLE, [self.handle.value]),
            (Attribute.OPERATIONGRAPH_OPS, Type.BACKEND_DESCRIPTOR, [operation.value for operation in made]),
            needs=(*tensors, *made),
        )

    def _tensor(self, number: int, tensor: Tensor) -> c_void_p:
        return self._descriptor(
            Kind.TENSOR,
            (Attribute.TENSOR_UNIQUE_ID, Type.INT64, [number]),
            (Attribute.TENSOR_DATA_TYPE, Type.DATA_TYPE, [TYPES[tensor.dtype]]),
            (Attribute.TENSOR_BYTE_ALIGNMENT, Type.INT64, [tensor.aligned or ALIGNMENT]),
            (Attribute.TENSOR_DIMENSIONS, Type.INT64, tensor.dims),
            (Attribute.TENSOR_STRIDES, Type.INT64, tensor.strides),
            (Attribute.TENSOR_IS_VIRTUAL, Type.BOOLEAN, [not tensor.aligned]),
        )

    def _operation(self, operation: Convolution | Each, tensors: Sequence[c_void_p], dtype: str) -> c_void_p:
        if isinstance(operation, Convolution):
            return self._convolution(operation, tensors, dtype)
        described = self._descriptor(
            Kind.POINTWISE,
            (Attribute.POINTWISE_MODE, Type.POINTWISE_MODE, [operation.mode]),
            (Attribute.POINTWISE_MATH_PREC, Type.DATA_TYPE, [TYPES[dtype]]),
        )
        places = (("XDESC", operation.x), ("BDESC", operation.b), ("YDESC", operation.y))
        return self._descriptor(
            Kind.OPERATION_POINTWISE,
            (Attribute.OPERATION_POINTWISE_PW_DESCRIPTOR, Type.BACKEND_DESCRIPTOR, [described.value]),
            *(
                (Attribute[f"OPERATION_POINTWISE_{name}"], Type.BACKEND_DESCRIPTOR, [tensors[place].value])
                for name, place in places
                if place is not None
            ),
            needs=(described, *tensors),
        )

    def _convolution(self, operation: Convolution, tensors: Sequence[c_void_p], dtype: str) -> c_void_p:
        described = self._descriptor(
            Kind.CONVOLUTION,
            (Attribute.CONVOLUTION_COMP_TYPE, Type.DATA_TYPE, [TYPES[dtype]]),
            (Attribute.CONVOLUTION_CONV_MODE, Type.CONVOLUTION_MODE, [CROSS_CORRELATION]),
            (Attribute.CONVOLUTION_SPATIAL_DIMS, Type.INT64, [len(operation.strides)]),
            (Attribute.CONVOLUTION_PRE_PADDINGS, Type.INT64, operation.before),
            (Attribute.CONVOLUTION_POST_PADDINGS, Type.INT64, operation.behind),
            (Attribute.CONVOLUTION_FILTER_STRIDES, Type.INT64, operation.strides),
            (Attribute.CONVOLUTION_DILATIONS, Type.INT64, operation.dilation),
        )
        name, *places = BY_DIRECTION[operation.direction]
        scalar = Type.DOUBLE if dtype == "float64" else Type.FLOAT
        known = zip(places, (operation.x, operation.w, operation.y), strict=True)
        prefix = f"OPERATION_CONVOLUTION_{name}_"
        return self._descriptor(
            Kind(operation.direction),
            (Attribute[f"{prefix}CONV_DESC"], Type.BACKEND_DESCRIPTOR, [described.value]),
            *((Attribute[f"{prefix}{place}"], Type.BACKEND_DESCRIPTOR, [tensors[number].value]) for place, number in known),
            (Attribute[f"{prefix}ALPHA"], scalar, [1]),
            (Attribute[f"{prefix}BETA"], scalar, [0]),
            needs=(described, *tensors),
        )

    def _configs(self, operations: c_void_p, mode: int) -> Iterator[c_void_p]:
        """Yield engine configurations for a graph, in the order of the heuristics, expected fastest first."""
        try:
            heuristics = self._descriptor(
                Kind.ENGINEHEUR,
                (Attribute.ENGINEHEUR_OPERATION_GRAPH, Type.BACKEND_DESCRIPTOR, [operations.value]),
                (Attribute.ENGINEHEUR_MODE, Type.HEUR_MODE, [mode]),
            )
            count = self._count(heuristics, Attribute.ENGINEHEUR_RESULTS)
        except RuntimeError:  # no engine supports the graph
            return
        configs = [self._created(Kind.ENGINECFG) for _ in range(count)]
        found = self._asked(heuristics, Attribute.ENGINEHEUR_RESULTS, Type.BACKEND_DESCRIPTOR, [config.value for config in configs])
        yield from configs[: len(found)]

    def _suits(self, config: c_void_p, graph: Graph, allows_tf32: bool) -> bool:
        """Whether the engine is deterministic, and does not round the operands of products, except to TF32 where that is allowed."""
        engine = self._created(Kind.ENGINE)
        self._asked(config, Attribute.ENGINECFG_ENGINE, Type.BACKEND_DESCRIPTOR, [engine.value])
        notes = self._asked(engine, Attribute.ENGINE_NUMERICAL_NOTE, Type.NUMERICAL_NOTE, [0] * MOST_NOTES)
        is_exact = graph.tensors[0].dtype != "float32" or allows_tf32 or Note.TENSOR_CORE not in notes
        return is_exact and Note.NONDETERMINISTIC not in notes and Note.DOWN_CONVERT_INPUTS not in notes

    def _finished(self, config: c_void_p, operations: c_void_p) -> _Plan | None:
        try:
            made = self._descriptor(
                Kind.EXECUTION_PLAN,
                (Attribute.EXECUTION_PLAN_HANDLE, Type.HANDLE, [self.handle.value]),
                (Attribute.EXECUTION_PLAN_ENGINE_CONFIG, Type.BACKEND_DESCRIPTOR, [config.value]),
                needs=(config, operations),
            )
        except RuntimeError:  # the heuristics may return engines that do not support the graph
            return None
        (nbytes,) = self._asked(made, Attribute.EXECUTION_PLAN_WORKSPACE_SIZE, Type.INT64, [0])
        return _Plan(made, nbytes) if nbytes <= LARGEST_WORKSPACE else None

    # ---- descriptors ----

    def _descriptor(self, kind: Kind, *attributes: tuple[Attribute, Type, Sequence[Any]], needs: tuple[Any, ...] = ()) -> c_void_p:
        """Create and finalise a descriptor with attributes; it keeps alive what it *needs*."""
        made = self._created(kind, needs)
        set_attribute = self._call["cudnnBackendSetAttribute"]
        for name, type_, values in attributes:
            set_attribute(made, name, type_, len(values), _array(type_, values))
        self._call["cudnnBackendFinalize"](made)
        return made

    def _created(self, kind: Kind, needs: tuple[Any, ...] = ()) -> c_void_p:
        made = c_void_p()
        self._call["cudnnBackendCreateDescriptor"](kind, byref(made))
        weakref.finalize(made, _destroy, self._call["cudnnBackendDestroyDescriptor"], c_void_p(made.value), needs).atexit = False
        return made

    def _count(self, descriptor: c_void_p, attribute: Attribute) -> int:
        count = c_int64()
        self._call["cudnnBackendGetAttribute"](descriptor, attribute, Type.BACKEND_DESCRIPTOR, 0, byref(count), None)
        return count.value

    def _asked(self, descriptor: c_void_p, attribute: Attribute, type_: Type, room: Sequence[Any]) -> list[Any]:
        """Return the values of an attribute, at most ``len(room)`` of them."""
        count, values = c_int64(), _array(type_, room)
        self._call["cudnnBackendGetAttribute"](descriptor, attribute, type_, len(room), byref(count), values)
        return list(values)[: count.value]


class _Plan(NamedTuple):
    """An execution plan, and the bytes of workspace that it requires."""

    descriptor: c_void_p
    workspace: int


@lru_cache(maxsize=64)
def cudnn_of(backend: Any) -> Cudnn | None:
    """Return cuDNN for a backend's device; warn and return None if the library is missing."""
    try:
        return Cudnn(libraries.load(libraries.CUDNN), backend)
    except libraries.Missing as error:
        switch_off("convolutions and pooling by cuDNN", str(error))
        return None


def _reach(array: Any) -> int:
    """Return the number of bytes from an array's first element to its last."""
    span: int = array.itemsize + sum((dim - 1) * stride for dim, stride in zip(array.shape, array.strides, strict=True))
    return span


def tensor_of(array: Any) -> Tensor:
    """Return the description of an array."""
    address: int = array.data.ptr
    strides = tuple([stride // array.itemsize for stride in array.strides])
    return Tensor(array.shape, strides, array.dtype.name, min(address & -address, ALIGNMENT))


def scalars(dtype: str) -> tuple[Any, Any]:
    """Return the scaling factors alpha = 1 and beta = 0, which overwrite the result, for tensors of a type."""
    scalar = c_double if dtype == "float64" else c_float
    return byref(scalar(1)), byref(scalar(0))


def between(like: Tensor, dtype: str) -> Tensor:
    """Return a virtual tensor shaped like another, for the intermediate between two operations."""
    return like._replace(dtype=dtype, aligned=0)


def computing_type(dtype: str) -> str:
    """Return the compute type for tensors of an element type."""
    return "float64" if dtype == "float64" else "float32"


def _destroy(destroy: Callable[[c_void_p], None], descriptor: c_void_p, needs: tuple[Any, ...]) -> None:
    """Destroy a descriptor; taking *needs* as an argument keeps these alive until then."""
    destroy(descriptor)


def _array(type_: Type, values: Sequence[Any]) -> ctypes.Array[Any]:
    made: ctypes.Array[Any] = (ELEMENTS.get(type_, c_int) * len(values))(*values)
    return made
