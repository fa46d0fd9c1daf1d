"""What estimators take as X: arrays, sparse matrices, and lists of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, validate_data

import cntk as C
from cntk.core.types.csr import is_csr


def checked_inputs(estimator: Any, X: Any, reset: bool = False) -> Any:
    """X as an array, a CSR matrix or a list of sequences ``(steps, *shape)``.

    Args:
        estimator: the estimator, which keeps and compares the number of features.
        X: what it was given.
        reset: whether it is fitted anew.

    Raises:
        ValueError: X is empty, not finite, or of other features than before.
        TypeError: X is no data.
    """
    if (sequences := _sequences(X)) is not None:
        return _checked_sequences(estimator, sequences, reset)
    return validate_data(estimator, X, reset=reset, **_options(estimator, X, reset))


def checked_data(estimator: Any, X: Any, y: Any, reset: bool, **checks: Any) -> tuple[Any, Any]:
    """X as :func:`checked_inputs` gives it, and y as an array.

    Args:
        estimator, X, reset: see :func:`checked_inputs`.
        y: what it is to be fitted to.
        checks: of y, as ``sklearn.utils.check_X_y`` has them.

    Raises:
        ValueError: also where y is None, or of another length than X.
    """
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    if _sequences(X) is None:
        X, y = validate_data(estimator, X, y, reset=reset, multi_output=True, **_options(estimator, X, reset), **checks)
    else:
        X, y = checked_inputs(estimator, X, reset), np.asarray(y)
        check_consistent_length(X, y)
    return X, column_or_1d(y, warn=True) if y.ndim == 2 and y.shape[1] == 1 else y


def checked_weights(estimator: Any, X: Any, weights: Any) -> Any:
    """A weight for each row of X; None where there are none.

    Raises:
        ValueError: they are negative, all 0, or not as many as rows.
    """
    if weights is None:
        return None
    rows = len(X) if isinstance(X, list) else X.shape[0]
    return _check_sample_weight(weights, np.zeros((rows, 1)), dtype=np.float64, ensure_non_negative=True)


def _options(estimator: Any, X: Any, reset: bool) -> dict[str, Any]:
    return {"accept_sparse": "csr", "dtype": [_type_for(estimator, X, reset)], "allow_nd": estimator.model is not None}


def _type_for(estimator: Any, X: Any, reset: bool) -> Any:
    """The element type of the network, or of the one that is to be made."""
    if not reset:
        return np.dtype(estimator.model_.dtype)
    if estimator.dtype is not None:
        return np.dtype(estimator.dtype)
    return np.dtype(np.float32 if estimator.model is not None or getattr(X, "dtype", None) == np.float32 else np.float64)


def _sequences(X: Any) -> list[Any] | None:
    """A list of arrays, those of one axis as steps of one number; None of what is one array."""
    if isinstance(X, np.ndarray) and not (X.dtype == object and X.ndim == 1):
        return None
    if not isinstance(X, (list, tuple, np.ndarray)) or not len(X):
        return None
    if not all(hasattr(part, "__len__") and not isinstance(part, str) for part in X):
        return None
    ranks = {np.ndim(part) if hasattr(part, "ndim") else np.asarray(part, object).ndim for part in X}
    if not (ranks == {1} and len({len(part) for part in X}) > 1) and not (all(hasattr(part, "ndim") for part in X) and min(ranks) > 1):
        return None
    parts = [np.asarray(part) for part in X]
    return [part[:, np.newaxis] if part.ndim == 1 else part for part in parts]


def _checked_sequences(estimator: Any, sequences: list[Any], reset: bool) -> list[Any]:
    name = type(estimator).__name__
    if estimator.model is None:
        raise ValueError(
            f"{name}: X has sequences, which the dense network that is made by default does not take; give a model, such as "
            "model=lambda outputs: C.layers.Sequential([C.layers.Fold(C.layers.LSTM(32)), C.layers.Dense(outputs)])"
        )
    for place, part in enumerate(sequences):
        if part.dtype.kind not in "fiub":
            raise ValueError(f"{name}: sequence {place} of X is not of numbers, but of {part.dtype}")
        if not len(part) or not np.isfinite(part).all():
            raise ValueError(f"{name}: sequence {place} of X {'has no steps' if not len(part) else 'has values that are NaN or infinite'}")
    shapes = {part.shape[1:] for part in sequences}
    wanted = shapes if reset else {estimator.input_shape_}
    if len(shapes | wanted) > 1:
        raise ValueError(f"{name}: steps of X must have one shape, got {sorted(shapes | wanted)}")
    dtype = _type_for(estimator, sequences, reset)
    return [part.astype(dtype, copy=False) for part in sequences]


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
