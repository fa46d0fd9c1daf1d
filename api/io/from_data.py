"""A minibatch source over data of any library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cntk.core.types.arguments import Count, checked, mapping
from cntk.io.constants import DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS, INFINITELY_REPEAT


@checked
def from_data(
    data: Any,
    columns: Any = None,
    *,
    classes: Mapping[str, Any] | None = None,
    indices: Sequence[str] = (),
    shapes: Mapping[str, Any] | None = None,
    unknown: str = "error",
    batched: bool = False,
    randomize: bool | None = None,
    randomization_seed: int = 0,
    max_samples: Count = INFINITELY_REPEAT,
    max_sweeps: Count = INFINITELY_REPEAT,
    dtype: Any = np.float32,
) -> Any:
    """A minibatch source over data as other libraries hold it.

    ================================================ ==================================================================================
    data                                             served
    ================================================ ==================================================================================
    frames of pandas and Polars, tables and record   by rows; converted in chunks as they are needed
    batches of Arrow, dictionaries of arrays,
    arrays, CSR matrices, tuples of these
    path, or list of paths, of Parquet files         by rows; read by row groups
    dataset of Hugging Face                          by rows; sample by sample where features are decoded, as images are
    dataset with ``len`` and samples by number, as   sample by sample, each asked for just before it is served, by one thread
    those of PyTorch; list of dictionaries or tuples
    ``DataLoader``, iterable dataset of PyTorch or   in their order; for each sweep they are asked for an iterator
    Hugging Face, function that returns an iterator
    generator, iterator, reader of record batches    in their order, once
    ================================================ ==================================================================================

    A column of numbers gives samples of one element, one of arrays of equal shapes samples of these shapes, one of lists sequences, whose
    steps are the items. Text becomes one-hot vectors, sparse, of which inputs that are dense and sparse may be fed. Columns side by side in
    one stream are a dense vector. Of tuples the columns are called ``x`` and ``y``, or ``x0``, ``x1``, … where there are more than two.

    Args:
        data: as above.
        columns: the columns that become streams, by name; or by stream a column, or a list of columns that are put side by side. None for
            all of them.
        classes: by column the values that name its classes, in order, or how many there are where its values are whole numbers from 0. Such
            a column becomes one-hot vectors. Columns of text have their different values by default, sorted, and columns whose library has
            categories these; give ``classes=source.classes`` for validation data, so that vectors mean the same.
        indices: columns with classes that become the numbers of these, in place of vectors.
        shapes: by column the shape of a sample, or of a step: a row with several times as many numbers is a sequence.
        unknown: what becomes of a value that is none of its column's classes: ``'error'``, or ``'zeros'`` for a vector of zeros.
        batched: whether an iteration gives minibatches, dictionaries or tuples of columns, and not rows. Those of a ``DataLoader``, frames
            and record batches are known to be.
        randomize: whether each sweep has an order of its own. By default True where rows can be read in any order.
        randomization_seed: chooses the orders.
        max_samples: samples after which it ends; steps of sequences are counted.
        max_sweeps: sweeps after which it ends, in place of *max_samples*.
        dtype: element type of the streams.

    Returns:
        A minibatch source, for :func:`Function.train`, ``training_session`` and loops. ``source.classes`` are the classes by column,
        ``source.samples_in_sweep`` how many samples it has, None where only reading tells.

    Raises:
        TypeError: data of another kind.
        ValueError: a column that is not there, or holds something else; missing values; options that the data cannot follow.
        ImportError: PyArrow is needed and not installed.

    >>> rows = [{"width": 0.2, "height": 1.5, "kind": "tall"}, {"width": 1.9, "height": 0.3, "kind": "wide"}]
    >>> source = C.io.from_data(rows, {"features": ["width", "height"], "label": "kind"}, randomize=False)
    >>> source.streams.features, source.streams.label, source.classes
    (features([2]), label([2]), {'kind': ['tall', 'wide']})
    >>> minibatch = source.next_minibatch(2)
    >>> minibatch[source.streams.label].asarray().tolist()
    [[[1.0, 0.0]], [[0.0, 1.0]]]
    """
    from cntk.io.data.kinds import source_of  # which takes what only these need
    from cntk.io.data.recognition import Wishes

    if unknown not in ("error", "zeros"):
        raise ValueError(f"from_data: unknown must be 'error' or 'zeros', got {unknown!r}")
    if max_samples != INFINITELY_REPEAT and max_sweeps != INFINITELY_REPEAT:
        raise ValueError(f"from_data: give max_samples or max_sweeps, not both; got {max_samples} and {max_sweeps}")
    chosen = [indices] if isinstance(indices, str) else list(indices)
    by_column = {name: mapping("from_data", name, given or {}) for name, given in (("shapes", shapes), ("classes", classes))}
    wishes = Wishes(columns, by_column["shapes"], by_column["classes"], chosen, unknown == "zeros", dtype)
    window = 0 if randomize is False else DEFAULT_RANDOMIZATION_WINDOW_IN_CHUNKS
    return source_of(data, wishes, batched, randomize, (window, randomization_seed), max_samples, max_sweeps)


__all__ = ["from_data"]
