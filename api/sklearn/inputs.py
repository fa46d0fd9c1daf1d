"""What estimators take as X: arrays, sparse matrices, and lists of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

import cntk as C
from cntk.core.types.csr import is_csr


def checked_inputs(estimator: Any, X: Any, y: Any = None, reset: bool = False, **checks: Any) -> Any:
    """X, and y where it is given, as arrays, CSR matrices or lists of sequences ``(steps, *shape)``.

    Args:
        estimator: the estimator, which keeps and compares the number of features.
        X, y: what it was given.
        reset: whether it is fitted anew.
        checks: of y, as ``sklearn.utils.check_X_y`` has them.

    Raises:
        ValueError: X is empty, not finite, of other features than before, or of other lengths than y.
        TypeError: X is no data.
    """
    dtype = np.dtype(estimator.dtype)
    if (sequences := _sequences(X, dtype)) is not None:
        found: Any = _checked_sequences(estimator, sequences, reset)
        if y is None:
            return found
        target = np.asarray(y)
        if len(target) != len(found):
            raise ValueError(f"{type(estimator).__name__}: X has {len(found)} sequences, and y {len(target)} labels; they need the same number")
        return found, target
    options = {"accept_sparse": "csr", "dtype": [dtype], "allow_nd": estimator.model is not None}
    if y is None:
        return validate_data(estimator, X, reset=reset, **options)
    return validate_data(estimator, X, y, reset=reset, **options, **checks)


def _sequences(X: Any, dtype: Any) -> list[Any] | None:
    """A list of arrays, those of one axis as steps of one number; None of what is one array."""
    if isinstance(X, np.ndarray) and not (X.dtype == object and X.ndim == 1):
        return None
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X) or not all(hasattr(part, "__len__") and not isinstance(part, str) for part in X):
        return None
    ranks = {np.ndim(part) if hasattr(part, "ndim") else np.asarray(part, object).ndim for part in X}
    if not (ranks == {1} and len({len(part) for part in X}) > 1) and not (all(hasattr(part, "ndim") for part in X) and min(ranks) > 1):
        return None
    parts = [np.asarray(part, dtype) for part in X]
    return [part[:, np.newaxis] if part.ndim == 1 else part for part in parts]


def _checked_sequences(estimator: Any, sequences: list[Any], reset: bool) -> list[Any]:
    name = type(estimator).__name__
    if estimator.model is None:
        raise ValueError(
            f"{name}: X has sequences, which the dense network that is made by default does not take; give a model, such as "
            "model=lambda outputs: C.layers.Sequential([C.layers.Fold(C.layers.LSTM(32)), C.layers.Dense(outputs)])"
        )
    for place, part in enumerate(sequences):
        if not len(part) or not np.isfinite(part).all():
            raise ValueError(f"{name}: sequence {place} of X {'has no steps' if not len(part) else 'has values that are NaN or infinite'}")
    shapes = {part.shape[1:] for part in sequences}
    wanted = shapes if reset else {estimator.input_shape_}
    if len(shapes | wanted) > 1:
        raise ValueError(f"{name}: steps of X must have one shape, got {sorted(shapes | wanted)}")
    return sequences


def input_for(X: Any) -> Any:
    """An input variable for such data."""
    if isinstance(X, list):
        return C.sequence.input_variable(X[0].shape[1:], X[0].dtype, name="x")
    return C.input_variable(X.shape[1:], X.dtype, is_sparse=is_csr(X), name="x")


def as_input(variable: Any, X: Any) -> Any:
    """Data as the input takes it, which may have been made for data of another kind.

    Raises:
        ValueError: one of them has sequences, and the other has not.
    """
    if isinstance(X, list) != variable.has_sequence_axis():
        kinds = ("sequences", "samples") if variable.has_sequence_axis() else ("samples", "sequences")
        raise ValueError(f"the estimator was fitted to {kinds[0]}, and X has {kinds[1]}")
    if variable.is_sparse and not is_csr(X):
        from scipy.sparse import csr_matrix

        return csr_matrix(X)
    return X
