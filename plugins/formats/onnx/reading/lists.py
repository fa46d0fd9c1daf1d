"""Readers of operators of lists of arrays, which ONNX calls sequences: their lengths and places are known when a file is read."""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import Array, Unsupported, concat, known, normal, reshape, slice_, unsqueeze
from .importer import Operator
from .sizes import Size

MOST_ITEMS = 10_000


class ArrayList(list[Any]):
    """A list of arrays."""

    variable = None


def _place(items: ArrayList, at: Array | None, *, behind: bool = False) -> int:
    """The place in a list that an operand says; the last, or behind it, where there is none."""
    if at is None:
        return len(items) if behind else len(items) - 1
    place = int(at.numbers.reshape(-1)[0])
    if not -len(items) <= place < len(items) + behind:
        raise Unsupported(f"the place {place} of a list of {len(items)} arrays")
    return place


def read_optional(node: Operator, item: Any = None) -> Any:
    if item is None:
        raise Unsupported("an optional value that is not there")
    return item


def read_optional_get_element(node: Operator, item: Any) -> Any:
    return item


def read_optional_has_element(node: Operator, item: Any = None) -> Array:
    return known(np.array(item is not None))


def read_sequence_construct(node: Operator, *items: Array) -> ArrayList:
    return ArrayList(items)


def read_sequence_empty(node: Operator) -> ArrayList:
    return ArrayList()


def read_sequence_insert(node: Operator, items: ArrayList, new: Array, at: Array | None = None) -> ArrayList:
    made = ArrayList(items)
    made.insert(_place(items, at, behind=True), new)
    return made


def read_sequence_erase(node: Operator, items: ArrayList, at: Array | None = None) -> ArrayList:
    place = _place(items, at) % max(len(items), 1)
    return ArrayList(item for number, item in enumerate(items) if number != place)


def read_sequence_at(node: Operator, items: ArrayList, at: Array) -> Any:
    return items[_place(items, at)]


def read_sequence_length(node: Operator, items: ArrayList) -> Array:
    return known(np.array(len(items), np.int64))


def read_concat_from_sequence(node: Operator, items: ArrayList) -> Array:
    axis = node.required("axis")
    if not items:
        raise Unsupported("an empty list, of which nothing can be joined")
    if not node.attribute("new_axis", 0):
        return concat(items, axis)
    axis = normal(axis, items[0].rank + 1)
    return concat([unsqueeze(item, [axis]) for item in items], axis)


def read_split_to_sequence(node: Operator, x: Array, sizes: Array | None = None) -> ArrayList:
    axis = normal(node.attribute("axis", 0), x.rank)
    dim = x.dims[axis]
    if isinstance(dim, Size):
        raise Unsupported(f"an axis of {dim} elements divided into arrays")
    if dim > MOST_ITEMS:
        raise Unsupported(f"an axis of {dim} elements divided into arrays; {MOST_ITEMS} elements are the most")
    each = [1] * dim if sizes is None else sizes.sizes
    if sizes is not None and sizes.rank == 0:
        step = each[0]
        if isinstance(step, Size) or step < 1:
            raise Unsupported(f"an axis divided into parts of {step}")
        each = [min(step, dim - at) for at in range(0, dim, step)]
    made, at = ArrayList(), 0
    for size in each:
        part = slice_(x, axis, at, at + size)
        if sizes is None and not node.attribute("keepdims", 1):
            part = reshape(part, [one for place, one in enumerate(x.dims) if place != axis])
        made.append(part)
        at += size
    return made
