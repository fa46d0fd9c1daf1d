"""Feeding: data as users give it becomes rows of a program's inputs; :mod:`.unfeed` is the way back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..common.dtypes import dtype_name, is_bfloat16, is_half, is_real
from ..common.shape import Shape, is_concrete, reshaped, size_of
from ..common.user_frame import warn_user
from ..graph.foreign import as_data, columns_of
from ..graph.variable import Variable
from ..types.csr import csr_matrix_of, fault_of, fault_of_ends, is_csr, pruned, stacked
from ..types.layout import Layout
from ..types.sparse import SparseRows, join, parts_of, rows_of_steps
from .shape_hints import hint_of_classes, hint_of_sample, hint_of_shape
from .value import NDArrayView, Value


class Feed(NamedTuple):
    """One input's data: dense rows, a CSR matrix or (of types of 16 bits, which SciPy does not have) SparseRows, and how its rows lie.

    *continues* tells for each sequence the one of the previous minibatch that it continues, -1 if it is new; None without flags.
    """

    data: Any
    shape: Shape
    layout: Layout | None
    continues: Any = None


def match_arguments(wanted: Sequence[Variable], arguments: Any, function: Any = None) -> dict[Variable, Any]:
    """Find the data of each wanted input in a user's arguments: a dictionary by variable or name, a table, or one input's data.

    A table for several inputs has a column with the name of each.  A pair of a dictionary and flags, which say of each sequence whether it
    is new, gives all inputs these flags.

    Args:
        wanted: the inputs that data is needed for.
        arguments: the user's arguments.
        function: the function, whose other arguments may have data as well; data of further variables gives a warning.

    Raises:
        ValueError: an input is missing, a name is unknown or not unique, it is ambiguous which input data is for, or flags are given
            for all inputs and for one of them, too.
    """
    if isinstance(arguments, tuple) and len(arguments) == 2 and isinstance(arguments[0], dict):
        return _with_flags_for_all(match_arguments(wanted, arguments[0], function), arguments[1])
    if arguments is None or (isinstance(arguments, dict) and not arguments):
        if wanted:
            raise ValueError(f"the function expects {len(wanted)} arguments, got none; give data for {_listed(wanted)}")
        return {}
    if not isinstance(arguments, dict):
        return {wanted[0]: arguments} if len(wanted) == 1 else _by_column(wanted, arguments)
    found: dict[Variable, Any] = {}
    for key, data in arguments.items():
        found[key if isinstance(key, Variable) else match_name(wanted, key, function)] = data
    missing = [v for v in wanted if v not in found]
    if missing:
        others = [v for v in found if v not in wanted and any(v.name == one.name and v.spec == one.spec for one in missing)]
        alike = f"; {_listed(others)} is another variable of that name: give data for those in f.arguments, or by name" if others else ""
        raise ValueError(f"no data for {_listed(missing)}; the function needs {_listed(wanted)}{alike}")
    if function is not None and len(found) > len(wanted):
        known = function.arguments
        foreign = [v for v in found if v not in known]
        if foreign:
            warn_user(f"data for {_listed(foreign)} is not used: the arguments of {function} are {_listed(known)}")
    return found


def _by_column(wanted: Sequence[Variable], table: Any) -> dict[Variable, Any]:
    """The columns of a table by the inputs that have their names."""
    columns = columns_of(table)
    if columns and {variable.name for variable in wanted}.issubset(columns):
        return {match_name(wanted, variable.name): table[variable.name] for variable in wanted}
    held = f"; the table has the columns {', '.join(map(repr, columns)):.200}" if columns else ""
    raise ValueError(
        f"the function has {len(wanted)} inputs, so data must come as a dictionary by input, or as a table with a column for each: "
        f"{_listed(wanted)}{held}"
    )


def _with_flags_for_all(data: dict[Variable, Any], flags: Any) -> dict[Variable, Any]:
    if flags is None:
        return data
    for variable, own in data.items():
        if _has_flags(own):
            raise ValueError(f"{variable!r} has flags of its own, and there are some for all inputs: {flags!r:.80}; give them once")
    return {variable: (own, flags) for variable, own in data.items()}


def _has_flags(data: Any) -> bool:
    """Whether it is a pair of data and flags that say which of the sequences are new."""
    if not (isinstance(data, tuple) and len(data) == 2):
        return False
    return isinstance(data[1], (list, tuple)) or (isinstance(data[1], np.ndarray) and data[1].dtype == bool)


def match_name(wanted: Sequence[Variable], name: Any, function: Any = None) -> Variable:
    """The input with this name, or the argument of *function*, where that is given; or the output of a function that stands for its name.

    Raises:
        ValueError: there is not exactly one, or *name* is something else.
    """
    if not isinstance(name, str):
        owner = getattr(name, "output", None)
        if isinstance(owner, Variable):
            return owner
        raise ValueError(f"data is given by variable or by name, got the key {name!r}")
    named = [v for v in wanted if v.name == name]
    if not named and function is not None:
        wanted = function.arguments
        named = [v for v in wanted if v.name == name]
    if len(named) != 1:
        why = "no input has" if not named else f"{len(named)} inputs have"
        raise ValueError(f"{why} the name '{name}'; the inputs are {_listed(wanted)}")
    return named[0]


def _listed(variables: Iterable[Variable]) -> str:
    return ", ".join(map(repr, variables))


def feed(variable: Variable, data: Any) -> Feed:
    """Convert data for one input.

    Raises:
        ValueError: it does not fit the input; the message says what was expected.
    """
    data = getattr(data, "value_to_feed", data)
    continues = None
    if _has_flags(data):
        data, starts = _with_starts(variable, *data)
        continues = np.where(starts, -1, np.arange(len(starts)))
    axes = variable.dynamic_axes
    if isinstance(data, NDArrayView):
        data = Value(data)
    data = as_data(variable, data)
    dims = variable.spec.dims
    if isinstance(data, Value):
        data = _in_samples_of(variable, data)
        dims = _dims_of_value(variable, data)
        continues = data.continues
        if len(axes) == 2 and data.packed is not None:
            rows, lengths = data.packed
            fed = _feed_packed(variable, rows, lengths, dims)
            return fed if continues is None else fed._replace(continues=continues)
        data = _of_value(variable, data)
    if not axes:
        return _feed_static(variable, data)
    if len(axes) == 1:
        return _feed_batch(variable, data, dims)
    fed = _feed_sequences(variable, data, dims)
    return fed if continues is None else fed._replace(continues=continues)


def _with_starts(variable: Variable, data: Any, starts: Sequence[bool]) -> tuple[Any, Sequence[bool]]:
    """Data with flags that say which of the sequences are new; what lies along the first axis of an array are then the sequences."""
    if len(variable.dynamic_axes) < 2:
        raise ValueError(
            f"{variable!r} has no sequence axis, so its data cannot say which sequences start or continue; "
            "give flags with the data of inputs that have one: {x: (data, flags), y: data}"
        )
    data = getattr(data, "value_to_feed", data)
    for flag in starts:
        if not isinstance(flag, (bool, np.bool)):
            raise ValueError(f"{variable!r}: flags that say which sequences are new are True or False, got {flag!r:.80}")
    if isinstance(data, Value) or is_csr(data):
        raise ValueError(f"{variable!r}: flags that say which sequences are new go with a list or an array, got {type(data).__name__}")
    sequences = list(np.atleast_1d(data)) if isinstance(data, np.ndarray) else data
    count = len(sequences) if isinstance(sequences, (list, tuple)) else 1
    if len(starts) != count:
        raise ValueError(f"{variable!r}: {count} sequences are given, but {len(starts)} flags that say which of them are new")
    return sequences, starts


def _in_samples_of(variable: Variable, value: Value) -> Value:
    """A stream's minibatch in the static shape of the variable, whose elements may be arranged otherwise than the stream says."""
    wanted, found = variable.spec.dims, value.sample_shape
    if found is None or found == wanted or _fits(found, wanted):
        return value
    try:
        return value.in_samples(reshaped(found, wanted))
    except ValueError as error:
        is_label = size_of(found) == 1 and len(wanted) == 1 and wanted[0] > 1
        hint = f". If they are numbers of classes, say so where the source is made: classes={{column: {wanted[0]}}}" if is_label else ""
        raise ValueError(f"{variable!r} takes samples of shape {wanted}, and those of the stream are {found}: {error}{hint}") from None


def _dims_of_value(variable: Variable, value: Value) -> Shape:
    """The static shape of the variable; where it is free and the data sparse, that of the value, which rows alone do not tell."""
    wanted = variable.spec.dims
    found = value.shape[len(value.shape) - len(wanted) :]
    return found if value.is_sparse and _fits(found, wanted) else wanted


def _of_value(variable: Variable, value: Value) -> Any:
    axes = variable.dynamic_axes
    if len(axes) == 1 and value._lengths is not None and max(value._lengths) > 1:
        raise ValueError(f"{variable!r} has no sequence axis and takes one step a sample, got sequences of {value._lengths} steps")
    if len(axes) == 2 and value.is_sparse:
        return value._sparse_sequences(variable.spec.dims)
    if len(axes) == 2 and value._lengths is not None:
        return value.as_sequences(variable)
    held = value.data._data
    if len(axes) == 1 and not value.is_sparse and held.ndim > 1 and value._lengths is not None:
        return held.reshape(-1, *held.shape[2:]) if held.shape[1] == 1 else held
    return held


# ---- without dynamic axes ----


def _feed_static(variable: Variable, data: Any) -> Feed:
    if variable.is_sparse:
        raise ValueError(f"{variable!r} is sparse and has no dynamic axes; sparse data needs a batch axis")
    array = _dense(variable, data)
    wanted = variable.spec.dims
    while array.ndim > len(wanted) and array.shape[0] == 1:
        array = array[0]
    if not _fits(array.shape, wanted):
        raise ValueError(f"{variable!r} has no dynamic axes and takes an array of shape {wanted}, got {array.shape}")
    return Feed(array, array.shape, None)


# ---- with a batch axis ----


def _feed_batch(variable: Variable, data: Any, dims: Shape) -> Feed:
    wanted = variable.spec.dims
    if isinstance(data, (list, tuple)):
        return _feed_batch_list(variable, data)
    if is_csr(data):
        return _feed_csr(variable, _whole(variable, data), dims)
    if variable.is_sparse:
        raise _needs_csr(variable, data)
    given = array = _given_array(variable, data)
    if array.ndim == len(wanted) + 2 and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim == len(wanted) and _fits(array.shape, wanted) and (wanted or array.ndim == 0):
        array = array[None]
    if array.ndim != len(wanted) + 1 or not _fits(array.shape[1:], wanted):
        hint = hint_of_shape(variable, given)
        raise ValueError(f"{variable!r} takes an array of shape {('batch', *wanted)}, got one of shape {given.shape}{hint}")
    if not array.shape[0]:
        raise _empty(variable)
    return Feed(_as_typed(variable, array), array.shape[1:], Layout(array.shape[0]))


def _feed_batch_list(variable: Variable, data: Sequence[Any]) -> Feed:
    if not data:
        raise _empty(variable)
    if any(map(is_csr, data)):
        return _feed_csr(variable, _stacked(variable, data), _dims_of_samples(variable, data))
    if variable.is_sparse:
        raise _needs_csr(variable, data[0], data)
    wanted = variable.spec.dims
    samples = [_dense(variable, item) for item in data]
    for i, sample in enumerate(samples):
        if sample.ndim == len(wanted) + 1 and sample.shape[0] == 1:
            samples[i] = sample[0]
        elif sample.ndim != len(wanted):
            raise ValueError(
                f"{variable!r} takes a list of samples of shape {wanted}, got {sample.shape} at position {i}; "
                f"an input without sequence axis has one step a sample{hint_of_sample(variable, samples) if not i else ''}"
            )
    if len({sample.shape for sample in samples}) > 1 or not _fits(samples[0].shape, wanted):
        shapes = sorted({sample.shape for sample in samples})
        raise ValueError(f"{variable!r} takes samples of shape {wanted}, got shapes {shapes}")
    array = np.stack(samples)
    _warn_of_list(variable, len(samples))
    return Feed(array, array.shape[1:], Layout(array.shape[0]))


def _dims_of_samples(variable: Variable, samples: Sequence[Any]) -> Shape:
    """The static shape of the variable; where one leading axis is free, as the number of rows of each sample says."""
    *leading, last = variable.spec.dims or (0,)
    counts = {sample.shape[0] for sample in samples}
    free = sum(dim < 0 for dim in leading)
    others = size_of([dim for dim in leading if dim >= 0])
    if free != 1 or len(counts) != 1 or min(counts) % others:
        return variable.spec.dims
    return (*(min(counts) // others if dim < 0 else dim for dim in leading), last)


def _feed_csr(variable: Variable, matrix: Any, dims: Shape) -> Feed:
    wanted = variable.spec.dims
    if not wanted or (wanted[-1] >= 0 and matrix.shape[1] != wanted[-1]):
        raise ValueError(f"{variable!r} takes CSR rows {wanted[-1] if wanted else 0} wide, got a matrix of shape {matrix.shape}")
    shape = _shape_of_rows(variable, matrix, dims)
    per_sample = size_of(shape[:-1])
    rows, rest = divmod(matrix.shape[0], per_sample)
    if not matrix.shape[0]:
        raise _empty(variable)
    if rest:
        raise ValueError(f"{variable!r}: each sample takes {per_sample} rows of a CSR matrix, got a matrix of {matrix.shape[0]} rows")
    if not variable.is_sparse:
        return Feed(matrix.toarray().astype(variable.dtype).reshape(rows, *shape), shape, Layout(rows))
    return Feed(_typed(variable, matrix), shape, Layout(rows))


def _shape_of_rows(variable: Variable, matrix: Any, dims: Shape) -> Shape:
    """The static shape of samples or steps that CSR rows make, of which *dims* is what is known."""
    leading = dims[:-1]
    if not is_concrete(leading):
        raise ValueError(
            f"{variable!r}: rows of sparse data do not tell the sizes of free axes other than the last; give an NDArrayView with its "
            "shape, or for one free axis a list with a CSR matrix of as many rows for each sample of a batch"
        )
    if 0 in leading:
        raise _empty(variable)
    return (*leading, matrix.shape[1])


def _typed(variable: Variable, matrix: Any) -> Any:
    """A CSR matrix with values of the variable's type: SparseRows for types of 16 bits, which SciPy does not have."""
    if matrix.dtype == variable.dtype:
        return matrix
    if not is_half(variable.dtype):
        return matrix.astype(_checked(variable, matrix.dtype))
    _require_numbers(variable, matrix.dtype)
    rows = SparseRows(matrix.shape, variable.dtype)
    rows.set(matrix.data.astype(variable.dtype), matrix.indices, matrix.indptr)
    return rows


def _stacked(variable: Variable, parts: Sequence[Any]) -> Any:
    """CSR matrices as one that has been checked, below each other; SciPy takes twice as long for some tens of them."""
    if len(parts) > 1 and is_csr(parts[0]) and variable.spec.dims and (found := stacked(parts, variable.spec.dims[-1])) is not None:
        return found
    width = _width_of(variable, parts)
    if len(parts) == 1:
        return _whole(variable, parts[0])
    joined = csr_matrix_of(*join([parts_of(part) for part in parts]), width)
    if fault_of(joined):
        for i, part in enumerate(parts):
            if why := fault_of(part):
                raise ValueError(f"{variable!r}, position {i}: {why}")
    return joined


def _width_of(variable: Variable, parts: Sequence[Any]) -> int:
    """How many columns CSR matrices have."""
    wanted = variable.spec.dims[-1] if variable.spec.dims else 0
    for i, part in enumerate(parts):
        if not is_csr(part):
            raise ValueError(f"{variable!r} takes a list of CSR matrices, got {type(part).__name__} at position {i}")
        if why := fault_of_ends(part):
            raise ValueError(f"{variable!r}, position {i}: {why}")
        if part.shape[1] != (wanted if wanted >= 0 else parts[0].shape[1]):
            raise ValueError(f"{variable!r} takes CSR rows {wanted} wide, got a matrix of shape {part.shape} at position {i}")
    return int(parts[0].shape[1])


def _whole(variable: Variable, matrix: Any) -> Any:
    """A CSR matrix that has been checked, without what lies behind its last row."""
    if why := fault_of(matrix):
        raise ValueError(f"{variable!r}: {why}")
    return pruned(matrix)


# ---- with a sequence axis ----


def _feed_sequences(variable: Variable, data: Any, dims: Shape) -> Feed:
    wanted = variable.spec.dims
    if is_csr(data):
        return _feed_csr_sequences(variable, [data], dims)
    if isinstance(data, (list, tuple)):
        if not data:
            raise _empty(variable)
        if any(map(is_csr, data)):
            return _feed_csr_sequences(variable, data, dims)
        if variable.is_sparse:
            raise _needs_csr(variable, data[0])
        sequences = [_dense(variable, part) for part in data]
        if wanted == (1,):
            sequences = [part[:, None] if part.ndim == 1 else part for part in sequences]  # numbers are steps here
    else:
        array = _array(variable, data)
        sequences = list(array) if array.ndim > len(wanted) + 1 else [array]
    sequences = [part[None] if part.ndim == len(wanted) else part for part in sequences]  # one step
    lengths = [part.shape[0] if part.ndim else 1 for part in sequences]  # a number has no steps, and is refused below
    if 0 in lengths:
        raise ValueError(f"{variable!r}: sequence {lengths.index(0)} has no steps; every sequence needs at least one")
    layout = Layout(len(sequences), lengths)
    if variable.is_sparse:
        raise _needs_csr(variable, data)
    for i, part in enumerate(sequences):
        if part.ndim != len(wanted) + 1 or not _fits(part.shape[1:], wanted):
            raise ValueError(f"{variable!r} takes sequences of shape {('steps', *wanted)}, got {part.shape} at position {i}")
    joined = np.concatenate(sequences) if len(sequences) > 1 else sequences[0]
    return Feed(_by_step(joined, layout), joined.shape[1:], layout)


def _by_step(joined: Any, layout: Layout) -> Any:
    """The rows of dense sequences one after another, step by step."""
    if layout.samples in (1, layout.rows):
        return joined
    steps = layout.rows // layout.samples
    return by_step(joined, layout.samples, steps) if np.all(layout.lengths == steps) else joined[layout.pack_index]


def by_step(joined: Any, samples: int, steps: int) -> Any:
    """The same where all sequences have as many steps."""
    if 1 in (samples, steps):
        return joined
    return joined.reshape(samples, steps, *joined.shape[1:]).swapaxes(0, 1).reshape(joined.shape)


def _feed_packed(variable: Variable, rows: Any, lengths: Any, dims: Shape) -> Feed:
    """Sequences of these lengths, whose steps lie one after another in an array or CSR rows."""
    layout = Layout(len(lengths), lengths)
    if is_csr(rows):
        rows = _stacked(variable, [rows])
        return _feed_csr_steps(variable, rows, layout, _shape_of_rows(variable, rows, dims))
    if variable.is_sparse:
        raise _needs_csr(variable, rows)
    array = _array(variable, rows)
    if not _fits(array.shape[1:], variable.spec.dims):
        raise ValueError(f"{variable!r} takes sequences of shape {('steps', *variable.spec.dims)}, got steps of shape {array.shape[1:]}")
    return Feed(_by_step(array, layout), array.shape[1:], layout)


def _feed_csr_sequences(variable: Variable, sequences: Sequence[Any], dims: Shape) -> Feed:
    """Sequences of CSR rows; each step takes as many rows as its static shape has without the last axis."""
    joined = _stacked(variable, sequences)
    shape = _shape_of_rows(variable, joined, dims)
    per_step = size_of(shape[:-1])
    lengths = []
    for i, part in enumerate(sequences):
        steps, rest = divmod(part.shape[0], per_step)
        if rest or not steps:
            raise ValueError(
                f"{variable!r}: sequence {i} has {part.shape[0]} rows; every sequence needs at least one step, and a step {per_step} rows"
            )
        lengths.append(steps)
    return _feed_csr_steps(variable, joined, Layout(len(sequences), lengths), shape)


def _feed_csr_steps(variable: Variable, joined: Any, layout: Layout, shape: Shape) -> Feed:
    """CSR rows of sequences one after another, whose steps have the static *shape*."""
    order = None if layout.samples in (1, layout.rows) else rows_of_steps(layout.pack_index, size_of(shape[:-1]))
    if not variable.is_sparse:
        dense = joined.toarray().astype(variable.dtype)
        return Feed((dense if order is None else dense[order]).reshape(-1, *shape), shape, layout)
    typed = _typed(variable, joined)
    return Feed(typed if order is None else _rows_in(order, typed), shape, layout)


def _rows_in(order: Any, matrix: Any) -> SparseRows:
    """The rows of a CSR matrix in another order, which takes SciPy many times as long."""
    rows = SparseRows(matrix.shape, matrix.dtype)
    rows.set(matrix.data, matrix.indices, matrix.indptr)
    rows.set(*rows.take(np, order))
    return rows


# ---- arrays ----


def _dense(variable: Variable, data: Any) -> Any:
    """An array of the variable's dtype from a number, an array or nested lists."""
    data = as_data(variable, data)
    if isinstance(data, (list, tuple, int, float)):
        try:
            return np.asarray(data, dtype=variable.dtype)
        except (TypeError, ValueError):
            raise ValueError(f"{variable!r}: cannot make an array of {data!r:.80}; expected numbers in rows of equal length") from None
    return _array(variable, data)


def _array(variable: Variable, data: Any) -> Any:
    """An array of the variable's dtype."""
    return _as_typed(variable, _given_array(variable, data))


def _given_array(variable: Variable, data: Any) -> Any:
    """An array, of its own dtype."""
    if isinstance(data, (bool, int, float)):
        raise ValueError(f"{variable!r} takes a minibatch: a list or an array with a leading batch axis, got the number {data!r}")
    if not isinstance(data, (np.ndarray, np.generic)):
        hint = "; convert it with .tocsr()" if hasattr(data, "tocsr") else ""
        if isinstance(data, Iterator):
            hint = "; what it gives becomes one with np.stack(list(...)), and C.io.MinibatchSource or a loop of your own go through more"
        raise ValueError(f"{variable!r} takes NumPy arrays, lists, CSR matrices and Values, got {type(data).__name__}{hint}")
    return np.asarray(data)


def _as_typed(variable: Variable, array: Any) -> Any:
    return array if array.dtype == variable.dtype else array.astype(_checked(variable, array.dtype))


def _checked(variable: Variable, dtype: Any) -> Any:
    """The variable's dtype, after checking that data of *dtype* converts to it; warns if that costs time."""
    if dtype == variable.dtype:
        return variable.dtype
    _require_numbers(variable, dtype)
    name = dtype_name(variable.dtype)
    warn_user(
        f"{variable!r} was given {dtype} data, which is converted to {name} on every call; "
        f"convert it once with .astype({'cntk' if is_bfloat16(variable.dtype) else 'np'}.{name})"
    )
    return variable.dtype


def _require_numbers(variable: Variable, dtype: Any) -> None:
    if not is_real(dtype):
        raise ValueError(f"{variable!r} takes {dtype_name(variable.dtype)} data, got dtype {dtype}; give an array of real numbers")


def _empty(variable: Variable) -> ValueError:
    return ValueError(f"{variable!r}: the minibatch is empty; give at least one sample")


def _needs_csr(variable: Variable, data: Any, samples: Sequence[Any] = ()) -> ValueError:
    """The error for dense data; *samples* are those of a list, of which *data* is one."""
    numbers = samples if len(samples) and np.ndim(data) == 0 else data
    hint = hint_of_classes(variable, np.asarray(numbers)) if np.ndim(numbers) in (1, 2) else ""
    return ValueError(
        f"{variable!r} is sparse and takes CSR matrices, got {type(data).__name__}; convert it with scipy.sparse.csr_matrix{hint}"
    )


def _fits(shape: Shape, wanted: Shape) -> bool:
    return len(shape) == len(wanted) and all(dim == want or want < 0 for dim, want in zip(shape, wanted, strict=True))


# ---- to values ----


def value_for(variable: Variable, data: Any, seq_starts: Sequence[bool] | None, device: Any, read_only: bool = False) -> Value:
    """See :meth:`Value.create`."""
    if not isinstance(variable, Variable):
        raise TypeError(f"Value.create: expected the variable that the data is for, got {type(variable).__name__} {variable!r:.80}")
    if seq_starts is not None:
        data, seq_starts = _with_starts(variable, data, seq_starts)
    if isinstance(data, Value):
        return data
    if isinstance(data, NDArrayView):
        return Value(data)
    data = as_data(variable, data)
    if isinstance(data, (list, tuple)) and variable.dynamic_axes:
        return _value_of_sequences(variable, data, seq_starts, device, read_only)
    if is_csr(data):
        array = _whole(variable, data)
    else:
        array = _dense(variable, data) if isinstance(data, (list, tuple)) else _array(variable, data)
    wanted = variable.spec.dims
    if not _fits(array.shape[-1:] if is_csr(array) else array.shape[array.ndim - len(wanted) :], wanted[-1:] if is_csr(array) else wanted):
        raise ValueError(f"{variable!r} has the static shape {wanted}, with which data of shape {array.shape} does not end")
    if not is_csr(array):
        return Value(NDArrayView.from_dense(array, device, read_only))
    rows, rest = divmod(array.shape[0], size_of(wanted[:-1]))
    shape = array.shape if len(wanted) < 2 or rest else (rows, *wanted[:-1], array.shape[1])
    return Value(NDArrayView.from_csr(_plain(variable, array), device, read_only, shape=shape))


def _value_of_sequences(variable: Variable, data: Sequence[Any], seq_starts: Sequence[bool] | None, device: Any, read_only: bool) -> Value:
    if not data:
        raise _empty(variable)
    if len(variable.dynamic_axes) < 2:
        _warn_of_list(variable, len(data))
    parts = [_sequence(variable, item, i) for i, item in enumerate(data)]
    if not any(map(is_csr, parts)):
        return Value._of_sequences(parts, device, seq_starts, read_only=read_only)
    shape = (*variable.spec.dims[:-1], _width_of(variable, parts))
    return Value._of_sequences(parts, device, seq_starts, shape, read_only)


def _sequence(variable: Variable, item: Any, position: int) -> Any:
    """One sequence with a leading time axis, or as CSR rows."""
    wanted = variable.spec.dims
    part = item._data if isinstance(item, NDArrayView) else item
    if is_csr(part):
        steps, rest = divmod(part.shape[0], size_of(wanted[:-1]))
        if rest or not steps:
            raise ValueError(f"{variable!r}: {part.shape[0]} CSR rows are not a sequence of steps of shape {wanted} (position {position})")
        return _plain(variable, _whole(variable, part))
    array = _dense(variable, part)
    if not array.flags.c_contiguous:
        warn_user(f"{variable!r}: the array at position {position} is not C-contiguous and is copied", RuntimeWarning)
    sequence = array[None] if array.ndim == len(wanted) else array
    if sequence.ndim != len(wanted) + 1 or not _fits(sequence.shape[1:], wanted) or not len(sequence):
        raise ValueError(f"{variable!r} takes sequences of shape {('steps', *wanted)}, got {array.shape} at position {position}")
    return sequence


def _plain(variable: Variable, matrix: Any) -> Any:
    """A CSR matrix of the variable's type, or of its own where that has 16 bits, which SciPy does not have."""
    if is_half(variable.dtype) or matrix.dtype == variable.dtype:
        return matrix
    return matrix.astype(_checked(variable, matrix.dtype))


def _warn_of_list(variable: Variable, count: int) -> None:
    if count > 1:
        warn_user(f"{variable!r} was given a list of {count} samples; one array with a leading batch axis is faster")
