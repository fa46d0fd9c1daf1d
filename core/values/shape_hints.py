"""What is probably wrong with data of another shape than an input takes, and how to mend it: the end of an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..common.dtypes import dtype_name
from ..common.shape import is_concrete, size_of
from ..graph.variable import Variable


def hint_of_shape(variable: Variable, array: Any) -> str:
    """Advice on an array that an input on the batch axis does not take.

    Args:
        variable: the input.
        array: an array of NumPy, whose type is not yet that of the input.
    """
    found, wanted = array.shape, variable.spec.dims
    if not is_concrete(wanted) or not array.ndim:
        return ""
    if classes := hint_of_classes(variable, array):
        return classes
    if len(wanted) == 1 and array.ndim == 2 and found[0] == wanted[0]:
        return "; samples are rows: give its transpose, .T"
    if len(wanted) > 1 and array.ndim == len(wanted) + 1 and found[1:] == (*wanted[1:], wanted[0]):
        return "; channels come first here: give np.moveaxis(data, -1, 1)"
    if array.ndim == len(wanted) + 2 and found[2:] == wanted:
        return "; for sequences declare the input with C.sequence.input_variable"
    if array.size and size_of(found[1:]) == size_of(wanted):
        return f"; its numbers fit as .reshape(-1, {', '.join(map(str, wanted))})"
    if found == wanted[len(wanted) - array.ndim :] and size_of(found) == size_of(wanted):
        return f"; one sample is .reshape(1, {', '.join(map(str, wanted))})"
    shape = found[1] if array.ndim == 2 else found[1:]
    return f"; give samples of {size_of(wanted)} numbers, or declare the input as C.input_variable({shape})"


def hint_of_sample(variable: Variable, samples: Sequence[Any]) -> str:
    """Advice on a list of samples whose first has another number of axes than an input takes.

    Args:
        variable: the input, on the batch axis.
        samples: arrays of NumPy.
    """
    wanted = variable.spec.dims
    if samples[0].ndim == len(wanted) + 1 and samples[0].shape[1:] == wanted:
        return "; for sequences declare the input with C.sequence.input_variable"
    are_alike = len({sample.shape for sample in samples}) == 1
    return hint_of_classes(variable, np.stack(samples)) if are_alike else ""


def hint_of_classes(variable: Variable, array: Any) -> str:
    """Advice on numbers of classes, where an input takes a vector with an element for each class; nothing for other data."""
    wanted = variable.spec.dims
    is_column = array.ndim and array.shape in ((len(array),), (len(array), 1))
    if not is_column or len(wanted) != 1 or wanted[0] < 2 or not _are_classes(array, wanted[0]):
        return ""
    y = "y" if array.ndim == 1 and array.dtype.kind in "iu" else "y.astype(int).ravel()"
    count = wanted[0]
    eye = "" if variable.is_sparse else f"np.eye({count}, dtype=np.{dtype_name(variable.dtype)})[{y}] or "
    return (
        f"; class numbers become rows of {count} with {eye}C.Value.one_hot({y}.tolist(), {count}), "
        f"or in the graph with C.one_hot(C.input_variable(()), {count})"
    )


def _are_classes(array: Any, count: int) -> bool:
    """Whether an array holds whole numbers from 0 to *count* - 1."""
    if array.dtype.kind not in "iuf":
        return False
    return bool(np.all((array >= 0) & (array < count) & (array == np.floor(array))))
