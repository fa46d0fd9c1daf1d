"""Values, views of arrays and minibatches: what they hold, and the first samples or sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from cntk.core.common.dtypes import dtype_name
from cntk.core.values.value import Value, held_by
from cntk.readers.streams import MinibatchData
from cntk.views.arrays import few, first_entries, first_rows, first_sequences
from cntk.views.view import View, facts, page


def view(item: Any) -> View:
    """The view of a Value, an NDArrayView or a MinibatchData."""
    value = item.data if isinstance(item, MinibatchData) else item
    if isinstance(value, Value) and not value.is_valid:
        return View(repr(item), page(repr(item), facts([("contents", "gone: the function has been evaluated again")])))
    known: list[tuple[str, Any]] = [
        ("shape", str(list(value.shape))),
        ("element type", dtype_name(value.dtype)),
        ("data", "sparse" if value.is_sparse else "dense"),
        ("device", str(value.device)),
    ]
    if isinstance(item, MinibatchData):
        known.append(("samples", item.num_samples))
        known.append(("sequences", item.num_sequences))
        known.append(("end of a sweep", "yes" if item.end_of_sweep else "no"))
    held = held_by(value)
    if value.is_sparse:
        return View(f"{item!r}\n{held.nnz:,} entries", page(repr(item), facts([*known, ("entries", held.nnz)]), first_entries(held)))
    lengths = _lengths_of(value)
    rows = first_rows(held, "sample") if lengths is None else first_sequences(held, lengths)
    return View(f"{item!r}\n{few(held)}", page(repr(item), facts(known), rows))


def _lengths_of(value: Any) -> list[int] | None:
    """Steps of each sequence, where they are padded."""
    try:
        mask = value.mask
    except AttributeError:
        return None
    return [int(steps) for steps in np.count_nonzero(mask, axis=1)]
