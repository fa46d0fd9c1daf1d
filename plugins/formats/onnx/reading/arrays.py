"""Arrays of ONNX while a graph is read: known numbers, sizes that depend on the data, or variables of ours.

ONNX knows no dynamic axes.  An :class:`Array` has ONNX's axes and says which of them, if any, is the batch axis of its variable.  The
operations here have NumPy's meaning on ONNX's axes; where all operands are known they are done at once, else they become operators.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from .....core.common.dtypes import is_float, limits_of
from .....core.common.shape import FreeDimension
from .....core.graph.variable import Constant, Parameter, Variable
from .....core.types.axis import Axis
from ....ops import arithmetic, batch, identity, shaping, slicing
from ....ops.comparison import element_select, less, not_equal
from ....ops.elementary import ceil, floor
from ....ops.product import times
from ....ops.reduction import reduce_sum
from .sizes import Dim, Quotient, Size, Undecided, divided_exactly, product, quotient, without_rest

LARGEST = 3 * 2**28
"""Bytes of all arrays that are computed while a file is read."""
MOST_AXES = 32
COMPUTED: ContextVar[list[int]] = ContextVar("COMPUTED")
"""The bytes of the arrays that have been computed for the file that is being read."""


class Unsupported(ValueError):
    """Something in a graph that is not read; the message is without the node, which is added where it is known."""


class Array:
    """An array of a graph.

    Attributes:
        dims: ONNX's shape; what is not known is a :class:`Size`.
        dtype: NumPy's type that belongs to ONNX's element type.  Variables are floats all the same.
        known: the numbers, or of integers that depend on the data the sizes, in an array of objects; None where there is a variable.
        variable: the variable; None where the numbers are known, unless an operator has asked for it.
        batch: which of ONNX's axes is the batch axis of the variable; None if the variable has no dynamic axes.
        trainable: whether the numbers are a parameter.
        name: what a parameter or constant of these numbers is called.
        shared: whether the parameter is used in several forms: then it has the form that it has here, and others are computed from it.
        apart: where the first axis is several in one, the array with these apart; what works on the last axes alone goes on with it, so
            that they can be told apart again.
    """

    def __init__(
        self,
        dims: Sequence[Dim],
        dtype: Any,
        known: Any = None,
        variable: Variable | None = None,
        batch: int | None = None,
        trainable: bool = False,
        name: str = "",
    ) -> None:
        self.dims, self.dtype, self.known, self.variable, self.batch = tuple(dims), np.dtype(dtype), known, variable, batch
        self.trainable, self.name = trainable, name
        if len(self.dims) > MOST_AXES:
            raise Unsupported(f"an array of {len(self.dims)} axes; {MOST_AXES} are the most")
        self.shared = False
        self.apart: Array | None = None
        self._moved: dict[Any, Array] = {}
        self._source: Callable[[], Variable] | None = None

    def __repr__(self) -> str:
        return f"{self.dtype.name}[{' x '.join(map(str, self.dims))}]"

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def is_known(self) -> bool:
        """Whether it is numbers, or sizes, and no variable."""
        return self.known is not None

    @property
    def numbers(self) -> Any:
        """The numbers.

        Raises:
            Unsupported: they, or how many they are, depend on the data.
        """
        kept = self.kept
        if not self.is_concrete:
            raise Unsupported(f"an operand of the shape {list(self.dims)} depends on the data and must be known when the model is read")
        return np.broadcast_to(kept, tuple(int(dim) for dim in self.dims))

    @property
    def kept(self) -> Any:
        """The numbers, of equal ones along an axis whose size depends on the data only one.

        Raises:
            Unsupported: they depend on the data.
        """
        if self.known is None:
            raise Unsupported("an operand is computed from the data that must be known when the model is read")
        if self.known.dtype == object:
            raise Unsupported(
                f"an operand depends on the sizes of the data ({self.known.tolist()}) and must be known when the model is read"
            )
        return self.known

    @property
    def sizes(self) -> list[Any]:
        """The elements of a list of integers, which may be sizes."""
        if self.known is None:
            raise Unsupported("a shape is computed from the data, and not from shapes alone")
        return [one if isinstance(one, Size) else int(one) for one in self.known.reshape(-1).tolist()]

    @property
    def is_concrete(self) -> bool:
        """Whether all sizes are numbers."""
        return not any(isinstance(dim, Size) for dim in self.dims)

    @property
    def is_float(self) -> bool:
        return is_float(self.dtype)

    @property
    def storage(self) -> Any:
        """The element type of the variable; None for known integers, which adapt to others."""
        if self.variable is not None:
            return np.dtype(self.variable.dtype)
        return self.dtype if self.is_float else None

    def held(self, storage: Any = None) -> Variable:
        """The variable; of known numbers a parameter or constant.

        Args:
            storage: its element type; that which it has, or float32, where None.

        Raises:
            Unsupported: there are integers that floats do not hold, or sizes.
        """
        if self.variable is None:
            own = self.dtype if self.is_float else np.dtype(np.float32)
            self.variable = self._leaf(own if storage is None or self.shared else storage)
        if storage is None or self.variable.dtype == storage:
            return self.variable
        if self.is_known and not self.trainable:
            return self._leaf(storage)
        return identity.cast(self.variable, storage).output

    def _leaf(self, storage: Any) -> Variable:
        numbers = self.kept
        _check_size(numbers.shape, numbers.itemsize)  # equal numbers take no memory yet
        if not self.is_float:
            storage = exact_type(numbers, storage)
        if self._source is not None:
            return self._source()
        storage = np.dtype(storage).type
        numbers = numbers.astype(storage, copy=False)
        if self.trainable:
            return Parameter(init=numbers, dtype=storage, name=self.name)
        return Constant(numbers, dtype=storage, name=self.name)

    def moved(self, move: Move, *arguments: Any, dims: Sequence[Any]) -> Array:
        """Known numbers in another shape or order, or some of them; trainable as they were.

        The same of a parameter is the same parameter, and where it is shared is computed from it.
        """
        key = move, arguments
        if key not in self._moved:
            numbers = move.numbers(self.known, *arguments)
            if numbers.dtype == object:
                return known(numbers, dims=dims)
            found = Array(dims, numbers.dtype, numbers, trainable=self.trainable and is_float(numbers.dtype), name=self.name)
            if not found.trainable:
                return found
            if self.shared:
                found.shared, found._source = True, lambda: move.variable(self.held(), *arguments).output
            self._moved[key] = found
        return self._moved[key]

    def __add__(self, other: Any) -> Array:
        return elementwise(np.add, arithmetic.plus, self, wrap(other, self))

    def __sub__(self, other: Any) -> Array:
        return elementwise(np.subtract, arithmetic.minus, self, wrap(other, self))

    def __rsub__(self, other: Any) -> Array:
        return wrap(other, self) - self

    def __mul__(self, other: Any) -> Array:
        return elementwise(np.multiply, arithmetic.element_times, self, wrap(other, self))

    def __truediv__(self, other: Any) -> Array:
        return elementwise(np.true_divide, arithmetic.element_divide, self, wrap(other, self), dtype=self.dtype)

    def __rtruediv__(self, other: Any) -> Array:
        return wrap(other, self) / self

    def __neg__(self) -> Array:
        return elementwise(np.negative, arithmetic.negate, self)

    __radd__, __rmul__ = __add__, __mul__


class Move(NamedTuple):
    """What brings elements to other places.

    Attributes:
        numbers: the operation on arrays of NumPy.
        variable: the operation on variables.
    """

    numbers: Callable[..., Any]
    variable: Callable[..., Any]


def _slice_numbers(numbers: Any, axis: int, first: int, count: int, step: int) -> Any:
    end = first + count * step
    return numbers[(*[slice(None)] * axis, slice(first, None if end < 0 else end, step))]


def _slice_variable(variable: Any, axis: int, first: int, count: int, step: int) -> Any:
    last = first + (count - 1) * step
    return slicing.slice(variable, axis, min(first, last), max(first, last) + 1, step)


TRANSPOSED = Move(np.transpose, shaping.transpose)
RESHAPED = Move(np.reshape, shaping.reshape)
SLICED = Move(_slice_numbers, _slice_variable)
CAST = Move(np.ndarray.astype, identity.cast)


def exact_type(numbers: Any, storage: Any) -> Any:
    """The least type of floats, from *storage* on, that holds whole numbers exactly.

    Raises:
        Unsupported: there is none.
    """
    largest = max((abs(int(numbers.max())), abs(int(numbers.min()))), default=0) if numbers.size else 0
    least = np.dtype(storage)
    for kind in (least, np.dtype(np.float32), np.dtype(np.float64)):
        if kind.itemsize >= least.itemsize and largest <= 2 / float(limits_of(kind).eps):
            return kind
    raise Unsupported(f"the whole number {largest} is larger than what floats hold exactly, 2**53; such are not computed with")


def known(value: Any, dtype: Any = None, dims: Sequence[Dim] | None = None) -> Array:
    """An array of numbers, or of sizes."""
    array = np.asarray(value)
    if array.dtype == object:
        if not any(isinstance(one, Size) for one in array.reshape(-1).tolist()):
            array = array.astype(np.int64)
        return Array(array.shape if dims is None else dims, np.int64, array)
    array = array if dtype is None else array.astype(dtype)
    return Array(array.shape if dims is None else dims, array.dtype, array)


def wrap(value: Any, like: Array) -> Array:
    """*value*, or where it is a number that number with the element type of *like*."""
    return value if isinstance(value, Array) else known(np.asarray(value, like.dtype))


def of_sizes(values: Sequence[Any]) -> Array:
    """The list of integers, which may be sizes."""
    if any(isinstance(one, Size) for one in values):
        made = np.empty(len(values), object)
        made[:] = values
        return known(made)
    return known(np.array(values, np.int64))


def counting(size: int) -> Array:
    """The numbers from 0 up to a size."""
    check_room([size])
    return known(np.arange(size))


def check_room(dims: Sequence[Any], itemsize: int = 8) -> None:
    """Refuse arrays that are too large to be computed while a file is read, alone or with those computed before."""
    COMPUTED.get()[0] += _check_size(dims, itemsize)
    _check_size(dims, itemsize, COMPUTED.get()[0])


def _check_size(dims: Sequence[Any], itemsize: int, least: int = 0) -> int:
    """The bytes of an array; refused if they, or the bytes that are taken in any case, are too many."""
    size: int = math.prod(int(dim) for dim in dims) * itemsize
    if max(size, least) > LARGEST:
        shape = f"{list(dims)!s:.80}"
        raise Unsupported(f"an array of the shape {shape} is computed from numbers in the file; such may take {LARGEST} bytes")
    return size


def made(variable: Any, dims: Sequence[Any], dtype: Any, at: int | None = None) -> Array:
    """An array of a variable; sizes that the variable knows are taken from it."""
    variable = getattr(variable, "output", variable)
    dtype = np.dtype(dtype)
    if is_float(dtype) and variable.dtype is not None and np.dtype(variable.dtype) != dtype:
        variable = identity.cast(variable, dtype).output
    shape = list(variable.shape)
    if at is not None:
        shape.insert(at, FreeDimension)
    if len(shape) != len(dims):
        raise Unsupported(f"the shape {list(dims)} was expected, and {list(variable.shape)} found")
    found = [int(size) if isinstance(dim, Size) and size >= 0 else dim for dim, size in zip(dims, shape, strict=True)]
    result = Array(found, dtype, variable=variable, batch=at)
    note_sizes(result)
    return result


def note_sizes(x: Array) -> None:
    """Note where sizes that depend on the data can be taken from."""
    for axis, dim in enumerate(x.dims):
        if isinstance(dim, Size):
            SOURCES.get().setdefault(dim, (x, axis))


def fresh(what: str = "size") -> Size:
    """A size that nothing is known of."""
    fresh.count += 1  # type: ignore[attr-defined]
    return Size.symbol(f"{what}#{fresh.count}")  # type: ignore[attr-defined]


fresh.count = 0  # type: ignore[attr-defined]


# ---- the batch axis ------------------------------------------------------------------------------


def static(x: Array) -> Array:
    """The array as a variable without dynamic axes."""
    if x.batch is None:
        return x
    at = x.batch
    rest = [*x.dims[:at], *x.dims[at + 1 :]]
    dims = [x.dims[at], *rest]
    variable = batch.unpack_batch(x.held()).output
    if not any(isinstance(dim, Size) for dim in dims):
        variable = shaping.reshape(variable, [int(dim) for dim in dims]).output
    front = made(variable, dims, x.dtype)
    order = list(range(1, len(dims)))
    order.insert(at, 0)
    return transpose(front, order)


def batched(x: Array, axis: int = 0) -> Array:
    """The array as a variable of which the batch axis is *axis* of ONNX's."""
    if x.batch == axis:
        return x
    if x.batch is not None:
        x = static(x)
    if not x.rank:
        raise Unsupported("a number has no axis that could be the batch axis")
    order = [axis, *(other for other in range(x.rank) if other != axis)]
    front = transpose(x, order)
    return made(batch.to_batch(front.held()), x.dims, x.dtype, axis)


def rebatched(x: Array, *like: Array) -> Array:
    """*x* with its first axis as the batch axis, where that is what it is for one of the operands that it was made of."""
    if x.batch is None and not x.is_known and x.rank and any(one.batch is not None and one.dims[one.batch] == x.dims[0] for one in like):
        return batched(x)
    return x


# ---- element by element --------------------------------------------------------------------------


def broadcast_dims(shapes: Sequence[Sequence[Any]]) -> list[Any]:
    """The shape that several are broadcast to.

    Raises:
        Unsupported: they cannot be.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    result: list[Any] = [1] * rank
    for shape in shapes:
        for axis, dim in enumerate(shape, rank - len(shape)):
            if result[axis] == 1 or isinstance(result[axis], Size):
                result[axis] = dim if dim != 1 else result[axis]
            elif dim != 1 and not isinstance(dim, Size) and dim != result[axis]:
                raise Unsupported(f"the shapes {' and '.join(str(list(one)) for one in shapes)} do not broadcast")
    return result


def elementwise(compute: Callable[..., Any], operator: Callable[..., Any], *operands: Array, dtype: Any = None) -> Array:
    """An operation on elements that are lined up by broadcasting.

    Args:
        compute: the operation on arrays of NumPy.
        operator: the operation on variables.
        operands: the operands.
        dtype: element type of the result; that of the last operand where None.
    """
    kind = np.dtype(dtype or operands[-1].dtype)
    if not (all(one.is_known for one in operands) and not any(one.is_float for one in operands)):
        operands = tuple(counted(one) for one in operands)
    if all(one.is_known for one in operands):
        return fold(compute, *operands, dtype=kind)
    dims = broadcast_dims([one.dims for one in operands])
    apart = [one for one in operands if one.apart is not None]
    if len(apart) == 1 and all(one is apart[0] or one.rank < apart[0].rank for one in operands):
        found = elementwise(compute, operator, *(one.apart or one for one in operands), dtype=kind)
        return _together(found, dims[0])
    types = [one.storage for one in operands if one.storage is not None]
    storage = max(types, key=lambda one: one.itemsize)
    for one in operands:
        if one.is_known and not one.is_float:
            storage = exact_type(one.kept, storage)
    lined, at = lined_up(operands)
    return made(operator(*(one.held(storage) for one in lined)), dims, kind, None if at is None else at + len(dims))


def counted(x: Array) -> Array:
    """A number that depends on the sizes of the data as a variable; other arrays as they are."""
    if x.known is None or x.known.dtype != object or x.known.size != 1:
        return x
    total: Any = None
    for names, factor in x.known.reshape(-1)[0].terms.items():
        term: Any = known(np.array(factor, x.dtype))
        for name in names:
            ones = cast(zeros_along(Size.symbol(name)), x.dtype if x.is_float else np.float32) + 1.0
            ones = static(ones) if ones.rank == 1 else ones
            place = -1 if ones.batch is None else ones.rank - 2
            count = made(reduce_sum(ones.held(), place, keepdims=False), ones.dims[:-1], ones.dtype, ones.batch)
            count = reshape(slice_(static(count), 0, 0, 1), []) if count.rank else count
            term = elementwise(np.multiply, arithmetic.element_times, term, Array((), x.dtype, variable=count.held()))
        total = term if total is None else total + term
    return reshape(total, x.dims)


def fold(compute: Callable[..., Any], *operands: Array, dtype: Any) -> Array:
    """An operation on known numbers, done at once."""
    dims = broadcast_dims([one.dims for one in operands])
    shape = broadcast_dims([one.known.shape for one in operands])
    check_room(shape, dtype.itemsize)
    try:
        with np.errstate(all="ignore"):
            found = compute(*(one.known for one in operands))
    except Undecided as error:
        raise Unsupported(str(error)) from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise Unsupported(f"numbers in the file cannot be computed with: {error}") from None
    found = np.asarray(found)
    if found.dtype == object and dtype.kind not in "iu":
        found = found.astype(dtype)
    result = known(found, None if found.dtype == object else dtype)
    result.dims = tuple(dims) if any(isinstance(dim, Size) for dim in dims) else result.dims
    return result


def lined_up(operands: Sequence[Array]) -> tuple[list[Array], int | None]:
    """The operands with one batch axis, and which that is, counted from the last axis."""
    places = {one.batch - one.rank for one in operands if one.batch is not None}
    if not places:
        return list(operands), None
    if len(places) > 1:
        return [static(one) for one in operands], None
    (at,) = places
    result = []
    for one in operands:
        if one.batch is None and one.rank >= -at:
            axis = one.rank + at
            if one.dims[axis] == 1 or (one.is_known and one.known.shape[axis] == 1):
                one = _plain(one)
                one = reshape(one, [*one.dims[:axis], *one.dims[axis + 1 :]])
            else:
                one = batched(one, axis)
        result.append(_plain(one))
    return result, at


def _plain(one: Array) -> Array:
    """Known numbers without the axes along which they are equal for all sizes of the data."""
    return known(one.known) if one.is_known and one.known.shape != one.dims else one


# ---- shapes --------------------------------------------------------------------------------------


def transpose(x: Array, order: Sequence[int]) -> Array:
    """The array with its axes in another order."""
    order = [int(axis) % max(x.rank, 1) for axis in order]
    if sorted(order) != list(range(x.rank)):
        raise Unsupported(f"the order {order} does not name each of the {x.rank} axes once")
    dims = [x.dims[axis] for axis in order]
    if x.is_known:
        return x.moved(TRANSPOSED, tuple(order), dims=dims)
    if order == sorted(order):
        return x
    if x.batch is None:
        return made(shaping.transpose(x.held(), order), dims, x.dtype)
    left = [axis for axis in order if axis != x.batch]
    ranks = [axis - (axis > x.batch) for axis in left]
    variable = x.held() if ranks == sorted(ranks) else shaping.transpose(x.held(), ranks)
    return made(variable, dims, x.dtype, order.index(x.batch))


def reshape(x: Array, dims: Sequence[Any]) -> Array:
    """The array in another shape; one size may be -1."""
    dims = _complete(x, list(dims))
    if tuple(dims) == x.dims and not x.is_known:
        return x
    if x.apart is not None:
        x = x.apart
        if tuple(dims) == x.dims:
            return x
    if x.is_known:
        if x.known.shape == x.dims:
            if any(isinstance(dim, Size) for dim in dims) or product(dims) != x.known.size:
                raise Unsupported(f"the shape {list(x.dims)} has another number of elements than {list(dims)}")
            return x.moved(RESHAPED, tuple(dims), dims=dims)
        if x.known.size == 1:
            return x.moved(RESHAPED, (1,) * len(dims), dims=dims)
        x = materialised(x)
    merged = _merged(x, dims)
    if x.batch is None:
        result = _regrouped(x, dims)
        result.apart = merged
        return result
    at = _kept(x, dims)
    if at is None:
        result = reshape(static(x), dims)
        result.apart = merged
        return rebatched(result, x) if merged is None else result
    if not _is_regular([*x.dims[: x.batch], *x.dims[x.batch + 1 :]], [*dims[:at], *dims[at + 1 :]]):
        return rebatched(reshape(static(x), dims), x)
    old, new = [*x.dims[: x.batch], *x.dims[x.batch + 1 :]], [*dims[:at], *dims[at + 1 :]]
    return made(_reshaped(x.held(), old, new), dims, x.dtype, at)


def _complete(x: Array, dims: list[Any]) -> list[Any]:
    """The sizes with that in place of -1."""
    open_axes = [axis for axis, dim in enumerate(dims) if not isinstance(dim, Size) and dim == -1]
    if len(open_axes) > 1 or any(not isinstance(dim, Size) and dim < -1 for dim in dims):
        raise Unsupported(f"the shape {dims} is none")
    if open_axes:
        total, others = product(x.dims), product(dim for axis, dim in enumerate(dims) if axis != open_axes[0])
        found = quotient(total, others) if not (isinstance(others, int) and others == 0) else None
        if found is None:
            found = divided_exactly(without_rest(total), without_rest(others))
        if found is None and not isinstance(total, Size) and not isinstance(others, Size):
            raise Unsupported(f"the shape {list(x.dims)} has another number of elements than {dims}")
        dims[open_axes[0]] = fresh() if found is None else found
    return dims


def _merged(x: Array, dims: Sequence[Any]) -> Array | None:
    """What a shape leaves of an array if only its first axis were not several in one; None where that is not so."""
    factors = [factor for dim in x.dims for factor in _factors(dim)]
    for count in range(2, len(factors) + 1):
        if dims and product(factors[:count]) == dims[0] and sum(isinstance(one, Size) for one in factors[:count]) > 1:
            try:
                return reshape(x, [*factors[:count], *dims[1:]])
            except Unsupported:
                return None
    return None


def _factors(dim: Any) -> list[Any]:
    """The symbols that a size is a multiple of, and what multiple."""
    if not isinstance(dim, Size) or len(dim.terms) != 1:
        return [dim]
    ((names, factor),) = dim.terms.items()
    return [*(Size.symbol(name) for name in names), *([factor] if factor != 1 else [])]


def _together(found: Array, merged: Any) -> Array:
    """An array with its first axes in one again."""
    rank = next(rank for rank in range(1, found.rank + 1) if product(found.dims[:rank]) == merged)
    return reshape(found, [merged, *found.dims[rank:]])


def _kept(x: Array, dims: Sequence[Any]) -> int | None:
    """Which axis of a new shape is the batch axis, if it stays one."""
    assert x.batch is not None
    before = product(x.dims[: x.batch])
    for at, dim in enumerate(dims):
        if dim == x.dims[x.batch] and product(dims[:at]) == before:
            return at
    return None


def _runs(old: Sequence[Any], new: Sequence[Any]) -> list[tuple[slice, slice]]:
    """The parts of two shapes that have as many elements as one another, each as short as can be told."""
    if any(not isinstance(dim, Size) and dim == 0 for dim in [*old, *new]):
        return [(slice(0, len(old)), slice(0, len(new)))]
    ends = {without_rest(product(old[:end])): end for end in range(len(old) + 1)}
    cuts = [(0, 0)]
    for end in range(1, len(new)):
        there = ends.get(without_rest(product(new[:end])), 0)
        if there > cuts[-1][0] and new[end] != 1:
            cuts.append((there, end))
    if cuts[-1][0] == len(old) and len(cuts) > 1:
        cuts.pop()
    cuts.append((len(old), len(new)))
    return [(slice(a, c), slice(b, d)) for (a, b), (c, d) in pairwise(cuts)]


def _is_regular(old: Sequence[Any], new: Sequence[Any]) -> bool:
    """Whether each part of a new shape has at most one size that depends on the data, other than those that stay."""
    return all(old[a] == new[b] or sum(isinstance(dim, Size) for dim in new[b]) < 2 for a, b in _runs(list(old), list(new)))


def _regrouped(x: Array, dims: Sequence[Any]) -> Array:
    """An array without a batch axis in another shape, which may divide an axis into several whose sizes depend on the data."""
    from .dividing import divided

    if _is_regular(x.dims, dims):
        return made(_reshaped(x.held(), x.dims, dims), dims, x.dtype)
    whole: list[Any] = []
    divisions = []
    for a, b in _runs(x.dims, dims):
        free = [axis for axis in range(b.start, b.stop) if isinstance(dims[axis], Size)]
        if x.dims[a] == tuple(dims[b]) or len(free) < 2:
            whole += dims[b]
            continue
        parts = slice(free[0], free[-1] + 1)
        whole += dims[b.start : parts.start]
        divisions.append((len(whole), dims[parts]))
        whole += [product(dims[parts]), *dims[parts.stop : b.stop]]
    found = made(_reshaped(x.held(), x.dims, whole), whole, x.dtype)
    for axis, parts_of in reversed(divisions):
        found = divided(found, axis, parts_of)
    return found


def _reshaped(variable: Any, old: Sequence[Any], new: Sequence[Any]) -> Any:
    """A variable of static shape *old* in the shape *new*; the axes that both have are left alone."""
    old, new, rank = list(old), list(new), len(old)
    for a, b in reversed(_runs(old, new)):
        if old[a] == new[b]:
            continue
        parts = [-1 if isinstance(dim, Size) else dim for dim in new[b]]
        if parts.count(-1) > 1:
            raise Unsupported(f"the shape {new} has several sizes that depend on the data in other ways than {old}")
        variable = shaping.reshape(variable, tuple(parts), begin_axis=a.start, end_axis=_end(a.stop, rank))
        rank += len(parts) - (a.stop - a.start)
    return variable


def _end(axis: int, rank: int) -> Any:
    return Axis.new_leading_axis() if axis == rank else axis


def squeeze(x: Array, axes: Sequence[int] | None) -> Array:
    """The array without axes of size 1; all such where *axes* is None."""
    gone = {axis for axis, dim in enumerate(x.dims) if dim == 1} if axes is None else {normal(axis, x.rank) for axis in axes}
    wrong = [x.dims[axis] for axis in gone if x.dims[axis] != 1 and not isinstance(x.dims[axis], Size)]
    if wrong:
        raise Unsupported(f"an axis of {wrong[0]} elements cannot be taken away")
    return reshape(x, [dim for axis, dim in enumerate(x.dims) if axis not in gone])


def unsqueeze(x: Array, axes: Sequence[int]) -> Array:
    """The array with new axes of size 1, which the result has at *axes*."""
    rank = x.rank + len(axes)
    new = {normal(axis, rank) for axis in axes}
    if len(new) < len(axes):
        raise Unsupported(f"the axes {list(axes)} name one twice")
    dims = iter(x.dims)
    found = [1 if axis in new else next(dims) for axis in range(rank)]
    if x.batch is not None and not x.is_known:
        places = [axis for axis in range(rank) if axis not in new]
        at = places[x.batch]
        old, wanted = [*x.dims[: x.batch], *x.dims[x.batch + 1 :]], [*found[:at], *found[at + 1 :]]
        return made(_reshaped(x.held(), old, wanted), found, x.dtype, at)
    return reshape(x, found)


def normal(axis: Any, rank: int) -> int:
    """The number of an axis, from the first one on.

    Raises:
        Unsupported: there is no such axis.
    """
    axis = int(axis)
    if not -rank <= axis < rank:
        raise Unsupported(f"the axis {axis} is none of {rank}")
    return axis % rank


def expand(x: Array, dims: Sequence[Any]) -> Array:
    """The array broadcast to a shape."""
    wanted = broadcast_dims([x.dims, dims])
    if x.is_known:
        shape = [dim if not isinstance(dim, Size) else 1 for dim in wanted]
        shape = broadcast_dims([x.known.shape, shape])
        check_room(shape, x.dtype.itemsize)
        return Array(wanted, x.dtype, np.broadcast_to(x.known, shape), trainable=False, name=x.name)
    if tuple(wanted) == x.dims:
        return x
    if not any(isinstance(dim, Size) for dim in wanted):
        check_room(wanted, x.dtype.itemsize)
        ones = known(
            np.ones(
                [size if own != size else 1 for own, size in zip([1] * (len(wanted) - x.rank) + [*x.dims], wanted, strict=True)], x.dtype
            )
        )
        return x * ones
    grown = [1 if own == size else size for own, size in zip([1] * (len(wanted) - x.rank) + [*x.dims], wanted, strict=True)]
    return x * materialised(Array(grown, x.dtype, np.ones([1] * len(grown), x.dtype)))


# ---- sizes as data -------------------------------------------------------------------------------


MOST_REPEATED = 1024
"""How many times a size may be in another that arrays are made of."""
SOURCES: ContextVar[dict[Size, tuple[Array, int]]] = ContextVar("SOURCES")
"""An array, and its axis, that has a size, by the sizes that depend on the data in the graph that is being read."""


def whole(x: Array) -> Array:
    """The array, as a variable where it is equal numbers whose count depends on the data."""
    return materialised(x) if x.is_known and x.known.shape != x.dims else x


def materialised(x: Array) -> Array:
    """Known numbers of which sizes depend on the data, as a variable that has these sizes."""
    shape = [1 if isinstance(dim, Size) else dim for dim in x.dims]
    result = Array(broadcast_dims([x.known.shape, shape]), x.dtype, np.broadcast_to(x.known, broadcast_dims([x.known.shape, shape])))
    for axis, dim in enumerate(x.dims):
        if isinstance(dim, Size):
            result = result + zeros_of(dim, axis - x.rank, x.dtype)
    return result


def zeros_of(size: Size, axis: int, dtype: Any) -> Array:
    """Zeros as many as a size, along an axis that is counted from the last one."""
    zeros = zeros_along(size)
    if zeros.rank == 2:
        zeros = reshape(slice_(static(zeros), 0, 0, 1), [size])
    return unsqueeze(cast(zeros, dtype), list(range(1, -axis)))


def numbers_to(size: Any) -> Array:
    """The numbers from 0 up to a size that depends on the data."""
    from .reductions import running_sum

    ones = cast(zeros_along(size), np.float32) + 1.0
    counts = running_sum(ones if ones.rank == 2 else static(ones), -1, exclusive=True, reverse=False)
    if counts.rank == 2:
        counts = reshape(slice_(static(counts), 0, 0, 1), [size])
    return Array(counts.dims, np.int64, variable=counts.held(), batch=counts.batch)


def zeros_along(size: Size) -> Array:
    """Zeros as many as a size, for each sample where the size is that of an input with a batch axis.

    Raises:
        Unsupported: no array has this size, or one that it can be computed from.
    """
    if size not in SOURCES.get():
        return _zeros_of_terms(size)
    x, place = SOURCES.get()[size]
    for other in range(x.rank):
        if other not in (place, x.batch):
            x = slice_(x, other, 0, 1)
    if x.batch in (None, place):
        flat = reshape(x, [size])
    else:
        others = [axis for axis in range(x.rank) if axis not in (x.batch, place)]
        flat = reshape(transpose(x, [x.batch, place, *others]), [x.dims[x.batch], size])
    return made(identity.zeros_like(flat.held()), flat.dims, x.dtype if x.is_float else flat.held().dtype, flat.batch)


def _zeros_of_terms(size: Size) -> Array:
    """Zeros as many as a sum of sizes, of which some may be quotients."""
    parts, less = [], -min(size.terms.get((), 0), 0)
    for names, count in size.terms.items():
        one = Size({names: 1}) if names else None
        name: Any = names[0] if len(names) == 1 else ""
        if one is None:
            check_room([max(count, 0)])
            parts += [known(np.zeros(count, np.float32))] if count > 0 else []
        elif (
            count < 0
            or count > MOST_REPEATED
            or (one not in SOURCES.get() and not (isinstance(name, Quotient) and isinstance(name.divisor, int)))
        ):
            raise Unsupported(f"an array of the size {size} is made of nothing; only sizes that other arrays have can be such")
        elif one in SOURCES.get():
            parts += [_in_a_row(zeros_along(one))] * count
        else:
            parts += [slice_(_in_a_row(zeros_along(name.value)), 0, name.divisor - 1, None, name.divisor)] * count
    whole = concat(parts, 0)
    return slice_(whole, 0, less, None) if less else whole


def _in_a_row(zeros: Array) -> Array:
    """Zeros along a size without those of other samples."""
    return reshape(slice_(static(zeros), 0, 0, 1), zeros.dims[1:]) if zeros.rank == 2 else static(zeros)


# ---- parts ---------------------------------------------------------------------------------------


def slice_(x: Array, axis: int, begin: Any, end: Any, step: int = 1) -> Array:
    """A range of elements along an axis, as NumPy's ``[begin:end:step]``."""
    dim = x.dims[axis]
    begin, end = _from_start(begin, dim), _from_start(end, dim)
    if step == 1 and not (_is_decided(begin, dim) and _is_decided(end, dim)):
        return _slice_of_sizes(x, axis, 0 if begin is None else begin, dim if end is None else end)
    if isinstance(dim, Size):
        return _slice_of_free(x, axis, begin, end, step)
    turns = range(*slice(begin, end, step).indices(dim))
    first, count = turns.start, len(turns)
    dims = [*x.dims[:axis], count, *x.dims[axis + 1 :]]
    if x.is_known and x.known.shape[axis] == dim:
        return x.moved(SLICED, axis, first, count, step, dims=dims)
    if count == dim and step == 1:
        return x
    if x.is_known:  # equal numbers
        return known(x.known, dims=dims)
    if not count:
        return known(np.zeros([0 if isinstance(one, Size) else one for one in dims], x.dtype), dims=dims)
    if x.batch == axis:
        return slice_(static(x), axis, begin, end, step)
    place = axis - (x.batch is not None and axis > x.batch)
    return made(_slice_variable(x.held(), place, first, count, step), dims, x.dtype, x.batch)


def _slice_of_free(x: Array, axis: int, begin: Any, end: Any, step: int) -> Array:
    """A range along an axis whose size depends on the data."""
    dim: Any = x.dims[axis]
    begin, end = _bound(begin, dim, 0 if step > 0 else None), _bound(end, dim, None)
    if step < 0 and (step != -1 or begin is not None or end is not None):
        raise Unsupported(f"a slice with the step {step} of an axis whose size depends on the data")
    if step == 1 and begin == 0 and end is None:
        return x
    count: Any = dim if end is None else (end if end >= 0 else dim + end)
    if begin is not None:
        count = count - (begin if begin >= 0 else dim + begin)
    if abs(step) != 1:
        count = (count + (abs(step) - 1)) // abs(step)
    dims = [*x.dims[:axis], count, *x.dims[axis + 1 :]]
    if x.is_known:
        return known(x.known, dims=dims)
    if x.batch == axis:
        return _slice_of_free(static(x), axis, begin, end, step)
    place = axis - (x.batch is not None and axis > x.batch)
    return made(slicing.slice(x.held(), place, begin or 0, 0 if end is None else end, step), dims, x.dtype, x.batch)


def _slice_of_sizes(x: Array, axis: int, begin: Any, end: Any) -> Array:
    """A range whose bounds are sizes of the data, other than that of the axis: the elements of these numbers."""
    dim: Any = x.dims[axis]
    begin, end = (dim + one if isinstance(one, int) and one < 0 else one for one in (begin, end))
    count = (dim if isinstance(end, int) and end >= 2**31 - 1 else end) - begin
    if not isinstance(count, Size):
        raise Unsupported(f"a slice from {begin} to {end} of an axis of {dim} elements")
    return take(x, numbers_to(count) + of_sizes([begin]), axis)


def _from_start(value: Any, dim: Any) -> Any:
    """A bound of a slice, counted from the start where it is a size less than 0."""
    is_negative = isinstance(value, Size) and all(factor < 0 for names, factor in value.terms.items() if names)
    return dim + value if is_negative else value


def _is_decided(bound: Any, dim: Any) -> bool:
    """Whether it is known how far a bound of a slice is from the start or the end of the axis."""
    return not isinstance(bound, Size) or not isinstance(bound - dim, Size)


def _bound(value: Any, dim: Size, missing: Any) -> Any:
    """A bound of a slice; None where it is the end."""
    if value is None:
        return missing
    if isinstance(value, Size):
        difference = value - dim
        if isinstance(difference, Size):
            raise Unsupported(f"a slice up to {value} of an axis of {dim} elements")
        return None if difference >= 0 else difference
    return None if value >= 2**31 - 1 else max(int(value), -(2**31))


def concat(parts: Sequence[Array], axis: int) -> Array:
    """Arrays one behind the other along an axis."""
    axis = normal(axis, parts[0].rank)
    parts = [one for one in parts if one.dims[axis] != 0 or one.rank != 1] if len(parts) > 1 else list(parts)
    if not parts:
        raise Unsupported("there is nothing to join")
    total: Any = 0
    for one in parts:
        total = total + one.dims[axis]
    dims = [*broadcast_dims([[*one.dims[:axis], 1, *one.dims[axis + 1 :]] for one in parts])]
    dims[axis] = total
    if all(one.is_known and one.known.shape == one.dims for one in parts):
        check_room(dims, parts[0].dtype.itemsize)
        objects = any(one.known.dtype == object for one in parts)
        joined = np.concatenate([one.known.astype(object) if objects else one.known for one in parts], axis)
        return known(joined, None if objects else parts[0].dtype)
    parts = [one for one in parts if one.dims[axis] != 0]
    if len(parts) == 1:
        return parts[0]
    places = {one.batch for one in parts if one.batch is not None}
    at = next(iter(places)) if len(places) == 1 else None
    if len(places) > 1 or at == axis:
        parts, at = [static(one) for one in parts], None
    types = [one.storage for one in parts if one.storage is not None] or [np.dtype(np.float32)]
    storage = max(types, key=lambda one: one.itemsize)
    if at is not None:
        parts = [_without_batch(one, at) for one in parts]
    parts = [whole(one) for one in parts]
    if at is None:
        parts = [static(one) for one in parts]
    place = axis - (at is not None and axis > at)
    rank = len(dims) - (at is not None)
    return made(slicing.splice(*(one.held(storage) for one in parts), axis=place - rank), dims, parts[0].dtype, at)


def _without_batch(one: Array, at: int) -> Array:
    """An operand for a variable whose batch axis is *at*: the same for all samples, or batched."""
    if one.batch is not None:
        return one
    if one.is_known and one.known.shape[at] == 1:
        numbers, dims = one.known.shape, one.dims
        return one.moved(RESHAPED, (*numbers[:at], *numbers[at + 1 :]), dims=[*dims[:at], *dims[at + 1 :]])
    if one.dims[at] == 1:
        return reshape(one, [*one.dims[:at], *one.dims[at + 1 :]])
    return batched(one, at)


def cast(x: Array, dtype: Any) -> Array:
    """The array with another element type: fractions are cut off where it is one of integers."""
    dtype = np.dtype(dtype)
    if x.dtype == dtype:
        return x
    if x.is_known:
        if x.known.dtype == object:
            if dtype.kind in "iu" or is_float(dtype):
                return Array(x.dims, dtype, x.known)
            raise Unsupported("sizes of the data are wanted as truth values")
        with np.errstate(all="ignore"):
            return x.moved(CAST, dtype, dims=x.dims)
    variable = x.held()
    if dtype.kind == "b" and x.dtype.kind != "b":
        return made(not_equal(variable, 0), x.dims, dtype, x.batch)
    if dtype.kind in "iu" and x.is_float:
        variable = truncated(variable)
    if dtype.kind in "iu" and dtype.itemsize < x.dtype.itemsize and x.dtype.kind in "iu" and dtype.itemsize < 4:
        raise Unsupported(f"a cast of {x.dtype.name} to {dtype.name}, which cuts off bits")
    return made(variable, x.dims, dtype, x.batch)


def truncated(variable: Any) -> Any:
    """A variable without fractions, cut off towards 0."""
    return element_select(less(variable, 0), ceil(variable), floor(variable))


def take(x: Array, indices: Array, axis: int) -> Array:
    """Elements by their numbers along an axis, whose place the axes of the numbers take."""
    axis = normal(axis, x.rank)
    dims = [*x.dims[:axis], *indices.dims, *x.dims[axis + 1 :]]
    if indices.is_known and indices.known.dtype != object and indices.known.shape != indices.dims:
        return expand(take(x, known(indices.known), axis), dims)
    if x.is_known and x.known.shape != x.dims:
        if x.known.shape[axis] == 1 and isinstance(x.dims[axis], Size):  # all are equal
            ones = [1] * indices.rank
            return Array(dims, x.dtype, x.known.reshape([*x.known.shape[:axis], *ones, *x.known.shape[axis + 1 :]]))
        x = materialised(x)
    if indices.is_known and indices.known.dtype != object:
        chosen = indices.known
        dim = x.dims[axis]
        if x.is_known:
            check_room(dims, x.dtype.itemsize)
            try:
                found = np.take(x.known, chosen, axis)
            except IndexError as error:
                raise Unsupported(str(error)) from None
            return known(found, None if x.known.dtype == object else x.dtype, dims)
        if chosen.size == 1:
            number = int(chosen.reshape(-1)[0])
            one = slice_(x, axis, number, number + 1 if number != -1 else None)
            return reshape(one, dims)
        if isinstance(dim, Size) and (chosen < 0).any():
            raise Unsupported(f"elements counted from the end of an axis of {dim}")
        if not isinstance(dim, Size):
            indices = known(np.where(chosen < 0, chosen + dim, chosen))
    source = static(x)
    if indices.batch is not None:
        variable = slicing.gather(source.held(), indices.held(source.storage), axis=axis)
        return made(variable, dims, x.dtype, axis + indices.batch)
    variable = slicing.gather(source.held(), indices.held(source.storage), axis=axis)
    return rebatched(made(variable, dims, x.dtype), x)


# ---- products ------------------------------------------------------------------------------------


def matmul(a: Array, b: Array) -> Array:
    """The product of matrices, or of stacks of them, as NumPy's ``matmul``."""
    a, b = whole(a), whole(b)
    if a.is_known and b.is_known and not (a.trainable or b.trainable):
        check_room([*broadcast_dims([a.dims[:-2], b.dims[:-2]]), *a.dims[-2:-1], *b.dims[-1:]])
        try:
            return known(np.matmul(a.numbers, b.numbers))
        except ValueError as error:
            raise Unsupported(str(error)) from None
    if a.rank == 1:
        return squeeze(matmul(unsqueeze(a, [0]), b), [-2 if b.rank > 1 else 0])
    if b.rank == 1:
        return squeeze(matmul(a, unsqueeze(b, [1])), [-1])
    storage = max((one.storage for one in (a, b) if one.storage is not None), key=lambda one: one.itemsize, default=np.dtype(np.float32))
    dims = [*broadcast_dims([a.dims[:-2], b.dims[:-2]]), a.dims[-2], b.dims[-1]]
    if b.batch is None and product(b.dims[:-2]) == 1:
        if a.batch == a.rank - 1:
            a = static(a)
        right = reshape(b, b.dims[-2:])
        if a.apart is not None:
            return _together(matmul(a.apart, right), a.dims[0])
        shape = [*a.dims[:-1], b.dims[-1]]
        return reshape(made(times(a.held(storage), right.held(storage)), shape, a.dtype, a.batch), dims)
    if a.rank == 2 and b.rank == 3 and a.batch is None and b.batch in (None, 0):
        b = batched(b)
        return made(times(a.held(storage), b.held(storage)), dims, a.dtype, 0)
    leading = dims[:-2]
    if len(leading) == 1:
        a, b = (batched(_led(one, leading)) if one.rank == 3 and one.dims[0] != 1 else _one(one) for one in (a, b))
        return made(times(a.held(storage), b.held(storage)), dims, a.dtype, 0)
    flat = [reshape(static(expand(one, [*leading, *one.dims[-2:]])), [product(leading), *one.dims[-2:]]) for one in (a, b)]
    left, right = (batched(one) for one in flat)
    found = made(times(left.held(storage), right.held(storage)), [product(leading), *dims[-2:]], a.dtype, 0)
    return rebatched(reshape(static(found), dims), a, b)


def _led(one: Array, leading: Sequence[Any]) -> Array:
    return one if one.rank == 3 else expand(one, [*leading, *one.dims[-2:]])


def _one(one: Array) -> Array:
    """A single matrix, for all of a stack."""
    return reshape(static(one), one.dims[-2:])
