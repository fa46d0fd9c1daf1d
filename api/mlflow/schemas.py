"""What a function takes and gives, as a signature of MLflow."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from cntk.core.graph.function import Function
from cntk.eval.signature import Signature, TensorInfo
from cntk.mlflow.package import mlflow_module

SPARSE = ("dense", "indices")


def model_signature(function: Function, lengths: bool = True, sparse: str = "dense") -> Any:
    """What a function takes and gives, as a ``ModelSignature`` of MLflow: a tensor for each input and output, by name.

    Batch axis, sequence axis and free dimensions have the size -1.  A sequence axis goes with a vector of lengths, ``sequence_lengths`` for
    the default one, since sequences come padded to an array.  Types are those of the function, float32 for bfloat16.

    Args:
        function: the function; of several results, losses and metrics are left out.
        lengths: whether the lengths of sequences are among the inputs; without them, all of a minibatch are equally long.
        sparse: whether sparse inputs are ``'dense'`` tensors or ``'indices'``, the number of the element that is 1 in each row or step.

    Raises:
        ImportError: MLflow is not installed.
        ValueError: *sparse* is something else, or a type is not known yet.

    >>> import cntk.mlflow                                                      # doctest: +SKIP
    >>> z = C.layers.Dense(2, name='z')(C.input_variable(3, name='x'))          # doctest: +SKIP
    >>> print(cntk.mlflow.model_signature(z))                                   # doctest: +SKIP
    inputs:
      ['x': Tensor('float32', (-1, 3))]
    outputs:
      ['z': Tensor('float32', (-1, 2))]
    params:
      None
    """
    if sparse not in SPARSE:
        raise ValueError(f"sparse must be 'dense' or 'indices', got {sparse!r}")
    described = Signature(function)
    inputs = [
        _indices(info) if info.is_sparse and sparse == "indices" else (info.name, element_type(info), info.dims)
        for info in described.inputs
    ]
    outputs = [(info.name, element_type(info), info.dims) for info in described.outputs]
    return mlflow_module("mlflow.models").ModelSignature(
        _schema([*inputs, *_lengths(described, described.inputs if lengths else ())]),
        _schema([*outputs, *_lengths(described, described.outputs)]),
    )


def element_type(info: TensorInfo) -> Any:
    """The type of elements outside: NumPy's own types, float32 for others."""
    return info.dtype if info.dtype.isbuiltin == 1 else np.dtype(np.float32)


Entry = tuple[str, Any, tuple[Any, ...]]
"""Name, type, and axes: numbers are sizes."""


def _indices(info: TensorInfo) -> Entry:
    return info.name, np.dtype(np.int64), info.dims[:-1]


def _lengths(described: Signature, infos: Iterable[TensorInfo]) -> Iterator[Entry]:
    names = dict.fromkeys(described.lengths_name(info) for info in infos if info.sequence_axis is not None)
    return ((name, np.dtype(np.int64), ("batch",)) for name in names)


def _schema(entries: Iterable[Entry]) -> Any:
    types = mlflow_module("mlflow.types")
    return types.Schema(
        [types.TensorSpec(dtype, tuple(size if isinstance(size, int) else -1 for size in dims), name) for name, dtype, dims in entries]
    )


def example_of(function: Function, signature: Any) -> dict[str, Any]:
    """The least that fits :func:`model_signature`: one row of zeros, in sequences of one step."""
    inputs = {info.name for info in Signature(function).inputs}
    return {
        spec.name: np.full([max(size, 1) for size in spec.shape], 0 if spec.name in inputs else 1, spec.type)
        for spec in signature.inputs.inputs
    }


def schema_of_frame(frame: Any) -> Any:
    """The columns of a frame, as the inputs of a signature."""
    return mlflow_module("mlflow.models").infer_signature(frame).inputs
