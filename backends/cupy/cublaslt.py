"""Matrix products by cuBLASLt: an algorithm is chosen when arrays are bound, and launched afterwards.

cuBLASLt expects column-major matrices.  Row-major matrices are passed as their transposes with the operands of ``out = left @ right``
swapped, as ``out.T = right.T @ left.T``; nothing is copied, nor is an operand or result that is transposed already.  Batches of matrices
have a constant stride; a batch of one matrix is broadcast.

Products accumulate in float32, or in float64 for float64.  Handle, workspace and algorithm are passed with each launch, so that launches
can be captured; algorithms are selected when arrays are bound, which never happens during capture.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable
from ctypes import POINTER, byref, c_double, c_float, c_int, c_int64, c_size_t, c_uint64, c_void_p, sizeof
from functools import lru_cache
from typing import Any, NamedTuple

from ...core.extension.compiled import switch_off
from . import libraries

WORKSPACE = 32 << 20
"""Bytes of workspace that an algorithm may use: NVIDIA's recommendation for Hopper."""

TYPES = {"float16": 2, "bfloat16": 14, "float32": 0, "float64": 1}
"""Element types by name: cudaDataType_t."""

COMPUTE_32F, COMPUTE_32F_FAST_TF32, COMPUTE_64F = 68, 77, 70
OP_T = 1
LAYOUT_BATCH_COUNT, LAYOUT_BATCH_STRIDE = 5, 6
DESC_TRANSA, DESC_TRANSB, DESC_EPILOGUE, DESC_BIAS_POINTER = 3, 4, 7, 8
EPILOGUE_DEFAULT, EPILOGUE_BIAS, EPILOGUE_RELU_BIAS, EPILOGUE_BGRADA, EPILOGUE_BGRADB = 1, 4, 6, 256, 512
PREFERENCE_WORKSPACE = 1
PREFERENCE_ALIGNMENTS = (5, 6, 7, 8)
ALIGNMENT = 256
"""Largest alignment in bytes that makes a difference to algorithms."""


class Algorithm(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t: an algorithm and its requirements."""

    _fields_ = (
        ("algo", c_uint64 * 8),
        ("workspace", c_size_t),
        ("state", c_int),
        ("waves", c_float),
        ("reserved", c_int * 4),
    )


SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasLtCreate": (POINTER(c_void_p),),
    "cublasLtDestroy": (c_void_p,),
    "cublasLtMatrixLayoutCreate": (POINTER(c_void_p), c_int, c_uint64, c_uint64, c_int64),
    "cublasLtMatrixLayoutDestroy": (c_void_p,),
    "cublasLtMatrixLayoutSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulDescCreate": (POINTER(c_void_p), c_int, c_int),
    "cublasLtMatmulDescDestroy": (c_void_p,),
    "cublasLtMatmulDescSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulPreferenceCreate": (POINTER(c_void_p),),
    "cublasLtMatmulPreferenceDestroy": (c_void_p,),
    "cublasLtMatmulPreferenceSetAttribute": (c_void_p, c_int, c_void_p, c_size_t),
    "cublasLtMatmulAlgoGetHeuristic": (*(c_void_p,) * 7, c_int, POINTER(Algorithm), POINTER(c_int)),
    "cublasLtMatmul": (*(c_void_p,) * 14, c_size_t, c_void_p),
}
"""Argument types of the library functions that are used."""


class Matrix(NamedTuple):
    """An array as cuBLASLt sees it: a column-major matrix, or a batch of them.

    Attributes:
        rows, columns: size of the matrix in memory.
        leading: leading dimension, in elements.
        apart: stride of the batch, in elements.
        turned: whether the operand is the transpose of the matrix in memory.
        dtype: name of the element type.
        aligned: alignment of the address in bytes.
    """

    rows: int
    columns: int
    leading: int
    apart: int
    turned: bool
    dtype: str
    aligned: int


class Problem(NamedTuple):
    """Key for selecting an algorithm: the batched product ``d = a @ b`` of *matrices* matrices, and its epilogue."""

    a: Matrix
    b: Matrix
    d: Matrix
    matrices: int
    compute: int
    epilogue: int
    vector_aligned: int


class Bias(NamedTuple):
    """Epilogue that adds a vector to each row of the product, followed by a ReLU if *is_cut*."""

    vector: Any
    is_cut: bool


class Sums(NamedTuple):
    """Epilogue that writes the sums of the right operand's columns to a vector."""

    vector: Any


Follows = Bias | Sums | None
"""Epilogue of a product, or none."""


class Cublaslt:
    """cuBLASLt with a handle and a workspace for one backend.

    Args:
        library: the loaded library.
        backend: the backend whose arrays are multiplied.
    """

    def __init__(self, library: libraries.Loaded, backend: Any) -> None:
        self._call = {name: library.function(name, types) for name, types in SIGNATURES.items()}
        self._matmul = self._call["cublasLtMatmul"]
        self._stream = libraries.current_stream()
        with backend.guard():
            self._handle = self._made("cublasLtCreate", "cublasLtDestroy")
            self._workspace = backend.allocate(WORKSPACE)
        self._plan = lru_cache(maxsize=4096)(self._planned)

    def bound(self, left: Any, right: Any, out: Any, follows: Follows = None) -> Callable[[], None] | None:
        """Return a function that computes ``out = left @ right``.

        Args:
            left: array ``(m, k)``, or a batch ``(count, m, k)``.
            right: array ``(k, n)``, or a batch.
            out: array ``(m, n)``, or a batch.
            follows: epilogue, whose vector has n elements; not supported for batches.

        Returns:
            The function; None if cuBLASLt does not support the product.
        """
        if out.size == 0:
            return None if isinstance(follows, Sums) else _nothing
        if left.shape[-1] == 0:
            return None
        placed = _placed(left, right, out, follows)
        if placed is None:
            return None
        problem, a, b, vector = placed
        plan = self._plan(problem)
        if plan is None:
            return None
        return self._bound_to(plan, a.data.ptr, b.data.ptr, out.data.ptr, None if vector is None else vector.data.ptr)

    def _bound_to(self, plan: _Plan, a: int, b: int, d: int, vector: int | None) -> Callable[[], None]:
        matmul, stream = self._matmul, self._stream
        operation = plan.description if vector is None else self._description(plan.problem, vector)
        target, space = (d, plan.d), (self._workspace.data.ptr, WORKSPACE)
        fixed = self._handle, operation, plan.one, a, plan.a, b, plan.b, plan.zero, *target, *target, plan.algorithm, *space

        def call() -> None:
            matmul(*fixed, stream())

        return call

    # ---- plans ----

    def _planned(self, problem: Problem) -> _Plan | None:
        matrices = [self._layout(matrix, problem.matrices) for matrix in (problem.a, problem.b, problem.d)]
        description = self._description(problem, problem.vector_aligned)
        found = self._chosen(problem, description, matrices)
        return None if found is None else _Plan(problem, description, matrices, found)

    def _layout(self, matrix: Matrix, count: int) -> c_void_p:
        made = self._made(
            "cublasLtMatrixLayoutCreate",
            "cublasLtMatrixLayoutDestroy",
            TYPES[matrix.dtype],
            matrix.rows,
            matrix.columns,
            matrix.leading,
        )
        if count > 1:
            set_attribute = self._call["cublasLtMatrixLayoutSetAttribute"]
            _set(set_attribute, made, LAYOUT_BATCH_COUNT, c_int(count))
            _set(set_attribute, made, LAYOUT_BATCH_STRIDE, c_int64(matrix.apart))
        return made

    def _description(self, problem: Problem, vector: int) -> c_void_p:
        scale = "float64" if problem.compute == COMPUTE_64F else "float32"
        made = self._made("cublasLtMatmulDescCreate", "cublasLtMatmulDescDestroy", problem.compute, TYPES[scale])
        set_attribute = self._call["cublasLtMatmulDescSetAttribute"]
        for attribute, matrix in ((DESC_TRANSA, problem.a), (DESC_TRANSB, problem.b)):
            if matrix.turned:
                _set(set_attribute, made, attribute, c_int(OP_T))
        if problem.epilogue != EPILOGUE_DEFAULT:
            _set(set_attribute, made, DESC_EPILOGUE, c_int(problem.epilogue))
        if vector:
            _set(set_attribute, made, DESC_BIAS_POINTER, c_void_p(vector))
        return made

    def _chosen(self, problem: Problem, description: c_void_p, matrices: list[c_void_p]) -> Algorithm | None:
        """Return the algorithm that the heuristics rank first; None if there is none."""
        preference = self._made("cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy")
        set_attribute = self._call["cublasLtMatmulPreferenceSetAttribute"]
        _set(set_attribute, preference, PREFERENCE_WORKSPACE, c_size_t(WORKSPACE))
        for attribute, matrix in zip(PREFERENCE_ALIGNMENTS, (problem.a, problem.b, problem.d, problem.d), strict=True):
            _set(set_attribute, preference, attribute, ctypes.c_uint32(matrix.aligned))
        a, b, d = matrices
        found, count = Algorithm(), c_int()
        ask = self._call["cublasLtMatmulAlgoGetHeuristic"]
        try:
            ask(self._handle, description, a, b, d, d, preference, 1, byref(found), byref(count))
        except RuntimeError:  # raised if no algorithm supports the problem
            return None
        return found if count.value and found.state == 0 else None

    def _made(self, create: str, destroy: str, *arguments: int) -> c_void_p:
        """Create a library object, which is destroyed when it is no longer referenced."""
        made = c_void_p()
        self._call[create](byref(made), *arguments)
        weakref.finalize(made, self._call[destroy], c_void_p(made.value)).atexit = False
        return made


class _Plan:
    """An algorithm for a problem, with its descriptors.

    Args:
        problem: the problem.
        description: descriptor of the operation, for products without a vector.
        matrices: layouts of operands and result.
        found: the algorithm.
    """

    def __init__(self, problem: Problem, description: c_void_p, matrices: list[c_void_p], found: Algorithm) -> None:
        self.problem, self.description = problem, description
        self.a, self.b, self.d = matrices
        scalar = c_double if problem.compute == COMPUTE_64F else c_float
        self.one, self.zero, self.algorithm = byref(scalar(1)), byref(scalar(0)), byref(found)


@lru_cache(maxsize=64)
def cublaslt_of(backend: Any) -> Cublaslt | None:
    """Return cuBLASLt for a backend's device; warn and return None if the library is missing."""
    try:
        return Cublaslt(libraries.load(libraries.CUBLASLT), backend)
    except libraries.Missing as error:
        switch_off("products by cuBLASLt", str(error))
        return None


def _nothing() -> None:
    """Compute a product without elements."""


def _set(set_attribute: Callable[..., None], target: c_void_p, attribute: int, value: Any) -> None:
    set_attribute(target, attribute, byref(value), sizeof(value))


def _placed(left: Any, right: Any, out: Any, follows: Follows) -> tuple[Problem, Any, Any, Any] | None:
    """Return the problem, its operands and its vector; None if cuBLASLt cannot express it."""
    d = _matrix(out)
    if d is None:
        return None
    if d.turned:  # out.T is row-major
        if isinstance(follows, Bias):
            return None
        left, right, d = right.swapaxes(-1, -2), left.swapaxes(-1, -2), d._replace(turned=False)
        epilogue = EPILOGUE_DEFAULT if follows is None else EPILOGUE_BGRADB
    else:
        epilogue = _epilogue(follows)
    a, b = _matrix(right), _matrix(left)
    count = out.shape[0] if out.ndim == 3 else 1
    if a is None or b is None or a.dtype != b.dtype or not _together(a.dtype, d.dtype):
        return None
    if (follows is not None and out.ndim > 2) or any(x.ndim == 3 and x.shape[0] not in (1, count) for x in (left, right)):
        return None
    vector = None if follows is None else follows.vector
    problem = Problem(a, b, d, count, _compute(a.dtype), epilogue, 0 if vector is None else _alignment(vector))
    return problem, right, left, vector


def _epilogue(follows: Follows) -> int:
    match follows:
        case Bias(_, is_cut):
            return EPILOGUE_RELU_BIAS if is_cut else EPILOGUE_BIAS
        case Sums():
            return EPILOGUE_BGRADA
        case None:
            return EPILOGUE_DEFAULT


def _compute(dtype: str) -> int:
    if dtype == "float64":
        return COMPUTE_64F
    return COMPUTE_32F_FAST_TF32 if dtype == "float32" and libraries.allows_tf32() else COMPUTE_32F


def _together(operands: str, result: str) -> bool:
    """Whether operands and result of these types can be combined: half-precision operands may have a float32 result."""
    return operands == result or (operands in ("float16", "bfloat16") and result == "float32")


def _matrix(array: Any) -> Matrix | None:
    """Return the transpose of an array as a column-major matrix; None if its strides do not allow it."""
    dtype = array.dtype.name
    if dtype not in TYPES or array.ndim not in (2, 3):
        return None
    rows, columns = array.shape[-2:]
    *stack, down, across = (stride // array.itemsize for stride in array.strides)
    apart = stack[0] if stack and array.shape[0] > 1 else 0
    placed = dtype, _alignment(array)
    if (columns == 1 or across == 1) and (rows == 1 or down >= columns):
        return Matrix(columns, rows, down if rows > 1 else columns, apart, False, *placed)
    if (rows == 1 or down == 1) and (columns == 1 or across >= rows):
        return Matrix(rows, columns, across if columns > 1 else rows, apart, True, *placed)
    return None


def _alignment(array: Any) -> int:
    """Return the largest power of two, up to ``ALIGNMENT``, that divides the array's address."""
    address: int = array.data.ptr
    return min(address & -address, ALIGNMENT)
