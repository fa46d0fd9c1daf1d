"""What a column holds, as its library and its first values tell, unless the program says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cntk.core.common.shape import Shape, as_shape
from cntk.core.graph.foreign import as_data
from cntk.core.types.csr import is_csr
from cntk.eval.tables import Table, values_of
from cntk.io.data.columns import ClassColumn, Column, NumberColumn, Stream, Streams, first_of, first_rows, flattened, is_list, is_missing

HEAD = 100
"""Rows that are looked at."""


@dataclass
class Wishes:
    """What a program says of its columns; see :func:`cntk.io.from_data`.

    *columns* may be a function that chooses them of all names, and *inputs* tells for streams the shape of the input that they are for, and
    whether it takes sequences.
    """

    columns: Any = None
    shapes: Mapping[str, Any] = field(default_factory=dict)
    classes: Mapping[str, Any] = field(default_factory=dict)
    indices: Sequence[str] = ()
    leaves_unknown: bool = False
    dtype: Any = np.float32
    inputs: Mapping[str, tuple[Shape, bool]] = field(default_factory=dict)

    def columns_of_streams(self, names: Sequence[str]) -> dict[str, list[str]]:
        """By stream its columns, of these.

        Raises:
            ValueError: one is not there, or options are for columns that no stream takes.
            TypeError: *columns* are no names.
        """
        given = self.columns(names) if callable(self.columns) else list(names) if self.columns is None else self.columns
        given = [given] if isinstance(given, str) else given
        chosen = dict(given) if isinstance(given, Mapping) else {name: name for name in given}
        found = {name: [columns] if isinstance(columns, str) else list(columns) for name, columns in chosen.items()}
        if not found or not all(isinstance(name, str) and columns for name, columns in found.items()):
            raise ValueError(
                f"from_data: columns are a list, or a dictionary with a column or a list of them for each stream, got {self.columns!r:.200}"
            )
        taken = list(dict.fromkeys(column for columns in found.values() for column in columns))
        if missing := [column for column in taken if column not in names]:
            raise ValueError(f"from_data: there is no column {missing[0]!r}; there are {', '.join(map(repr, names))}")
        for option in ("shapes", "classes", "indices"):
            if foreign := [column for column in getattr(self, option) if column not in taken]:
                listed = ", ".join(map(repr, taken))
                raise ValueError(f"from_data: {option} is about the column {foreign[0]!r}, and the streams take {listed}")
        return found


def streams_of(
    wishes: Wishes, names: Sequence[str], head: Table, parts: Callable[[], Iterable[Table]] | None, told: Mapping[str, Any]
) -> Streams:
    """The streams that a program wishes for, of what there is.

    Args:
        wishes: what the program says.
        names: of all columns.
        head: the first rows.
        parts: gives all rows, in tables, to look for classes; None where the data cannot be read beforehand.
        told: by column its classes, where the library tells them.

    Raises:
        ValueError: a column can be no stream, with what to do.
    """
    wanted = wishes.columns_of_streams(names)
    shapes = dict(wishes.shapes)
    taken = list(dict.fromkeys(column for columns in wanted.values() for column in columns))
    classes = {name: given for name in taken if (given := wishes.classes.get(name, told.get(name))) is not None}
    for stream, (shape, takes_sequences) in wishes.inputs.items():
        name, *more = wanted[stream]
        column = head.column(name)
        if more or name in classes or name in shapes or is_csr(column):
            continue
        if len(shape) == 1 and shape[0] > 1 and _holds_whole_numbers(column, takes_sequences):
            classes[name] = shape[0]
        elif min(shape, default=1) > 0:
            shapes[name] = shape
    text = [name for name in taken if not is_csr(head.column(name)) and isinstance(first_of(head.column(name)), str)]
    if unknown := [name for name in text if name not in classes]:
        classes |= _classes_in(unknown, parts)
    made = {name: _column(wishes, name, head.column(name), classes.get(name), shapes.get(name)) for name in taken}
    return Streams([Stream(name, [made[column] for column in columns], wishes.dtype) for name, columns in wanted.items()])


def _column(wishes: Wishes, name: str, head: Any, classes: Any, wanted: Any) -> Column:
    if classes is not None:
        is_sequence = any(map(is_list, values_of(head)))
        return ClassColumn(name, is_sequence, _checked_classes(name, classes), name in wishes.indices, wishes.leaves_unknown)
    if name in wishes.indices:
        raise ValueError(f"from_data: indices has the column {name!r}, whose numbers are no classes; say how many there are with classes=")
    if is_csr(head):
        return NumberColumn(name, (head.shape[1],), False, True)
    shape, is_sequence = _shape_in(name, head)
    if wanted is not None:
        stated = as_shape(wanted) or (1,)
        return NumberColumn(name, stated, is_sequence or shape != stated)
    return NumberColumn(name, shape or (1,), is_sequence)


def _shape_in(name: str, head: Any) -> tuple[Shape, bool]:
    """The shape of a sample, or of a step of sequences."""
    owner = f"from_data: the column {name!r}"
    try:
        found = as_data(owner, head)
        if isinstance(found, (list, tuple)):
            return _shape_of_items(owner, found, isinstance(head, (list, tuple)))
    except ValueError as error:
        raise ValueError(f"{error}. Leave the column out with columns=[...] if it is not needed{_hint_of(name, head)}") from None
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
        return tuple(found.shape[1:]), False
    kind = getattr(found, "dtype", type(found).__name__)
    raise ValueError(f"{owner} holds {kind} data; expected numbers, text or lists of these. Leave it out with columns=[...]")


def _shape_of_items(owner: str, items: Sequence[Any], may_be_samples: bool) -> tuple[Shape, bool]:
    """Lists are sequences, as are all items of columns of lists; arrays beside each other are if their lengths differ."""
    there = [item for item in items if not is_missing(item)] or [0.0]
    try:
        arrays = [np.asarray(as_data(owner, item)) for item in there]
    except ValueError:
        raise ValueError(f"{owner} holds lists whose items have unequal lengths, or are no numbers, such as {there[0]!r:.60}") from None
    if wrong := [item for item, array in zip(there, arrays, strict=True) if array.dtype.kind not in "fiub"]:
        raise ValueError(f"{owner} holds {type(wrong[0]).__name__} {wrong[0]!r:.60}; expected numbers, text or lists of these")
    shapes = {array.shape for array in arrays}
    if may_be_samples and len(shapes) == 1 and not any(isinstance(item, (list, tuple)) for item in there):
        return shapes.pop(), False
    steps = {shape[1:] for shape in shapes if shape}
    if len(steps) > 1:
        listed = sorted(shapes)[:4]
        raise ValueError(f"{owner} holds arrays of the shapes {listed}, which are neither samples of one shape nor sequences of it")
    return (steps.pop() if steps else ()), True


def _holds_whole_numbers(column: Any, in_lists: bool) -> bool:
    """Whether values are whole numbers, by themselves or in lists of them."""
    first = first_of(column)
    is_flat = not any(map(is_list, values_of(first_rows(column, HEAD))))
    return isinstance(first, (int, np.integer)) and not isinstance(first, bool) and is_flat != in_lists


def _hint_of(name: str, head: Any) -> str:
    return f", or say what classes it has with classes={{{name!r}: [...]}}" if np.dtype(object) == getattr(head, "dtype", None) else ""


def _checked_classes(name: str, classes: Any) -> Any:
    if isinstance(classes, (int, np.integer)) and not isinstance(classes, bool):
        if classes < 1:
            raise ValueError(f"from_data: classes of the column {name!r} must be 1 at least, got {classes}")
        return int(classes)
    if isinstance(classes, (str, bytes)) or not hasattr(classes, "__len__"):
        raise TypeError(f"from_data: classes of the column {name!r} are a list of values, or how many there are, got {classes!r:.80}")
    listed = values_of(classes)
    if len(set(listed)) < len(listed) or not listed:
        raise ValueError(f"from_data: classes of the column {name!r} must be different values, one at least, got {listed!r:.80}")
    return listed


def _classes_in(names: Sequence[str], parts: Callable[[], Iterable[Table]] | None) -> dict[str, list[Any]]:
    """The different values of columns, sorted.

    Raises:
        ValueError: the data cannot be read beforehand.
    """
    if parts is None:
        raise ValueError(
            f"from_data: the column {names[0]!r} holds text, whose classes are not known before all has been read; list them: "
            f"classes={{{names[0]!r}: ['a', 'b', ...]}}"
        )
    found: dict[str, set[Any]] = {name: set() for name in names}
    for table in parts():
        for name, seen in found.items():
            seen.update(_distinct(table.column(name)))
    return {name: sorted(seen, key=lambda value: (type(value).__name__, value)) for name, seen in found.items()}


def _distinct(column: Any) -> Iterable[Any]:
    """The different values that are there."""
    return (value for value in set(flattened(values_of(column))[0]) if not is_missing(value))
